"""Reads what a TFLite flatbuffer holds, with the schema module of ai-edge-litert: no interpreter, none of our code."""

import dataclasses
from pathlib import Path

from ai_edge_litert import schema_py_generated as schema

OPERATORS = {value: name for name, value in vars(schema.BuiltinOperator).items() if isinstance(value, int)}
TYPES = {value: name for name, value in vars(schema.TensorType).items() if isinstance(value, int)}


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor of a subgraph; `stored_bytes` is 0 for one that is computed, `buffer` its place in the file."""

    name: str
    type: str
    shape: tuple[int, ...]
    shape_signature: tuple[int, ...]
    buffer: int
    stored_bytes: int


@dataclasses.dataclass(frozen=True)
class Operation:
    name: str
    inputs: tuple[Tensor | None, ...]


@dataclasses.dataclass(frozen=True)
class Subgraph:
    tensors: tuple[Tensor, ...]
    inputs: tuple[Tensor, ...]
    operations: tuple[Operation, ...]

    def names(self) -> list[str]:
        return [operation.name for operation in self.operations]


def read_graph(content: bytes | Path) -> list[Subgraph]:
    """The subgraphs of a model; what follows the flatbuffer in the file is not looked at."""
    raw = content.read_bytes() if isinstance(content, Path) else content
    model = schema.Model.GetRootAs(bytearray(raw), 0)
    return [_subgraph(model, model.Subgraphs(i)) for i in range(model.SubgraphsLength())]


def weights(subgraphs: list[Subgraph]) -> dict[int, Tensor]:
    """The stored tensors by buffer: a buffer that several tensors or subgraphs use comes once."""
    return {t.buffer: t for subgraph in subgraphs for t in subgraph.tensors if t.stored_bytes}


def _subgraph(model, graph) -> Subgraph:
    tensors = tuple(_tensor(model, graph.Tensors(i)) for i in range(graph.TensorsLength()))
    operations = []
    for i in range(graph.OperatorsLength()):
        operator = graph.Operators(i)
        code = model.OperatorCodes(operator.OpcodeIndex())
        name = OPERATORS[max(code.BuiltinCode(), code.DeprecatedBuiltinCode())]
        inputs = [operator.Inputs(j) for j in range(operator.InputsLength())]
        operations.append(Operation(name, tuple(tensors[j] if j >= 0 else None for j in inputs)))
    return Subgraph(tensors, tuple(tensors[graph.Inputs(i)] for i in range(graph.InputsLength())), tuple(operations))


def _tensor(model, tensor) -> Tensor:
    shape = tuple(tensor.Shape(i) for i in range(tensor.ShapeLength()))
    signature = tuple(tensor.ShapeSignature(i) for i in range(tensor.ShapeSignatureLength())) or shape
    return Tensor(
        name=tensor.Name().decode(),
        type=TYPES[tensor.Type()],
        shape=shape,
        shape_signature=signature,
        buffer=tensor.Buffer(),
        stored_bytes=model.Buffers(tensor.Buffer()).DataLength(),
    )
