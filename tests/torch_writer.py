"""Writes PyTorch's zip files for tests, opcode by opcode, so that no PyTorch is needed and nothing need be well-formed."""

import io
import pickle
import struct
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

_CLASSES = {"<f4": "FloatStorage", "<f2": "HalfStorage", "<i8": "LongStorage", "bfloat16": "BFloat16Storage"}


class Global(NamedTuple):
    """A function or class, by name."""

    module: str
    name: str


class Call(NamedTuple):
    """What the pickle machine gets from calling a function."""

    function: "Global | Call"
    arguments: tuple


class Built(NamedTuple):
    """An object whose state is set after it was made."""

    instance: object
    state: object


class Stored(NamedTuple):
    """A persistent id."""

    pid: object


class Raw(NamedTuple):
    """Opcodes as they are."""

    opcodes: bytes


def opcodes(value: object) -> bytes:
    """The opcodes that leave `value` on the stack."""
    match value:
        case Raw():
            return value.opcodes
        case Global(module, name):
            return pickle.GLOBAL + f"{module}\n{name}\n".encode()
        case Call(function, arguments):
            return opcodes(function) + opcodes(arguments) + pickle.REDUCE
        case Built(instance, state):
            return opcodes(instance) + opcodes(state) + pickle.BUILD
        case Stored(pid):
            return opcodes(pid) + pickle.BINPERSID
        case tuple():
            return pickle.MARK + b"".join(map(opcodes, value)) + pickle.TUPLE
        case dict():
            items = b"".join(opcodes(key) + opcodes(item) for key, item in value.items())
            return pickle.EMPTY_DICT + pickle.MARK + items + pickle.SETITEMS
        case str():
            return pickle.BINUNICODE + struct.pack("<I", len(value.encode())) + value.encode()
        case _:
            return pickle.dumps(value, 2)[2:-1]


def tensor(key: str, dtype: str, length: int, shape: tuple, strides: tuple, offset: int = 0) -> Call:
    """A tensor on storage `key` of `length` numbers."""
    storage = Stored(("storage", Global("torch", _CLASSES[dtype]), key, "cpu", length))
    hooks = Call(Global("collections", "OrderedDict"), ())
    return Call(Global("torch._utils", "_rebuild_tensor_v2"), (storage, offset, shape, strides, False, hooks))


def ordered(items: dict[str, object]) -> Built:
    """A dict as torch saves a state dict: an OrderedDict with the versions of the modules beside its items."""
    made = opcodes(Call(Global("collections", "OrderedDict"), ()))
    made += pickle.MARK + b"".join(opcodes(k) + opcodes(v) for k, v in items.items()) + pickle.SETITEMS
    return Built(Raw(made), {"_metadata": Call(Global("collections", "OrderedDict"), ())})


def write(
    path: Path, value: object, storages: dict[str, bytes], extra: Iterable[tuple[str, bytes]] = (), **options: int
) -> Path:
    """A file whose pickle leaves `value`; `options` of zipfile.ZipFile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", **options) as archive:
        archive.writestr("archive/data.pkl", pickle.PROTO + b"\x02" + opcodes(value) + pickle.STOP)
        for key, content in storages.items():
            archive.writestr(f"archive/data/{key}", content)
        for name, content in (("archive/version", b"3\n"), *extra):
            archive.writestr(name, content)
    return path


def save(path: Path, state: dict[str, np.ndarray]) -> Path:
    """A file of these float32 or int64 arrays, each with a storage of its own."""
    entries, storages = {}, {}
    for index, (name, array) in enumerate(state.items()):
        steps = tuple(stride // array.itemsize for stride in array.copy().strides)
        entries[name] = tensor(str(index), array.dtype.str, array.size, array.shape, steps)
        storages[str(index)] = array.tobytes()
    return write(path, ordered(entries), storages)


def flipped(path: Path, marker: bytes) -> Path:
    """Changes the first byte of `marker` in the file."""
    content = bytearray(path.read_bytes())
    content[content.index(marker)] ^= 1
    path.write_bytes(content)
    return path


def legacy(path: Path, state: dict[str, float]) -> Path:
    """One pickle after another, as before PyTorch 1.6."""
    buffer = io.BytesIO()
    pickle.dump(0x1950A86A20F9469CFC6C, buffer, 2)
    pickle.dump(state, buffer, 2)
    path.write_bytes(buffer.getvalue())
    return path
