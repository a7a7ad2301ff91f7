"""Reads the tensors of a `pytorch_model.bin` and runs nothing that is in it. PyTorch is not needed.

`torch.save` writes a zip archive (since PyTorch 1.6) with `…/data.pkl`, the pickled dict of tensors (see
torch_pickle.py), and one `…/data/<key>` for the numbers of each storage.
"""

import math
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.conversion.stored import StoredTensor, refuse_pointer
from albert_tf.conversion.torch_pickle import DamagedPickleError, ForeignPickleError, Storage, View, is_count, unpickled
from albert_tf.errors import InputError

_BYTES = {"<f4": 4, "<f2": 2, "bfloat16": 2, "<i8": 8}
# A dict of tensors takes some 200 bytes for each; only something else takes more than this.
_MAX_PICKLE_BYTES = 2 * 2**20
_MAX_AXES = 8
# The longest axis that a tensor without numbers may have.
_EMPTY = 2**20
# ALBERT's tied weights are one table under two names.
_MOST_SHARING = 2
# Whatever zipfile raises on bytes that are no archive's; NotImplementedError of a packing that it does not know,
# RuntimeError of a member with a password.
_BAD_ZIP = (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError, struct.error)
_ADVICE = (
    "With PyTorch, make a safetensors file of it: save_file(torch.load(path, weights_only=True), 'model.safetensors'), "
    "with save_file of safetensors.torch"
)


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
            _refuse_bomb(path, archive, views)
    except InputError:
        raise
    except _BAD_ZIP as error:
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
    names = archive.namelist()
    if len(set(names)) < len(names):
        raise InputError(
            f"{path}: a zip archive with two members of the same name, as torch.save writes none. {_ADVICE}"
        )
    roots = [name.removesuffix("data.pkl") for name in names if name.endswith("/data.pkl")]
    if len(roots) != 1:
        raise InputError(f"{path}: a zip archive, but not one of torch.save (no data.pkl in it)")
    order = f"{roots[0]}byteorder"
    if order in names and archive.read(order) != b"little":
        raise InputError(f"{path}: written on a big-endian machine, which albert-tf does not read. {_ADVICE}")
    return roots[0]


def _unpickled(path: Path, archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    if archive.getinfo(name).file_size > _MAX_PICKLE_BYTES:
        raise InputError(f"{path}: holds more than a dict of tensors ({name} is too large)")
    try:
        state = unpickled(archive.read(name))
    except ForeignPickleError as error:
        raise InputError(
            f"{path}: expected a dict of tensors and nothing else, but it asks for {error}, which was not run; "
            "if you trust the file, see what it holds with PyTorch, else delete it"
        ) from error
    except DamagedPickleError as error:
        raise InputError(f"{path}: {name}: damaged: {error}; copy the file again") from error
    if not isinstance(state, dict) or not all(isinstance(key, str) for key in state):
        raise InputError(f"{path}: expected a dict, name → tensor; found something else. {_ADVICE}")
    return state


def _checked(path: Path, archive: zipfile.ZipFile, root: str, name: str, view: Any) -> View:
    """The tensor, if it is one and lies within its storage, whose bytes are in the archive."""
    if not isinstance(view, View) or not isinstance(view.storage, Storage):
        found = "one without numbers" if isinstance(view, View) else type(view).__name__
        raise InputError(f"{path}: {name}: expected a tensor, found {found}. {_ADVICE}")
    (key, dtype, count), offset, shape, strides = view
    numbers = (offset, *shape, *strides) if isinstance(shape, tuple) and isinstance(strides, tuple) else (-1,)
    if not all(map(is_count, numbers)) or len(shape) != len(strides) or len(shape) > _MAX_AXES:
        raise InputError(f"{path}: {name}: damaged: it has no usable shape, strides and offset")
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    if math.prod(shape) > count or (0 not in shape and last >= count) or max(shape, default=0) > max(count, _EMPTY):
        raise InputError(f"{path}: {name}: damaged: the tensor reaches beyond its storage of {count} numbers")
    try:
        member = archive.getinfo(f"{root}data/{key}")
    except KeyError as error:
        raise InputError(f"{path}: {name}: damaged: the archive has no data/{key}") from error
    if not member.file_size == member.compress_size == count * _BYTES[dtype]:
        raise InputError(f"{path}: {name}: damaged: data/{key} is not the {count * _BYTES[dtype]} bytes of its numbers")
    return view


def _refuse_bomb(path: Path, archive: zipfile.ZipFile, views: dict[str, View]) -> None:
    """Tensors may share numbers, as tied weights do; a file whose tensors all do is made to fill the memory."""
    named = sum(math.prod(view.shape) * _BYTES[view.storage.dtype] for view in views.values())
    if named > _MOST_SHARING * sum(member.file_size for member in archive.infolist()):
        raise InputError(f"{path}: its tensors would take more than {_MOST_SHARING} times the numbers in it; not read")


def _reader(path: Path, root: str, view: View) -> Callable[[], np.ndarray]:
    def read() -> np.ndarray:
        (key, dtype, count), offset, shape, strides = view
        try:
            with zipfile.ZipFile(path) as archive:
                raw = archive.read(f"{root}data/{key}")  # compares its CRC-32
        except (*_BAD_ZIP, OSError) as error:
            raise InputError(f"{path}: data/{key}: {error}; the file is damaged: copy it again") from error
        if len(raw) != count * _BYTES[dtype]:  # the window must not reach beyond them
            raise InputError(f"{path}: data/{key}: {len(raw)} bytes; the file is damaged: copy it again")
        if dtype == "bfloat16":
            numbers = (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            numbers = np.frombuffer(raw, dtype)
        if 0 in shape:
            return np.zeros(shape, numbers.dtype)
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
