"""Writes `UnicodeData.java`: what Python's Unicode database says of all characters, for the tokenizer in Java.

    python tests/java/unicode_data.py

A device's own database is of another version, and rules from it give other ids.
"""

import base64
import unicodedata
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

TARGET = Path(__file__).resolve().parents[2] / "android_demo_assets/java/org/alberttf/UnicodeData.java"
_SIGMA = "Σ"
_WIDTH = 95
_CLASS = """package org.alberttf;

/**
 * What Python's Unicode database says of characters, in the form that {@link UnicodeTables} reads. Written by
 * tests/java/unicode_data.py; not for reading.
 */
final class UnicodeData {
    /** The version of Unicode. */
    static final String VERSION = "%s";

    /** Base64 of a zlib stream of numbers. */
    static final String PACKED =
%s;

    private UnicodeData() {}
}
"""


def payload() -> bytes:
    """Two maps, decomposition without marks and lower case, and five sets: letters with case, what the case of sigma looks
    past, characters of words, digits, whitespace. Numbers of 7 bits a byte, the lowest first."""
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    hangul = {chr(code) for code in range(0xAC00, 0xD7A4)}  # decomposed by arithmetic
    cased = {c for c in characters if (c + _SIGMA).lower()[-1] == "ς"}
    ignorable = {c for c in characters if c not in cased and ("A" + c + _SIGMA).lower()[-1] == "ς"}
    numbers = [
        *_map_numbers((c, _decomposed(c)) for c in characters if c not in hangul),
        *_map_numbers((c, c.lower()) for c in characters if c != _SIGMA),
        *_set_numbers(characters, cased.__contains__),
        *_set_numbers(characters, ignorable.__contains__),
        *_set_numbers(characters, str.isalnum),
        *_set_numbers(characters, str.isdigit),
        *_set_numbers(characters, str.isspace),
    ]
    return b"".join(map(_seven_bits, numbers))


def java_source() -> str:
    """The whole file."""
    packed = base64.b64encode(zlib.compress(payload(), 9)).decode()
    lines = [packed[start : start + _WIDTH] for start in range(0, len(packed), _WIDTH)]
    joined = "\n                    + ".join(f'"{line}"' for line in lines)
    return _CLASS % (unicodedata.unidata_version, f"            {joined}")


def unpacked(source: str) -> bytes:
    """The numbers in such a file: compressed bytes may differ between releases of zlib."""
    packed = source.split("PACKED =")[1].split(";")[0]
    return zlib.decompress(base64.b64decode("".join(packed.split('"')[1::2])))


def _decomposed(character: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", character) if not unicodedata.combining(c))


def _map_numbers(pairs: Iterable[tuple[str, str]]) -> list[int]:
    """How many change; of each: how far it is from the one before, the length of its target, and the target's
    characters, each as the difference from the one before it."""
    changed = [(source, target) for source, target in pairs if source != target]
    numbers = [len(changed)]
    before = last = 0
    for source, target in changed:
        numbers += [ord(source) - before, len(target)]
        before = ord(source)
        for character in target:
            difference = ord(character) - last
            numbers.append(2 * difference if difference >= 0 else -2 * difference - 1)
            last = ord(character)
    return numbers


def _set_numbers(characters: Iterable[str], holds: Callable[[str], bool]) -> list[int]:
    """How many runs; of each: how far it begins behind the end of the one before, and its length."""
    runs: list[list[int]] = []
    for code in map(ord, filter(holds, characters)):
        if runs and runs[-1][1] == code:
            runs[-1][1] = code + 1
        else:
            runs.append([code, code + 1])
    ends = [0, *(end for _, end in runs)]
    return [
        len(runs),
        *(n for (start, end), before in zip(runs, ends, strict=False) for n in (start - before, end - start)),
    ]


def _seven_bits(number: int) -> bytes:
    result = bytearray()
    while number >= 128:
        result.append(number & 127 | 128)
        number >>= 7
    return bytes([*result, number])


if __name__ == "__main__":
    TARGET.write_text(java_source(), encoding="utf-8")
