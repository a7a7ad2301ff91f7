"""What a TFLite flatbuffer holds, as values, checked: every number that names another part names one that is there.

Fields are named by their place in TFLite's schema (tensorflow/lite/schema/schema.fbs); names of operators and types come
from the schema module of ai-edge-litert.
"""

import dataclasses
import functools
import math
from typing import Any

from export.flatbuffer import Contents, DamagedError, Table

SCHEMA_VERSION = 3
_CUSTOM = 32  # the operator code of what is no builtin
_PLACEHOLDER = 127  # codes above it stand in a field of their own
_BLOCKWISE, _MULTI_AXIS = 2, 3  # in the union QuantizationDetails
BITS = {
    "FLOAT32": 32, "FLOAT16": 16, "BFLOAT16": 16, "FLOAT64": 64, "INT64": 64, "UINT64": 64, "INT32": 32, "UINT32": 32,
    "INT16": 16, "UINT16": 16, "INT8": 8, "UINT8": 8, "BOOL": 8, "INT4": 4, "UINT4": 4, "INT2": 2, "COMPLEX64": 64,
    "COMPLEX128": 128, "FLOAT8_E4M3FN": 8, "FLOAT8_E5M2": 8,
}  # fmt: skip
FLOATS = ("FLOAT32", "FLOAT16", "BFLOAT16", "FLOAT64")


@dataclasses.dataclass(frozen=True, slots=True)
class Quantization:
    """How integers stand for real numbers.

    Attributes:
        kind: "per tensor", "per channel", "blockwise", "multi-axis" or "custom".
        scales: how many there are; 0 where they stand in a tensor of their own.
        axis: of the channels, where there are some.
        block_size: values that share a scale, where kind is "blockwise".
        scale, zero_point: the first ones.
    """

    kind: str
    scales: int
    axis: int | None = None
    block_size: int | None = None
    scale: float | None = None
    zero_point: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Tensor:
    """Attributes:
    shape: as it was converted; `signature` has -1 for a size that is open.
    buffer: where its data is; `stored_bytes` is 0 for one that is computed.
    sparse: only some of its values are stored.
    """

    name: str
    type: str
    shape: tuple[int, ...]
    signature: tuple[int, ...]
    buffer: int
    stored_bytes: int
    quantization: Quantization | None
    sparse: bool

    @property
    def values(self) -> int:
        return math.prod(self.shape)

    @property
    def expected_bytes(self) -> int | None:
        """The bytes that its values take; None where that cannot be told."""
        if self.sparse or self.type not in BITS:
            return None
        return -(-self.values * BITS[self.type] // 8)


@dataclasses.dataclass(frozen=True, slots=True)
class Operator:
    """Attributes:
    name: of the builtin operator, or "CUSTOM".
    custom: the custom operator's name, or None.
    inputs: tensors by number; -1 for one that is left out.
    options: the table of the operator's settings.
    """

    name: str
    version: int
    custom: str | None
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Table | None


@dataclasses.dataclass(frozen=True, slots=True)
class Subgraph:
    name: str
    tensors: tuple[Tensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[Operator, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Signature:
    """Attributes:
    inputs, outputs: name → number of the tensor in the subgraph.
    """

    key: str
    subgraph: int
    inputs: dict[str, int]
    outputs: dict[str, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Model:
    """Attributes:
    buffers: the data of each.
    metadata: name → number of the buffer.
    """

    description: str
    subgraphs: tuple[Subgraph, ...]
    signatures: tuple[Signature, ...]
    buffers: tuple[memoryview, ...]
    metadata: dict[str, int]

    def metadata_buffer(self, name: str) -> memoryview | None:
        """The data of one entry of the metadata."""
        return self.buffers[self.metadata[name]] if name in self.metadata else None


def read_model(data: Any) -> Model:
    """The model at the start of `data`.

    Raises:
        DamagedError: not a TFLite model, or not a whole one.
    """
    contents = Contents(data)
    root = contents.root(b"TFL3")
    version = root.number(0, "I")
    if version != SCHEMA_VERSION:
        raise DamagedError(f"expected version {SCHEMA_VERSION} of the schema, found {version}")
    buffers = tuple(_buffer(contents, table) for table in root.tables(4))
    codes = [_operator_code(table) for table in root.tables(1)]
    subgraphs = tuple(_subgraph(table, codes, buffers) for table in root.tables(2))
    if not subgraphs:
        raise DamagedError("it has no graph")
    metadata = {table.text(0) or "": _index(table.number(1, "I"), buffers, "buffer") for table in root.tables(6)}
    signatures = tuple(_signature(table, subgraphs) for table in root.tables(7))
    return Model(root.text(3) or "", subgraphs, signatures, buffers, metadata)


def _buffer(contents: Contents, table: Table) -> memoryview:
    offset, size = table.number(1, "Q"), table.number(2, "Q")
    # Models above 2 GB keep their data behind the flatbuffer, and say where.
    return contents.part(offset, size) if offset > 1 else table.bytes(0) or memoryview(b"")


def _operator_code(table: Table) -> tuple[str, int, str | None]:
    """Name, version, and name of a custom operator."""
    code = max(table.number(0, "b"), table.number(3, "i"))
    if code < 0:
        raise DamagedError(f"it names an operator by {code}")
    custom = (table.text(1) or "") if code == _CUSTOM else None
    return _operators().get(code, f"BUILTIN {code}"), table.number(2, "i", 1), custom


def _subgraph(table: Table, codes: list[tuple[str, int, str | None]], buffers: tuple[memoryview, ...]) -> Subgraph:
    tensors = tuple(_tensor(entry, buffers) for entry in table.tables(0))
    operators = []
    for entry in table.tables(3):
        name, version, custom = codes[_index(entry.number(0, "I"), codes, "operator code")]
        inputs = tuple(_index(i, tensors, "tensor", optional=True) for i in entry.numbers(1, "i"))
        outputs = tuple(_index(i, tensors, "tensor") for i in entry.numbers(2, "i"))
        operators.append(Operator(name, version, custom, inputs, outputs, entry.table(4)))
    starts, ends = (tuple(_index(i, tensors, "tensor") for i in table.numbers(field, "i")) for field in (1, 2))
    return Subgraph(table.text(4) or "", tensors, starts, ends, tuple(operators))


def _tensor(table: Table, buffers: tuple[memoryview, ...]) -> Tensor:
    kind = table.number(1, "b")
    if kind not in _types():
        raise DamagedError(f"it has a tensor of the type {kind}, which the schema does not know")
    shape = tuple(table.numbers(0, "i"))
    signature = tuple(table.numbers(7, "i")) or shape
    if any(size < 0 for size in shape) or any(size < -1 for size in signature) or len(signature) != len(shape):
        raise DamagedError(f"it has a tensor of the shape {shape} and shape signature {signature}")
    buffer = _index(table.number(2, "I"), buffers, "buffer")
    return Tensor(
        name=table.text(3) or "",
        type=_types()[kind],
        shape=shape,
        signature=signature,
        buffer=buffer,
        stored_bytes=len(buffers[buffer]),
        quantization=_quantization(table.table(4)),
        sparse=table.table(6) is not None,
    )


def _quantization(table: Table | None) -> Quantization | None:
    if table is None:
        return None
    scales, axis = table.count(2, 4), table.number(6, "i")
    kind = table.number(4, "B")
    if kind == _BLOCKWISE and (details := table.table(5)) is not None:
        return Quantization("blockwise", scales, axis, details.number(2, "i"))
    if kind:
        return Quantization("multi-axis" if kind == _MULTI_AXIS else "custom", scales)
    if not scales:
        return None
    if scales > 1:
        return Quantization("per channel", scales, axis)
    zero_points = table.numbers(3, "q")
    return Quantization("per tensor", 1, scale=table.numbers(2, "f")[0], zero_point=(zero_points or [0])[0])


def _signature(table: Table, subgraphs: tuple[Subgraph, ...]) -> Signature:
    subgraph = _index(table.number(4, "I"), subgraphs, "subgraph")
    tensors = subgraphs[subgraph].tensors
    inputs, outputs = (
        {entry.text(0) or "": _index(entry.number(1, "I"), tensors, "tensor") for entry in table.tables(field)}
        for field in (0, 1)
    )
    return Signature(table.text(2) or "", subgraph, inputs, outputs)


def _index(index: int, entries: Any, what: str, *, optional: bool = False) -> int:
    if not (0 <= index < len(entries) or (optional and index == -1)):
        raise DamagedError(f"it refers to the {what} {index}, and has {len(entries)}")
    return index


@functools.cache
def _operators() -> dict[int, str]:
    return _names("BuiltinOperator")


@functools.cache
def _types() -> dict[int, str]:
    return _names("TensorType")


def _names(enumeration: str) -> dict[int, str]:
    from ai_edge_litert import schema_py_generated as schema

    return {value: name for name, value in vars(getattr(schema, enumeration)).items() if isinstance(value, int)}
