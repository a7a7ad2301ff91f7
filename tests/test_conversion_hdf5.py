"""HDF5 files are listed by a process of its own: what ends or stops the library there is an error here."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from albert_tf.conversion import hdf5
from albert_tf.conversion.hdf5 import hdf5_tensors_in, hdf5_written
from albert_tf.errors import InputError

NUMBERS = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.weights.h5"


def written(path: Path, fill: Callable[[h5py.File], object]) -> Path:
    with h5py.File(path, "w") as file:
        fill(file)
    return path


def test_numbers_of_every_kind(path: Path) -> None:
    values: dict[str, Any] = {
        "float32": NUMBERS,
        "big": NUMBERS.astype(">f4"),
        "half": NUMBERS.astype(np.float16),
        "double": NUMBERS.astype(np.float64),
        "whole": np.arange(5, dtype=np.int16),
        "one": np.float32(2.5),
        "none": np.zeros((0, 3), np.float32),
        "compact/vars/0": NUMBERS.T,
    }
    found = hdf5_tensors_in(written(path, lambda file: [file.__setitem__(name, v) for name, v in values.items()]))
    assert found.tensors.keys() == values.keys()
    for name, value in values.items():
        read = found.tensors[name].read()
        assert found.tensors[name].floating == (name != "whole")
        assert read.dtype == (np.int16 if name == "whole" else np.float32)
        np.testing.assert_array_equal(read, value, name)
        assert read.shape == found.tensors[name].shape == np.shape(value)


def test_names_of_layers(path: Path) -> None:
    def fill(file: h5py.File) -> None:
        file["layers/dense/vars/0"] = NUMBERS
        file["layers/dense/vars"].attrs["name"] = "embedding_projection"
        file["layers/dense"].attrs["name"] = 3
        file["layers"].attrs["other"] = "x"

    assert hdf5_tensors_in(written(path, fill)).names == {"layers/dense/vars": "embedding_projection"}


@pytest.mark.parametrize(
    "command",
    [
        "import time; time.sleep(60)",
        "import os; os.abort()",
        "print('no list')",
        "import sys; from albert_tf.conversion import hdf5; hdf5._MOST_BYTES = 2**20; hdf5.main()",
    ],
)
def test_a_file_that_stops_or_ends_the_library(path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    written(path, lambda file: file.__setitem__("a", NUMBERS))
    monkeypatch.setattr(hdf5, "_COMMAND", command)
    monkeypatch.setattr(hdf5, "_MOST_SECONDS", 3)
    with pytest.raises(InputError, match=r"cannot read .*model\.weights\.h5: .*damaged"):
        hdf5_tensors_in(path)


@pytest.mark.parametrize(
    ("stopped", "seconds"), [("time.sleep(100)", 100), ("sum(range(10**12))", 3)], ids=["waits", "loops in C"]
)
def test_the_process_ends_with_the_one_that_started_it(path: Path, stopped: str, seconds: int) -> None:
    """Also where that is killed. The lock that a process holds ends with it."""
    fcntl = pytest.importorskip("fcntl", reason="the lock that tells is of Unix")
    written(path, lambda file: file.__setitem__("a", NUMBERS))
    lock = path.with_name("lock")
    command = (
        f"import fcntl, os, sys, time; from albert_tf.conversion import hdf5; hdf5._MOST_SECONDS = {seconds}; "
        f"file = open({str(lock)!r}, 'w'); fcntl.flock(file, fcntl.LOCK_EX); print('locked', file=file, flush=True); "
        f"hdf5._listed = lambda path: {stopped}; hdf5.main()"
    )
    parent = (
        f"from albert_tf.conversion import hdf5; hdf5._COMMAND = {command!r}; "
        f"hdf5.hdf5_tensors_in(hdf5.Path({str(path)!r}))"
    )
    started = subprocess.Popen([sys.executable, "-c", parent], cwd=Path(hdf5.__file__).parents[2])
    try:
        while not (lock.exists() and lock.read_text()):
            assert started.poll() is None
            time.sleep(0.05)
    finally:
        started.kill()
        started.wait()
    limit = time.monotonic() + 30
    with lock.open() as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                assert time.monotonic() < limit, "the process is still there"
                time.sleep(0.05)


def test_nothing_in_the_working_directory_is_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(path, lambda file: file.__setitem__("a", NUMBERS))
    for name in ("json", "h5py", "albert_tf", "numpy", "resource"):
        path.with_name(f"{name}.py").write_text("import pathlib; pathlib.Path('harm').touch()")
    monkeypatch.chdir(path.parent)
    assert hdf5_tensors_in(path).tensors.keys() == {"a"}
    assert not path.with_name("harm").exists()


@pytest.mark.parametrize(
    ("fill", "message"),
    [
        (lambda file: file.create_dataset("a", data=NUMBERS, compression="gzip"), "a: its 48 bytes are compressed"),
        (lambda file: file.create_dataset("a", (10**6, 10**6), np.float32), "a: its 4000000000000 bytes are"),
        (lambda file: file.create_dataset("a", (4, 4), np.float32, chunks=(2, 2)), "compressed or missing"),
        (lambda file: file.create_dataset("a", data=NUMBERS, external=[("other", 0, 48)]), "a points to another file"),
        (
            lambda file: file.create_virtual_dataset("a", h5py.VirtualLayout((3, 4), np.float32)),
            "points to another file",
        ),
    ],
)
def test_datasets_that_keras_does_not_write(
    path: Path, fill: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    with pytest.raises(InputError, match=message):
        hdf5_tensors_in(written(path, fill))


@pytest.mark.parametrize("value", ["text", ["several", "texts"], np.array([(1, 2)], [("a", "i4"), ("b", "f4")])])
def test_datasets_without_numbers(path: Path, value: Any) -> None:
    """They may be there, but are no weights."""
    tensor = hdf5_tensors_in(written(path, lambda file: file.__setitem__("a", value))).tensors["a"]
    assert not tensor.floating
    with pytest.raises(InputError, match=r"model\.weights\.h5: a: expected numbers, found"):
        tensor.read()


def test_what_is_written(path: Path) -> None:
    """It holds what a file has that the library writes by itself."""

    def fill(file: h5py.File) -> None:
        file["layers/a/vars/0"] = NUMBERS
        file["layers/a/vars"].attrs["name"] = "first"
        file["one"] = np.float32(2)

    with hdf5_written(path) as file:
        fill(file)
    ours = hdf5_tensors_in(path)
    library = hdf5_tensors_in(written(path.with_name("library.h5"), fill))
    assert ours.names == library.names and ours.tensors.keys() == library.tensors.keys()
    for name, tensor in library.tensors.items():
        np.testing.assert_array_equal(ours.tensors[name].read(), tensor.read(), name)
    with pytest.raises(FileExistsError), hdf5_written(path):
        pass


def test_a_full_disk(path: Path) -> None:
    """The library would end the process; with a limit on files' sizes the system says no in the same way."""
    pytest.importorskip("resource", reason="the limit is of Unix")
    code = f"""
import resource, pathlib, numpy as np
from albert_tf.conversion.hdf5 import hdf5_written
path = pathlib.Path({str(path)!r})
for limit in (0, 1, 100, 2048, 50_000, 399_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        with hdf5_written(path) as file:
            for number in range(4):
                file[f"layers/{{number}}/vars/0"] = np.ones(25_000, np.float32)
        print("written")
    except OSError as error:
        print(limit, error.strerror, path.stat().st_size <= limit)
    path.unlink()
"""
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, cwd=Path(hdf5.__file__).parents[2], capture_output=True, text=True, check=False)
    limits = (0, 1, 100, 2048, 50_000, 399_000)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [f"{limit} File too large True" for limit in limits]


def test_links_are_not_followed(path: Path) -> None:
    other = written(path.with_name("other.h5"), lambda file: file.__setitem__("a", NUMBERS))

    def fill(file: h5py.File) -> None:
        file["own"] = NUMBERS
        file["link"] = h5py.SoftLink("/own")
        file["far"] = h5py.ExternalLink(other, "a")
        file["loop"] = h5py.SoftLink("/")

    assert hdf5_tensors_in(written(path, fill)).tensors.keys() == {"own"}


def test_damage(path: Path) -> None:
    written(path, lambda file: [file.__setitem__(f"layers/{n}/vars/0", NUMBERS) for n in range(5)])
    whole = path.read_bytes()
    tensor = hdf5_tensors_in(path).tensors["layers/4/vars/0"]
    path.write_bytes(whole[: whole.index(NUMBERS.tobytes()) + 20])
    with pytest.raises(InputError, match="the file ends within its numbers"):
        tensor.read()
    for content in (whole[:2000], b"", b"no file", whole[:100] + bytes(1000) + whole[1100:]):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"cannot read .*model\.weights\.h5: .*damaged"):
            hdf5_tensors_in(path)
    path.unlink()
    with pytest.raises(InputError, match="No such file"):
        hdf5_tensors_in(path)
