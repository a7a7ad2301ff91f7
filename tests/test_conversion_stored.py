"""Tensors in safetensors files: looked at before they are read, the largest read first."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from albert_tf.conversion.stored import (
    StoredTensor,
    read_largest_first,
    safetensors_in,
    sharded,
    write_safetensors,
)
from albert_tf.errors import InputError


def test_a_safetensors_file(tmp_path: Path) -> None:
    import ml_dtypes

    state = {
        "float32": np.arange(6, dtype=np.float32).reshape(2, 3),
        "float16": np.array([1.5, 65504], np.float16),
        "bfloat16": np.array([1.5, 3e38], ml_dtypes.bfloat16),
        "int64": np.arange(3),
        "float64": np.arange(3.0),
    }
    save_file(state, tmp_path / "model.safetensors")
    held = safetensors_in(tmp_path / "model.safetensors")
    assert {name: tensor.shape for name, tensor in held.items()} == {name: array.shape for name, array in state.items()}
    for name, array in state.items():
        read = held[name].read()
        floating = name in ("float32", "float16", "bfloat16")
        assert (held[name].floating, read.dtype) == (floating, np.float32 if floating else array.dtype)
        np.testing.assert_array_equal(read, array.astype(read.dtype), name)


def test_the_largest_is_read_first_and_the_order_is_kept() -> None:
    order: list[int] = []

    def tensor(size: int) -> StoredTensor:
        def read() -> np.ndarray:
            order.append(size)
            return np.full(size, size, np.float32)

        return StoredTensor((size,), True, read)

    read = read_largest_first({"a": tensor(2), "b": tensor(5), "c": tensor(3)}, lambda name, values: values + len(name))
    assert order == [5, 3, 2]
    assert {name: (weight.size, weight[0]) for name, weight in read.items()} == {"a": (2, 3), "b": (5, 6), "c": (3, 4)}
    assert list(read) == ["a", "b", "c"]


@pytest.mark.parametrize("content", [b"", b"\x08\0\0\0\0\0\0\0{}", b"weights", bytes(100)])
def test_files_that_are_no_safetensors(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=r"cannot read .*model\.safetensors: .*missing or damaged"):
        safetensors_in(tmp_path / "model.safetensors")
    with pytest.raises(InputError, match="No such file"):
        safetensors_in(tmp_path / "absent")


def test_double_precision_becomes_float32() -> None:
    tensor = StoredTensor((2,), False, lambda: np.array([1.5, 1e-3]))
    read = read_largest_first({"a": tensor}, lambda name, values: values)
    assert read["a"].dtype == np.float32
    np.testing.assert_array_equal(read["a"], np.array([1.5, 1e-3], np.float32))


@pytest.mark.parametrize("kind", ["F8_E4M3", "F8_E5M2", "F8_E8M0"])
def test_quantised_weights_are_refused(tmp_path: Path, kind: str) -> None:
    header = json.dumps({"a": {"dtype": kind, "shape": [4], "data_offsets": [0, 4]}}).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    with pytest.raises(InputError, match=rf"model\.safetensors: quantised weights, a \({kind}\)"):
        safetensors_in(path)


def test_files_can_be_read_by_whom_a_new_file_can(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    write_safetensors(tmp_path / "model.safetensors", {"a": np.ones(3, np.float32)})
    assert (tmp_path / "model.safetensors").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_file_that_changes_between_two_looks(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_safetensors(path, {"a": np.ones(3, np.float32)})
    held = safetensors_in(path)["a"]
    write_safetensors(path, {"b": np.ones(3, np.float32)})
    with pytest.raises(InputError, match=r"model\.safetensors: cannot read a"):
        held.read()
    path.unlink()
    with pytest.raises(InputError, match=r"model\.safetensors: cannot read a"):
        held.read()


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        write_safetensors(tmp_path / "absent" / "model.safetensors", {"a": np.ones(3, np.float32)})


@pytest.mark.parametrize("saved", [[], {}, {"weight_map": []}, {"weight_map": {}}, {"weight_map": {"a": 1}}, 3])
def test_indexes_of_shards_that_are_none(tmp_path: Path, saved: Any) -> None:
    (tmp_path / "index.json").write_text(json.dumps(saved))
    with pytest.raises(InputError, match=r"index\.json: expected a JSON object with \"weight_map\""):
        sharded(tmp_path / "index.json", safetensors_in)
