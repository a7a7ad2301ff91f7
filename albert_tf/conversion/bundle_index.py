"""The .index file of a TensorFlow checkpoint, looked over before TensorFlow reads it.

It is a sorted table, name → type, shape and place of a variable (tensorflow/core/util/tensor_bundle, protobuf
tensor_bundle.proto; the table is LevelDB's). TensorFlow compares its checksums, but trusts what a file with right
checksums says: a negative size or a broken entry ends the process, a huge size takes the memory before anything is
read, and of two variables of one name either may be the one.
"""

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from albert_tf.errors import InputError

_FOOTER_BYTES = 48
_MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")
# The published ones have 2 to 20 kB.
_MAX_BYTES = 64 * 2**20
_LONGEST_NAME = 4096
_MOST_AXES = 16
_MOST_STRINGS = 100_000
# DataType of types.proto → bytes of one: numbers and truth values. Strings have a size each.
_ITEM_BYTES = {
    **dict.fromkeys((4, 6, 10), 1),  # uint8, int8, bool
    **dict.fromkeys((5, 14, 17, 19), 2),  # int16, bfloat16, uint16, half
    **dict.fromkeys((1, 3, 22), 4),  # float, int32, uint32
    **dict.fromkeys((2, 8, 9, 23), 8),  # double, complex64, int64, uint64
    18: 16,  # complex128
}
_STRING = 7


def check_index(prefix: Path, data_files: Sequence[Path]) -> None:
    """Compares what an index says with itself and with the sizes of the data files.

    Args:
        prefix: of the checkpoint.
        data_files: its data files in order.

    Raises:
        InputError: not a table, an unsound entry, a name that comes twice, or a variable beyond its data file.
    """
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf.tensor_bundle_pb2 import BundleEntryProto, BundleHeaderProto

    path = prefix.with_name(f"{prefix.name}.index")
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise _UnsoundError(f"more than {_MAX_BYTES} bytes")
        entries = list(_entries(path.read_bytes()))
        if not entries or entries[0][0] != b"":
            raise _UnsoundError("no header")
        header = BundleHeaderProto.FromString(entries[0][1])
        if header.num_shards != len(data_files) or header.endianness != header.LITTLE:
            raise _UnsoundError(f"it is not that of {len(data_files)} data files in little-endian order")
        sizes = [_size(file) for file in data_files]
        total = 0
        for key, value in entries[1:]:
            entry = BundleEntryProto.FromString(value)
            name = key.decode()
            _check_entry(name, entry, len(sizes))
            total += entry.size
            if entry.offset + entry.size > sizes[entry.shard_id]:
                raise InputError(
                    f"{prefix}: cannot read tensor {name}: its bytes are not in {data_files[entry.shard_id].name}; the file "
                    "is damaged or cut off: copy it again"
                )
            if entry.dtype == _STRING:
                _check_strings(name, entry, data_files[entry.shard_id])
        if total > sum(sizes):
            raise _UnsoundError("the variables have more bytes than the data files")
    except (_UnsoundError, DecodeError, UnicodeDecodeError, IndexError) as error:
        raise InputError(f"{path}: damaged or not a TensorFlow checkpoint: {error}") from error
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}") from error


def _size(data_file: Path) -> int:
    """Of a file that can be read: of one that cannot, TensorFlow says so where it reads the first variable."""
    with data_file.open("rb") as file:
        return file.seek(0, os.SEEK_END)


class _UnsoundError(Exception):
    """What is wrong with the table; never leaves this module."""


def _check_entry(name: str, entry: Any, shards: int) -> None:
    shape = [dimension.size for dimension in entry.shape.dim]
    if entry.shape.unknown_rank or len(shape) > _MOST_AXES or any(size < 0 for size in shape):
        raise _UnsoundError(f"{name} has no shape")
    if entry.slices:
        raise _UnsoundError(f"{name} is stored in parts, as no ALBERT's variables are")
    if not 0 <= entry.shard_id < shards or entry.offset < 0 or entry.size < 0:
        raise _UnsoundError(f"{name} has no place")
    count = math.prod(shape)
    if entry.dtype == _STRING:
        fits = count <= min(entry.size, _MOST_STRINGS)
    elif entry.dtype in _ITEM_BYTES:
        fits = count * _ITEM_BYTES[entry.dtype] == entry.size
    else:
        raise _UnsoundError(f"{name} is of a type, number {entry.dtype}, that no checkpoint of weights has")
    if not fits:
        raise _UnsoundError(f"{name} has {entry.size} bytes, which do not fit its shape")


def _check_strings(name: str, entry: Any, data_file: Path) -> None:
    """Strings are stored as their lengths, four bytes of a checksum, and then the characters."""
    count = math.prod(dimension.size for dimension in entry.shape.dim)
    with data_file.open("rb") as file:
        file.seek(entry.offset)
        lengths = file.read(min(entry.size, 10 * count))
    at = total = 0
    for _ in range(count):
        length, at = _varint(lengths, at)
        total += length
    if at + 4 + total != entry.size:
        raise InputError(
            f"{data_file}: cannot read tensor {name}: its strings do not fill its bytes; the file is damaged: copy it again"
        )


# === The table ===


def _entries(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Key and value of each entry, in order."""
    if len(content) < _FOOTER_BYTES or not content.endswith(_MAGIC):
        raise _UnsoundError("it does not end as one")
    at = len(content) - _FOOTER_BYTES
    numbers = []
    for _ in range(4):  # place and size of two blocks; the second lists the others
        number, at = _varint(content, at)
        numbers.append(number)
    last = None
    for _, handle in _block(content, *numbers[2:]):
        offset, at = _varint(handle, 0)
        size, _ = _varint(handle, at)
        for key, value in _block(content, offset, size):
            if last is not None and key <= last:
                raise _UnsoundError("a name comes twice" if key == last else "the names are in disorder")
            last = key
            yield key, value


def _block(content: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Key and value of each entry of one block: a key says how much of the one before it begins with."""
    if offset + size >= len(content) or size < 4:
        raise _UnsoundError("a block of it is not in the file")
    if content[offset + size] != 0:
        raise _UnsoundError("it is compressed, as TensorFlow writes none")
    block = content[offset : offset + size]
    end = size - 4 - 4 * int.from_bytes(block[-4:], "little")
    if end < 0:
        raise _UnsoundError("a block of it is broken")
    # Places where a search may begin: TensorFlow would take for an entry whatever is there.
    restarts = {int.from_bytes(block[at : at + 4], "little") for at in range(end, size - 4, 4)}
    at = 0
    key = b""
    while at < end:
        start = at
        shared, at = _varint(block, at)
        if not shared:
            restarts.discard(start)
        own, at = _varint(block, at)
        length, at = _varint(block, at)
        if shared > len(key) or shared + own > _LONGEST_NAME or at + own + length > end:
            raise _UnsoundError("an entry is broken")
        key = key[:shared] + block[at : at + own]
        yield key, block[at + own : at + own + length]
        at += own + length
    if restarts - {0}:
        raise _UnsoundError("a block of it is broken")


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where it ends."""
    number = 0
    for shift in range(0, 70, 7):
        byte = content[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
    raise _UnsoundError("a number has no end")
