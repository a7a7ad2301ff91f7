"""What `albert-tf tune-device` shows of its candidates: rows of a table, three charts, and a record for JSON."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert_tf.evaluation.fonts import quiet_font_search
from albert_tf.evaluation.report import TRAIN_COLOR, VALIDATION_COLOR, save_figure
from export.tuning import Chosen, Tried, TuneRequest
from export.tuning_choice import Figures, pareto_front

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.table import Table

_MEGABYTE = 1e6
_OTHER_COLOR = "#8a9099"
# Title, and what is drawn to the right.
_CHARTS = (
    ("latency, ratio to the reference", "latency_ratio", 1.0),
    ("size, MB", "size_bytes", _MEGABYTE),
    ("memory, MB", "memory_bytes", _MEGABYTE),
)


def tried_table(tried: Tried, request: TuneRequest) -> "Table":
    """A row for each candidate, from the most accurate on, of those the fastest first."""
    from rich.table import Table
    from rich.text import Text

    told = Text("* on the Pareto front, ! misses a bound")
    table = Table(title=told, title_justify="left", box=None, padding=(0, 1, 0, 0))  # narrow: 80 columns hold it
    table.add_column("candidate", overflow="fold")
    for header in (tried.metric.replace("_", " "), "lost", "ms", "ratio", "passes", "MB", "memory"):
        table.add_column(Text(header), justify="right", no_wrap=True)
    both = zip(tried.figures, on_front(tried.figures), strict=True)
    for one, front in sorted(both, key=lambda pair: (-pair[0].value, pair[0].latency_ratio)):
        table.add_row(*(Text(cell) for cell in _cells(one, front, request)))
    return table


def _cells(one: Figures, front: bool, request: TuneRequest) -> tuple[str, ...]:
    missed = {name: "!" for name in request.bounds.excesses(one)}
    return (
        f"{'*' if front else ' '} {one.candidate.name}",
        f"{one.value:.4f}",
        f"{one.points_lost:+.2f}{missed.get('drop', ' ')}",
        f"{one.latency_ms:.2f}",
        f"{one.latency_ratio:.3f}{missed.get('latency', ' ')}",
        f"{one.mean_passes:.2f}",
        f"{one.size_bytes / _MEGABYTE:.2f}{missed.get('size', ' ')}",
        f"{one.memory_bytes / _MEGABYTE:.1f}",
    )


def on_front(figures: Sequence[Figures]) -> list[bool]:
    """Whether no other candidate is as good in accuracy, latency, size and memory, and better in one of them."""
    return pareto_front([one.costs for one in figures])


def tuning_record(tried: Tried, request: TuneRequest, chosen: Chosen) -> dict[str, Any]:
    """Everything that was found, for JSON."""
    bounds = request.bounds
    return {
        "data": request.source,
        "examples": len(request.examples),
        "metric": tried.metric,
        "bounds": dataclasses.asdict(bounds),
        "prefer": request.prefer,
        "reference": tried.reference.candidate.name,
        "chosen": dataclasses.asdict(chosen.figures),
        "candidates": [
            dataclasses.asdict(one)
            | {"pareto": front, "misses": [excess.told for excess in bounds.excesses(one).values()]}
            for one, front in zip(tried.figures, on_front(tried.figures), strict=True)
        ],
        "left_out": tried.left_out,
        "export": dataclasses.asdict(chosen.report),
    }


def plot_tried(tried: Tried, chosen: Chosen, path: str | Path, *, overwrite: bool = False) -> None:
    """Draws the metric against latency, size and memory, each with the front of the two.

    Raises:
        InputError: see `albert_tf.evaluation.report.check_figure_path`.
    """
    from matplotlib.figure import Figure

    with quiet_font_search():
        figure = Figure(figsize=(13.2, 4.4), layout="constrained")
        for axes, (title, field, unit) in zip(figure.subplots(1, len(_CHARTS)), _CHARTS, strict=True):
            _draw(axes, tried, chosen, field, unit)
            axes.set(xlabel=title, ylabel=tried.metric.replace("_", " "))
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    save_figure(figure, path, overwrite=overwrite)


def _draw(axes: "Axes", tried: Tried, chosen: Chosen, field: str, unit: float) -> None:
    points = [(getattr(one, field) / unit, one.value) for one in tried.figures]
    front = sorted(
        point
        for point, best in zip(points, pareto_front([(cost, -value) for cost, value in points]), strict=True)
        if best
    )
    axes.plot(*zip(*points, strict=True), "o", markersize=4, color=_OTHER_COLOR, label="candidates")
    axes.plot(
        *zip(*front, strict=True), "-o", markersize=5, color=TRAIN_COLOR, drawstyle="steps-post", label="Pareto front"
    )
    marks = ((tried.reference, "s", "reference"), (chosen.figures, "*", "chosen"))
    for one, marker, label in marks:
        axes.plot(
            getattr(one, field) / unit,
            one.value,
            marker,
            markersize=13 if marker == "*" else 8,
            markerfacecolor="none" if marker == "s" else VALIDATION_COLOR,
            markeredgecolor=VALIDATION_COLOR,
            label=f"{label}: {one.candidate.name}",
        )
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
