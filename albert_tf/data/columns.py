"""Which column of a table is the text, the second text and the label."""

import re
from collections.abc import Container, Sequence
from pathlib import Path

from albert_tf.data.rows import start_of
from albert_tf.errors import InputError

Column = int | str  # a name in the header, or a number counted from 0 (also as digits)

# Columns that are understood without being told; compared without case, earlier ones win.
_PAIRED_COLUMNS = (
    ("sentence1", "sentence2"),
    ("text", "pair"),
    ("text_a", "text_b"),
    ("premise", "hypothesis"),
    ("question", "sentence"),  # QNLI: here "sentence" is the second text
)
_TEXT_COLUMNS = ("sentence", "text", "sentence1", "question", "text_a", "premise")
_PAIR_COLUMNS = ("sentence2", "pair", "text_b", "hypothesis")
_LABEL_COLUMNS = ("label", "labels", "gold_label", "score", "class")


def number_or_name(column: Column | None) -> Column | None:
    """A column given as digits is a number."""
    return int(column) if isinstance(column, str) and re.fullmatch("[0-9]{1,9}", column) else column


def find_columns(
    asked: dict[str, Column | None], names: list[str], path: str | Path, *, named: bool, labels_required: bool
) -> dict[str, int | None]:
    """Role → position in a row; None for a pair or label that the table does not have.

    Args:
        asked: "text", "pair" and "label" → the column that was asked for, None to find it by its usual names.
        names: of the columns.
        path: what to call the table in an error message.
        named: whether the names are those of a header.
        labels_required: whether there must be a label.

    Raises:
        InputError: a column is not there, or one has two roles.
    """
    columns = {role: _asked(role, column, names, path, named) for role, column in asked.items()}
    if named and asked["text"] is None:
        columns["text"], columns["pair"] = _usual_texts(names, path, columns["pair"])
    if named and asked["label"] is None:
        columns["label"] = _first(_LABEL_COLUMNS, names, path, but=(columns["text"], columns["pair"]))
    for role, usual, needed in (("text", _TEXT_COLUMNS, True), ("label", _LABEL_COLUMNS, labels_required)):
        if needed and columns[role] is None:
            known = f"none is called {', '.join(usual[:-1])} or {usual[-1]}" if named else "the file has no header"
            raise InputError(f"{path}: which column is the {role}? {known}; {_choice(role, names, named)}")
    taken = [column for column in columns.values() if column is not None]
    if len(set(taken)) < len(taken):
        raise InputError(f"{path}: text, pair and label must be different columns, got {columns}")
    return columns


def _asked(role: str, column: Column | None, names: list[str], path: str | Path, named: bool) -> int | None:
    """The position of the column that the caller gave, None where none was given."""
    if column is None:
        return None
    position = column if isinstance(column, int) else position_of(column, names, path) if named else None
    if position is None or not 0 <= position < len(names):
        raise InputError(f"{path}: no column {column!r}; {_choice(role, names, named)}")
    return position


def _usual_texts(names: list[str], path: str | Path, pair: int | None) -> tuple[int | None, int | None]:
    """The text and pair columns by their usual names; the column already taken as `pair` is no text."""
    if pair is not None:
        return _first(_TEXT_COLUMNS, names, path, but=(pair,)), pair
    for text_name, pair_name in _PAIRED_COLUMNS:
        text, pair = position_of(text_name, names, path), position_of(pair_name, names, path)
        if text is not None and pair is not None:
            return text, pair
    return _first(_TEXT_COLUMNS, names, path), _first(_PAIR_COLUMNS, names, path)


def _first(usual: Sequence[str], names: list[str], path: str | Path, but: Container[int | None] = ()) -> int | None:
    positions = (position_of(name, names, path) for name in usual)
    return next((position for position in positions if position is not None and position not in but), None)


def position_of(name: str, names: list[str], path: str | Path) -> int | None:
    """The position of `name`: as it is written, or else without regard to case and spaces around it."""
    folded = name.strip().casefold()
    found = [position for position, other in enumerate(names) if other == name]
    found = found or [position for position, other in enumerate(names) if other.strip().casefold() == folded]
    if len(found) > 1:
        raise InputError(f"{path}: the columns {found} are all called {name!r}; rename them, or choose by number")
    return found[0] if found else None


def _choice(role: str, names: list[str], named: bool) -> str:
    columns = listed([f"{number} {start_of(name)}" for number, name in enumerate(names)]) if named else listed(names)
    way = "by name, or by number where the file has no header" if named else "by number"
    return f"the columns are {columns}; choose one with --{role}-column, {way}"


def listed(items: Sequence[str]) -> str:
    """The first of many names, for a message."""
    return ", ".join(items[:20]) + (f" and {len(items) - 20} more" if len(items) > 20 else "")
