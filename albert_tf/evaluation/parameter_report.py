"""Parameters of ALBERT beside those of the BERT it is made from: figures, terminal tables and a bar chart.

The argument of the ALBERT paper in numbers (Lan et al., ICLR 2020, section 3): a word embedding of V·E + E·H weights
instead of V·H, and one layer's weights instead of L layers'.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.evaluation.fonts import drawable_labels
from albert_tf.evaluation.report import save_figure
from albert_tf.parameters import PARTS, bert_counterpart, count_parameters

if TYPE_CHECKING:
    from rich.table import Table

Comparison = dict[str, Any]  # what `compare_with_bert` returns

_PART_COLORS = {
    "word_table": "#1f5fa8",
    "position_and_segment": "#7fb0e0",
    "projection": "#2a9d8f",
    "attention": "#d9601a",
    "feed_forward": "#f2b134",
    "pooler": "#8a5fb0",
    "heads": "#9a9a9a",
}


def with_sharing(config: AlbertConfig, sharing: str) -> AlbertConfig:
    """The same shape with another sharing mode; "none" leaves no groups, since groups are what shares."""
    num_groups = 1 if sharing == "none" else config.num_groups
    return dataclasses.replace(config, sharing=sharing, num_groups=num_groups)


def compare_with_bert(name: str, config: AlbertConfig, *, heads: bool = False) -> Comparison:
    """The figures of `config` and of its BERT counterpart, ready for JSON.

    Args:
        name: what to call the model.
        config: its shape.
        heads: whether to count the two pretraining heads with the encoder and the pooler.

    Returns:
        `name`, the dimensions, `albert` and `bert` (see `_figures`) and `times_smaller`: BERT's figure divided by
        ALBERT's for the word embedding, the layers and the total.
    """
    albert, bert = _figures(config, heads), _figures(bert_counterpart(config), heads)
    return {
        "name": name,
        "sharing": config.sharing,
        "vocabulary_size": config.vocabulary_size,
        "embedding_dim": config.embedding_dim,
        "hidden_dim": config.hidden_dim,
        "num_layers": config.num_layers,
        "albert": albert,
        "bert": bert,
        "times_smaller": {key: bert[key] / albert[key] for key in ("word_embedding", "layers", "total")},
    }


def parameter_tables(comparisons: Sequence[Comparison], *, heads: bool = False) -> list["Table"]:
    """Three terminal tables: the word embedding, the layers, the total; a row for each comparison.

    `ratio` is BERT's figure divided by ALBERT's; `heads` says whether the comparisons count the pretraining heads.
    """
    by_name = {row["name"]: row for row in comparisons}  # sharing does not touch the embedding
    embedding = _table(
        "Word embedding: V × H in BERT, V × E + E × H in ALBERT",
        ["model", "V", "H", "E", "BERT", "ALBERT", "ratio"],
        (
            [
                *(row[key] for key in ("name", "vocabulary_size", "hidden_dim", "embedding_dim")),
                *(row[system]["word_embedding"] for system in ("bert", "albert")),
                _times(row["times_smaller"]["word_embedding"]),
            ]
            for row in by_name.values()
        ),
    )
    layers = _table(
        "Encoder layers: L times one in BERT, shared in ALBERT",
        ["model", "shared", "L", "one layer", "BERT", "ALBERT", "ratio"],
        (
            [
                *(row[key] for key in ("name", "sharing", "num_layers")),
                *(row["albert"]["one_layer"], row["bert"]["layers"], row["albert"]["layers"]),
                _times(row["times_smaller"]["layers"]),
            ]
            for row in comparisons
        ),
    )
    total = _table(
        f"Total with pooler{' and pretraining heads' if heads else ''}; share of embeddings",
        ["model", "shared", "BERT", "share", "ALBERT", "share", "ratio"],
        (
            [
                *(row["name"], row["sharing"]),
                *(row["bert"]["total"], f"{row['bert']['embedding_share']:.1%}"),
                *(row["albert"]["total"], f"{row['albert']['embedding_share']:.1%}"),
                _times(row["times_smaller"]["total"]),
            ]
            for row in comparisons
        ),
    )
    return [embedding, layers, total]


def plot_parameters(comparisons: Sequence[Comparison], path: str | Path, *, overwrite: bool = False) -> None:
    """Draws a bar for each comparison and, below those of one model, that of its BERT; stacked by part.

    Args:
        comparisons: what to draw, from the top down.
        path: a .png, .svg or .pdf file.
        overwrite: whether the file may exist.

    Raises:
        InputError: the file cannot be written.
    """
    from matplotlib.figure import Figure

    names, models, places = _bars(comparisons)
    shown, families = drawable_labels(names)
    figure = Figure(figsize=(9, 1.4 + 0.21 * places[-1]), layout="constrained")
    axes = figure.subplots()
    starts = np.zeros(len(models))
    for part in PARTS:
        lengths = np.array([model["parts"][part] / 1e6 for model in models])
        if lengths.any():
            color = _PART_COLORS[part]
            axes.barh(places, lengths, height=0.9, left=starts, color=color, label=part.replace("_", " "))
        starts += lengths
    for total, place in zip(starts, places, strict=True):
        axes.text(total, place, f"  {total:,.1f} M", va="center", fontsize=8)
    axes.set_yticks(places, shown, fontsize=8, fontfamily=families, parse_math=False)
    axes.set_ylim(places[-1] + 0.7, -0.7)
    axes.set_xlim(0, 1.13 * starts.max())
    axes.set_xlabel("million parameters")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.legend(loc="outside upper center", ncols=len(PARTS), frameon=False, fontsize=8)
    save_figure(figure, path, overwrite=overwrite)


def _bars(comparisons: Sequence[Comparison]) -> tuple[list[str], list[dict[str, Any]], list[int]]:
    """The name, the figures and the place of each bar; models are a bar's width apart."""
    modes_differ = len({row["name"] for row in comparisons}) < len(comparisons)
    names, models, places = [], [], []
    place = 0
    for row, following in itertools.zip_longest(comparisons, comparisons[1:]):
        bars = [(f"{row['name']} ({row['sharing']})" if modes_differ else row["name"], row["albert"])]
        if following is None or following["name"] != row["name"]:
            bars.append(("as BERT", row["bert"]))
        for name, model in bars:
            names.append(name)
            models.append(model)
            places.append(place)
            place += 1
        place += len(bars) - 1  # a gap after the BERT
    return names, models, places


def _figures(config: AlbertConfig, heads: bool) -> dict[str, Any]:
    """Counts of one model: `word_embedding` without bias, `one_layer`, all `layers`, `total`, `parts`, and the share of
    all embedding parameters in the total."""
    counts = count_parameters(config, heads=heads)
    single = dataclasses.replace(config, num_layers=1, num_groups=1, sharing="all")
    word_embedding = config.vocabulary_size * config.embedding_dim
    if config.has_projection:
        word_embedding += config.embedding_dim * config.hidden_dim
    return {
        "word_embedding": word_embedding,
        "one_layer": count_parameters(single).encoder,
        "layers": counts.encoder,
        "total": counts.total,
        "embedding_share": counts.embedding / counts.total,
        "parts": counts.parts,
    }


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str | int]]) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        if column in ("model", "shared"):
            table.add_column(column, overflow="fold")
        else:
            table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(f"{cell:,}" if isinstance(cell, int) else cell) for cell in row))
    return table


def _times(factor: float) -> str:
    return f"{factor:.1f}×"
