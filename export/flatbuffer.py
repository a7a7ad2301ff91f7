"""Reads flatbuffers that may be damaged or hostile: every place is checked before it is read.

The readers that the flatbuffers compiler generates trust the file: a wrong length keeps them busy for hours, a wrong place
gives another part's bytes. Here a wrong file ends in one exception. The fields of a table are named by their place in the
schema, as in `export.tflite_metadata`.
"""

import struct
from typing import Any

# A table or a vector that is reached from many places costs time for each of them. What no model needs is refused: the
# largest ones have some 100,000 tensors, of four tables each.
_MOST_STEPS = 1 << 26
_STEPS_OF_A_TABLE = 64
_IDENTIFIER_PLACE = 4


class DamagedError(Exception):
    """What the bytes say cannot be; the message says where."""


class Contents:
    """The bytes of a flatbuffer."""

    def __init__(self, data: Any) -> None:
        self.data = memoryview(data)
        self._steps = 0

    def root(self, identifier: bytes) -> "Table":
        """The outermost table of a flatbuffer with this mark of four bytes."""
        found = bytes(self.data[_IDENTIFIER_PLACE : _IDENTIFIER_PLACE + 4])
        if found != identifier:
            raise DamagedError(f"expected the mark {identifier.decode()} at byte 4, found {found!r}")
        return Table(self, self.number("I", 0))

    def number(self, kind: str, place: int) -> Any:
        """The number of a `struct` format at `place`."""
        if place < 0 or place + struct.calcsize(kind) > len(self.data):
            raise DamagedError(f"it refers to byte {place:,}, and has {len(self.data):,}")
        return struct.unpack_from(f"<{kind}", self.data, place)[0]

    def part(self, start: int, size: int) -> memoryview:
        """The bytes from `start` on."""
        if start < 0 or size < 0 or start + size > len(self.data):
            raise DamagedError(f"it refers to {size:,} bytes from byte {start:,} on, and has {len(self.data):,}")
        return self.data[start : start + size]

    def spend(self, steps: int) -> None:
        """Counts work."""
        self._steps += steps
        if self._steps > _MOST_STEPS:
            raise DamagedError("it has more parts than any model")


class Table:
    """A table; a field that is absent gives the default."""

    def __init__(self, contents: Contents, place: int) -> None:
        contents.spend(_STEPS_OF_A_TABLE)
        self.contents = contents
        self.place = place
        self._fields = place - contents.number("i", place)
        self._size = contents.number("H", self._fields)

    def number(self, field: int, kind: str, default: Any = 0) -> Any:
        """A number of a `struct` format."""
        place = self._place(field)
        return default if place is None else self.contents.number(kind, place)

    def text(self, field: int) -> str | None:
        """A string. Bytes that are not UTF-8 become replacement characters."""
        found = self.bytes(field)
        if found is None:
            return None
        self.contents.spend(len(found))
        return bytes(found).decode("utf-8", errors="replace")

    def bytes(self, field: int) -> memoryview | None:
        """A vector of bytes; None where it is absent."""
        start, size = self._vector(field, 1)
        return None if start is None else self.contents.part(start, size)

    def count(self, field: int, width: int) -> int:
        """The length of a vector of values of `width` bytes; 0 where it is absent."""
        return self._vector(field, width)[1]

    def numbers(self, field: int, kind: str) -> list[Any]:
        """A vector of numbers; empty where it is absent."""
        width = struct.calcsize(kind)
        start, count = self._vector(field, width)
        if start is None:
            return []
        self.contents.spend(count * width)
        return list(struct.unpack_from(f"<{count}{kind}", self.contents.data, start))

    def table(self, field: int) -> "Table | None":
        """A table below this one."""
        place = self._place(field)
        return None if place is None else self._below(place)

    def tables(self, field: int) -> list["Table"]:
        """A vector of tables; empty where it is absent."""
        start, count = self._vector(field, 4)
        return [] if start is None else [self._below(start + 4 * i) for i in range(count)]

    def _below(self, place: int) -> "Table":
        return Table(self.contents, place + self.contents.number("I", place))

    def _place(self, field: int) -> int | None:
        entry = 4 + 2 * field
        if entry + 2 > self._size:
            return None
        offset = self.contents.number("H", self._fields + entry)
        return self.place + offset if offset else None

    def _vector(self, field: int, width: int) -> tuple[int | None, int]:
        """Where its values start, and how many there are."""
        place = self._place(field)
        if place is None:
            return None, 0
        place += self.contents.number("I", place)
        count = self.contents.number("I", place)
        self.contents.part(place + 4, count * width)
        return place + 4, count
