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


def message_set(written: str, templates: list[tuple[str, str]], lists: Lists, drawings: int, seed: int) -> str:
    """The text of a table: the English lines of the table `written`, then texts of the templates, each text once."""
    numbers = random.Random(seed)
    header, *lines = written.splitlines()
    rows = dict(line.split("\t") for line in lines if not _has_ideographs(line))
    for _ in range(drawings):
        for label, template in templates:
            text = plain(Drawing(lists, numbers).text(template)).strip()
            if text.endswith("?") and numbers.random() < QUESTION_MARK_LEFT_OUT:
                text = text.removesuffix("?")
            if numbers.random() < CAPITAL_AT_THE_START:
                text = text[:1].upper() + text[1:]
            rows.setdefault(text, label)
    shuffled = list(rows.items())
    numbers.shuffle(shuffled)
    return "".join(f"{text}\t{label}\n" for text, label in [tuple(header.split("\t")), *shuffled])


def _has_ideographs(line: str) -> bool:
    return any("\u3000" <= character <= "\u9fff" for character in line)
