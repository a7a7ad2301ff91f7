"""`albert_tf.data.tfrecord`: TensorFlow reads what it writes, and it reads what TensorFlow writes; damage is noticed."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.data.tfrecord import (
    BYTES,
    FLOAT,
    INT64,
    decode_example,
    encode_example,
    masked_crcs,
    packed_int64,
    read_records,
    write_records,
)
from albert_tf.errors import InputError

RECORDS = [b"", b"a", bytes(range(40)) * 2, b"\0" * 20, b"end"]


def name_of(compressed: bool) -> str:
    return "x.tfrecord.gz" if compressed else "x.tfrecord"


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("records", [RECORDS, RECORDS[:1], []])
def test_tensorflow_reads_ours(tmp_path: Path, records: list[bytes], compressed: bool) -> None:
    path = tmp_path / name_of(compressed)
    write_records(path, records, compressed=compressed)
    dataset = tf.data.TFRecordDataset(str(path), "GZIP" if compressed else "")
    assert list(dataset.as_numpy_iterator()) == records
    assert read_records(path) == records


@pytest.mark.parametrize("compressed", [False, True])
def test_ours_reads_tensorflow_s(tmp_path: Path, compressed: bool) -> None:
    path = tmp_path / name_of(compressed)
    with tf.io.TFRecordWriter(str(path), "GZIP" if compressed else "") as writer:
        for record in RECORDS:
            writer.write(record)
    assert read_records(path) == RECORDS
    if not compressed:
        write_records(tmp_path / "ours", RECORDS, compressed=False)
        assert (tmp_path / "ours").read_bytes() == path.read_bytes()


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_records(tmp_path / name, RECORDS, compressed=True)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_known_checksums() -> None:
    """CRC32C of RFC 3720 (section B.4), masked."""

    def mask(crc: int) -> int:
        return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF

    texts = [bytes(32), b"\xff" * 32, bytes(range(32)), bytes(range(31, -1, -1)), b"123456789", b""]
    crcs = [0x8A9136AA, 0x62A8AB43, 0x46DD794E, 0x113FDB5C, 0xE3069283, 0]
    assert masked_crcs(texts) == [mask(crc) for crc in crcs]
    assert masked_crcs([]) == []


@pytest.mark.parametrize("compressed", [False, True])
def test_any_changed_or_missing_byte_is_noticed(tmp_path: Path, compressed: bool) -> None:
    path = tmp_path / name_of(compressed)
    write_records(path, RECORDS, compressed=compressed)
    whole = path.read_bytes()
    # Of a GZIP header: time, kind of compression and system mean nothing.
    first = 10 if compressed else 0
    for position in range(first, len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x41]) + whole[position + 1 :])
        with pytest.raises(InputError, match="damaged"):
            read_records(path)
    ends = set(np.cumsum([0, *(len(record) + 16 for record in RECORDS)]).tolist())
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        if not compressed and length in ends:
            continue  # a file of the first records
        with pytest.raises(InputError, match="damaged"):
            read_records(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*: No such file"):
        read_records(tmp_path / "none.tfrecord")
    (tmp_path / "text.gz").write_bytes(b"text")
    with pytest.raises(InputError, match="expected a whole GZIP file"):
        read_records(tmp_path / "text.gz")
    (tmp_path / "other.gz").write_bytes(gzip.compress(b"text of some length"))
    with pytest.raises(InputError, match="no whole TFRecord"):
        read_records(tmp_path / "other.gz")


@pytest.mark.parametrize(
    "numbers", [[], [0], [127, 128, 0, 16383, 16384, 2**21, 2**28 - 1, 2**28, 2**35 - 1], range(300)]
)
def test_examples_as_tensorflow_writes_them(numbers: list[int]) -> None:
    numbers = np.array(numbers, np.int64)
    floats = np.array([0.5, -1, 1e-9], np.float32)
    ours = encode_example(
        {
            "name": (BYTES, b"\0\xff"),
            "numbers": (INT64, packed_int64(numbers)[0]),
            "a longer name": (FLOAT, floats.astype("<f4").tobytes()),
        }
    )
    example = tf.train.Example.FromString(ours)
    feature = example.features.feature
    assert sorted(feature) == ["a longer name", "name", "numbers"]
    assert list(feature["numbers"].int64_list.value) == numbers.tolist()
    assert list(feature["a longer name"].float_list.value) == floats.tolist()
    assert list(feature["name"].bytes_list.value) == [b"\0\xff"]
    if len(numbers):
        assert ours == example.SerializeToString(deterministic=True)
    back = decode_example(ours)
    assert back["name"] == b"\0\xff"
    assert back["numbers"].tolist() == numbers.tolist()
    assert (back["numbers"].dtype, back["a longer name"].dtype) == (np.int64, np.float32)
    assert back["a longer name"].tolist() == floats.tolist()


def test_packed_numbers_can_be_cut() -> None:
    numbers = np.array([1, 300, 5, 70000, 9])
    packed, offsets = packed_int64(numbers)
    part = encode_example({"x": (INT64, packed[offsets[1] : offsets[4]])})
    assert decode_example(part)["x"].tolist() == [300, 5, 70000]
