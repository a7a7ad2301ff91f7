"""PyTorch files without PyTorch: tensors of every kind are read, nothing in the pickle is run, damage is told."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch_writer import Built, Call, Global, Raw, Stored, flipped, legacy, ordered, save, tensor, write

from albert_tf.conversion.torch_file import torch_tensors_in
from albert_tf.errors import InputError

NUMBERS = np.arange(12, dtype=np.float32) + 0.5
TWELVE = {"0": NUMBERS.tobytes()}


def read(path: Path) -> dict[str, np.ndarray]:
    return {name: held.read() for name, held in torch_tensors_in(path).items()}


def test_a_state_dict(tmp_path: Path) -> None:
    state = {
        "weight": NUMBERS.reshape(3, 4),
        "bias": NUMBERS[:3],
        "ids": np.arange(5)[None],
        "one": np.float32(2).reshape(()),
        "none": np.zeros((0, 3), np.float32),
    }
    held = torch_tensors_in(save(tmp_path / "pytorch_model.bin", state))
    assert {name: tensor.shape for name, tensor in held.items()} == {name: array.shape for name, array in state.items()}
    assert {name for name, tensor in held.items() if not tensor.floating} == {"ids"}
    for name, array in state.items():
        np.testing.assert_array_equal(held[name].read(), array, name)
        assert held[name].read().dtype == array.dtype and held[name].read().flags.owndata


def test_windows_on_one_storage(tmp_path: Path) -> None:
    views = {
        "all": tensor("0", "<f4", 12, (3, 4), (4, 1)),
        "transposed": tensor("0", "<f4", 12, (4, 3), (1, 4)),
        "end": tensor("0", "<f4", 12, (2, 2), (4, 1), offset=6),
    }
    weights = read(write(tmp_path / "m.bin", views, TWELVE))
    grid = NUMBERS.reshape(3, 4)
    np.testing.assert_array_equal(weights["transposed"], grid.T)
    np.testing.assert_array_equal(weights["end"], grid[1:, 2:])


def test_half_precision(tmp_path: Path) -> None:
    import ml_dtypes

    values = np.array([1.5, -0.1, 3e-5, 60000, np.inf], np.float32)
    views = {kind: tensor(kind, kind, 5, (5,), (1,)) for kind in ("<f2", "bfloat16")}
    halves = {"<f2": values.astype("<f2"), "bfloat16": values.astype(ml_dtypes.bfloat16)}
    weights = read(write(tmp_path / "m.bin", views, {kind: half.tobytes() for kind, half in halves.items()}))
    for kind, half in halves.items():
        assert weights[kind].dtype == np.float32
        np.testing.assert_array_equal(weights[kind], half.astype(np.float32))


# === Hostile ===


def harmful(folder: Path) -> dict[str, Any]:
    """Pickles that would make the folder `folder`/harm, if anything in them were run."""
    harm = (str(folder / "harm"),)
    mkdir = Global("os", "mkdir")
    plain = Call(mkdir, harm)
    return {
        "call": plain,
        "value": {"weight": plain},
        "key": Built(Global("collections", "OrderedDict"), plain),
        "state": Built(Call(Global("collections", "OrderedDict"), ()), {"_metadata": plain}),
        "tensor": Call(Global("torch._utils", "_rebuild_tensor_v2"), (plain, 0, (1,), (1,), False, None)),
        "storage": Stored(("storage", plain, "0", "cpu", 12)),
        "getattr": Call(Call(Global("builtins", "getattr"), (Global("os", "path"), "x")), harm),
        "eval": Call(Global("builtins", "eval"), (f"__import__('os').mkdir({harm[0]!r})",)),
        "dotted": Call(Global("collections", "OrderedDict.__class__"), harm),
        "torch": Call(Global("torch", "load"), harm),
        "storage class": Call(Global("torch", "FloatStorage"), harm),
        "reconstructor": Call(Global("copyreg", "_reconstructor"), (Global("os", "PathLike"), Global("os", "x"), None)),
        "instance": Raw(b"(X\x01\x00\x00\x00xios\nmkdir\n"),
        "extension": Raw(b"\x82\x01"),
        "frame": Raw(b"\x8c\x02os\x8c\x05mkdir\x93"),
    }


@pytest.mark.parametrize("name", harmful(Path()))
def test_nothing_is_run(tmp_path: Path, name: str) -> None:
    write(tmp_path / "m.bin", harmful(tmp_path)[name], TWELVE)
    with pytest.raises(InputError, match=r"m\.bin: ") as error:
        read(tmp_path / "m.bin")
    assert not (tmp_path / "harm").exists()
    if name in ("call", "value", "state", "tensor", "storage", "instance", "frame"):
        assert "asks for os.mkdir, which was not run" in str(error.value)


def test_the_example_would_do_harm(tmp_path: Path) -> None:
    """Python's own unpickler runs it."""
    import pickle

    write(tmp_path / "m.bin", harmful(tmp_path)["call"], {})
    with zipfile.ZipFile(tmp_path / "m.bin") as archive:
        pickle.loads(archive.read("archive/data.pkl"))
    assert (tmp_path / "harm").is_dir()


def test_a_file_cannot_change_how_the_next_is_read(tmp_path: Path) -> None:
    """Setting attributes of the functions that a pickle may name is all that it can do to them."""
    rebuild, ordered_dict = Global("torch._utils", "_rebuild_tensor_v2"), Global("collections", "OrderedDict")
    changes = (None, {"__defaults__": (1, 2, 3), "__setstate__": ordered_dict, "__module__": "x"})
    for target in (rebuild, ordered_dict):
        write(tmp_path / "bad.bin", {"weight": Built(target, changes)}, TWELVE)
        with pytest.raises(InputError, match=r"expected a tensor|damaged"):
            read(tmp_path / "bad.bin")
    good = save(tmp_path / "good.bin", {"weight": NUMBERS})
    np.testing.assert_array_equal(read(good)["weight"], NUMBERS)


def test_a_tensor_cannot_be_changed_after_it_was_made(tmp_path: Path) -> None:
    made = tensor("0", "<f4", 12, (3, 4), (4, 1))
    for state in ({"shape": (10**9,)}, (None, {"shape": (10**9,)})):
        with pytest.raises(InputError, match="damaged"):
            read(write(tmp_path / "m.bin", {"weight": Built(made, state)}, TWELVE))


@pytest.mark.parametrize(
    "view",
    [
        tensor("0", "<f4", 12, (3, 5), (4, 1)),
        tensor("0", "<f4", 12, (3, 4), (4, 1), offset=1),
        tensor("0", "<f4", 12, (3, 4), (4, 1), offset=-1),
        tensor("0", "<f4", 12, (3, 4), (-4, 1), offset=8),
        tensor("0", "<f4", 12, (10**12,), (0,)),
        tensor("0", "<f4", 12, (-1,), (1,)),
        tensor("0", "<f4", 12, (3, 4), (4,)),
        tensor("0", "<f4", 12, (3.0,), (1,)),
        tensor("0", "<f4", 12, 12, (1,)),
        tensor("0", "<f4", 13, (12,), (1,)),
        tensor("0", "<i8", 12, (12,), (1,)),
        tensor("1", "<f4", 12, (12,), (1,)),
        tensor("../0", "<f4", 12, (12,), (1,)),
    ],
)
def test_tensors_beyond_their_storage_are_refused(tmp_path: Path, view: Call) -> None:
    with pytest.raises(InputError, match=r"m\.bin: weight: damaged: "):
        torch_tensors_in(write(tmp_path / "m.bin", {"weight": view}, TWELVE))


def with_directory(path: Path, name: bytes, at: int, value: int) -> Path:
    """Changes four bytes of a member's entry in the zip's directory."""
    content = bytearray(path.read_bytes())
    entry = content.index(b"PK\x01\x02", content.index(b"PK\x01\x02"))
    while content[entry + 46 : entry + 46 + len(name)] != name:
        entry = content.index(b"PK\x01\x02", entry + 4)
    content[entry + at : entry + at + 4] = value.to_bytes(4, "little")
    path.write_bytes(content)
    return path


def test_a_storage_is_as_long_as_the_directory_says(tmp_path: Path) -> None:
    """Or a window on it would show what else is in memory."""
    count = 10_000_000
    state = {"weight": tensor("0", "<f4", count, (count,), (1,))}
    path = write(tmp_path / "m.bin", state, TWELVE)
    with pytest.raises(InputError, match=r"m\.bin: weight: damaged: data/0 is not the 40000000 bytes"):
        torch_tensors_in(with_directory(path, b"archive/data/0", 24, 4 * count))


def test_tensors_that_all_share_their_numbers_are_refused(tmp_path: Path) -> None:
    """A small file could ask for any amount of memory; tied weights are one table under two names."""
    table = tensor("0", "<f4", 12, (12,), (1,))
    assert len(torch_tensors_in(write(tmp_path / "tied.bin", {"word": table, "decoder": table}, TWELVE))) == 2
    many = {f"layer.{n}": tensor("0", "<f4", 10_000, (10_000,), (1,)) for n in range(100)}
    with pytest.raises(InputError, match=r"m\.bin: its tensors would take more than 2 times the numbers in it"):
        torch_tensors_in(write(tmp_path / "m.bin", many, {"0": bytes(40_000)}))


# === Damaged and of other kinds ===


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"weight": 1.5}, "weight: expected a tensor, found float"),
        ({"model": {"weight": tensor("0", "<f4", 12, (12,), (1,))}}, "model: expected a tensor, found dict"),
        (tensor("0", "<f4", 12, (12,), (1,)), "expected a dict, name → tensor"),
        ({1: tensor("0", "<f4", 12, (12,), (1,))}, "expected a dict, name → tensor"),
        ({"weight": Call(Global("torch._utils", "_rebuild_tensor_v2"), (1, 0, (1,), (1,)))}, "expected a tensor"),
        (Raw(b"\x00"), "damaged"),
        (ordered({"weight": Stored(("module", 1))}), "asks for a storage of unknown form"),
    ],
)
def test_pickles_of_something_else(tmp_path: Path, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        torch_tensors_in(write(tmp_path / "m.bin", value, TWELVE))


def test_a_flipped_bit_in_the_numbers_is_noticed(tmp_path: Path) -> None:
    path = flipped(save(tmp_path / "m.bin", {"weight": NUMBERS}), NUMBERS.tobytes())
    held = torch_tensors_in(path)["weight"]
    with pytest.raises(InputError, match=r"m\.bin: data/0: Bad CRC-32.*the file is damaged"):
        held.read()


def test_a_flipped_bit_in_the_pickle_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Bad CRC-32"):
        torch_tensors_in(flipped(save(tmp_path / "m.bin", {"weight": NUMBERS}), b"weight"))


def test_a_truncated_file(tmp_path: Path) -> None:
    path = save(tmp_path / "m.bin", {"weight": NUMBERS})
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match=r"expected PyTorch's zip form: .*the file is damaged"):
        torch_tensors_in(path)


def test_zip_archives_that_torch_does_not_write(tmp_path: Path) -> None:
    value = {"weight": tensor("0", "<f4", 12, (12,), (1,))}
    with pytest.raises(InputError, match="a compressed or encrypted zip archive"):
        torch_tensors_in(write(tmp_path / "m.bin", value, TWELVE, compression=zipfile.ZIP_DEFLATED))
    with pytest.raises(InputError, match="big-endian"):
        torch_tensors_in(write(tmp_path / "m.bin", value, TWELVE, [("archive/byteorder", b"big")]))
    with pytest.raises(InputError, match=r"not one of torch\.save"):
        torch_tensors_in(write(tmp_path / "m.bin", value, TWELVE, [("other/data.pkl", b"")]))
    with pytest.warns(UserWarning, match="Duplicate name"):
        write(tmp_path / "m.bin", value, TWELVE, [("archive/data/0", bytes(48))])
    with pytest.raises(InputError, match="two members of the same name"):
        torch_tensors_in(tmp_path / "m.bin")
    path = write(tmp_path / "m.bin", value, TWELVE)
    with pytest.raises(InputError, match=r"expected PyTorch's zip form: zip file version 25\.5"):
        torch_tensors_in(with_directory(path, b"archive/data.pkl", 6, 255))
    with zipfile.ZipFile(tmp_path / "empty.bin", "w") as archive:
        archive.writestr("a", b"")
    with pytest.raises(InputError, match=r"not one of torch\.save \(no data\.pkl"):
        torch_tensors_in(tmp_path / "empty.bin")
    with pytest.raises(InputError, match="is too large"):
        torch_tensors_in(write(tmp_path / "m.bin", "x" * (16 * 2**20), {}))
    assert read(write(tmp_path / "m.bin", value, TWELVE, [("archive/byteorder", b"little")]))["weight"].size == 12


def test_files_that_are_no_zip_archives(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"before PyTorch 1\.6.*make a safetensors file of it"):
        torch_tensors_in(legacy(tmp_path / "old.bin", {"weight": 1.0}))
    (tmp_path / "text.bin").write_text("weights")
    with pytest.raises(InputError, match="expected PyTorch's zip form"):
        torch_tensors_in(tmp_path / "text.bin")
    (tmp_path / "lfs.bin").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    with pytest.raises(InputError, match=r"only a Git LFS pointer.*git lfs pull"):
        torch_tensors_in(tmp_path / "lfs.bin")
    with pytest.raises(InputError, match="No such file"):
        torch_tensors_in(tmp_path / "absent.bin")
