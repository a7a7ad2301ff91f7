"""Texts, numbers and tables as HTML. What comes from a data file can hold anything; nothing of it becomes markup."""

import math
import unicodedata
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

MOST_CHARACTERS = 300
_MOST_COMBINING = 20  # characters that belong to the one before the cut
_JOINERS = "\u200d\ufe0e\ufe0f"

# Controls become their pictures, and what HTML cannot hold the replacement character. Marks that turn or isolate
# directions would reach beyond their text, so they are written out.
_VISIBLE: dict[int, str] = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"}
_VISIBLE |= dict.fromkeys([*range(0x80, 0xA0), *range(0xD800, 0xE000), *range(0xFDD0, 0xFDF0)], "\ufffd")
_VISIBLE |= dict.fromkeys((plane + end for plane in range(0, 0x110000, 0x10000) for end in (0xFFFE, 0xFFFF)), "\ufffd")
_VISIBLE |= {code: f"[U+{code:04X}]" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_VISIBLE |= {0x7F: "\u2421", **{ord(c): f"&#{ord(c)};" for c in "&<>\"'"}}


def escaped(text: Any) -> str:
    """The text for HTML, in an element or an attribute: every character of it is shown, none is markup."""
    return str(text).translate(_VISIBLE)


def shortened(text: str, limit: int = MOST_CHARACTERS) -> str:
    """At most `limit` characters; of a longer text the beginning, cut between what is seen as characters."""
    if len(text) <= limit:
        return text
    end = limit - 1
    for _ in range(_MOST_COMBINING):
        joined = unicodedata.combining(text[end]) or text[end] in _JOINERS or text[end - 1] == _JOINERS[0]
        if not joined or end < 2:
            break
        end -= 1
    return text[:end].rstrip() + "…"


def data_text(text: str, limit: int = MOST_CHARACTERS) -> str:
    """A text from a data file: cut, escaped, and of a direction of its own, which does not turn what stands around it."""
    return f'<bdi class="data">{escaped(shortened(text, limit))}</bdi>'


def number(value: Any) -> str:
    """A number to four digits, with all of it in the element's attribute; other values as text, None and NaN as a dash."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return '<span title="not a number">–</span>'
    if isinstance(value, bool) or not isinstance(value, Real):
        return data_text(str(value))
    if isinstance(value, int):
        return f'<data value="{value}">{value:,}</data>'
    figure = float(value)
    if figure.is_integer() and abs(figure) > 1:
        shown = f"{figure:,.0f}"
    else:
        shown = f"{figure:,.4f}" if abs(figure) >= 0.1 or not figure else f"{figure:.4g}"
    return f'<data value="{figure!r}">{shown}</data>'


def table(caption: str, headers: Sequence[str], rows: Sequence[Sequence[str]], *, style: str = "") -> str:
    """A table with a header for each column, and the first cell of each row as that row's.

    Args:
        caption: what it shows, as plain text.
        headers: of the columns, as plain text.
        rows: cells of HTML.
        style: a class of the page's style sheet.
    """
    head = "".join(f'<th scope="col"><bdi>{escaped(header)}</bdi></th>' for header in headers)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>\n'
        for first, *rest in rows
    )
    name = escaped(caption)
    return (
        f'<div class="scroll" role="region" aria-label="{name}" tabindex="0"><table class="{escaped(style)}">\n'
        f"<caption>{name}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>\n"
    )


def figures_table(caption: str, figures: Mapping[str, Any]) -> str:
    """A row for each figure that is one value; what is a list or a mapping is left to other tables."""
    rows = [
        [escaped(name.replace("_", " ")), number(value)]
        for name, value in figures.items()
        if not isinstance(value, (Mapping, list, tuple))
    ]
    return table(caption, ("figure", "value"), rows, style="figures")


def paragraph(text: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{escaped(text)}</p>\n"
