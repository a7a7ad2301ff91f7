"""Charts in a page: well-formed, told in words, without addresses, small however many examples there are."""

import re
import warnings
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from pages import Page

from albert_tf.evaluation.html_charts import chart, histogram_chart, history_charts, inline_svg, scatter_chart, spread

HISTORY = [
    {"step": 10.0 * n, "loss": 1 / n, "valid_loss": 2 / n, "valid_f1": n / 4, "learning_rate": 0.0} for n in (1, 2, 3)
]


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def read(html: str) -> Page:
    for svg in re.findall("<svg.*?</svg>", html, re.DOTALL):
        ElementTree.fromstring(svg)
    assert "http" not in html and "xmlns" not in html
    return Page(f'<!DOCTYPE html><html lang="en"><body>{html}</body></html>')


def test_a_chart_for_each_panel_told_in_words() -> None:
    html = history_charts(HISTORY, "f1")
    loss, metric, rate = read(html).pictures
    assert loss == (
        "Line chart of loss by step: training from 1 to 0.3333, lowest 0.3333 at step 30, highest 1 at step 10; validation "
        "from 2 to 0.6667, lowest 0.6667 at step 30, highest 2 at step 10."
    )
    assert metric.startswith("Line chart of f1 by step: validation from 0.25 to 0.75") and "learning rate" in rate
    assert ">training</text>" in html and ">validation</text>" in html  # text that can be searched and read aloud
    assert html.count("var(--first)") >= 2 and "var(--second)" in html and "#000000" not in html


def test_gaps_and_nothing_finite() -> None:
    history = [{"loss": 1.0, "valid_loss": float("nan")}, {"loss": float("nan"), "valid_loss": float("nan")}]
    (told,) = read(history_charts(history, "f1")).pictures
    assert told == "Line chart of loss by epoch: training from 1 to 1, lowest 1 at epoch 1, highest 1 at epoch 1."


def test_figures_of_a_page_leave_no_settings_behind() -> None:
    before = dict(matplotlib.rcParams)
    assert chart(lambda axes: None, "x", "a") == chart(lambda axes: None, "x", "a")
    with pytest.raises(ZeroDivisionError):
        chart(lambda axes: 1 / 0, "x", "a")
    assert dict(matplotlib.rcParams) == before


def test_ids_are_the_charts_own() -> None:
    read(scatter_chart([1, 2], [1, 2], ("a", "b"), "one") + scatter_chart([1, 2], [1, 2], ("a", "b"), "two"))
    svg = '<svg viewBox="0 0 1 1"><metadata>http://x</metadata><g id="a"/><use xlink:href="#a" clip-path="url(#a)"/></svg>'
    assert inline_svg(svg, '<"told">', "k") == (
        '<svg viewBox="0 0 1 1" role="img" aria-label="&#60;&#34;told&#34;&#62;"><g id="k-a"/>'
        '<use href="#k-a" clip-path="url(#k-a)"/></svg>'
    )


def test_of_many_points_and_rounds_some_are_drawn() -> None:
    random = np.random.default_rng(0)
    true = random.normal(size=100_000)
    html = scatter_chart(true.tolist(), (true * 2).tolist(), ("true value", "predicted value"), "s")
    (told,) = read(html).pictures
    assert "of 100,000 examples. 500 of them, evenly taken." in told and html.count("<use") < 550
    assert len(html) < 120_000
    many = [{"step": float(n), "loss": 1.0 + n % 7} for n in range(1, 50_001)]
    assert len(history_charts(many, "f1")) < 120_000


def test_histogram_tells_the_lengths() -> None:
    lengths = [*range(1, 101), 100_000]
    html = histogram_chart(lengths, 64, "h")
    (told,) = read(html).pictures
    assert "of 101 rows: a quarter have up to 26 tokens, half up to 51, 95 % up to 96, the longest 100,000;" in told
    assert told.endswith("the longest that is kept, 64.") and "256 and more in the last" in html
    read(histogram_chart([3], 512, "h"))


def test_spread() -> None:
    assert spread(3, 5) == [0, 1, 2] and spread(0, 5) == []
    assert spread(1000, 5)[0] == 0 and spread(1000, 5)[-1] == 999 and len(spread(1000, 5)) == 5
    assert len(spread(6, 5)) == 5
