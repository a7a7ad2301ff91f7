"""Messages with labels: hand-written lines in English, and more from templates → a table."""

import random
from pathlib import Path

from grammar import Drawing, Lists, plain

QUESTION_MARK_LEFT_OUT = 0.4
CAPITAL_AT_THE_START = 0.4


def read_templates(path: Path) -> list[tuple[str, str]]:
    """Label and template of each line; blank lines and lines of `#` are none."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [line.partition(": ") for line in lines if line.strip() and not line.startswith("#")]
    return [(label, template.strip()) for label, _, template in found]


def english_rows(table: str) -> list[tuple[str, str]]:
    """Text and label of the lines in English of a table, whose first line is its header."""
    rows = [tuple(line.split("\t")) for line in table.splitlines()[1:]]
    return [(text, label) for text, label in rows if not any("\u3000" <= character <= "\u9fff" for character in text)]


def message_set(
    written: list[tuple[str, str]],
    templates: list[tuple[str, str]],
    lists: Lists,
    drawings: int,
    seed: int,
    kept_apart: frozenset[str] = frozenset(),
) -> str:
    """The text of a table: the rows `written`, and texts of the templates, each text once, none of those `kept_apart`."""
    numbers = random.Random(seed)
    rows = list(written)
    known = {text.lower() for text, _ in written} | {text.lower().removesuffix("?") for text in kept_apart}
    for _ in range(drawings):
        for label, template in templates:
            text = plain(Drawing(lists, numbers).text(template)).strip()
            if text.endswith("?") and numbers.random() < QUESTION_MARK_LEFT_OUT:
                text = text.removesuffix("?")
            if numbers.random() < CAPITAL_AT_THE_START:
                text = text[:1].upper() + text[1:]
            if {text.lower(), text.lower().removesuffix("?")} & known:
                continue
            known.add(text.lower())
            rows.append((text, label))
    numbers.shuffle(rows)
    return "".join(f"{text}\t{label}\n" for text, label in [("text", "label"), *rows])
