"""Reads the page of a run strictly: what is not closed, repeated or from elsewhere is an error."""

import re
from html.parser import HTMLParser
from typing import Any

_VOID = {"meta", "img", "br", "use", "path", "rect"}
_ADDRESSES = ("src", "href", "xlink:href", "action", "srcset", "data", "poster")


class Page(HTMLParser):
    """A page that was read.

    Attributes:
        tables: caption → rows, each a list of cells; a cell is the value of its `data` element, or its text.
        headers: caption → column headers.
        cards: title → {name: text} of each card.
        pictures: what is told of each, from `aria-label` or `alt`.
        sections: headings of the second level.
        text: all that a reader sees.
    """

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, dict[str, Any]]] = []
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.tables: dict[str, list[list[Any]]] = {}
        self.headers: dict[str, list[str]] = {}
        self.cards: dict[str, dict[str, str]] = {}
        self.pictures: list[str] = []
        self.sections: list[str] = []
        self.text = ""
        self._caption = self._card = self._name = ""
        self._held: Any = ""
        assert html.startswith("<!DOCTYPE html>")
        html.encode("utf-8")
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]", html)
        self.feed(html)
        self.close()
        assert not self.open and len(set(self.ids)) == len(self.ids)
        assert set(self.targets) <= set(self.ids)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        assert len(found) == len(attrs) and tag not in ("script", "link", "iframe", "object", "embed", "form", "base")
        assert not any(name.startswith("on") for name in found)
        for name in _ADDRESSES:
            value = found.get(name) or "#"
            assert value.startswith("#") or (tag == "img" and value.startswith("data:image/png;base64,"))
            if value != "#" and value.startswith("#"):
                self.targets.append(value[1:])
        for value in found.values():
            assert "://" not in (value or "") or tag == "figure"
            self.targets += re.findall(r"url\(#([^)]*)\)", value or "")
        if "id" in found:
            self.ids.append(str(found["id"]))
        if tag in ("img", "svg"):
            told = found.get("alt") or found.get("aria-label")
            assert told and (tag == "img" or found["role"] == "img")
            self.pictures.append(told)
        if tag == "th":
            assert found.get("scope") in ("col", "row")
        if tag in ("td", "th", "caption", "h2", "h3", "dt", "dd", "a"):
            self._held = ""
        if tag == "tr" and self._caption and self.headers.get(self._caption):
            self.tables[self._caption].append([])
        if tag == "data":
            self._held = float(str(found["value"]))
        if tag not in _VOID:
            self.open.append((tag, found))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID and (not self.open or self.open[-1][0] != tag):
            return
        assert self.open and self.open[-1][0] == tag, f"</{tag}> closes {self.open[-3:]}"
        found = self.open.pop()[1]
        if tag == "caption":
            self._caption = self._held
            assert self._caption not in self.tables
            self.tables[self._caption] = []
            self.headers[self._caption] = []
        elif tag == "th" and found["scope"] == "col":
            self.headers[self._caption].append(self._held)
        elif tag in ("td", "th"):
            self.tables[self._caption][-1].append(self._held)
        elif tag == "h2":
            self.sections.append(self._held)
        elif tag == "h3":
            self._card = self._held
            self.cards[self._card] = {}
        elif tag == "dt":
            self._name = self._held
        elif tag == "dd":
            self.cards[self._card][self._name] = self._held

    def handle_data(self, data: str) -> None:
        if any(tag in ("style", "title", "svg") for tag, _ in self.open):
            assert "url(" not in data and "@import" not in data
            return
        self.text += data
        if isinstance(self._held, str):
            self._held += data

    def figures(self, caption: str) -> dict[str, Any]:
        """A table of two columns."""
        return {row[0].replace(" ", "_"): row[1] for row in self.tables[caption]}
