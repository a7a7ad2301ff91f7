"""Tensors in files of weights, looked at before they are read, and read one at a time.

A reader compares all names and shapes with its config first. Then it reads the largest tensors first, so that beside
the weights themselves memory holds no second copy of a large one at the end.
"""

import dataclasses
import math
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from albert_tf.errors import InputError
from albert_tf.files import read_json, refuse_special

_GIT_LFS = b"version https://git-lfs"
_FLOATS = ("F32", "F16", "BF16")
# The types of safetensors that NumPy has; the others are of quantised weights.
_TYPES = (*_FLOATS, "F64", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL", "C64")


@dataclasses.dataclass(frozen=True)
class StoredTensor:
    """One tensor of a file.

    Attributes:
        shape: its shape.
        floating: whether it holds floating-point numbers.
        read: gives them, in float32 where they are floating, in an array of its own.
    """

    shape: tuple[int, ...]
    floating: bool
    read: Callable[[], np.ndarray]


def read_largest_first(
    tensors: Mapping[str, StoredTensor], change: Callable[[str, np.ndarray], np.ndarray]
) -> dict[str, np.ndarray]:
    """Name → contents as `change` makes them, in the order of `tensors`; double precision becomes float32."""
    order = sorted(tensors, key=lambda name: -math.prod(tensors[name].shape))
    contents = {}
    for name in order:
        values = change(name, tensors[name].read())
        contents[name] = values.astype(np.float32) if values.dtype == np.float64 else values
    return {name: contents[name] for name in tensors}


def safetensors_in(path: Path) -> dict[str, StoredTensor]:
    """What a safetensors file holds; the header is compared with the file's size, the tensors are not read.

    Raises:
        InputError: no such file, a Git LFS pointer in its place, or damaged.
    """
    from safetensors import SafetensorError, safe_open

    refuse_pointer(path)
    try:
        with safe_open(path, framework="np") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  # not a dict
            found = {name: (tuple(held.get_shape()), held.get_dtype()) for name, held in slices.items()}
    except (SafetensorError, OSError) as error:
        raise InputError(f"cannot read {path}: {error}; the file is missing or damaged: copy it again") from error
    if odd := [f"{name} ({dtype})" for name, (_, dtype) in found.items() if dtype not in _TYPES]:
        raise InputError(
            f"{path}: quantised weights, {odd[0]}; give the checkpoint from before that, in float32 or float16"
        )

    def reader(name: str, floating: bool) -> Callable[[], np.ndarray]:
        def read() -> np.ndarray:
            import ml_dtypes  # noqa: F401  # gives NumPy the type bfloat16

            # Opened anew: what has been read of a mapped file counts as memory until it is closed.
            try:
                with safe_open(path, framework="np") as file:
                    tensor = np.asarray(file.get_tensor(name))
            except (SafetensorError, OSError, ValueError) as error:  # it has changed, or has an axis beyond NumPy's
                raise InputError(f"{path}: cannot read {name}: {error}; copy the file again") from error
            return tensor.astype(np.float32, copy=False) if floating else tensor

        return read

    return {
        name: StoredTensor(shape, dtype in _FLOATS, reader(name, dtype in _FLOATS))
        for name, (shape, dtype) in sorted(found.items())
    }


def in_float16(weights: Mapping[str, np.ndarray], source: str) -> dict[str, np.ndarray]:
    """The weights rounded to float16, with 11 significant bits, from 6e-8 to 65504.

    Raises:
        InputError: a weight is larger than that.
    """
    largest = float(np.finfo(np.float16).max)
    for name, values in weights.items():
        if values.size and (found := float(np.abs(values).max())) > largest:
            raise InputError(
                f"{source}: {name} has a weight of {found:g}, float16 holds up to {largest:g}; keep float32"
            )
    return {name: values.astype(np.float16) for name, values in weights.items()}


def write_safetensors(path: Path, tensors: dict[str, np.ndarray], metadata: dict[str, str] | None = None) -> None:
    """Writes a safetensors file that whoever may read a new file can read.

    Raises:
        OSError: it cannot be written; the disk is full.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    path.touch()
    mode = path.stat().st_mode  # as the umask has it; save_file gives a file to its owner alone
    try:
        save_file(tensors, path, metadata)
        path.chmod(stat.S_IMODE(mode))
    except SafetensorError as error:
        raise OSError(str(error)) from error


def sharded(index: Path, open_file: Callable[[Path], dict[str, StoredTensor]]) -> dict[str, StoredTensor]:
    """The tensors of the files that an index (`*.index.json` of transformers: "weight_map", name → file) names.

    Raises:
        InputError: not such an index, a file that is missing, or one that does not hold what the index says.
    """
    saved = read_json(index)
    files = saved.get("weight_map") if isinstance(saved, dict) else None
    if not isinstance(files, dict) or not files or not all(isinstance(file, str) for file in files.values()):
        raise InputError(f'{index}: expected a JSON object with "weight_map", tensor → file name')
    names = sorted(set(files.values()))
    if outside := [name for name in names if Path(name).name != name]:
        raise InputError(f"{index}: expected names of files in the same folder, found {outside[0]!r}")
    if absent := [name for name in names if not (index.parent / name).is_file()]:
        raise InputError(f"{index}: no such file as {absent[0]}, which it says to hold weights: copy it too")
    tensors: dict[str, StoredTensor] = {}
    for name in names:
        held = open_file(index.parent / name)
        expected = {tensor for tensor, file in files.items() if file == name}
        if held.keys() != expected:
            odd = ", ".join(sorted(held.keys() ^ expected)[:5])
            raise InputError(f"{index.parent / name}: {index.name} says that it holds other tensors ({odd}, …)")
        tensors |= held
    return tensors


def refuse_pointer(path: Path) -> None:
    """Raises InputError unless there is a file, and not the text that Git LFS keeps in a clone for a large one."""
    refuse_special(path)
    try:
        with path.open("rb") as file:
            start = file.read(len(_GIT_LFS))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    if start == _GIT_LFS:
        raise InputError(f"{path}: only a Git LFS pointer, not the file itself; run git lfs pull in its folder")
