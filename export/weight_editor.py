"""Changes to one graph of a TFLite model, such that its weights can be integers."""

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from export.rounding import Quantized, quantized

_TYPES = {8: schema.TensorType.INT8, 4: schema.TensorType.INT4}
# Operator versions from which the runtime's kernels know these types.
_VERSIONS = {"FULLY_CONNECTED": {8: 12, 4: 13}, "EMBEDDING_LOOKUP": {8: 3, 4: 4}, "DEQUANTIZE": {8: 5, 16: 3}}
# Of a dense layer with one scale.
_ONE_SCALE_VERSION = 9


def operator_code(content: Any, operator: Any) -> int:
    """What an operator of the model does: a value of `schema.BuiltinOperator`."""
    code = content.operatorCodes[operator.opcodeIndex]
    return int(max(code.builtinCode, code.deprecatedBuiltinCode))


class WeightEditor:
    """Changes to one subgraph of a model."""

    def __init__(self, content: Any, graph: Any) -> None:
        self.content, self.graph = content, graph
        self._floats: dict[int, int] = {}  # a stored tensor → its values as floats

    def store(
        self, tensor: Any, stored: dict[int, Quantized], *, bits: int, block: int, half_scales: bool = False
    ) -> None:
        """Stores the tensor's buffer as integers, once, and says so of the tensor."""
        if tensor.type != schema.TensorType.FLOAT32:
            return
        buffer = self.content.buffers[tensor.buffer]
        # Rows of a table that was cut to (1, S, E) are along its second axis.
        axis = len(tensor.shape) - 2
        if tensor.buffer not in stored:
            values = np.frombuffer(bytes(buffer.data), np.float32).reshape(-1, int(tensor.shape[-1]))
            stored[tensor.buffer] = quantized(values, bits, block, half_scales=half_scales)
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

    def multiply_with_scales_apart(self, operator: Any, layer: Quantized) -> None:
        """`multiply_integers` with one scale for all outputs, 1; they are multiplied by their own, and the bias is added.

        The operator itself becomes the last of the three, so that the layer's activation stays with it.
        """
        source, weights, *rest = (int(index) for index in operator.inputs)
        bias = rest[0] if rest else -1
        output, options = int(operator.outputs[0]), operator.builtinOptions
        after = self.graph.tensors[output]
        self.graph.tensors[weights].quantization = _one_scale()
        scales = self.add(after.name + b"_scales", layer.scales.astype(np.float32))

        def result(name: bytes) -> int:
            return self._tensor(after.name + name, after.shape, after.shapeSignature, schema.TensorType.FLOAT32)

        dense = schema.FullyConnectedOptionsT()
        dense.keepNumDims, dense.asymmetricQuantizeInputs = options.keepNumDims, True
        found = result(b"_unscaled")
        kind = schema.BuiltinOptions.FullyConnectedOptions
        code = schema.BuiltinOperator.FULLY_CONNECTED
        self._insert(operator, code, _ONE_SCALE_VERSION, [source, weights, -1], found, (kind, dense))
        last, last_code = schema.MulOptionsT(), schema.BuiltinOperator.MUL
        last_kind, inputs = schema.BuiltinOptions.MulOptions, [found, scales]
        if bias >= 0:
            inputs = [result(b"_scaled"), bias]
            self._insert(operator, last_code, 1, [found, scales], inputs[0], (last_kind, last))
            last, last_code = schema.AddOptionsT(), schema.BuiltinOperator.ADD
            last_kind = schema.BuiltinOptions.AddOptions
        last.fusedActivationFunction = options.fusedActivationFunction
        operator.opcodeIndex, operator.inputs = self._opcode(last_code, 1), np.array(inputs, np.int32)
        operator.builtinOptionsType, operator.builtinOptions = last_kind, last

    def multiply_input(self, operator: Any, factors: np.ndarray) -> None:
        """Multiplies the columns of a dense layer's input by `factors`, float32 (columns,)."""
        source = int(operator.inputs[0])
        before = self.graph.tensors[source]
        constant = self.add(before.name + b"_factors", factors.astype(np.float32))
        output = self._tensor(before.name + b"_even", before.shape, before.shapeSignature, schema.TensorType.FLOAT32)
        options = (schema.BuiltinOptions.MulOptions, schema.MulOptionsT())
        self._insert(operator, schema.BuiltinOperator.MUL, 1, [source, constant], output, options)
        operator.inputs[0] = output

    def dequantize(self, operator: Any, place: int) -> None:
        """Gives the operator the stored input as floats."""
        operator.inputs[place] = self._as_floats(operator, int(operator.inputs[place]))

    def _as_floats(self, before: Any, index: int) -> int:
        """The stored tensor as floats, from before the operator on."""
        if index not in self._floats:
            tensor = self.graph.tensors[index]
            output = self._tensor(tensor.name + b"_float", tensor.shape, None, schema.TensorType.FLOAT32)
            options = (schema.BuiltinOptions.DequantizeOptions, schema.DequantizeOptionsT())
            version = _VERSIONS["DEQUANTIZE"][16 if tensor.type == schema.TensorType.FLOAT16 else 8]
            self._insert(before, schema.BuiltinOperator.DEQUANTIZE, version, [index], output, options)
            self._floats[index] = output
        return self._floats[index]

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
            scales = self._row_scales(operator, after.name + b"_scales", table.scales)
            factors, product = rows(b"_factors", 1), rows(b"_scaled", width)
            self._insert(operator, code, 1, [flat, scales], factors, nothing)
            options = (schema.BuiltinOptions.MulOptions, schema.MulOptionsT())
            self._insert(operator, schema.BuiltinOperator.MUL, 1, [found, factors], product, options)
            found = product
        shape = [1, -1, width] if open_length else [int(n) for n in after.shape]
        self._reshape(operator, found, int(operator.outputs[0]), shape)
        del self.graph.operators[self._place(operator)]

    def _row_scales(self, before: Any, name: bytes, scales: np.ndarray) -> int:
        """Scales as a float32 table of one column, stored as float16 where that is exact."""
        halves = scales.astype(np.float16)
        if np.array_equal(halves.astype(np.float32), scales):
            return self._as_floats(before, self.add(name, halves[:, None]))
        return self.add(name, scales[:, None])

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
