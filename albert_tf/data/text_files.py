"""Text files of any size, a line at a time, compressed or not."""

import bz2
import gzip
import lzma
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from albert_tf.errors import InputError

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
_BYTE_ORDER_MARK = "\ufeff".encode()


def text_lines(path: str | Path) -> Iterator[str]:
    """The lines of a UTF-8 text file (.gz, .xz and .bz2 are unpacked), without their ends; memory holds one at a time.

    Raises:
        InputError: the file is missing, a folder, not readable, damaged, or not UTF-8 (the message names the line).
    """
    path = Path(path)
    number = 0
    try:
        with _open(path) as file:
            for line in decoded_lines(file, path):
                number += 1
                yield line
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: expected a whole {path.suffix} file, but after line {number}: {error}") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def decoded_lines(raw_lines: Iterable[bytes], source: str | Path) -> Iterator[str]:
    """The lines of the UTF-8 file `source`, given with their ends and yielded without.

    Raises:
        InputError: not UTF-8; the message names the line.
    """
    for number, raw in enumerate(raw_lines, start=1):
        line = raw.removeprefix(_BYTE_ORDER_MARK) if number == 1 else raw
        try:
            yield line.decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{source}, line {number}: expected UTF-8 text, found byte 0x{error.object[error.start]:02x}; "
                "convert the file to UTF-8"
            ) from error


def sampled_lines(path: str | Path, count: int) -> list[str]:
    """At most `count` lines of a text file, each as likely as any other, in the order of the file.

    The same file and count give the same lines (the draws are seeded). Memory holds `count` lines. Blank lines are not
    drawn.

    Raises:
        InputError: as `text_lines`.
    """
    draws = random.Random(0)
    kept: list[tuple[int, str]] = []
    lines = (line for line in text_lines(path) if line.strip())
    for number, line in enumerate(lines):
        place = number if number < count else draws.randrange(number + 1)
        if place < len(kept):
            kept[place] = (number, line)
        elif place < count:
            kept.append((number, line))
    return [line for _, line in sorted(kept)]


def _open(path: Path) -> BinaryIO:
    opener = _OPENERS.get(path.suffix.lower(), open)
    return cast(BinaryIO, opener(path, "rb"))
