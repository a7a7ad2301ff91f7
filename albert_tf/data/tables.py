"""Labelled texts from .tsv, .csv and .jsonl files, and the labels found in them.

A .tsv file is read as GLUE writes it: no quoting, so a lone `"` is text, and a field holds neither tabs nor line
breaks. A .csv file follows RFC 4180, quoted fields with line breaks included. A .jsonl file has one JSON object a line.
"""

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from albert_tf.data.columns import Column, find_columns, listed, number_or_name
from albert_tf.data.rows import MISSING, Row, format_of, json_rows, split_lines, start_of, table_rows, text_in
from albert_tf.data.schema import TextExample, is_label
from albert_tf.errors import InputError
from albert_tf.files import read_text, written_whole

_LARGEST_VALUE = 1e18  # float32, in which models compute, has the square of it


def read_examples(
    path: str | Path,
    *,
    text_column: Column | None = None,
    pair_column: Column | None = None,
    label_column: Column | None = None,
    format: str | None = None,
    header: bool | None = None,
    labels_required: bool = True,
) -> list[TextExample]:
    """Reads every row of a table. UTF-8, with or without byte order mark, line ends LF or CRLF.

    Texts are kept as they are: an empty text is data, so are a NUL, a lone quote or spaces at the end. Labels lose the
    spaces around them. Blank lines at the end of the file are no rows; in a table of one column a blank line is an
    empty text.

    Args:
        path: the file.
        text_column, pair_column, label_column: a name, or a number counted from 0 (not in .jsonl). When no text or
            pair column is given, "sentence", "text", "sentence1" + "sentence2", "question" + "sentence", "text_a" +
            "text_b" and "premise" + "hypothesis" are found by themselves; a text column given alone means no pair.
            The label is "label", "labels", "gold_label", "score" or "class".
        format: "tsv", "csv" or "jsonl"; None goes by the file's suffix.
        header: whether the first row names the columns; None: it does unless every given column is a number.
        labels_required: False reads files without labels; where there is a label column it is read all the same, and
            blank labels become None.

    Raises:
        InputError: the file is empty or not in its format, a column is not there, a row has too few or too many
            fields, a label is blank where labels are required. The message names the file and the line.
    """
    asked = {"text": text_column, "pair": pair_column, "label": label_column}
    rows, columns = open_table(path, asked, format=format, header=header, labels_required=labels_required)
    examples = [example_in(row, columns, f"{path}, line {line}", labels_required) for line, row in rows]
    if not examples:
        raise InputError(f"{path}: expected rows of text, found only the header")
    return examples


def open_table(
    path: str | Path,
    asked: dict[str, Column | None],
    *,
    format: str | None = None,
    header: bool | None = None,
    labels_required: bool = True,
) -> tuple[Iterable[Row], dict[str, int | None]]:
    """The rows of a table, and where in them text, pair and label are; the arguments are those of `read_examples`."""
    kind = format_of(path, format)
    content = read_text(path)
    if kind == "jsonl":
        if header is not None or any(isinstance(column, int) for column in asked.values()):
            raise InputError(f"{path}: a .jsonl file has neither header nor numbered columns; choose columns by name")
        named = True
        names, rows = json_rows(content, path)
    else:
        asked = {role: number_or_name(column) for role, column in asked.items()}
        given = [column for column in asked.values() if column is not None]
        named = header if header is not None else not given or any(isinstance(column, str) for column in given)
        names, rows = table_rows(content, path, kind, header=named)
    return rows, find_columns(asked, names, path, named=named, labels_required=labels_required)


def example_of(
    record: Mapping[str, Any], *, text_column: Column | None = None, pair_column: Column | None = None
) -> TextExample:
    """The text, or pair of texts, in a JSON object; a label in it is not looked at. Columns as in `read_examples`.

    Raises:
        InputError: the object has no such text.
    """
    asked = {"text": text_column, "pair": pair_column, "label": None}
    columns = find_columns(asked, list(record), "the object", named=True, labels_required=False) | {"label": None}
    return example_in(list(record.values()), columns, "the object", labels_required=False)


def read_labels(path: str | Path) -> list[str]:
    """Reads a label file: one label a line, in the order of the model's outputs.

    Raises:
        InputError: a blank line, a label that stands twice, or fewer than two labels.
    """
    labels: list[str] = []
    for number, line in enumerate(split_lines(read_text(path)), start=1):
        label = line.strip()
        if not label:
            raise InputError(f"{path}, line {number}: expected a label, found a blank line; remove it")
        if label in labels:
            raise InputError(f"{path}, line {number}: {label!r} stands on line {labels.index(label) + 1} already")
        labels.append(label)
    if len(labels) < 2:
        raise InputError(f"{path}: expected at least two labels, one a line; found {len(labels)}")
    return labels


def write_labels(path: str | Path, labels: Sequence[str], *, overwrite: bool = False) -> None:
    """Writes a label file that `read_labels` reads back.

    Raises:
        InputError: a label is blank, has spaces around it, holds a line break or stands twice, or the file exists.
    """
    if len(set(labels)) < len(labels):
        raise InputError(f"expected different labels, got {listed(labels)}")
    for label in labels:
        if not is_label(label):
            raise InputError(
                f"expected a label of one line without control characters or spaces around it, got {label!r}"
            )
    with written_whole(path, overwrite=overwrite) as temporary:
        temporary.write_text("".join(f"{label}\n" for label in labels), encoding="utf-8", newline="\n")


def discover_labels(
    examples: Iterable[TextExample], label_file: str | Path | None = None, *, source: str | Path | None = None
) -> list[str]:
    """The labels of a training set: in the order of `label_file`, or else sorted (integers by value: 0, 1, 10).

    Args:
        examples: of the set.
        label_file: all labels, one a line.
        source: what to call the set in an error message.

    Raises:
        InputError: an example has no label or one that the file lacks, or all examples have the same label.
    """
    where = "" if source is None else f"{source}: "
    counts = Counter(example.label for example in examples)
    found = [label for label in counts if label is not None]
    if unfit := [label for label in found if not is_label(label)]:
        raise InputError(f"{where}expected labels of one line without control characters, got {unfit[0]!r}")
    if None in counts:
        raise InputError(f"{where}{counts[None]} of the examples have no label; training needs one for each")
    if len(found) < 2:
        raise InputError(
            f"{where}expected examples of two or more labels, found one class only: {listed(found) or 'none'}"
        )
    widths: dict[str, str] = {}
    for label in found:
        other = widths.setdefault(unicodedata.normalize("NFKC", label), label)
        if other != label:
            raise InputError(
                f"{where}the labels {other!r} and {label!r} differ only in the width of characters; make them one"
            )
    if label_file is None:
        whole_numbers = all(re.fullmatch(r"[+-]?[0-9]{1,18}", label) for label in found)
        return sorted(found, key=lambda label: (int(label), label) if whole_numbers else (0, label))
    labels = read_labels(label_file)
    unknown = [f"{label!r} ({counts[label]} examples)" for label in sorted(set(found) - set(labels))]
    if unknown:
        raise InputError(f"{where}labels that {label_file} lacks: {listed(unknown)}; the file has {listed(labels)}")
    return labels


def encode_labels(examples: Iterable[TextExample], labels: Sequence[str], source: str | Path) -> list[int]:
    """The position in `labels` of each example's label.

    Raises:
        InputError: an example's label is not in `labels`; the message names `source`, the row counted from 1, and how
            its text begins.
    """
    ids = {label: index for index, label in enumerate(labels)}
    encoded = []
    for row, example in enumerate(examples, start=1):
        if example.label is None or example.label not in ids:
            problem = "has no label" if example.label is None else f"has the label {example.label!r}"
            if unicodedata.normalize("NFKC", example.label or "") in ids:
                problem += " in full-width characters"
            raise InputError(
                f"{source}, row {row} ({start_of(example.text)}) {problem}; the model's labels are {listed(labels)}"
            )
        encoded.append(ids[example.label])
    return encoded


def encode_values(examples: Iterable[TextExample], source: str | Path) -> list[float]:
    """Each example's label as a number.

    Raises:
        InputError: an example's label is none, or too large for the model; the message names `source`, the row counted from
            1, and how its text begins.
    """
    values = []
    for row, example in enumerate(examples, start=1):
        try:
            value = float(unicodedata.normalize("NFKC", example.label or ""))  # full-width digits and points too
        except ValueError:
            value = math.nan
        where = f"{source}, row {row} ({start_of(example.text)})"
        if not math.isfinite(value):
            raise InputError(f"{where}: expected a number as the label, got {example.label!r}")
        if abs(value) > _LARGEST_VALUE:
            raise InputError(
                f"{where}: expected a number of at most {_LARGEST_VALUE:g}, got {example.label!r}; "
                "divide the labels by what makes them small"
            )
        values.append(value)
    return values


def example_in(row: list[Any], columns: dict[str, int | None], where: str, labels_required: bool) -> TextExample:
    """The example in a row of a table, whose columns are as `open_table` gives them."""
    cells = {role: None if column is None else row[column] for role, column in columns.items()}
    label = label_in(cells["label"], where)
    if label is None and labels_required:
        raise InputError(f"{where}: expected a label, found none")
    pair = None if columns["pair"] is None else text_in(cells["pair"], "second text", where)
    return TextExample(text_in(cells["text"], "text", where), pair, label)


def label_in(cell: Any, where: str) -> str | None:
    """A label as text: JSON's true is "true", 1 and 1.0 are "1", 0.5 is "0.5"; None where it is blank or missing."""
    if cell is None or cell is MISSING:
        return None
    if isinstance(cell, bool):
        return json.dumps(cell)
    if isinstance(cell, int):
        return str(cell)
    if isinstance(cell, float):
        if not math.isfinite(cell):
            raise InputError(f"{where}: expected a finite label, got {cell}")
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    return text_in(cell, "label", where).strip() or None
