"""The pickle machine: what takes Python's own years or all memory is refused at once, and nothing is changed."""

import pickle
import struct
import time
from typing import Any

import pytest
from torch_writer import Built, Call, Global, Raw, Stored, opcodes, tensor

from albert_tf.conversion.torch_pickle import DamagedPickleError, ForeignPickleError, Storage, View, unpickled

REBUILD, ORDERED = Global("torch._utils", "_rebuild_tensor_v2"), Global("collections", "OrderedDict")
TWELVE = Stored(("storage", Global("torch", "FloatStorage"), "0", "cpu", 12))
VIEW = View(Storage("0", "<f4", 12), 0, (3, 4), (4, 1))


def program(value: Any, protocol: int = 2) -> bytes:
    return pickle.PROTO + bytes([protocol]) + opcodes(value) + pickle.STOP


def nested(depth: int = 60) -> Raw:
    """A tuple of one tuple twice, that of one twice, and so on: two to the power of `depth` in all."""
    return Raw(pickle.EMPTY_TUPLE + b"".join(b"q%ch%c\x86" % (n, n) for n in range(depth)))


def view(shape: Any = (12,), *more: Any, storage: Any = TWELVE, offset: Any = 0) -> Call:
    return Call(REBUILD, (storage, offset, shape, (1,), False, None, *more))


def test_what_torch_writes() -> None:
    assert unpickled(program({"w": tensor("0", "<f4", 12, (3, 4), (4, 1))})) == {"w": VIEW}
    assert unpickled(program({"a": [1, 2.5, None, True, "x"], "b": {}})) == {"a": [1, 2.5, None, True, "x"], "b": {}}


def test_protocol_4() -> None:
    """Names from the stack, a memo that counts by itself, frames."""
    made = b"\x8c\x0bcollections\x94\x8c\x0bOrderedDict\x94\x93\x94)R\x94\x8c\x01w\x94K\x07s\x8c\x01vh\x04s."
    assert unpickled(b"\x80\x04\x95" + struct.pack("<Q", len(made)) + made) == {"w": 7, "v": "w"}


@pytest.mark.parametrize(
    "value",
    [
        Raw(b"}" + nested().opcodes + b"K\x01s"),
        Raw(b"\x8f(" + nested().opcodes + b"\x90"),
        Raw(opcodes(Call(ORDERED, ())) + nested().opcodes + b"K\x01s"),
        {"w": view(storage=Stored(("storage", Global("torch", "FloatStorage"), nested(), "cpu", 12)))},
        {"w": view(storage=Stored(("storage", Global("torch", "FloatStorage"), "0", "cpu", nested())))},
        {"w": view(storage=Stored(nested()))},
        Raw(nested().opcodes * 2 + b"\x93"),
        Call(nested(), ()),
        Raw(b"\x96" + struct.pack("<Q", 2**40)),
        Raw(b"\x8d" + struct.pack("<Q", 2**62)),
        Raw(b"I" + b"9" * 10**6 + b"\n"),
        Raw(b"\x8b" + struct.pack("<i", -1)),
        Raw(b"c" + b"o" * 10**6 + b"\nx\n"),
    ],
)
def test_bombs(value: Any) -> None:
    started = time.monotonic()
    with pytest.raises((DamagedPickleError, ForeignPickleError)) as error:
        unpickled(program(value))
    assert time.monotonic() - started < 5
    assert len(str(error.value)) < 400


def test_values_that_are_no_bombs_here() -> None:
    """They come out as they are; nothing looks into them. A memo numbered in billions has one entry."""
    assert type(unpickled(program({"w": view(nested())}))["w"].shape) is tuple
    assert unpickled(program(Raw(b"}r" + struct.pack("<I", 2**32 - 1)))) == {}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Raw(b"(X\x02\x00\x00\x00lsios\nsystem\n"), "os.system"),
        (Raw(b"Pos.system\n"), "PERSID"),
        (Raw(opcodes(ORDERED) + b")\x81"), "NEWOBJ"),
        (Raw(opcodes(ORDERED) + b")}\x92"), "NEWOBJ_EX"),
        (Raw(b"\x82\x01"), "EXT1"),
        (Call(ORDERED, ((("w", 1),),)), "a call of collections.OrderedDict"),
        (Call(Global("torch", "FloatStorage"), ()), "a call of torch.FloatStorage"),
        ({"w": view((12,), {"neg": True})}, "stand for their negatives"),
        (Raw(b"}(" + opcodes("w") * 2 + opcodes("w") * 2 + b"u"), "two items of the name w"),
    ],
)
def test_what_no_dict_of_tensors_needs(value: Any, message: str) -> None:
    with pytest.raises(ForeignPickleError, match=message):
        unpickled(program(value))


@pytest.mark.parametrize(
    "value",
    [
        Built(ORDERED, (None, {"__iter__": ORDERED})),
        Built(REBUILD, (None, {"__code__": ORDERED})),
        Built(tensor("0", "<f4", 12, (3, 4), (4, 1)), {"shape": (10**9,)}),
        Call(Raw(b"}"), ()),
        Call(REBUILD, ()),
        Raw(b""),
        Raw(b"("),
        Raw(b"h\x05"),
        Raw(b"]K\x01K\x02s"),
        Raw(b"}K\x01a"),
        Raw(b"]]\x93"),
        Raw(b"\xff"),
        Raw(b"S'abc\n"),
    ],
)
def test_programs_that_cannot_run(value: Any) -> None:
    with pytest.raises(DamagedPickleError):
        unpickled(program(value))


def test_a_program_without_end() -> None:
    with pytest.raises(DamagedPickleError):
        unpickled(program({"w": 1})[:-1])
