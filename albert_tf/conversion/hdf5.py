"""Tensors in HDF5 files, as Keras writes them.

The library that reads HDF5 trusts the file: one damaged byte can send it into an endless loop, another takes gigabytes
or ends the process. So a process of its own, with limits, lists what is in the file and where; the numbers themselves
are then read from there without the library. Keras stores them plainly, one after another.
"""

import contextlib
import faulthandler
import io
import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from albert_tf.conversion.stored import StoredTensor, refuse_pointer
from albert_tf.errors import InputError

# A file of Keras is listed in a fraction of a second.
_MOST_SECONDS = 30
_MOST_BYTES = 4 * 2**30
_MOST_OBJECTS = 100_000
_COMMAND = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from albert_tf.conversion import hdf5; hdf5.main()"


class Listed(NamedTuple):
    """What a file holds.

    Attributes:
        tensors: path → dataset.
        names: path of a group → its attribute "name", where Keras writes the name of a layer.
    """

    tensors: dict[str, StoredTensor]
    names: dict[str, str]


def hdf5_tensors_in(path: Path) -> Listed:
    """What an HDF5 file holds; the numbers are not read yet.

    Raises:
        InputError: no such file, a Git LFS pointer in its place, damaged, or one with datasets that point to other files,
            are compressed or have fewer bytes than numbers.
    """
    refuse_pointer(path)
    # Not from the working directory (-P), or a json.py there, in a model that somebody downloaded, would be run.
    places = [*filter(None, sys.path), str(Path(__file__).resolve().parents[2])]
    command = [sys.executable, "-P", "-c", _COMMAND, json.dumps(places), str(path)]
    try:
        found = json.loads(_output_of(command))
    except (subprocess.TimeoutExpired, json.JSONDecodeError) as error:  # the latter where it was ended
        raise InputError(f"cannot read {path}: the file is damaged beyond reading: copy it again") from error
    if "error" in found:
        raise InputError(f"cannot read {path}: {found['error']}; the file is damaged: copy it again")
    size = path.stat().st_size
    tensors = {name: _tensor(path, name, size, fields) for name, fields in found["datasets"].items()}
    if sum(math.prod(fields["shape"]) * fields["bytes"] for fields in found["datasets"].values()) > size:
        raise InputError(f"cannot read {path}: its datasets have more bytes than the file: copy it again")
    return Listed(tensors, found["names"])


@contextlib.contextmanager
def hdf5_written(path: Path) -> Iterator[Any]:
    """Yields a new `h5py.File` to fill.

    Raises:
        OSError: it cannot be written; the disk is full.
    """
    import h5py

    with path.open("xb+", buffering=0) as opened:
        target = _Written(opened)
        with h5py.File(target, "w") as file:
            yield file
        if target.error is not None:
            raise target.error


class _Written(io.RawIOBase):
    """A file that the library writes to: it may end the process when it is told that the disk is full, so it is not."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            while self.error is None and rest:  # a call may write a part
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self.error = error
        return size

    def truncate(self, size: int | None = None) -> int:
        try:
            return self._file.truncate(size) if self.error is None else size or 0
        except OSError as error:
            self.error = error
            return size or 0

    def readinto(self, buffer: Any) -> int:
        return self._file.readinto(buffer) or 0

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


def _output_of(command: list[str]) -> bytes:
    """What the process prints. Its standard input ends with this process, however that ends."""
    end_there, end_here = os.pipe()
    try:
        return subprocess.run(command, stdin=end_there, capture_output=True, timeout=_MOST_SECONDS, check=False).stdout
    finally:
        os.close(end_there)
        os.close(end_here)


def _tensor(path: Path, name: str, size: int, fields: dict[str, Any]) -> StoredTensor:
    shape, offset, kind = tuple(fields["shape"]), fields["offset"], fields["kind"]
    length = math.prod(shape) * fields["bytes"]
    if fields["foreign"]:
        raise InputError(f"{path}: {name} points to another file, as no file of Keras does; not read")
    if kind is not None and length and (offset is None or fields["stored"] != length or offset + length > size):
        raise InputError(f"{path}: {name}: its {length} bytes are compressed or missing; Keras stores them as they are")
    return StoredTensor(shape, kind in ("bfloat16", "f2", "f4", "f8"), _reader(path, name, shape, offset or 0, fields))


def _reader(path: Path, name: str, shape: tuple[int, ...], offset: int, fields: dict[str, Any]) -> Callable[[], Any]:
    def read() -> np.ndarray:
        kind = fields["kind"]
        if kind is None:
            raise InputError(f"{path}: {name}: expected numbers, found {fields['type']}")
        stored = np.dtype(f"{fields['order']}{'u2' if kind == 'bfloat16' else kind}")
        count = math.prod(shape)
        try:
            numbers = np.fromfile(path, stored, count, offset=offset) if count else np.zeros(0, stored)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror or error}") from error
        if numbers.size != count:
            raise InputError(f"{path}: {name}: the file ends within its numbers: copy it again")
        if kind == "bfloat16":  # the upper half of a float32
            numbers = (numbers.astype(np.uint32) << 16).view(np.float32)
        return numbers.astype(np.float32 if kind.startswith("f") else numbers.dtype, copy=False).reshape(shape)

    return read


# === In the process of its own ===


def main() -> None:
    """Prints what is in the file that the last argument names, as JSON."""
    _end_with_parent()
    _limit_memory()
    try:
        listed = _listed(sys.argv[-1])
    except Exception as error:  # of h5py, on damaged bytes: any
        listed = {"error": " ".join(str(error).split())[:500]}
    print(json.dumps(listed))


def _end_with_parent() -> None:
    def wait() -> None:
        os.read(sys.stdin.fileno(), 1)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
    # No thread of Python runs while the library is in a loop, but this one does, which is not of Python.
    faulthandler.dump_traceback_later(_MOST_SECONDS, exit=True)


def _limit_memory() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    except (ImportError, ValueError, OSError):
        pass  # not on this system: the limit on time is left


def _listed(path: str) -> dict[str, Any]:
    import h5py

    datasets: dict[str, Any] = {}
    names: dict[str, str] = {}

    def visit(name: str | bytes, item: Any) -> None:
        if isinstance(name, bytes) or len(datasets) + len(names) > _MOST_OBJECTS:
            raise ValueError("names that are no text, or too many")
        if isinstance(item, h5py.Dataset):
            datasets[name] = _fields(item)
        elif isinstance(label := item.attrs.get("name"), str):
            names[name] = label

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return {"datasets": datasets, "names": names}


def _fields(item: Any) -> dict[str, Any]:
    """`kind` is a type of NumPy without its order of bytes, "bfloat16", or None for what is no number."""
    plain = item.dtype.kind in "fiuc" and item.dtype.names is None and item.dtype.subdtype is None
    kind = item.dtype.str[1:] if plain else None
    if item.attrs.get("dtype") == "bfloat16" and item.dtype.itemsize == 2:
        kind = "bfloat16"
    return {
        "shape": item.shape or (),
        "type": str(item.dtype)[:100],
        "kind": kind,
        "order": ">" if item.dtype.str[0] == ">" else "<",
        "bytes": item.dtype.itemsize,
        "stored": item.id.get_storage_size(),
        "offset": item.id.get_offset(),
        "foreign": bool(item.external or item.is_virtual),
    }
