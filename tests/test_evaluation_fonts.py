"""Labels in scripts that matplotlib's own font lacks: in an installed font, or by number, never with a warning."""

import logging
import warnings
from pathlib import Path

import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager
from PIL import Image

from albert_tf.evaluation.fonts import drawable_labels
from albert_tf.evaluation.report import plot_confusion_matrix


@pytest.fixture
def installed(monkeypatch, tmp_path: Path):
    """Replaces the installed fonts by matplotlib's own; returns a function that installs one with given characters."""
    own = Path(font_manager.findfont("DejaVu Sans")).parent
    fonts = [font for font in font_manager.fontManager.ttflist if Path(font.fname).parent == own]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", fonts)

    def install(family: str, characters: str, weight: int = 400) -> None:
        path = tmp_path / f"{family}.ttf"
        build_font(path, family, characters, weight)
        font_manager.fontManager.addfont(path)

    return install


def build_font(path: Path, family: str, characters: str, weight: int) -> None:
    """A font whose characters are all black squares."""
    pen = TTGlyphPen(None)
    for action, point in (
        (pen.moveTo, (50, 0)),
        (pen.lineTo, (50, 800)),
        (pen.lineTo, (950, 800)),
        (pen.lineTo, (950, 0)),
    ):
        action(point)
    pen.closePath()
    names = [".notdef", *(f"glyph{n}" for n in range(len(characters)))]
    builder = FontBuilder(1000)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap({ord(character): f"glyph{n}" for n, character in enumerate(characters)})
    builder.setupGlyf(dict.fromkeys(names, pen.glyph()))
    builder.setupHorizontalMetrics(dict.fromkeys(names, (1000, 50)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": family, "styleName": "Regular"})
    builder.setupOS2(usWeightClass=weight)
    builder.setupPost()
    builder.save(path)


def test_the_built_in_font_is_enough_for_latin_labels(installed) -> None:
    installed("Other", "a")
    assert drawable_labels(["negative", "très", "عربي"]) == (["negative", "très", "عربي"], ["DejaVu Sans"])


def test_labels_that_no_font_has_are_numbered(installed) -> None:
    assert drawable_labels(["正面", "ok", "中a", "\t"]) == (["#0", "ok", "#2", " "], ["DejaVu Sans"])


def test_installed_fonts_join_where_they_are_needed(installed) -> None:
    installed("Zhong Test", "正面")
    installed("Other Test", "a面\U0001f600")
    labels, families = drawable_labels(["正面", "\U0001f600", "中"])
    assert labels == ["正面", "\U0001f600", "#2"]
    assert families == ["DejaVu Sans", "Other Test", "Zhong Test"]


def test_well_known_chinese_fonts_come_first(installed) -> None:
    installed("A Test", "正面")
    installed("Noto Sans CJK SC", "正面")
    assert drawable_labels(["正面"]) == (["正面"], ["DejaVu Sans", "Noto Sans CJK SC"])


@pytest.mark.parametrize("weight", [400, 700])
def test_drawing_chinese_neither_warns_nor_logs(installed, tmp_path: Path, caplog, weight: int) -> None:
    installed("Zhong Test", "正面", weight)
    with caplog.at_level(logging.WARNING), warnings.catch_warnings():
        warnings.simplefilter("error")
        plot_confusion_matrix(np.eye(3), ["正面", "负面", "neutral"], tmp_path / "matrix.png")
    assert caplog.records == []


def test_the_installed_font_is_what_is_drawn(installed, tmp_path: Path) -> None:
    """The test font's characters are black squares."""
    installed("Zhong Test", "正面")

    def ink(label: str) -> int:
        plot_confusion_matrix(np.zeros((1, 1)), [label], tmp_path / "matrix.png", overwrite=True)
        with Image.open(tmp_path / "matrix.png") as image:
            return int((np.asarray(image.convert("L")) < 10).sum())

    assert ink("正面") > ink("") + 500
