"""Reads the pickle in PyTorch's files: a dict of tensors, and nothing else can come of it.

A pickle is a program for a small stack machine. Python's own machine may call any function by name, and even where it
may not, a few hundred bytes keep it busy for years (tuples of tuples of the same tuples, used as a key) or take all
memory (a memo numbered in billions). This one knows the instructions that `torch.save` uses for data and the five kinds
of names that a dict of tensors needs, looks at the type of everything it touches, and stops at all else.
"""

import pickletools
from typing import Any, NamedTuple

# Storage class → NumPy's dtype of its bytes. bfloat16 is the upper half of a float32; NumPy has no such type.
_STORAGES = {"FloatStorage": "<f4", "HalfStorage": "<f2", "BFloat16Storage": "bfloat16", "LongStorage": "<i8"}
# A state dict knows its modules' versions beside its items; tensors have their hooks in such a dict, too.
_DICT = ("collections", "OrderedDict")
_REBUILD = ("torch._utils", "_rebuild_tensor_v2")
_KNOWN = {_DICT, _REBUILD} | {("torch", name) for name in _STORAGES}

_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_VALUES = ("BINFLOAT", "BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "SHORT_BINUNICODE")
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
# Greater numbers than any file has bytes.
_LARGEST = 2**60


class ForeignPickleError(Exception):
    """The pickle wants what no dict of tensors needs; the message says what."""


class DamagedPickleError(Exception):
    """The pickle is not a whole program."""


class Storage(NamedTuple):
    """The numbers in `…/data/<key>`."""

    key: str
    dtype: str
    length: int


class View(NamedTuple):
    """A tensor: a window on a storage. Offset and strides count numbers. Whether they are any is not known yet."""

    storage: Any
    offset: Any
    shape: Any
    strides: Any


class _Name(NamedTuple):
    module: str
    name: str


class _Mark:
    """A place on the stack."""


def unpickled(program: bytes) -> Any:
    """What the program leaves: a `View`, a plain value, or a dict, list or tuple of these.

    Raises:
        ForeignPickleError: an instruction or a name that no dict of tensors needs.
        DamagedPickleError: the program breaks off, or gives an instruction what it cannot take.
    """
    machine = _Machine()
    try:
        for instruction, argument, _ in pickletools.genops(program):
            if instruction.name == "STOP":
                return machine.pop()
            machine.run(instruction.name, argument)
    except (ValueError, IndexError, KeyError) as error:  # of genops; pop or memo of nothing
        raise DamagedPickleError(" ".join(str(error).split())[:200]) from error
    raise DamagedPickleError("it has no end")


class _Machine:
    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def pop(self) -> Any:
        value = self._stack.pop()
        if isinstance(value, _Mark):
            raise DamagedPickleError("an instruction finds nothing on the stack")
        return value

    def run(self, name: str, argument: Any) -> None:
        """One instruction; `argument` is as `pickletools` decodes it."""
        if name in _VALUES:
            self._stack.append(argument)
        elif name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name])
        elif name in _TUPLES:
            values = [self.pop() for _ in range(_TUPLES[name])]
            self._stack.append(tuple(reversed(values)))
        elif name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            value = self.pop()
            self._stack.append(value)
            self._memo[len(self._memo) if argument is None else argument] = value
        elif name in ("BINGET", "LONG_BINGET"):
            self._stack.append(self._memo[argument])
        elif name not in ("PROTO", "FRAME"):
            self._build(name, argument)

    def _build(self, name: str, argument: Any) -> None:
        """The instructions that make something out of values."""
        match name:
            case "MARK":
                self._stack.append(_Mark())
            case "TUPLE":
                self._stack.append(tuple(self._above_mark()))
            case "EMPTY_DICT":
                self._stack.append({})
            case "EMPTY_LIST":
                self._stack.append([])
            case "APPEND":
                value = self.pop()
                self._extend([value])
            case "APPENDS":
                self._extend(self._above_mark())
            case "SETITEM":
                value, key = self.pop(), self.pop()
                self._set([key, value])
            case "SETITEMS":
                self._set(self._above_mark())
            case "GLOBAL":
                self._stack.append(_named(*argument.split(" ", 1)))
            case "INST":
                raise ForeignPickleError(f"an instance of {_named(*argument.split(' ', 1)).name}")
            case "STACK_GLOBAL":
                attribute, module = self.pop(), self.pop()
                self._stack.append(_named(module, attribute))
            case "BINPERSID":
                self._stack.append(_storage(self.pop()))
            case "REDUCE":
                arguments, function = self.pop(), self.pop()
                self._stack.append(_called(function, arguments))
            case "BUILD":
                self.pop()  # the modules' versions
                if not isinstance(self._stack[-1], dict):
                    raise DamagedPickleError("a change of what is no dict")
            case _:
                raise ForeignPickleError(f"the instruction {name}")

    def _above_mark(self) -> list[Any]:
        values = []
        while not isinstance(value := self._stack.pop(), _Mark):
            values.append(value)
        return values[::-1]

    def _extend(self, values: list[Any]) -> None:
        if not isinstance(self._stack[-1], list):
            raise DamagedPickleError("values without a list")
        self._stack[-1].extend(values)

    def _set(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            raise DamagedPickleError("items without a dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, (str, int)):  # a tuple of tuples may take years to look up
                raise ForeignPickleError(f"a key of type {type(key).__name__}")
            if key in target:
                raise ForeignPickleError(f"two items of the name {str(key)[:100]}")
            target[key] = value


def _named(module: Any, name: Any) -> _Name:
    if not isinstance(module, str) or not isinstance(name, str):
        raise DamagedPickleError("a name that is no text")
    if (module, name) not in _KNOWN:
        raise ForeignPickleError(f"{module[:100]}.{name[:100]}")
    return _Name(module, name)


def _storage(pid: Any) -> Storage:
    """The storage that a persistent id stands for: ("storage", class, key, device, count)."""
    if isinstance(pid, tuple) and len(pid) == 5 and isinstance(pid[0], str) and pid[0] == "storage":
        _, kind, key, _, count = pid
        if isinstance(kind, _Name) and kind.name in _STORAGES and isinstance(key, str) and is_count(count):
            return Storage(key, _STORAGES[kind.name], count)
    raise ForeignPickleError("a storage of unknown form")


def _called(function: Any, arguments: Any) -> Any:
    if not isinstance(function, _Name) or not isinstance(arguments, tuple):
        raise DamagedPickleError("a call of what is no function")
    if function == _DICT and not arguments:
        return {}
    if function != _REBUILD:
        raise ForeignPickleError(f"a call of {function.module}.{function.name}")
    if not 4 <= len(arguments) <= 7:
        raise DamagedPickleError("a tensor of unknown form")
    # The last of seven says whether the numbers stand for their negatives or conjugates.
    if len(arguments) == 7 and (not isinstance(arguments[6], dict) or arguments[6]):
        raise ForeignPickleError("a tensor of unknown form, such as one whose numbers stand for their negatives")
    return View(*arguments[:4])


def is_count(value: Any) -> bool:
    """Whether it is a whole number that may count bytes."""
    return type(value) is int and 0 <= value <= _LARGEST
