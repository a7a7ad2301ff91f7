"""Inputs of dense layers made even before they are rounded.

A dense layer of integers rounds its inputs row by row, by the row's own range, and a few columns that a layer norm makes
large take most of it. Dividing the columns by what the norm multiplies them with, and multiplying the layer's weights by
it, leaves the product as it was (SmoothQuant, Xiao et al., 2023, section 4, with the norm's weights in place of measured
ranges: they need no texts).
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from export.weight_editor import WeightEditor, operator_code

# A normalised value is rarely larger.
_STANDARD_DEVIATIONS = 3
_OPERATORS = schema.BuiltinOperator


def smooth(content: Any) -> None:
    """Evens the inputs of each dense layer that is the only dense layer to read a layer norm, in a float32 model.

    Layers that share weights but follow norms that differ are left as they are.

    Args:
        content: the model, which is changed.
    """
    found: dict[int, list[tuple[Any, Any, np.ndarray]]] = {}
    readers = _readers(content)
    for graph in content.subgraphs:
        reader = _GraphReader(content, graph)
        dense = [
            operator for operator in graph.operators if operator_code(content, operator) == _OPERATORS.FULLY_CONNECTED
        ]
        inputs = [int(operator.inputs[0]) for operator in dense]
        for operator, source in zip(dense, inputs, strict=True):
            weights = graph.tensors[int(operator.inputs[1])]
            scales = reader.column_scales(source) if inputs.count(source) == 1 else None
            if scales is not None and scales.size == int(weights.shape[-1]):
                found.setdefault(int(weights.buffer), []).append((graph, operator, scales))
    for buffer, layers in found.items():
        scales = layers[0][2]
        if len(layers) == readers[buffer] and all(np.array_equal(scales, other) for _, _, other in layers):
            _even(content, buffer, layers, scales)


def _readers(content: Any) -> dict[int, int]:
    """How many inputs of operators each buffer is."""
    counts: dict[int, int] = {}
    for graph in content.subgraphs:
        for operator in graph.operators:
            for index in operator.inputs:
                if index >= 0:
                    buffer = int(graph.tensors[int(index)].buffer)
                    counts[buffer] = counts.get(buffer, 0) + 1
    return counts


class _GraphReader:
    """Finds what a tensor of one subgraph was computed from."""

    def __init__(self, content: Any, graph: Any) -> None:
        self.content, self.graph = content, graph
        self._producers = {int(output): operator for operator in graph.operators for output in operator.outputs}

    def column_scales(self, source: int) -> np.ndarray | None:
        """How large each column of a layer norm's output gets, relative to the others; None for any other tensor.

        The converter writes the norm as x · factor + shift, where factor = weights / deviation and
        shift = bias - mean · factor.
        """
        while reshape := self._producer(source, _OPERATORS.RESHAPE):
            source = int(reshape.inputs[0])
        norm = self._producer(source, _OPERATORS.ADD)
        if norm is None:
            return None
        products = [product for term in norm.inputs if (product := self._producer(term, _OPERATORS.MUL))]
        weights = self._vector([index for product in products for index in product.inputs], _OPERATORS.MUL)
        if weights is None:
            return None
        largest = _STANDARD_DEVIATIONS * np.abs(weights)
        bias = self._vector(norm.inputs, _OPERATORS.ADD)
        if bias is not None and bias.size == weights.size:  # one of zeros is left out by the converter
            largest += np.abs(bias)
        if not largest.min() > 0:
            return None
        return (largest / np.exp(np.log(largest).mean())).astype(np.float32)

    def _producer(self, tensor: Any, code: int) -> Any:
        """The operator that gives a tensor; None where it is not one of this code."""
        operator = self._producers.get(int(tensor))
        return operator if operator is not None and operator_code(self.content, operator) == code else None

    def _vector(self, tensors: Iterable[Any], code: int) -> np.ndarray | None:
        """The first constant vector that goes into one of these tensors by an operator of this code."""
        for operator in filter(None, (self._producer(tensor, code) for tensor in tensors)):
            for index in operator.inputs:
                tensor = self.graph.tensors[int(index)]
                data = self.content.buffers[tensor.buffer].data
                is_float = tensor.type == schema.TensorType.FLOAT32 and tensor.shape is not None and len(tensor.shape)
                if is_float and data is not None and 0 < len(data) == 4 * int(tensor.shape[-1]):
                    return np.frombuffer(bytes(data), np.float32)
        return None


def _even(content: Any, buffer: int, layers: list[tuple[Any, Any, np.ndarray]], scales: np.ndarray) -> None:
    held = content.buffers[buffer]
    weights = np.frombuffer(bytes(held.data), np.float32).reshape(-1, scales.size) * scales
    held.data = np.frombuffer(weights.astype(np.float32).tobytes(), np.uint8)
    for graph, operator, _ in layers:
        WeightEditor(content, graph).multiply_input(operator, 1 / scales)
