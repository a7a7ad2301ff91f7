"""Unsound indexes with right checksums. TensorFlow itself would end the process, or take all memory, on many of them."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundle_writer import crc32c, entries, varint, write
from tf1_writer import save_folder

from albert_tf.conversion.bundle_index import check_index
from albert_tf.conversion.tf1 import read_tf1
from albert_tf.errors import InputError

NAME = b"bert/pooler/dense/kernel"
OTHER = b"bert/pooler/dense/bias"
INDEX, DATA = "model.ckpt-best.index", "model.ckpt-best.data-00000-of-00001"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_folder(tmp_path / "albert")


def rewritten(folder: Path, change: Callable[[dict[bytes, bytes]], object], **options: Any) -> Path:
    """The index with entries that `change` has changed."""
    held = dict(entries(folder / INDEX))
    change(held)
    write(folder / INDEX, sorted(held.items()), **options)
    return folder


def entry(held: dict[bytes, bytes], name: bytes = NAME, **fields: Any) -> None:
    """Changes fields of an entry; `dims`, its shape."""
    from tensorflow.core.protobuf.tensor_bundle_pb2 import BundleEntryProto

    message = BundleEntryProto.FromString(held[name])
    for field, value in fields.items():
        if field == "dims":
            del message.shape.dim[:]
            for size in value:
                message.shape.dim.add(size=size)
        elif field == "slices":
            message.slices.add().extent.add(start=value)
        else:
            setattr(message, field, value)
    held[name] = message.SerializeToString()


def header(held: dict[bytes, bytes], **fields: int) -> None:
    from tensorflow.core.protobuf.tensor_bundle_pb2 import BundleHeaderProto

    message = BundleHeaderProto.FromString(held[b""])
    for field, value in fields.items():
        setattr(message, field, value)
    held[b""] = message.SerializeToString()


def test_a_rewritten_index_is_read_by_tensorflow(folder: Path) -> None:
    """So the others are refused for what was changed in them."""
    expected = read_tf1(folder).weights
    weights = read_tf1(rewritten(folder, lambda held: None)).weights
    for name, weight in expected.items():
        np.testing.assert_array_equal(weights[name], weight)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda held: held.update({NAME: held[NAME][:4]}), "Error parsing message"),
        (lambda held: held.update({NAME: b"\xff" * 9}), "Error parsing message"),
        (lambda held: entry(held, dims=(6, -1)), "bert/pooler/dense/kernel has no shape"),
        (lambda held: entry(held, dims=(6, -(2**63))), "has no shape"),
        (lambda held: entry(held, dims=(1,) * 300), "has no shape"),
        (lambda held: entry(held, dims=(2**40, 2**40)), "144 bytes, which do not fit its shape"),
        (lambda held: entry(held, dims=(2**20, 2**20)), "do not fit its shape"),
        (lambda held: entry(held, dims=(6,)), "do not fit its shape"),
        (lambda held: entry(held, dtype=94), "of a type, number 94, that no checkpoint of weights has"),
        (lambda held: entry(held, dtype=21), "of a type, number 21"),
        (lambda held: entry(held, dtype=2), "do not fit its shape"),
        (lambda held: entry(held, dtype=7, dims=(10**9,)), "do not fit its shape"),
        (lambda held: entry(held, shard_id=1), "has no place"),
        (lambda held: entry(held, shard_id=-1), "has no place"),
        (lambda held: entry(held, offset=-8), "has no place"),
        (lambda held: entry(held, size=-1), "has no place"),
        (lambda held: entry(held, slices=2), "is stored in parts"),
        (lambda held: entry(held, OTHER, dims=(10**6,), size=4 * 10**6), "dense/bias: its bytes are not in model.ckpt"),
        (lambda held: entry(held, offset=2**62), "its bytes are not in model.ckpt"),
        (lambda held: held.update({b"\xff\xfe": held[NAME]}), "can't decode byte 0xff"),
        (lambda held: held.update({b"a" * 5000: held[NAME]}), "an entry is broken"),
        (lambda held: held.pop(b""), "no header"),
        (lambda held: header(held, num_shards=2), "not that of 1 data files"),
        (lambda held: header(held, num_shards=2**31 - 1), "not that of 1 data files"),
        (lambda held: header(held, endianness=1), "in little-endian order"),
        (lambda held: [entry(held, name, offset=0) for name in held if name], "cannot read tensor"),
    ],
)
def test_unsound_entries(folder: Path, change: Callable[[dict[bytes, bytes]], object], message: str) -> None:
    with pytest.raises(InputError) as error:
        read_tf1(rewritten(folder, change))
    assert message in str(error.value) and "model.ckpt-best" in str(error.value)


def test_variables_that_share_bytes(folder: Path) -> None:
    """A small file could ask for any amount of memory."""
    held = dict(entries(folder / INDEX))
    items = sorted(held.items()) + [(b"x/%03d/adam_m" % n, held[NAME]) for n in range(100)]
    write(folder / INDEX, items)
    with pytest.raises(InputError, match="the variables have more bytes than the data files"):
        read_tf1(folder)


def test_a_name_that_comes_twice_and_names_in_disorder(folder: Path) -> None:
    items = entries(folder / INDEX)
    for changed, message in (
        ([*items[:3], items[2], *items[3:]], "a name comes twice"),
        ([items[0], *items[:0:-1]], "the names are in disorder"),
    ):
        write(folder / INDEX, changed)
        with pytest.raises(InputError, match=f"model.ckpt-best.index: damaged.*{message}"):
            read_tf1(folder)


@pytest.mark.parametrize("options", [{"restarts": (0, 3)}, {"restarts": (2**31,)}, {"kind": 1}])
def test_tables_that_tensorflow_would_search_otherwise(folder: Path, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"a block of it is broken|it is compressed"):
        read_tf1(rewritten(folder, lambda held: None, **options))


@pytest.mark.parametrize("lengths", [(2**62,), (2**33,), (5,), (2, 2), (2**64 - 1, 5)])
def test_lengths_of_strings(tmp_path: Path, lengths: tuple[int, ...]) -> None:
    """The data of a string tensor: lengths, their checksum, characters; here with right checksums throughout."""
    import tensorflow as tf

    prefix = tmp_path / "model.ckpt-best"
    count = len(lengths)
    tf.raw_ops.SaveV2(
        prefix=str(prefix), tensor_names=["s"], shape_and_slices=[""], tensors=[tf.constant([b"abcd"] * count)]
    )
    check_index(prefix, [tmp_path / DATA])
    packed = b"".join(struct.pack("<I" if length < 2**32 else "<Q", length) for length in lengths)
    sizes = b"".join(varint(length) for length in lengths)
    content = sizes + struct.pack("<I", crc32c(packed)) + b"abcd" * count
    (tmp_path / DATA).write_bytes(content)
    rewritten(tmp_path, lambda held: entry(held, b"s", size=len(content)))
    with pytest.raises(InputError, match="cannot read tensor s: its strings do not fill its bytes"):
        check_index(prefix, [tmp_path / DATA])


def test_a_data_file_without_permission_is_not_called_damaged(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *args: Any, **options: Any) -> Any:
        if path.name == DATA:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *args, **options)

    opened = Path.open
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=r"^cannot read .*data-00000-of-00001: Permission denied$"):
        check_index(folder / "model.ckpt-best", [folder / DATA])
