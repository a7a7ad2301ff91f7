"""TFRecord files of `tf.train.Example` messages, without TensorFlow: the workers that write them start at once.

The format (record_writer.h of TensorFlow): for each record its length as 8 bytes, little-endian, their masked CRC32C in
4 bytes, the record, its masked CRC32C in 4 bytes.
"""

import functools
import gzip
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from albert_tf.errors import InputError

Array = np.ndarray

_HEADER = struct.Struct("<QI")
_FOOTER = struct.Struct("<I")
_CRC32C_POLYNOMIAL = 0x82F63B78  # Castagnoli, bits reversed
_MASK_DELTA = 0xA282EAD8  # crc32c.h of TensorFlow
_CRCS_TOGETHER = 4096  # few enough for the processor's cache


def write_records(path: Path, records: Sequence[bytes], *, compressed: bool) -> None:
    """Writes a TFRecord file, GZIP-compressed or not."""
    path.write_bytes(file_content(records, compressed=compressed))


def file_content(records: Sequence[bytes], *, compressed: bool) -> bytes:
    """The content of a TFRecord file. The same records give the same bytes."""
    headers = [len(record).to_bytes(8, "little") for record in records]
    parts: list[bytes] = []
    for header, header_crc, record, crc in zip(
        headers, masked_crcs(headers), records, masked_crcs(records), strict=True
    ):
        parts += [header, _FOOTER.pack(header_crc), record, _FOOTER.pack(crc)]
    content = b"".join(parts)
    return gzip.compress(content, compresslevel=6, mtime=0) if compressed else content


def read_records(path: Path) -> list[bytes]:
    """The records of a file that `write_records` or TensorFlow wrote; compressed if its name ends in .gz.

    Raises:
        InputError: the file cannot be read or is damaged.
    """
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: expected a whole GZIP file, but it is damaged ({error})") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    texts, crcs = [], []
    position = 0
    while position < len(content):
        body = position + _HEADER.size
        length, header_crc = _HEADER.unpack(content[position:body]) if body <= len(content) else (len(content), 0)
        end = body + length
        if end + _FOOTER.size > len(content):
            raise InputError(f"{path}: what stands at byte {position} is no whole TFRecord; the file is damaged")
        texts += [content[position : position + 8], content[body:end]]
        crcs += [header_crc, *_FOOTER.unpack(content[end : end + _FOOTER.size])]
        position = end + _FOOTER.size
    if masked_crcs(texts) != crcs:
        raise InputError(f"{path}: a checksum of this TFRecord file is wrong; it is damaged")
    return texts[1::2]


def masked_crcs(texts: Sequence[bytes]) -> list[int]:
    """TensorFlow's masked CRC32C of each of `texts`, many together: a step of NumPy for each byte of the longest."""
    lengths = np.array([len(text) for text in texts], np.int64)
    order = np.argsort(-lengths, kind="stable")  # those of like length together, the longest first
    result = np.empty(len(texts), np.uint32)
    for begin in range(0, len(texts), _CRCS_TOGETHER):
        chosen = order[begin : begin + _CRCS_TOGETHER]
        result[chosen] = _crcs([texts[index] for index in chosen.tolist()])
    masked = ((result >> 15) | (result << 17)) + np.uint32(_MASK_DELTA)
    return [int(crc) for crc in masked.tolist()]


def _crcs(texts: Sequence[bytes]) -> Array:
    """CRC32C of texts that are sorted by length, the longest first."""
    lengths = np.array([len(text) for text in texts])
    longest = int(lengths[0])
    rows = np.zeros((len(texts), longest), np.uint8)
    for row, text in zip(rows, texts, strict=True):
        row[: len(text)] = np.frombuffer(text, np.uint8)
    columns = np.ascontiguousarray(rows.T)
    crcs = np.full(len(texts), 0xFFFFFFFF, np.uint32)
    longer = np.searchsorted(-lengths, -np.arange(longest), side="left").tolist()  # than each position
    for position, count in enumerate(longer):
        crc = crcs[:count]
        crcs[:count] = _CRC_TABLE[(crc ^ columns[position, :count]) & 0xFF] ^ (crc >> 8)
    return crcs ^ np.uint32(0xFFFFFFFF)


def _crc_table() -> Array:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_CRC32C_POLYNOMIAL), table >> 1)
    return table


_CRC_TABLE = _crc_table()


# Field numbers of the lists in a Feature (feature.proto).
BYTES, FLOAT, INT64 = 1, 2, 3


def encode_example(features: Mapping[str, tuple[int, bytes]]) -> bytes:
    """A serialized `tf.train.Example`.

    Args:
        features: under each name the kind of its list and the content: of `BYTES` the one value, of `FLOAT` little-endian
            float32, of `INT64` what `packed_int64` gives.
    """
    parts = []
    for name in sorted(features):
        kind, content = features[name]
        parts += [_feature_header(name, kind, len(content)), content]
    content = b"".join(parts)
    return _field_header(1, len(content)) + content


def packed_int64(values: Array) -> tuple[bytes, Array]:
    """Numbers from 0 to 2**35 - 1 as protocol-buffer varints, and where each begins, and the end, int (n + 1,): slices of
    the bytes are lists of some of the numbers. All at once: a call for each list takes many times as long."""
    numbers = values.reshape(-1)
    sizes = np.ones(len(numbers), np.int64)
    for bits in (7, 14, 21, 28):
        if int(numbers.max(initial=0)) >> bits == 0:
            break
        sizes += numbers >= 1 << bits
    longest = int(sizes.max(initial=1))
    offsets = np.zeros(len(numbers) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if longest == 1:
        return numbers.astype(np.uint8).tobytes(), offsets
    packed = np.zeros(int(offsets[-1]), np.uint8)
    for place in range(longest):
        here = np.flatnonzero(sizes > place)
        continued = (sizes[here] > place + 1) << 7
        packed[offsets[here] + place] = (numbers[here] >> 7 * place) & 0x7F | continued
    return packed.tobytes(), offsets


@functools.lru_cache(maxsize=1 << 16)
def _feature_header(name: str, kind: int, size: int) -> bytes:
    """What stands before the content of a feature: an entry of the map, its key, the Feature, its list, its values."""
    values = _field_header(1, size)
    of_list = _field_header(kind, len(values) + size) + values
    feature = _field_header(2, len(of_list) + size) + of_list
    key = _field_header(1, len(name.encode())) + name.encode()
    return _field_header(1, len(key) + len(feature) + size) + key + feature


def _field_header(number: int, size: int) -> bytes:
    """The beginning of a length-delimited field of a message."""
    length = bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes((number << 3 | 2,)) + length + bytes((size,))


def decode_example(record: bytes) -> dict[str, bytes | Array]:
    """The features of a serialized `tf.train.Example`: int64 and float32 arrays, and of a bytes_list its first value.

    Raises:
        google.protobuf.message.DecodeError: not an Example.
    """
    features: dict[str, bytes | Array] = {}
    for name, feature in _Example.FromString(record).features.feature.items():
        if feature.HasField("bytes_list"):
            features[name] = feature.bytes_list.value[0]
        elif feature.HasField("float_list"):
            features[name] = np.array(feature.float_list.value, np.float32)
        else:
            features[name] = np.array(feature.int64_list.value, np.int64)
    return features


def _example_class() -> Any:
    """The message `tf.train.Example` (example.proto and feature.proto of TensorFlow), under a name of our own: two of one
    name cannot stand in a process."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="albert_tf/example.proto", package="albert_tf", syntax="proto3")

    def message(name: str, fields: Iterable[tuple[str, int, int, str | None]]) -> Any:
        added = file.message_type.add(name=name)
        for number, (field_name, label, kind, type_name) in enumerate(fields, start=1):
            added.field.add(name=field_name, number=number, label=label, type=kind, type_name=type_name)
        return added

    repeated, single = field.LABEL_REPEATED, field.LABEL_OPTIONAL
    for name, kind in (
        ("BytesList", field.TYPE_BYTES),
        ("FloatList", field.TYPE_FLOAT),
        ("Int64List", field.TYPE_INT64),
    ):
        message(name, [("value", repeated, kind, None)])
    lists = [("bytes_list", "BytesList"), ("float_list", "FloatList"), ("int64_list", "Int64List")]
    feature = message("Feature", [(n, single, field.TYPE_MESSAGE, f".albert_tf.{t}") for n, t in lists])
    feature.oneof_decl.add(name="kind")
    for one in feature.field:
        one.oneof_index = 0
    entry = ".albert_tf.Features.FeatureEntry"
    features = message("Features", [("feature", repeated, field.TYPE_MESSAGE, entry)])
    pair = features.nested_type.add(name="FeatureEntry")
    pair.options.map_entry = True
    pair.field.add(name="key", number=1, label=single, type=field.TYPE_STRING)
    pair.field.add(name="value", number=2, label=single, type=field.TYPE_MESSAGE, type_name=".albert_tf.Feature")
    message("Example", [("features", single, field.TYPE_MESSAGE, ".albert_tf.Features")])
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("albert_tf.Example"))


_Example = _example_class()
