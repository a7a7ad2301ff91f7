"""Texts with several labels each, or none: a separator in the label column of a table, lists in JSON lines."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.data.columns import Column, listed
from albert_tf.data.rows import MISSING, start_of
from albert_tf.data.schema import TextExample
from albert_tf.data.tables import discover_labels, example_in, label_in, open_table
from albert_tf.errors import InputError

SEPARATOR = ","


@dataclasses.dataclass(frozen=True)
class MultiLabelExample:
    """One row of a file.

    Attributes:
        text: the (first) text.
        pair: the second text of a pair task, or None.
        labels: its labels, in the order of the file, maybe none; or None where the file has no labels.
    """

    text: str
    pair: str | None = None
    labels: tuple[str, ...] | None = None


def read_multi_label(
    path: str | Path,
    *,
    text_column: Column | None = None,
    pair_column: Column | None = None,
    label_column: Column | None = None,
    label_separator: str = SEPARATOR,
    labels_required: bool = True,
) -> list[MultiLabelExample]:
    """Reads every row of a table, as `albert_tf.data.tables.read_examples` does, but with several labels a row.

    Args:
        path: the file.
        text_column, pair_column, label_column: as `read_examples` takes them.
        label_separator: what stands between labels in a cell; a blank cell has none. In .jsonl also a list of labels.
        labels_required: False reads files without labels.

    Raises:
        InputError: see `read_examples`; a blank label between two separators, or a label that stands twice in a row.
    """
    if not label_separator:
        raise InputError("label_separator: expected a character or more, got none")
    asked = {"text": text_column, "pair": pair_column, "label": label_column}
    rows, columns = open_table(path, asked, labels_required=labels_required)
    examples = []
    for line, row in rows:
        where = f"{path}, line {line}"
        example = example_in(row, columns | {"label": None}, where, labels_required=False)
        cell = MISSING if columns["label"] is None else row[columns["label"]]
        labels = _labels(cell, label_separator, where)
        if labels is None and labels_required:
            raise InputError(f"{where}: expected labels, found no such key")
        examples.append(MultiLabelExample(example.text, example.pair, labels))
    if not examples:
        raise InputError(f"{path}: expected rows of text, found only the header")
    return examples


def discover_label_names(
    examples: Iterable[MultiLabelExample], label_file: str | Path | None = None, *, source: str | Path | None = None
) -> list[str]:
    """All labels of a training set, in the order that `albert_tf.data.tables.discover_labels` gives them."""
    found = [TextExample("", None, label) for example in examples for label in example.labels or ()]
    return discover_labels(found, label_file, source=source)


def encode_label_sets(examples: Iterable[MultiLabelExample], labels: Sequence[str], source: str | Path) -> np.ndarray:
    """float32 (examples, labels): 1 where the example has the label.

    Raises:
        InputError: an example has a label that is not in `labels`; the message names `source`, the row counted from 1, and
            how its text begins.
    """
    ids = {label: index for index, label in enumerate(labels)}
    rows = []
    for number, example in enumerate(examples, start=1):
        unknown = [label for label in example.labels or () if label not in ids]
        if example.labels is None or unknown:
            problem = "has no labels" if not unknown else f"has the label {unknown[0]!r}"
            raise InputError(
                f"{source}, row {number} ({start_of(example.text)}) {problem}; the model's labels are {listed(labels)}"
            )
        row = np.zeros(len(labels), np.float32)
        row[[ids[label] for label in example.labels]] = 1.0
        rows.append(row)
    return np.stack(rows) if rows else np.zeros((0, len(labels)), np.float32)


def _labels(cell: Any, separator: str, where: str) -> tuple[str, ...] | None:
    if cell is MISSING:
        return None
    parts = cell if isinstance(cell, list) else cell.split(separator) if isinstance(cell, str) else [cell]
    labels = [label_in(part, where) for part in parts]
    if labels == [None] and not isinstance(cell, list):
        return ()
    if None in labels:
        raise InputError(f"{where}: label {labels.index(None) + 1} is blank; the labels are {start_of(str(cell))}")
    named = [label for label in labels if label is not None]
    if len(set(named)) < len(named):
        raise InputError(f"{where}: a label stands twice: {listed(named)}")
    return tuple(named)
