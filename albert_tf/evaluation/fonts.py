"""Which installed fonts can draw a label: matplotlib's own has no Chinese, and it warns of every character it lacks."""

import contextlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

_BUILT_IN = "DejaVu Sans"  # comes with matplotlib
# Asked before the other installed fonts, so that Chinese text is of one design.
_PREFERRED = ("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "PingFang SC", "Microsoft YaHei", "SimHei")


def drawable_labels(labels: Sequence[str]) -> tuple[list[str], list[str]]:
    """The labels as a figure can show them, and the font families to draw them with.

    Where labels have characters that the built-in font lacks, installed fonts that have them join the families. A label
    that the fonts cannot draw whole is replaced by "#" and its position; control characters (a line break would upset
    the layout) are shown as spaces.
    """
    shown = ["".join(character if character.isprintable() else " " for character in label) for label in labels]
    families = [_BUILT_IN]
    lacking = {character for label in shown for character in label} - _characters(_BUILT_IN)
    if lacking:
        with quiet_font_search():
            for family in _installed_families():
                found = lacking & _characters(family)
                if found:
                    families.append(family)
                    lacking -= found
                if not lacking:
                    break
    return [f"#{n}" if lacking & set(label) else label for n, label in enumerate(shown)], families


@contextlib.contextmanager
def quiet_font_search() -> Iterator[None]:
    """Keeps matplotlib from logging, once per family, that a font has no regular weight and another one stands in."""
    logger = logging.getLogger("matplotlib.font_manager")

    def drop(record: logging.LogRecord) -> bool:
        return record.levelno > logging.WARNING

    logger.addFilter(drop)
    try:
        yield
    finally:
        logger.removeFilter(drop)


def _installed_families() -> Iterator[str]:
    """Families beside matplotlib's own, whose rest are symbols and a "last resort" font of boxes."""
    import matplotlib
    from matplotlib import font_manager

    own = Path(matplotlib.get_data_path())
    names = {font.name for font in font_manager.fontManager.ttflist if own not in Path(font.fname).parents}
    yield from (name for name in _PREFERRED if name in names)
    yield from sorted(names - set(_PREFERRED))


def _characters(family: str) -> set[str]:
    """The characters of the file that matplotlib takes for `family`."""
    from matplotlib import font_manager

    font = font_manager.get_font(font_manager.findfont(family))
    return {chr(code) for code in font.get_charmap()} if font.scalable else set()
