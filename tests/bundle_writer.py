"""Writes .index files of TensorFlow checkpoints for tests, byte by byte with right checksums, sound or not.

A table (tensorflow/core/lib/io/table, after LevelDB): blocks of entries, each followed by one byte and a checksum, then
where the last of them, which lists the others, is.
"""

import struct
from collections.abc import Iterable
from pathlib import Path

_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)


def entries(index: Path) -> list[tuple[bytes, bytes]]:
    """Key and value of each entry of a file that TensorFlow wrote."""
    from albert_tf.conversion.bundle_index import _entries

    return list(_entries(index.read_bytes()))


def write(index: Path, items: Iterable[tuple[bytes, bytes]], restarts: Iterable[int] = (0,), kind: int = 0) -> None:
    """A table of one block; `restarts`: places in it where a search may begin; `kind`: the byte after a block."""
    content = b""
    handles = []
    items = list(items)
    for block in (_block(items, restarts), _block([], (0,))):
        handles.append(varint(len(content)) + varint(len(block)))
        content += _checked(block, kind)
    listing = _block([(items[-1][0] + b"\xff" if items else b"", handles[0])], (0,))
    footer = handles[1] + varint(len(content)) + varint(len(listing))
    content += _checked(listing, kind)
    index.write_bytes(content + footer.ljust(40, b"\0") + _MAGIC)


def crc32c(content: bytes) -> int:
    """The checksum as TensorFlow stores it."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _block(items: Iterable[tuple[bytes, bytes]], restarts: Iterable[int]) -> bytes:
    content = b"".join(varint(0) + varint(len(key)) + varint(len(value)) + key + value for key, value in items)
    places = list(restarts)
    return content + struct.pack(f"<{len(places) + 1}I", *places, len(places))


def _checked(block: bytes, kind: int) -> bytes:
    typed = block + bytes([kind])
    return typed + struct.pack("<I", crc32c(typed))


def varint(number: int) -> bytes:
    encoded = b""
    while number > 0x7F:
        encoded += bytes([number & 0x7F | 0x80])
        number >>= 7
    return encoded + bytes([number])
