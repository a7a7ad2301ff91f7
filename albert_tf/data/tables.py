"""Labelled texts from .tsv, .csv and .jsonl files, and the labels found in them.

A .tsv file is read as GLUE writes it: no quoting, so a lone `"` is text and a field can hold neither tab nor line break.
A .csv file follows RFC 4180, quoted fields with line breaks included. A .jsonl file has one JSON object a line.
"""

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from albert_tf.data.schema import TextExample
from albert_tf.errors import InputError
from albert_tf.files import read_text, written_whole

FORMATS = ("tsv", "csv", "jsonl")
Column = int | str  # a name in the header, or a number counted from 0 (also as digits)

# Columns that are understood without being told; compared without case, earlier ones win.
_PAIRED_COLUMNS = (
    ("sentence1", "sentence2"),
    ("text_a", "text_b"),
    ("premise", "hypothesis"),
    ("question", "sentence"),  # QNLI: here "sentence" is the second text
)
_TEXT_COLUMNS = ("sentence", "text", "sentence1", "question", "text_a", "premise")
_PAIR_COLUMNS = ("sentence2", "text_b", "hypothesis")
_LABEL_COLUMNS = ("label", "labels", "gold_label", "score", "class")
_MISSING = object()  # the cell of a JSON object that lacks the key


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
    kind = _format_of(path, format)
    content = read_text(path)
    asked = {"text": text_column, "pair": pair_column, "label": label_column}
    if kind == "jsonl":
        if header is not None:
            raise InputError(f"{path}: a .jsonl file has no header; leave header out")
        names, rows = _objects(content, path)
        named = True
    else:
        asked = {role: int(c) if isinstance(c, str) and re.fullmatch("[0-9]+", c) else c for role, c in asked.items()}
        given = [column for column in asked.values() if column is not None]
        named = header if header is not None else not given or any(isinstance(column, str) for column in given)
        records = _tab_records(content) if kind == "tsv" else _comma_records(content, path)
        names, rows = _table(records, path, kind, header=named)
    columns = _find_columns(asked, names, str(path), named=named, labels_required=labels_required)
    examples = [_example(row, columns, f"{path}, line {line}", labels_required) for line, row in rows]
    if not examples:
        raise InputError(f"{path}: expected rows of text, found only the header")
    return examples


def read_labels(path: str | Path) -> list[str]:
    """Reads a label file: one label a line, in the order of the model's outputs.

    Raises:
        InputError: a blank line, a label that stands twice, or fewer than two labels.
    """
    labels: list[str] = []
    for number, line in enumerate(_lines(read_text(path)), start=1):
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
        InputError: a label is blank, has spaces around it or holds a line break, or the file exists.
    """
    for label in labels:
        if not label or label != label.strip() or "\n" in label:
            raise InputError(f"expected a label of one line without spaces around it, got {label!r}")
    with written_whole(path, overwrite=overwrite) as temporary:
        temporary.write_text("".join(f"{label}\n" for label in labels), encoding="utf-8", newline="\n")


def discover_labels(examples: Iterable[TextExample], label_file: str | Path | None = None) -> list[str]:
    """The labels of a training set: in the order of `label_file`, or else sorted (integers by value: 0, 1, 10).

    Raises:
        InputError: an example has no label or one that the file lacks, or all examples have the same label.
    """
    counts = Counter(example.label for example in examples)
    found = [label for label in counts if label is not None]
    if None in counts:
        raise InputError(f"{counts[None]} of the examples have no label; training needs one for each")
    if len(found) < 2:
        raise InputError(f"expected examples of two or more labels, found one class only: {_listed(found) or 'none'}")
    if label_file is None:
        whole_numbers = all(re.fullmatch(r"[+-]?[0-9]{1,18}", label) for label in found)
        return sorted(found, key=lambda label: (int(label), label) if whole_numbers else (0, label))
    labels = read_labels(label_file)
    unknown = [f"{label!r} ({counts[label]} examples)" for label in sorted(set(found) - set(labels))]
    if unknown:
        raise InputError(f"labels that {label_file} lacks: {_listed(unknown)}; the file has {_listed(labels)}")
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
            raise InputError(
                f"{source}, row {row} ({_start(example.text)}) {problem}; the model's labels are {_listed(labels)}"
            )
        encoded.append(ids[example.label])
    return encoded


def _format_of(path: str | Path, format: str | None) -> str:
    kind = Path(path).suffix.lower().removeprefix(".") if format is None else format
    if kind not in FORMATS:
        got = f"the suffix {Path(path).suffix!r}" if format is None else repr(format)
        raise InputError(f"{path}: expected one of the formats {', '.join(FORMATS)}, got {got}; pass --format to choose")
    return kind


def _lines(content: str) -> list[str]:
    """Lines ended by LF or CRLF alone; str.splitlines also breaks at characters that are text, such as U+2028."""
    lines = content.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _tab_records(content: str) -> Iterator[tuple[int, list[str]]]:
    """(line, fields) of each line; a blank line has no fields."""
    for number, line in enumerate(_lines(content), start=1):
        yield number, line.split("\t") if line else []


def _comma_records(content: str, path: str | Path) -> list[tuple[int, list[str]]]:
    """(first line, fields) of each record; a blank line has no fields."""
    records = []
    line = 1
    reader = csv.reader(io.StringIO(content, newline=""), strict=True)
    usual_limit = csv.field_size_limit(len(content) + 1)  # the usual 128 KiB is short for a document
    try:
        for fields in reader:
            records.append((line, fields))
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f'{path}, line {line}: not valid CSV ({error}); a field with commas, quotes or line breaks stands in "…", '
            'and a quote inside it is written ""'
        ) from error
    finally:
        csv.field_size_limit(usual_limit)
    return records


def _table(
    records: Iterable[tuple[int, list[str]]], path: str | Path, kind: str, *, header: bool
) -> tuple[list[str], Iterator[tuple[int, list[Any]]]]:
    """The columns' names (their numbers where there is no header), and the rows, each as wide as the first."""
    records = iter(records)
    first = next(records, None)
    if first is None:
        raise InputError(f"{path}: the file is empty; expected rows of text")
    line, fields = first
    if not fields:
        raise InputError(f"{path}, line {line}: expected {'the header' if header else 'a row'}, found a blank line")
    names = fields if header else [str(number) for number in range(len(fields))]
    return names, _rows(records if header else _chain(first, records), len(fields), path, kind)


def _chain(first: tuple[int, list[str]], rest: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    yield first
    yield from rest


def _rows(
    records: Iterable[tuple[int, list[str]]], width: int, path: str | Path, kind: str
) -> Iterator[tuple[int, list[str]]]:
    blank = None
    for line, fields in records:
        if not fields and width > 1:
            blank = blank or line  # no row if nothing follows
            continue
        if blank:
            raise InputError(f"{path}, line {blank}: a blank line between rows; remove it")
        fields = fields or [""]
        if len(fields) != width:
            hint = "a tab inside a text?" if kind == "tsv" else "a text with commas stands in quotes"
            problem = "too few" if len(fields) < width else f"too many: {hint}"
            raise InputError(f"{path}, line {line}: expected {width} fields as in the first row, got {len(fields)} ({problem})")
        yield line, fields


def _objects(content: str, path: str | Path) -> tuple[list[str], Iterator[tuple[int, list[Any]]]]:
    """The keys of all objects, and each object as a row under them."""
    lines = _lines(content)
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise InputError(f"{path}: the file is empty; expected one JSON object a line")
    objects = [_object(line, f"{path}, line {number}") for number, line in enumerate(lines, start=1)]
    names = list(dict.fromkeys(name for item in objects for name in item))
    return names, ((n, [item.get(name, _MISSING) for name in names]) for n, item in enumerate(objects, start=1))


def _object(line: str, where: str) -> dict[str, Any]:
    if not line.strip():
        raise InputError(f"{where}: a blank line between rows; remove it")
    try:
        item = json.loads(line, object_pairs_hook=lambda pairs: _without_repeats(pairs, where))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:  # ValueError: also a number of more digits than Python reads
        raise InputError(f"{where}: not JSON ({error}); expected one object a line") from error
    if not isinstance(item, dict):
        raise InputError(f"{where}: expected a JSON object with a text and a label, got {_start(line)}")
    return item


def _without_repeats(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    item = dict(pairs)
    if len(item) < len(pairs):
        repeated = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise InputError(f"{where}: the key {repeated!r} stands twice in one object")
    return item


def _find_columns(
    asked: dict[str, Column | None], names: list[str], path: str, *, named: bool, labels_required: bool
) -> dict[str, int | None]:
    """Role → position in a row; None for a pair or label that the table does not have."""
    columns = {role: None if column is None else _position(role, column, names, path) for role, column in asked.items()}
    if named and asked["text"] is None:
        columns["text"], pair = _usual_texts(names, path, columns["pair"])
        columns["pair"] = pair if asked["pair"] is None else columns["pair"]
    if named and asked["label"] is None:
        columns["label"] = _first(_LABEL_COLUMNS, names, path)
    for role, usual, needed in (("text", _TEXT_COLUMNS, True), ("label", _LABEL_COLUMNS, labels_required)):
        if needed and columns[role] is None:
            expected = f"none is called {' or '.join(usual)}" if named else "there is no header to find it by"
            raise InputError(f"{path}: which column is the {role}? {expected}; {_choice(role, names, named)}")
    taken = [column for column in columns.values() if column is not None]
    if len(set(taken)) < len(taken):
        chosen = ", ".join(f"{role}: {names[c]!r}" for role, c in columns.items() if c is not None)
        raise InputError(f"{path}: expected different columns for text, pair and label, got {chosen}")
    return columns


def _usual_texts(names: list[str], path: str, pair: int | None) -> tuple[int | None, int | None]:
    """The text and pair columns by their usual names; the column already taken as `pair` is no text."""
    if pair is not None:
        return _first(_TEXT_COLUMNS, names, path, but=pair), pair
    for couple in _PAIRED_COLUMNS:
        found = [_first((name,), names, path) for name in couple]
        if None not in found:
            return found[0], found[1]
    return _first(_TEXT_COLUMNS, names, path), _first(_PAIR_COLUMNS, names, path)


def _first(usual: Sequence[str], names: list[str], path: str, but: int | None = None) -> int | None:
    for name in usual:
        position = _match(name, names, path)
        if position is not None and position != but:
            return position
    return None


def _position(role: str, column: Column, names: list[str], path: str) -> int:
    position = _match(column, names, path) if isinstance(column, str) else column
    if position is None or not 0 <= position < len(names):
        raise InputError(f"{path}: no column {column!r}; {_choice(role, names, named=isinstance(column, str))}")
    return position


def _match(name: str, names: list[str], path: str) -> int | None:
    """The position of `name`: as it is written, or else without regard to case and spaces around it."""
    for key in (str, lambda text: text.strip().casefold()):
        found = [position for position, other in enumerate(names) if key(other) == key(name)]
        if len(found) > 1:
            raise InputError(f"{path}: columns {found} are all called {name!r}; choose one by its number")
        if found:
            return found[0]
    return None


def _choice(role: str, names: list[str], named: bool) -> str:
    columns = _listed([f"{n} {_start(name)}" if named else name for n, name in enumerate(names)])
    return f"the columns are {columns}; pass --{role}-column to choose one by name or number"


def _example(row: list[Any], columns: dict[str, int | None], where: str, labels_required: bool) -> TextExample:
    cells = {role: None if column is None else row[column] for role, column in columns.items()}
    label = _label(cells["label"], where)
    if label is None and labels_required:
        raise InputError(f"{where}: expected a label, found none")
    pair = None if columns["pair"] is None else _text(cells["pair"], "second text", where)
    return TextExample(_text(cells["text"], "text", where), pair, label)


def _text(cell: Any, role: str, where: str) -> str:
    if not isinstance(cell, str):
        got = "none" if cell is _MISSING else f"{json.dumps(cell)[:40]}"
        raise InputError(f"{where}: expected a string as the {role}, got {got}")
    try:
        cell.encode()
    except UnicodeEncodeError as error:  # a JSON escape such as "\\ud83d" without its other half
        raise InputError(f"{where}: the {role} holds half of a surrogate pair (character {error.start})") from error
    return cell


def _label(cell: Any, where: str) -> str | None:
    """A label as text: JSON's true is "true", 1 and 1.0 are "1", 0.5 is "0.5"; None where it is blank or missing."""
    if cell is None or cell is _MISSING:
        return None
    if isinstance(cell, bool):
        return json.dumps(cell)
    if isinstance(cell, (int, float)):
        if not math.isfinite(cell):
            raise InputError(f"{where}: expected a finite label, got {cell}")
        return str(int(cell)) if isinstance(cell, int) or (cell.is_integer() and abs(cell) < 2**53) else repr(cell)
    return _text(cell, "label", where).strip() or None


def _start(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")


def _listed(items: Sequence[str]) -> str:
    return ", ".join(items[:20]) + (f" and {len(items) - 20} more" if len(items) > 20 else "")
