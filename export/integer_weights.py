"""Weights of a float32 TFLite model → integers, in the flatbuffer itself.

The converter quantises a looked-up table with one scale for all words. Here every row has its own. A runtime wants 12
bytes for a row's scale, so a table of 8 bits is stored without, and the rows' scales are a second table: what is looked
up in both is multiplied. A table of 4 bits has scales of 2 bytes for blocks of a row. Dense layers have a scale for each
output, or for each block of inputs.
"""

import dataclasses
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from export.tflite_metadata import packed

# Smaller arrays stay as they are: the converter's own limit (tensorflow/lite quantization, min_elements_for_weights).
SMALLEST = 1024
# The widest block that a dense layer's inputs are cut into is the recipe's; 32 is the least that XNNPACK takes.
_LEAST_BLOCK = 32
_TABLE_BLOCK = 64
_LARGEST = {8: 127, 4: 7}
_TYPES = {8: schema.TensorType.INT8, 4: schema.TensorType.INT4}
# Operator versions from which the runtime's kernels know these types.
_VERSIONS = {"FULLY_CONNECTED": {8: 12, 4: 13}, "EMBEDDING_LOOKUP": {8: 3, 4: 4}, "DEQUANTIZE": {8: 5}}


@dataclasses.dataclass(frozen=True)
class WeightBits:
    """How weights are stored.

    Attributes:
        dense: bits of a dense layer's weights, 8 or 4.
        table: bits of the word table.
        block: inputs that share a scale in a dense layer of 4 bits; 0 for one scale for each output.
        computes_in_float: turn dense weights into floats before they are used, instead of multiplying integers.
        positions: store the position table in 8 bits too.
    """

    dense: int = 8
    table: int = 8
    block: int = 0
    computes_in_float: bool = False
    positions: bool = False


@dataclasses.dataclass(frozen=True)
class Quantized:
    """Integers with their scales: one for each row, or (rows, blocks)."""

    values: np.ndarray
    scales: np.ndarray
    bits: int
    block: int = 0

    def stored(self) -> np.ndarray:
        """The bytes in the file; two values of 4 bits share one, the first in its lower half."""
        flat = self.values.ravel()
        if self.bits == 8:
            return flat.view(np.uint8)
        flat = np.append(flat, np.zeros(flat.size % 2, np.int8))
        return (flat[0::2] & 15 | (flat[1::2] & 15) << 4).view(np.uint8)


def quantized(weights: np.ndarray, bits: int, block: int = 0) -> Quantized:
    """Rounds (rows, columns) to integers of `bits` around zero.

    Args:
        weights: float32.
        bits: 8 or 4.
        block: columns that share a scale, a divisor of their number; 0 for a whole row.
    """
    rows, columns = weights.shape
    parts = weights.reshape(rows, -1, block or columns).astype(np.float64)
    largest = _LARGEST[bits]
    scales = np.abs(parts).max(-1, keepdims=True) / largest
    if bits == 4:
        scales = _best_scales(parts, scales, largest)
    if block:  # the kernels read these scales as bfloat16, in float16
        scales = _as_bfloat16(scales)
    scales = np.where(scales > 0, scales, 1.0).astype(np.float32)
    values = np.clip(np.rint(parts / scales), -largest, largest).astype(np.int8)
    return Quantized(values.reshape(rows, columns), scales[..., 0] if block else scales[:, 0, 0], bits, block)


def _best_scales(parts: np.ndarray, widest: np.ndarray, largest: int) -> np.ndarray:
    """Of several scales up to the widest, for each part that with the least squared error: 4 bits leave few values."""
    best, least = widest, np.full(widest.shape, np.inf)
    for share in np.linspace(0.6, 1.0, 9):
        scales = np.where(widest > 0, widest * share, 1.0)
        rounded = np.clip(np.rint(parts / scales), -largest, largest) * scales
        errors = np.square(rounded - parts).sum(-1, keepdims=True)
        best, least = np.where(errors < least, scales, best), np.minimum(errors, least)
    return best


def _as_bfloat16(scales: np.ndarray) -> np.ndarray:
    bits = np.maximum(scales, 2.0**-14).astype(np.float32).view(np.uint32)  # below, float16 loses precision
    return ((bits + 0x8000) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(np.float64)


def block_size(columns: int, widest: int) -> int:
    """The largest power of two up to `widest` that divides `columns`; 0, a scale for each row, where none of use does."""
    size = widest
    while size >= _LEAST_BLOCK and columns % size:
        size //= 2
    return size if size >= _LEAST_BLOCK else 0


def rewrite_weights(model: bytes, bits: WeightBits) -> bytes:
    """The model with its large weights as integers; the same input gives the same bytes.

    Args:
        model: a bare float32 TFLite model.
        bits: how to store weights.
    """
    content = schema.ModelT.InitFromPackedBuf(bytearray(model))
    _share_equal_buffers(content)
    uses = _uses(content)
    stored: dict[int, Quantized] = {}
    for graph in content.subgraphs:
        editor = _Editor(content, graph)
        for operator in list(graph.operators):
            _rewrite(editor, operator, bits, uses, stored)
    return packed(content, len(model))


def _share_equal_buffers(content: Any) -> None:
    """The converter may store one weight several times; tensors of equal bytes are given one buffer."""
    first: dict[bytes, int] = {}
    for graph in content.subgraphs:
        for tensor in graph.tensors:
            data = content.buffers[tensor.buffer].data
            if data is not None and len(data) >= SMALLEST:
                kept = first.setdefault(bytes(data), tensor.buffer)
                if kept != tensor.buffer:
                    content.buffers[tensor.buffer].data = None
                    tensor.buffer = kept


def _uses(content: Any) -> dict[int, set[str]]:
    """Buffer of a large float32 array → what is done with it: "table", "dense" or "other"."""
    uses: dict[int, set[str]] = {}
    for graph in content.subgraphs:
        for operator in graph.operators:
            code = _code(content, operator)
            for place, index in enumerate(operator.inputs):
                if index < 0 or not _is_large(content, graph.tensors[index]):
                    continue
                kind = "other"
                if code == schema.BuiltinOperator.GATHER and place == 0 and len(graph.tensors[index].shape) == 2:
                    kind = "table"
                if code == schema.BuiltinOperator.FULLY_CONNECTED and place == 1:
                    kind = "dense"
                uses.setdefault(graph.tensors[index].buffer, set()).add(kind)
        for index in graph.outputs:
            uses.setdefault(graph.tensors[index].buffer, set()).add("other")
    return uses


def _code(content: Any, operator: Any) -> int:
    code = content.operatorCodes[operator.opcodeIndex]
    return int(max(code.builtinCode, code.deprecatedBuiltinCode))


def _is_large(content: Any, tensor: Any) -> bool:
    data = content.buffers[tensor.buffer].data
    is_float = tensor.type == schema.TensorType.FLOAT32 and tensor.shape is not None and len(tensor.shape) >= 2
    return is_float and data is not None and len(data) >= 4 * SMALLEST


def _rewrite(editor: "_Editor", operator: Any, bits: WeightBits, uses: Any, stored: dict[int, Quantized]) -> None:
    code = _code(editor.content, operator)
    for place, index in enumerate(operator.inputs):
        tensor = editor.graph.tensors[index] if index >= 0 else None
        if tensor is None or tensor.buffer not in uses:
            continue
        kinds = uses[tensor.buffer]
        if kinds == {"other"}:
            if bits.positions and len(tensor.shape) <= 3 and tensor.type == schema.TensorType.FLOAT32:
                editor.store(tensor, stored, bits=8, block=0)
                editor.dequantize(operator, place)
        elif "other" not in kinds:
            # A table that a dense layer shares has a scale for each row in both.
            table = "table" in kinds
            held = bits.table if table else bits.dense
            block = 0 if held == 8 else block_size(int(tensor.shape[-1]), _TABLE_BLOCK if table else bits.block)
            editor.store(tensor, stored, bits=held, block=block)
            if code == schema.BuiltinOperator.GATHER:
                editor.look_up(operator, stored[tensor.buffer], shared="dense" in kinds)
            elif bits.computes_in_float:
                editor.dequantize(operator, place)
            else:
                editor.multiply_integers(operator, 4 if tensor.type == schema.TensorType.INT4 else 8)


class _Editor:
    """Changes to one subgraph of a model."""

    def __init__(self, content: Any, graph: Any) -> None:
        self.content, self.graph = content, graph
        self._floats: dict[int, int] = {}  # a stored tensor → its values as floats

    def store(self, tensor: Any, stored: dict[int, Quantized], *, bits: int, block: int) -> None:
        """Stores the tensor's buffer as integers, once, and says so of the tensor."""
        if tensor.type != schema.TensorType.FLOAT32:
            return
        buffer = self.content.buffers[tensor.buffer]
        # Rows of a table that was cut to (1, S, E) are along its second axis.
        axis = len(tensor.shape) - 2
        if tensor.buffer not in stored:
            values = np.frombuffer(bytes(buffer.data), np.float32).reshape(-1, int(tensor.shape[-1]))
            stored[tensor.buffer] = quantized(values, bits, block)
            buffer.data = stored[tensor.buffer].stored()
        held = stored[tensor.buffer]
        tensor.type = _TYPES[held.bits]
        parameters = schema.QuantizationParametersT()
        parameters.quantizedDimension = axis
        if held.block:
            scales = self.add(tensor.name + b"_scales", held.scales.astype(np.float16))
            parameters.detailsType = schema.QuantizationDetails.BlockwiseQuantization
            parameters.details = schema.BlockwiseQuantizationT()
            parameters.details.scales, parameters.details.zeroPoints = scales, -1
            parameters.details.blockSize = held.block
        else:
            parameters.scale = held.scales
            parameters.zeroPoint = np.zeros(held.scales.size, np.int64)
        tensor.quantization = parameters

    def add(self, name: bytes, data: np.ndarray) -> int:
        """A stored tensor; equal ones share their bytes."""
        raw = np.frombuffer(data.tobytes(), np.uint8)
        same = (i for i, b in enumerate(self.content.buffers) if b.data is not None and bytes(b.data) == raw.tobytes())
        buffer = next(same, len(self.content.buffers))
        if buffer == len(self.content.buffers):
            self.content.buffers.append(schema.BufferT(data=raw))
        types = {
            "float32": schema.TensorType.FLOAT32,
            "float16": schema.TensorType.FLOAT16,
            "int32": schema.TensorType.INT32,
        }
        return self._tensor(name, data.shape, None, types[data.dtype.name], buffer)

    def _tensor(self, name: bytes, shape: Any, signature: Any, kind: int, buffer: int = 0) -> int:
        tensor = schema.TensorT()
        tensor.name, tensor.type, tensor.buffer = name, kind, buffer
        tensor.shape = np.array(shape, np.int32)
        tensor.shapeSignature = None if signature is None else np.array(signature, np.int32)
        tensor.hasRank = True
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def _opcode(self, code: int, version: int) -> int:
        for index, known in enumerate(self.content.operatorCodes):
            if known.builtinCode == code and known.version == version and not known.customCode:
                return index
        added = schema.OperatorCodeT()
        added.builtinCode, added.deprecatedBuiltinCode, added.version = code, min(code, 127), version
        self.content.operatorCodes.append(added)
        return len(self.content.operatorCodes) - 1

    def _insert(self, before: Any, code: int, version: int, inputs: list[int], output: int, options: Any) -> None:
        operator = schema.OperatorT()
        operator.opcodeIndex = self._opcode(code, version)
        operator.inputs, operator.outputs = np.array(inputs, np.int32), np.array([output], np.int32)
        operator.builtinOptionsType, operator.builtinOptions = options
        self.graph.operators.insert(self._place(before), operator)

    def multiply_integers(self, operator: Any, bits: int) -> None:
        """A dense layer that rounds its inputs to 8 bits, each row by its own range, while it runs."""
        operator.opcodeIndex = self._opcode(schema.BuiltinOperator.FULLY_CONNECTED, _VERSIONS["FULLY_CONNECTED"][bits])
        operator.builtinOptions.asymmetricQuantizeInputs = True

    def dequantize(self, operator: Any, place: int) -> None:
        """Gives the operator the stored input as floats."""
        index = int(operator.inputs[place])
        if index not in self._floats:
            tensor = self.graph.tensors[index]
            output = self._tensor(tensor.name + b"_float", tensor.shape, None, schema.TensorType.FLOAT32)
            options = (schema.BuiltinOptions.DequantizeOptions, schema.DequantizeOptionsT())
            code, version = schema.BuiltinOperator.DEQUANTIZE, _VERSIONS["DEQUANTIZE"][8]
            self._insert(operator, code, version, [index], output, options)
            self._floats[index] = output
        operator.inputs[place] = self._floats[index]

    def look_up(self, operator: Any, table: Quantized, *, shared: bool) -> None:
        """GATHER of (1, S) ids → EMBEDDING_LOOKUP of (S,) ids, and back to the shape that GATHER gives."""
        index, ids = (int(i) for i in operator.inputs)
        before, after = self.graph.tensors[ids], self.graph.tensors[int(operator.outputs[0])]
        open_length = before.shapeSignature is not None and -1 in before.shapeSignature
        length, width = int(np.prod(before.shape)), int(after.shape[-1])
        flat = self._tensor(before.name + b"_flat", [length], [-1] if open_length else None, schema.TensorType.INT32)
        self._reshape(operator, ids, flat, [-1])

        def rows(name: bytes, columns: int) -> int:
            signature = [-1, columns] if open_length else None
            return self._tensor(after.name + name, [length, columns], signature, schema.TensorType.FLOAT32)

        code, nothing = schema.BuiltinOperator.EMBEDDING_LOOKUP, (schema.BuiltinOptions.NONE, None)
        found = rows(b"_rows", width)
        self._insert(operator, code, _VERSIONS["EMBEDDING_LOOKUP"][table.bits], [flat, index], found, nothing)
        if not table.block:
            # The values are looked up bare; a dense layer that shares the table still has its rows' scales.
            bare = index
            if shared:
                bare = self._tensor(after.name + b"_table", table.values.shape, None, _TYPES[table.bits])
                self.graph.tensors[bare].buffer = self.graph.tensors[index].buffer
            self.graph.tensors[bare].quantization = _one_scale()
            self.graph.operators[self._place(operator) - 1].inputs[1] = bare
            scales = self.add(after.name + b"_scales", table.scales.astype(np.float32)[:, None])
            factors, product = rows(b"_factors", 1), rows(b"_scaled", width)
            self._insert(operator, code, 1, [flat, scales], factors, nothing)
            options = (schema.BuiltinOptions.MulOptions, schema.MulOptionsT())
            self._insert(operator, schema.BuiltinOperator.MUL, 1, [found, factors], product, options)
            found = product
        shape = [1, -1, width] if open_length else [int(n) for n in after.shape]
        self._reshape(operator, found, int(operator.outputs[0]), shape)
        del self.graph.operators[self._place(operator)]

    def _place(self, operator: Any) -> int:
        return next(i for i, known in enumerate(self.graph.operators) if known is operator)

    def _reshape(self, before: Any, source: int, output: int, shape: list[int]) -> None:
        target = self.add(b"shape", np.array(shape, np.int32))
        options = schema.ReshapeOptionsT()
        options.newShape = np.array(shape, np.int32)
        code = schema.BuiltinOperator.RESHAPE
        self._insert(before, code, 1, [source, target], output, (schema.BuiltinOptions.ReshapeOptions, options))


def _one_scale() -> Any:
    parameters = schema.QuantizationParametersT()
    parameters.scale, parameters.zeroPoint = np.ones(1, np.float32), np.zeros(1, np.int64)
    return parameters
