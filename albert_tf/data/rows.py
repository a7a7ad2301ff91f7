"""The rows of a .tsv, .csv or .jsonl file, each with the line it begins on; nothing here knows what a column means."""

import csv
import io
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from albert_tf.errors import InputError

FORMATS = ("tsv", "csv", "jsonl")
PACKED = ("gz", "bz2", "xz", "zip", "zst", "7z")
MISSING = object()  # the cell of a JSON object that lacks the key

Record = tuple[int, list[str]]  # (line, fields); a blank line has no fields
Row = tuple[int, list[Any]]  # (line, cells); strings, or in .jsonl whatever the object holds


def format_of(path: str | Path, format: str | None) -> str:
    """`format`, or else the path's suffix, as one of `FORMATS`.

    Raises:
        InputError: it is none of them.
    """
    kind = Path(path).suffix.lower().removeprefix(".") if format is None else format
    if kind not in FORMATS:
        if Path(path).is_dir():
            raise InputError(f"{path}: expected a file, got a folder")
        if format is None and kind in PACKED:
            raise InputError(f"{path}: a packed file; unpack it first")
        got = f"the suffix {Path(path).suffix!r}" if format is None else repr(format)
        raise InputError(f"{path}: expected one of the formats {', '.join(FORMATS)}, got {got}; rename the file")
    return kind


def split_lines(content: str) -> list[str]:
    """Lines ended by LF or CRLF alone; str.splitlines also breaks at characters that are text, such as U+2028."""
    lines = content.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def table_rows(content: str, path: str | Path, kind: str, *, header: bool) -> tuple[list[str], Iterator[Row]]:
    """The columns' names (their numbers where there is no header) and the rows, each as wide as the first.

    Args:
        content: the text of the file.
        path: what to call it in an error message.
        kind: "tsv" or "csv".
        header: whether the first row names the columns.

    Raises:
        InputError: nothing in the file, not CSV, a blank line between rows, a row of another width; all but the first
            two while the rows are read.
    """
    records = iter(_tab_records(content) if kind == "tsv" else _comma_records(content, path))
    first = next(records, None)
    if first is None:
        raise InputError(f"{path}: the file is empty; expected rows of text")
    line, fields = first
    if not fields:
        raise InputError(f"{path}, line {line}: expected {'the header' if header else 'a row'}, found a blank line")
    names = fields if header else [str(number) for number in range(len(fields))]
    return names, _even_rows(records if header else itertools.chain([first], records), len(fields), path, kind)


def json_rows(content: str, path: str | Path) -> tuple[list[str], Iterator[Row]]:
    """The keys of all objects, and each object as a row under them, `MISSING` where it lacks the key.

    Raises:
        InputError: nothing in the file, or a line that is not a JSON object.
    """
    lines = split_lines(content)
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise InputError(f"{path}: the file is empty; expected one JSON object a line")
    objects = [json_object(line, f"{path}, line {number}") for number, line in enumerate(lines, start=1)]
    names = list(dict.fromkeys(name for item in objects for name in item))
    return names, ((n, [item.get(name, MISSING) for name in names]) for n, item in enumerate(objects, start=1))


def start_of(text: str) -> str:
    """The first characters of a text, quoted, for an error message."""
    return repr(text if len(text) <= 40 else text[:40] + "…")


def text_in(cell: Any, role: str, where: str) -> str:
    """A cell that must be a text.

    Raises:
        InputError: it is no string, or has half of a character (JSON's \\ud83d without its other half).
    """
    if not isinstance(cell, str):
        got = "none" if cell is MISSING else json.dumps(cell)[:40]
        raise InputError(f"{where}: expected a string as the {role}, got {got}")
    try:
        cell.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{where}: character {error.start} of the {role} is half of a surrogate pair") from error
    return cell


def _tab_records(content: str) -> Iterator[Record]:
    for number, line in enumerate(split_lines(content), start=1):
        yield number, line.split("\t") if line else []


def _comma_records(content: str, path: str | Path) -> list[Record]:
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


def _even_rows(records: Iterable[Record], width: int, path: str | Path, kind: str) -> Iterator[Row]:
    blank = None
    for line, fields in records:
        if not fields and width > 1:
            blank = blank or line  # not a row, if nothing follows
            continue
        if blank:
            raise InputError(f"{path}, line {blank}: a blank line between rows; remove it")
        fields = fields or [""]
        if len(fields) != width:
            hint = "a tab inside a text?" if kind == "tsv" else 'a text with commas must stand in "…"'
            problem = "too few" if len(fields) < width else f"too many: {hint}"
            raise InputError(f"{path}, line {line}: expected {width} fields like line 1, got {len(fields)} ({problem})")
        yield line, fields


def json_object(line: str, where: str) -> dict[str, Any]:
    """The JSON object on a line.

    Raises:
        InputError: the line is blank or something else; the message begins with `where`.
    """
    if not line.strip():
        raise InputError(f"{where}: a blank line between rows; remove it")
    try:
        item = json.loads(line, object_pairs_hook=lambda pairs: _without_repeats(pairs, where))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:  # ValueError: also a number of more digits than Python reads
        raise InputError(f"{where}: not JSON ({error}); expected one object a line") from error
    if not isinstance(item, dict):
        raise InputError(f"{where}: expected a JSON object, got {start_of(line)}")
    return item


def _without_repeats(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    item = dict(pairs)
    if len(item) < len(pairs):
        repeated = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise InputError(f"{where}: the key {repeated!r} stands twice in one object")
    return item
