"""Texts with a label for each word: CoNLL columns and JSON lines, in whatever scheme the labels are."""

import dataclasses
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from albert_tf.data.rows import json_object, split_lines, text_in
from albert_tf.errors import InputError
from albert_tf.files import read_text

OUTSIDE = "O"
_GAP = re.compile("[ \t]+")  # an ideographic space is a word of some Chinese corpora
_DOCUMENT_START = "-DOCSTART-"
_TOKEN_KEYS = ("tokens", "words", "text")
_LABEL_KEYS = ("labels", "label", "tags", "ner_tags")
# What only labels of these schemes begin with.
_OWN_PREFIXES = {"BIOES": {"E", "S", "M"}, "BILOU": {"L", "U"}}
# Prefixes of the schemes IOB1, IOB2, BIOES and BILOU → those of IOB2.
_PREFIXES = {"B": "B", "I": "I", "E": "I", "S": "B", "L": "I", "U": "B", "M": "I"}


_Row = tuple[Sequence[str], Sequence[str] | None, str]  # words, labels as written, where they stand


@dataclasses.dataclass(frozen=True)
class TaggedExample:
    """A text as words.

    Attributes:
        words: its words; of Chinese, its characters.
        labels: one for each word, in IOB2: "B-PER" begins an entity, "I-PER" goes on with it, "O" is outside; or None
            where the file has none.
    """

    words: tuple[str, ...]
    labels: tuple[str, ...] | None = None


def read_tagged(path: str | Path, report: Callable[[str], None] = lambda line: None) -> list[TaggedExample]:
    """Reads texts with labels; labels of the schemes IOB1, IOB2, BIOES and BILOU become IOB2.

    Args:
        path: `.jsonl` or `.json`, a JSON object a line with a list of words ("tokens", "words" or "text") and one of as
            many labels ("labels", "label", "tags" or "ner_tags"); or else columns as CoNLL has them: a word a line, its
            label in the last column, a blank line after each text. Lines of `-DOCSTART-` end a text and are none. Columns
            stand between spaces or tabs; those at the end of a line count nothing.
        report: receives a line on the scheme, where it is not IOB2.

    Raises:
        InputError: not such a file, as many words as not labels, a label of no scheme, or of two schemes that do not go
            together. The message names the line.
    """
    path = Path(path)
    lines = split_lines(read_text(path))
    read = _from_json if path.suffix.lower() in (".jsonl", ".json") else _from_columns
    rows = list(read(lines, path))
    if not rows:
        raise InputError(f"{path}: expected texts with labels, found none")
    examples = [_example(*row) for row in rows]
    try:
        scheme = scheme_of([labels for _, labels, _ in rows if labels is not None])
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    if scheme != "IOB2":
        report(f"{path}: labels are {scheme}, read as IOB2")
    return examples


def scheme_of(texts: Iterable[Sequence[str]]) -> str:
    """The scheme that the labels of all texts of a file are in: IOB1, IOB2, BIOES (also where M stands for I) or BILOU.

    In IOB2 every entity begins with "B-"; in IOB1 only one that comes right after another of its type. Labels that are
    neither, where entities begin both ways, are "IOB1 and IOB2 mixed".

    Raises:
        InputError: labels of BIOES and BILOU in one file.
    """
    prefixes: set[str] = set()
    begun = {"B": False, "I": False}  # whether entities that do not follow one of their type begin so
    for labels in texts:
        before = ""
        for label in labels:
            prefix, _, kind = label.partition("-")
            prefixes.add(prefix)
            if kind and kind != before and prefix in begun:
                begun[prefix] = True
            before = kind
    own = [scheme for scheme, marks in _OWN_PREFIXES.items() if prefixes & marks]
    if len(own) > 1:
        raise InputError(
            f"labels of {' and '.join(own)} in one file: prefixes {', '.join(sorted(prefixes - {OUTSIDE}))}"
        )
    if own:
        return own[0]
    return "IOB2" if not begun["I"] else "IOB1 and IOB2 mixed" if begun["B"] else "IOB1"


def words_in(record: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The list of words in a JSON object; None where it has a text in one string. Labels in it are not looked at.

    Raises:
        InputError: the object has neither.
    """
    if not any(key in record for key in _TOKEN_KEYS):
        raise InputError(f"expected a list of words as one of {', '.join(_TOKEN_KEYS)}, or a string as text")
    if all(not isinstance(record.get(key), list) for key in _TOKEN_KEYS) and isinstance(record.get("text"), str):
        return None
    words = _list(record, _TOKEN_KEYS, "the object")
    return None if words is None else tuple(words)


def to_iob2(labels: Sequence[str]) -> tuple[str, ...]:
    """Labels of any of the schemes as IOB2.

    What continues an entity that has not begun begins one, as conlleval counts it: so IOB1, where only an entity right
    after another of its type begins with "B-", is read aright too.

    Raises:
        InputError: a label of no scheme.
    """
    result: list[str] = []
    entity = ""  # the type of the one that is open
    for label in labels:
        prefix, _, kind = label.partition("-")
        if label == OUTSIDE:
            entity = ""
            result.append(OUTSIDE)
            continue
        if not kind or prefix not in _PREFIXES:
            plain = unicodedata.normalize("NFKC", label)
            hint = f"; its characters are full-width, write {plain!r}" if plain != label else ""
            raise InputError(
                f"label {label!r}: expected O, or a prefix of {', '.join(_PREFIXES)} and a type: B-PER{hint}"
            )
        begins = _PREFIXES[prefix] == "B" or kind != entity
        result.append(f"{'B' if begins else 'I'}-{kind}")
        entity = "" if prefix in ("E", "S", "L", "U") else kind
    return tuple(result)


def entities(labels: Sequence[str]) -> list[tuple[str, int, int]]:
    """The entities in IOB2 labels: type, first word, word after the last."""
    found: list[tuple[str, int, int]] = []
    for index, label in enumerate(to_iob2(labels)):
        prefix, _, kind = label.partition("-")
        if prefix == "B":
            found.append((kind, index, index + 1))
        elif prefix == "I":
            found[-1] = (kind, found[-1][1], index + 1)
    return found


def _from_columns(lines: Sequence[str], path: Path) -> Iterator[_Row]:
    words: list[str] = []
    labels: list[str] = []
    first = 1
    for number, line in enumerate([*lines, ""], start=1):
        columns = [column for column in _GAP.split(line) if column]
        if columns and columns[0] != _DOCUMENT_START:
            if len(columns) < 2:
                raise InputError(f"{path}, line {number}: expected a word and its label, found only {columns[0]!r}")
            words.append(columns[0])
            labels.append(columns[-1])
        elif words:
            lines_of = f"line {first}" if first == number - 1 else f"lines {first} to {number - 1}"
            yield words, labels, f"{path}, {lines_of}"
            words, labels = [], []
        if not words:
            first = number + 1


def _from_json(lines: Iterable[str], path: Path) -> Iterator[_Row]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        row = json_object(line, where)
        words, labels = _list(row, _TOKEN_KEYS, where), _list(row, _LABEL_KEYS, where)
        if words is None:
            raise InputError(f"{where}: expected a list of words as one of {', '.join(_TOKEN_KEYS)}")
        yield words, labels, where


def _list(row: Mapping[str, Any], keys: Sequence[str], where: str) -> list[str] | None:
    key = next((key for key in keys if key in row), None)
    if key is None:
        return None
    if not isinstance(row[key], list) or not all(isinstance(entry, str) for entry in row[key]):
        raise InputError(f"{where}: {key}: expected a list of strings")
    return [text_in(entry, key, where) for entry in row[key]]


def _example(words: Sequence[str], labels: Sequence[str] | None, where: str) -> TaggedExample:
    if labels is None:
        return TaggedExample(tuple(words))
    if len(words) != len(labels):
        raise InputError(f"{where}: expected a label for each word, got {len(words)} words and {len(labels)} labels")
    try:
        return TaggedExample(tuple(words), to_iob2(labels))
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
