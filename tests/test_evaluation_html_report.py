"""The page as a whole: well-formed, from nowhere else, and there even where a part of it cannot be made."""

import math
from typing import Any

import pytest
from pages import Page

from albert_tf.evaluation.html_report import (
    command_part,
    curves_part,
    html_page,
    lengths_part,
    list_part,
    metrics_part,
    settings_part,
    values_part,
)
from albert_tf.evaluation.html_tasks import Part

HOSTILE = "</title></style><script>alert('\0\ud800\u202e')</script>"


def page_of(*parts: Part, title: str = "title", told: list[str] | None = None) -> tuple[Page, str, list[str]]:
    lines: list[str] = []
    html = html_page(title, told or ["told"], parts, lines.append)
    return Page(html), html, lines


def test_whatever_comes_in_it_is_one_page_that_loads_nothing() -> None:
    history = [{"step": 8.0, "loss": 0.5, "<script>'": 0.25}, {"step": 16.0, "loss": math.nan}]
    page, html, lines = page_of(
        ("Metrics", lambda: metrics_part({"valid": {HOSTILE: 0.5}, "best_round": 1, "path": HOSTILE})),
        ("Curves", lambda: curves_part(history, "<script>'", 1)),
        ("Lengths", lambda: lengths_part([3, 9, 20], 8, HOSTILE + "{share}")),
        (HOSTILE, lambda: list_part([HOSTILE, "x" * 100_000], "")),
        ("Settings", lambda: settings_part([("--train", HOSTILE, False), ("--seed", 0, True)])),
        ("Values", lambda: values_part("values", {HOSTILE: HOSTILE, "a number": 0.25})),
        ("Command", lambda: command_part(f"albert-tf --train '{HOSTILE}'")),
        title=HOSTILE,
        told=[HOSTILE],
    )
    assert lines == [] and len(page.sections) == 7
    assert "<script" not in html and "http:" not in html and "https:" not in html
    assert '<meta charset="utf-8">' in html and "default-src 'none'" in html and '<html lang="en">' in html
    assert "width=device-width" in html and "prefers-color-scheme:dark" in html and "color-scheme:light dark" in html
    assert "66.7%" in page.text and page.tables["values"][1] == ["a number", 0.25]
    assert page.tables["All settings"][1] == ["--seed", 0.0, "default"]
    assert page.tables["All settings"][0][2] == "set"
    assert len(html) < 200_000


def test_what_cannot_be_made_is_told_and_the_rest_is_there() -> None:
    def fails() -> str:
        raise OSError("no <font> found")

    page, _, lines = page_of(("Curves", fails), ("After", lambda: list_part([], "nothing")))
    assert lines == ["note: report.html lacks the part 'Curves' (OSError: no <font> found)"]
    assert "This part could not be made (OSError: no <font> found)." in page.text and "nothing" in page.text
    with pytest.raises(KeyboardInterrupt):
        page_of(("Curves", lambda: (_ for _ in ()).throw(KeyboardInterrupt)))


def test_metrics_are_those_of_the_summary() -> None:
    summary: dict[str, Any] = {
        "parameters": 12345,
        "best_round": 3,
        "valid": {"f1": 1 / 3, "loss": None, "support": {"a": 1}, "examples": 9},
    }
    page, _, _ = page_of(("Metrics", lambda: metrics_part(summary)))
    assert page.figures("On the validation file, weights of round 3") == {"f1": 1 / 3, "loss": "–", "examples": 9}
    assert page.figures("The run") == {"parameters": 12345, "best_round": 3}
    page, _, _ = page_of(("Metrics", lambda: metrics_part({"parameters": 1, "valid": {}})))
    assert list(page.tables) == ["The run"]


def test_rounds_in_a_table_the_best_always() -> None:
    history = [{"step": float(n), "loss": 1.0 / n} for n in range(1, 1001)]
    page, _, _ = page_of(("Curves", lambda: curves_part(history, "f1", 700)))
    (rows,) = page.tables.values()
    assert 50 <= len(rows) <= 51
    assert rows[0] == ["1", 1.0, 1.0] and rows[-1] == ["1000", 1000.0, 0.001]
    assert ["700 (best)", 700.0, 1 / 700] in rows


def test_the_share_that_is_cut() -> None:
    page, _, _ = page_of(("Lengths", lambda: lengths_part([3, 8, 9, 10], 8, "{share} are cut")))
    assert "50.0% are cut" in page.text and "mark" in page.pictures[0]


def test_a_round_without_a_metric() -> None:
    page, _, _ = page_of(("Curves", lambda: curves_part([{"loss": 1.0}], "f1", None)))
    assert len(page.pictures) == 1
