"""What a run leaves for a person to look at: curves, a confusion matrix, a table for the terminal, a JSON file.

Figures are drawn with matplotlib's object interface, so nothing depends on or changes pyplot's state, and no display is
needed.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from albert_tf.errors import InputError
from albert_tf.evaluation.fonts import drawable_labels, quiet_font_search
from albert_tf.files import refuse_existing, written_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table

FIGURE_FORMATS = ("png", "svg", "pdf")
TRAIN_COLOR, VALIDATION_COLOR, RATE_COLOR = "#1f5fa8", "#d9601a", "#4a4a4a"
_MOST_INCHES = 20.0
_MAX_NUMBERED_LABELS = 25  # above that the cells of a confusion matrix are too small for their counts


def plot_history(
    history: Sequence[Mapping[str, float]], path: str | Path, *, metric: str = "accuracy", overwrite: bool = False
) -> None:
    """Draws loss, metric and learning rate as they went; training beside validation.

    Args:
        history: one mapping for each epoch, or for each round between validations: `loss`, `valid_loss`, `metric`,
            "valid_" + `metric` and `learning_rate`. What none of them holds is not drawn; a missing value or NaN leaves
            a gap. The horizontal axis is `step` where all of them have it, or else the epoch counted from 1.
        path: a .png, .svg or .pdf file.
        metric: what the second panel shows.
        overwrite: whether the file may exist.

    Raises:
        InputError: no mapping holds a `loss`, or the file cannot be written.
    """
    from matplotlib.figure import Figure

    if not any("loss" in epoch for epoch in history):
        raise InputError(f"history: expected one mapping with 'loss' per epoch, got {list(history)[:1]}")
    axis, moments, panels = history_panels(history, metric)
    figure = Figure(figsize=(4.2 * len(panels), 3.4), layout="constrained")
    for axes, (title, lines) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        draw_panel(axes, title, moments, lines)
        axes.set_xlabel(axis)
    save_figure(figure, path, overwrite=overwrite)


def history_panels(
    history: Sequence[Mapping[str, float]], metric: str
) -> tuple[str, list[float], list[tuple[str, list[tuple[str, list[float]]]]]]:
    """What `plot_history` draws: the name of the horizontal axis, its values, and for each panel its title and its lines,
    a label with values each."""
    axis = "step" if all("step" in epoch for epoch in history) else "epoch"
    moments = [epoch[axis] if axis == "step" else number for number, epoch in enumerate(history, start=1)]
    panels = [
        (title, lines)
        for title, names in (
            ("loss", {"loss": "training", "valid_loss": "validation"}),
            (metric.replace("_", " "), {metric: "training", f"valid_{metric}": "validation"}),
            ("learning rate", {"learning_rate": ""}),
        )
        if (lines := [(label, _series(history, name)) for name, label in names.items() if _occurs(history, name)])
    ]
    return axis, moments, panels


def draw_panel(axes: "Axes", title: str, moments: Sequence[float], lines: Sequence[tuple[str, list[float]]]) -> None:
    """Draws a panel of `history_panels`."""
    from matplotlib.ticker import MaxNLocator

    marker = "o" if len(moments) <= 30 else ""
    for label, values in lines:
        color = {"training": TRAIN_COLOR, "validation": VALIDATION_COLOR}.get(label, RATE_COLOR)
        style = "--" if label == "validation" else "-"  # for who does not tell the colors apart
        axes.plot(moments, values, style, marker=marker, markersize=4, color=color, label=label)
    axes.set_title(title, fontsize=11, parse_math=False)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if lines[0][0]:
        axes.legend(frameon=False)


def plot_confusion_matrix(
    matrix: Sequence[Sequence[int]] | np.ndarray, labels: Sequence[str], path: str | Path, *, overwrite: bool = False
) -> None:
    """Draws a confusion matrix: colour by the share of each true label, counts in the cells up to 25 labels.

    A label in a script that no installed font has is shown by its number, counted from 0.

    Args:
        matrix: (labels, labels) counts, rows the truth.
        labels: the label of each row and column.
        path: a .png, .svg or .pdf file.
        overwrite: whether the file may exist.

    Raises:
        InputError: the matrix does not fit the labels, or the file cannot be written.
    """
    from matplotlib.figure import Figure
    from rich.cells import cell_len

    counts = np.asarray(matrix)
    size = len(labels)
    if not size or counts.shape != (size, size):
        raise InputError(f"matrix: expected {size} × {size} counts, as many as labels, got the shape {counts.shape}")
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    short = [label if len(label) <= 24 else label[:23] + "…" for label in labels]
    names, families = drawable_labels(short)
    longest = max(map(cell_len, names))
    # Inches. Many labels share what room there is: the picture's memory grows with its area.
    cell = max(0.55, 2.2 / size) if size <= _MAX_NUMBERED_LABELS else min(0.2, _MOST_INCHES / size)
    shown = range(0, size, math.ceil(0.2 / cell) if cell < 0.2 else 1)  # a name for each 0.2 inches
    side = cell * size + 0.075 * longest
    figure = Figure(figsize=(side + 2.0, side + 1.0), layout="compressed")
    axes = figure.subplots()
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, aspect=20 if cell > 0.2 else 50, label="share of the true label")
    bar.outline.set_visible(False)
    ticks: dict[str, Any] = {"fontsize": 9 if cell > 0.2 else 7, "fontfamily": families, "parse_math": False}
    axes.set_xticks(shown, [names[i] for i in shown], rotation=90 if 0.1 * longest > cell else 0, **ticks)
    axes.set_yticks(shown, [names[i] for i in shown], **ticks)
    axes.set(xlabel="predicted", ylabel="true")
    if any(name == f"#{n}" != short[n] for n, name in enumerate(names)):
        axes.set_title("#n: label n, counted from 0;\nno installed font has its characters", fontsize=8)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=2)
    if size <= _MAX_NUMBERED_LABELS:
        _number_cells(axes, counts, shares)
    save_figure(figure, path, overwrite=overwrite)


def metrics_table(metrics: Mapping[str, Any], title: str) -> "Table":
    """A terminal table of the figures of `classification_metrics` or the like: one row for each number.

    A mapping inside, such as `support`, gives one row for each entry; lists, such as the confusion matrix, are left to
    `plot_confusion_matrix` and the JSON file.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left")
    table.add_column("metric")
    table.add_column("value", justify="right")
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            for key, entry in value.items():
                table.add_row(Text(f"{_words(name)}: {key}"), _number(entry))
        elif not isinstance(value, (list, tuple, np.ndarray)):
            table.add_row(Text(_words(name)), _number(value))
    return table


def write_json(path: str | Path, content: Any, *, overwrite: bool = False) -> None:
    """Writes a JSON file. NumPy values become plain ones and paths text; NaN and infinities, which JSON lacks, null.

    Raises:
        InputError: the file exists and `overwrite` is false, or its folder cannot be created.
        TypeError: something that has no JSON form.
    """
    text = json.dumps(_plain(content), indent=2, ensure_ascii=False, allow_nan=False)
    with written_whole(path, overwrite=overwrite) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def check_figure_path(path: str | Path, *, overwrite: bool) -> None:
    """What `save_figure` would refuse, to be asked before long work.

    Raises:
        InputError: the suffix is none of `FIGURE_FORMATS`, or the file exists and `overwrite` is false.
    """
    if Path(path).suffix.lower().removeprefix(".") not in FIGURE_FORMATS:
        raise InputError(f"{path}: expected a file name that ends in .{', .'.join(FIGURE_FORMATS)}")
    refuse_existing(path, overwrite=overwrite, file=True)


def save_figure(figure: "Figure", path: str | Path, *, overwrite: bool = False) -> None:
    """Writes a figure in the format of the path's suffix.

    Raises:
        InputError: see `check_figure_path`.
    """
    check_figure_path(path, overwrite=overwrite)
    with written_whole(path, overwrite=overwrite) as temporary, quiet_font_search():
        figure.savefig(temporary, dpi=150, format=Path(path).suffix.lower().removeprefix("."))


def _occurs(history: Sequence[Mapping[str, float]], name: str) -> bool:
    return any(name in epoch for epoch in history)


def _series(history: Sequence[Mapping[str, float]], name: str) -> list[float]:
    return [float(epoch.get(name, math.nan)) for epoch in history]


def _number_cells(axes: "Axes", counts: np.ndarray, shares: np.ndarray) -> None:
    for row, column in np.ndindex(*counts.shape):
        number = f"{counts[row, column]:,}"
        color = "white" if shares[row, column] > 0.55 else "black"
        size = 9 if len(number) <= 5 else 7
        axes.text(column, row, number, ha="center", va="center", color=color, fontsize=size)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _number(value: Any) -> str:
    if isinstance(value, (bool, str)) or value is None:
        return str(value)
    return f"{value:,}" if isinstance(value, (int, np.integer)) else f"{value:.4f}"


def _plain(value: Any) -> Any:
    """`value` in types that JSON has; what is none of ours is left for json.dumps to refuse."""
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return str(value) if isinstance(value, Path) else value
