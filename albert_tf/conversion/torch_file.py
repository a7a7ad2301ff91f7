"""Reads the tensors of a `pytorch_model.bin` and runs nothing that is in it. PyTorch is not needed.

`torch.save` writes a zip archive (since PyTorch 1.6) with `…/data.pkl`, the pickled dict of tensors, and one
`…/data/<key>` for the numbers of each storage. A pickle is a program that may call any Python function by name. The
unpickler here knows five kinds of names, those that a dict of tensors needs, and stops at every other one.
"""

import io
import math
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from albert_tf.conversion.stored import StoredTensor, refuse_pointer
from albert_tf.errors import InputError

# Storage class → NumPy's dtype of its bytes. bfloat16 is the upper half of a float32; NumPy has no such type.
_STORAGES = {"FloatStorage": "<f4", "HalfStorage": "<f2", "BFloat16Storage": "bfloat16", "LongStorage": "<i8"}
_BYTES = {"<f4": 4, "<f2": 2, "bfloat16": 2, "<i8": 8}
# A dict of tensors takes some 200 bytes for each; only something else takes more than this.
_MAX_PICKLE_BYTES = 16 * 2**20
_ADVICE = (
    "With PyTorch, make a safetensors file of it: save_file(torch.load(path, weights_only=True), 'model.safetensors'), "
    "with save_file of safetensors.torch"
)


class _NotOfTensors(pickle.UnpicklingError):
    """The pickle wants what no dict of tensors needs."""


class _Kind(NamedTuple):
    """A storage class, as data."""

    dtype: str


class _Storage(NamedTuple):
    """The numbers in `…/data/<key>`."""

    key: str
    dtype: str
    length: int


class _View(NamedTuple):
    """A tensor: a window on a storage. Offset and strides count numbers."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def torch_tensors_in(path: Path) -> dict[str, StoredTensor]:
    """What a `pytorch_model.bin` holds; the tensors are not read yet.

    Raises:
        InputError: not PyTorch's zip form, damaged, or a pickle that does anything but list tensors.
    """
    refuse_pointer(path)
    try:
        with zipfile.ZipFile(path) as archive:
            root = _root(path, archive)
            state = _unpickled(path, archive, f"{root}data.pkl")
            views = {name: _checked(path, archive, root, name, view) for name, view in state.items()}
    except zipfile.BadZipFile as error:
        raise InputError(_not_a_zip(path, error)) from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    return {
        name: StoredTensor(view.shape, view.storage.dtype != "<i8", _reader(path, root, view))
        for name, view in views.items()
    }


def _root(path: Path, archive: zipfile.ZipFile) -> str:
    """The folder in the archive; PyTorch names it after the file."""
    if any(member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1 for member in archive.infolist()):
        raise InputError(f"{path}: a compressed or encrypted zip archive, as torch.save writes none. {_ADVICE}")
    roots = [name.removesuffix("data.pkl") for name in archive.namelist() if name.endswith("/data.pkl")]
    if len(roots) != 1:
        raise InputError(f"{path}: a zip archive, but not one of torch.save (no data.pkl in it)")
    order = f"{roots[0]}byteorder"
    if order in archive.namelist() and archive.read(order) != b"little":
        raise InputError(f"{path}: written on a big-endian machine, which albert-tf does not read. {_ADVICE}")
    return roots[0]


def _unpickled(path: Path, archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    if archive.getinfo(name).file_size > _MAX_PICKLE_BYTES:
        raise InputError(f"{path}: holds more than a dict of tensors ({name} is too large)")
    program = io.BytesIO(archive.read(name))
    try:
        state = _Unpickler(program).load()
    except _NotOfTensors as error:
        raise InputError(
            f"{path}: expected a dict of tensors and nothing else, but it asks for {error}, which was not run; "
            "if you trust the file, see what it holds with PyTorch, else delete it"
        ) from error
    except Exception as error:  # a damaged pickle fails in any way
        raise InputError(f"{path}: {name}: damaged: {error}; copy the file again") from error
    if not isinstance(state, dict) or not all(isinstance(key, str) for key in state):
        raise InputError(f"{path}: expected a dict, name → tensor; found something else. {_ADVICE}")
    return dict(state)


class _Unpickler(pickle.Unpickler):
    """Builds dicts of `_View`; what a pickle may name is made anew for each file, so it can change nothing of ours."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, encoding="utf-8")

        class Dict(dict):
            def __setstate__(self, state: Any) -> None:
                """Leaves out the versions of modules that torch keeps beside the items."""

        def rebuild(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> _View:
            return _View(storage, offset, shape, strides)

        self._known: dict[tuple[str, str], Any] = {
            ("collections", "OrderedDict"): Dict,
            ("torch._utils", "_rebuild_tensor_v2"): rebuild,
            **{("torch", name): _Kind(dtype) for name, dtype in _STORAGES.items()},
        }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._known:
            raise _NotOfTensors(f"{module}.{name}")
        return self._known[module, name]

    def persistent_load(self, pid: Any) -> _Storage:
        if not (isinstance(pid, tuple) and len(pid) == 5 and pid[0] == "storage" and isinstance(pid[1], _Kind)):
            raise _NotOfTensors("a storage of unknown form")
        _, kind, key, _, count = pid
        return _Storage(key, kind.dtype, count)


def _checked(path: Path, archive: zipfile.ZipFile, root: str, name: str, view: Any) -> _View:
    """The tensor, if it is one and lies within its storage, whose bytes are in the archive."""
    if not isinstance(view, _View) or not isinstance(view.storage, _Storage):
        raise InputError(f"{path}: {name}: expected a tensor, found {type(view).__name__}. {_ADVICE}")
    (key, dtype, count), offset, shape, strides = view
    numbers = (count, offset, *shape, *strides) if isinstance(shape, tuple) and isinstance(strides, tuple) else (-1,)
    if not all(type(number) is int and number >= 0 for number in numbers) or len(shape) != len(strides):
        raise InputError(f"{path}: {name}: damaged: shape {shape}, strides {strides}, offset {offset}")
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    if 0 not in shape and (last >= count or math.prod(shape) > count):
        raise InputError(f"{path}: {name}: damaged: the tensor reaches beyond its storage of {count} numbers")
    try:
        member = archive.getinfo(f"{root}data/{key}")
    except KeyError as error:
        raise InputError(f"{path}: {name}: damaged: the archive has no data/{key}") from error
    if member.file_size != count * _BYTES[dtype]:
        raise InputError(f"{path}: {name}: damaged: data/{key} is not the {count * _BYTES[dtype]} bytes of its numbers")
    return view


def _reader(path: Path, root: str, view: _View) -> Callable[[], np.ndarray]:
    def read() -> np.ndarray:
        (key, dtype, _), offset, shape, strides = view
        try:
            with zipfile.ZipFile(path) as archive:
                raw = archive.read(f"{root}data/{key}")  # compares its CRC-32
        except (zipfile.BadZipFile, OSError, EOFError) as error:
            raise InputError(f"{path}: data/{key}: {error}; the file is damaged: copy it again") from error
        if dtype == "bfloat16":
            numbers = (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            numbers = np.frombuffer(raw, dtype)
        size = numbers.itemsize
        window = np.lib.stride_tricks.as_strided(numbers[offset:], shape, [size * stride for stride in strides])
        return np.array(window, np.int64 if dtype == "<i8" else np.float32)

    return read


def _not_a_zip(path: Path, error: Exception) -> str:
    with path.open("rb") as file:
        start = file.read(2)
    if start in (b"\x80\x02", b"\x80\x04"):
        return f"{path}: in the form that torch.save had before PyTorch 1.6, which is one pickle. {_ADVICE}"
    return f"{path}: expected PyTorch's zip form: {error}; the file is damaged or of another kind: copy it again"
