"""Charts as SVG within HTML: drawn by matplotlib, in the colors of the page, with text that stays text."""

import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from albert_tf.evaluation.fonts import quiet_font_search
from albert_tf.evaluation.html_text import escaped
from albert_tf.evaluation.report import RATE_COLOR, TRAIN_COLOR, VALIDATION_COLOR, draw_panel, history_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_POINTS = 500
_INK = "#010203"
_COLORS = {_INK: "currentColor", RATE_COLOR: "currentColor"}  # what a page has of its own
_COLORS |= {TRAIN_COLOR: "var(--first)", VALIDATION_COLOR: "var(--second)"}
_INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
_CLEAR = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
_BINS = 30


def history_charts(history: Sequence[Mapping[str, float]], metric: str) -> str:
    """A chart each of loss, metric and learning rate, as `albert_tf.evaluation.report.plot_history` draws them."""
    thinned = [history[index] for index in spread(len(history), MOST_POINTS)]
    axis, moments, panels = history_panels(thinned, metric)
    charts = []
    for number, (title, lines) in enumerate(panels):

        def draw(axes: "Axes", title: str = title, lines: Any = lines) -> None:
            draw_panel(axes, title, moments, lines)
            axes.set_xlabel(axis)

        charts.append(chart(draw, _told(title, axis, moments, lines), f"history{number}"))
    return '<div class="charts">\n' + "".join(charts) + "</div>\n"


def scatter_chart(true: Sequence[float], predicted: Sequence[float], names: tuple[str, str], key: str) -> str:
    """Predictions over true values; of many examples some, evenly taken."""
    places = spread(len(true), MOST_POINTS)
    x, y = np.asarray(true, np.float64)[places], np.asarray(predicted, np.float64)[places]

    def draw(axes: "Axes") -> None:
        axes.plot(x, y, "o", markersize=3.5, color=TRAIN_COLOR, alpha=0.5, markeredgewidth=0)
        axes.set(xlabel=names[0], ylabel=names[1])
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)

    some = "" if len(places) == len(true) else f" {len(places)} of them, evenly taken."
    return chart(
        draw,
        f"Scatter plot of {names[1]} over {names[0]} of {len(true):,} examples.{some} {names[0]} from {x.min():.4g} to "
        f"{x.max():.4g}, {names[1]} from {y.min():.4g} to {y.max():.4g}.",
        key,
    )


def histogram_chart(lengths: Sequence[int], mark: int, key: str) -> str:
    """How long rows are, in tokens, with a line at the longest that the model is given."""
    values = np.asarray(lengths)
    # Beyond four times the mark is one bin: a single long text must not squeeze all others into the first.
    last = min(int(values.max()), 4 * mark)
    edges = np.linspace(0, max(last, mark) + 1, _BINS + 1)

    def draw(axes: "Axes") -> None:
        axes.hist(np.minimum(values, last), bins=edges.tolist(), color=TRAIN_COLOR)
        axes.axvline(mark, color=VALIDATION_COLOR, linestyle="--", label=f"max. length {mark}")
        axes.set(xlabel="tokens" + (f" ({last} and more in the last)" if last < values.max() else ""), ylabel="rows")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)

    quarter, half, most = (f"{value:.0f}" for value in np.percentile(values, [25, 50, 95]))
    return chart(
        draw,
        f"Histogram of the lengths of {len(values):,} rows: a quarter have up to {quarter} tokens, half up to {half}, "
        f"95 % up to {most}, the longest {values.max():,}; a line marks the longest that is kept, {mark}.",
        key,
    )


def chart(draw: Callable[["Axes"], None], told: str, key: str) -> str:
    """What `draw` draws, as a figure of HTML.

    Args:
        draw: draws on the axes it is given.
        told: what it shows, in words, for those who do not see it.
        key: unlike that of every other chart of the page.
    """
    import matplotlib
    from matplotlib.figure import Figure

    settings: Any = dict.fromkeys(_INKED, _INK) | dict.fromkeys(_CLEAR, "none")
    settings |= {"svg.fonttype": "none", "svg.hashsalt": "albert-tf"}
    drawn = io.StringIO()
    with matplotlib.rc_context(settings), quiet_font_search():
        figure = Figure(figsize=(4.4, 3.2), layout="constrained")
        draw(figure.subplots())
        figure.savefig(drawn, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return f"<figure>{inline_svg(drawn.getvalue(), told, key)}</figure>\n"


def inline_svg(svg: str, told: str, key: str) -> str:
    """An SVG file of matplotlib's as an element of a page: without addresses, in the page's colors, its ids its own."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<style.*?</style>|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    head, rest = svg.split(">", 1)
    box = re.search(r'viewBox="([^"]*)"', head)
    svg = f'<svg viewBox="{box[1] if box else ""}" role="img" aria-label="{escaped(told)}">{rest}'
    svg = svg.replace("xlink:href=", "href=")
    svg = re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{key}-", svg)
    for color, name in _COLORS.items():
        svg = svg.replace(color, name)
    return re.sub(r"font-family: [^;\"]*;", "", svg).strip()


def spread(count: int, most: int) -> list[int]:
    """At most `most` of the numbers below `count`, evenly taken, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return np.unique(np.linspace(0, count - 1, most).round().astype(int)).tolist()


def _told(title: str, axis: str, moments: Sequence[float], lines: Sequence[tuple[str, list[float]]]) -> str:
    parts = []
    for label, values in lines:
        known = [(value, moment) for value, moment in zip(values, moments, strict=True) if math.isfinite(value)]
        if known:
            low, high = min(known), max(known)
            parts.append(
                f"{label or title} from {known[0][0]:.4g} to {known[-1][0]:.4g}, lowest {low[0]:.4g} at {axis} {low[1]:g}, "
                f"highest {high[0]:.4g} at {axis} {high[1]:g}"
            )
    return f"Line chart of {title} by {axis}: {'; '.join(parts) or 'no values'}."
