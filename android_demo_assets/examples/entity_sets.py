"""Templates of sentences with entities → CoNLL columns in IOB2."""

import random
import re
from pathlib import Path

from grammar import BETWEEN, END, START, Drawing, Lists, capitalized, plain

from albert_tf.inference.tagging import word_places

LOWER = 0.25  # of the texts, typed without capitals
WITHOUT_FULL_STOP = 0.35
TWO_SENTENCES = 0.18
_THE = re.compile("the ", re.IGNORECASE)  # never part of an entity
_MARK = re.compile(f"{START}([A-Z]+){BETWEEN}|{END}")


def read_sentences(path: Path) -> list[str]:
    """A template a line; blank lines and lines of `#` are none."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def entity_set(templates: list[str], lists: Lists, drawings: int, seed: int) -> str:
    """The columns of `drawings` texts from each template, without texts that come twice."""
    numbers = random.Random(seed)
    texts: dict[str, str] = {}
    for _ in range(drawings):
        for template in templates:
            text = Drawing(lists, numbers).text(template)
            if numbers.random() < TWO_SENTENCES:
                text = f"{_ended(text)} {capitalized(Drawing(lists, numbers).text(numbers.choice(templates)))}"
            text = _typed(text, numbers)
            texts.setdefault(text, columns(text))
    return "\n".join(texts.values())


def columns(marked: str) -> str:
    """Words, as the tagger parts them, with their labels; of entities inside others the outer one counts."""
    text, spans, depth, kind, begin, place = "", [], 0, "", 0, 0
    for mark in _MARK.finditer(marked):
        text += marked[place : mark.start()]
        place = mark.end()
        if mark[1] and not depth:
            the = _THE.match(plain(marked[place:]))
            kind, begin = mark[1], len(text) + (len(the[0]) if the else 0)
        depth += 1 if mark[1] else -1
        if not depth:
            spans.append((begin, len(text), kind))
    if depth:
        raise ValueError(f"{marked!r}: marks of entities do not match")
    text += marked[place:]
    rows = []
    for start, end in word_places(text):
        label = "O"
        for begin, stop, kind in spans:
            if begin <= start and end <= stop:
                label = ("B-" if start == begin else "I-") + kind
        rows.append(f"{text[start:end]} {label}\n")
    return "".join(rows)


def _ended(text: str) -> str:
    return text if re.search(f'[.!?]["”)]?{END}?$', text) else text + "."


def _typed(text: str, numbers: random.Random) -> str:
    """As people type: without a full stop at the end, or without capitals."""
    if text.endswith(".") and numbers.random() < WITHOUT_FULL_STOP:
        text = text[:-1]
    if numbers.random() >= LOWER:
        return capitalized(text)
    parts = re.split(f"({START}[A-Z]+{BETWEEN})", text)
    return "".join(part if part.startswith(START) else part.lower() for part in parts)
