"""Whatever a data file holds is shown, and is never markup."""

import html
import math
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import Page

from albert_tf.evaluation.html_text import data_text, escaped, figures_table, number, shortened, table

HOSTILE = [
    "<script>alert(1)</script>",
    "</bdi></td></table><img src=x onerror=alert(1)>",
    "\"'&amp;&#60;",
    "\0\x01\x1b[31m\x7f\x85",
    "\ud800 half \udfff",
    "\ufffe\uffff\U0001ffff",
    "\u202eevil\u2069\u2066",
    "שלום עולם",
    "👩‍👩‍👧‍👦 👍🏽",
    "]]> <!-- -->",
    "x" * 100_000,
    "e" + "\u0301" * 100_000,
]


def page(body: str) -> Page:
    return Page(f'<!DOCTYPE html><html lang="en"><body>{body}</body></html>')


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_are_one_cell_of_text(text: str) -> None:
    read = page(table("a caption", ["first", text[:200]], [[data_text(text), data_text("after")]]))
    (((cell, after)),) = read.tables["a caption"]
    assert after == "after" and len(cell) <= 300 + 10 * text.count("\u202e")
    assert not {c for c in cell if unicodedata.category(c) in ("Cc", "Cs", "Cn")}
    if text.isprintable():
        assert cell == shortened(text)


@given(st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc", "Cf", "Cn", "Co"))))
def test_what_can_be_shown_is_shown_as_it_is(text: str) -> None:
    assert html.unescape(escaped(text)) == text
    assert not set(escaped(text)) & set("<>\"'")


def test_marks_that_turn_directions_are_written_out() -> None:
    turning = "".join(map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]))
    assert not set(turning) & set(escaped(turning)) and escaped("\u202e") == "[U+202E]"
    assert escaped("\u200f") == "\u200f"  # a mark without reach
    assert data_text("x").startswith("<bdi")


def test_a_cut_is_between_what_is_seen_as_characters() -> None:
    assert shortened("abcdef", 6) == "abcdef" and shortened("abcdefg", 6) == "abcde…"
    assert shortened("abcde\u0301fg", 6) == "abcd…"
    assert shortened("abcd👩\u200d👧fg", 7) == "abcd…"
    assert shortened("a" + "\u0301" * 50, 30).endswith("…")  # and an end to going back


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.123456, "0.1235"),
        (0.00123456, "0.001235"),
        (1e-7, "1e-07"),
        (1.0, "1.0000"),
        (8.0, "8"),
        (83.333333, "83.3333"),
        (12345, "12,345"),
        (10**400, f"{10**400:,}"),
        (np.float32(0.5), "0.5000"),
        (math.inf, "inf"),
        (None, "–"),
        (math.nan, "–"),
        (True, "True"),
        ("<b>", "<b>"),
    ],
)
def test_numbers(value: object, shown: str) -> None:
    read = page(f"<p>{number(value)}</p>")
    assert read.text == shown


def test_figures_carry_all_their_digits() -> None:
    figures = {"f1_score": 0.1234567890123, "examples": 7, "support": {"a": 1}, "matrix": [[1]], "nothing": None}
    read = page(figures_table("figures", figures))
    assert read.tables["figures"] == [["f1 score", 0.1234567890123], ["examples", 7.0], ["nothing", "–"]]
