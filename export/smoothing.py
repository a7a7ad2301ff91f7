"""Inputs of dense layers made even before they are rounded.

A dense layer of integers rounds its inputs row by row, by the row's own range, and a few columns that a layer norm makes
large take most of it. Dividing the columns by what the norm multiplies them with, and multiplying the layer's weights by
it, leaves the product as it was (SmoothQuant, Xiao et al., 2023, section 4, with the norm's weights in place of measured
ranges: they need no texts).
"""

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from export.weight_editor import WeightEditor, operator_code

# A normalised value is rarely larger.
_STANDARD_DEVIATIONS = 3
_OPERATORS = schema.BuiltinOperator


def smooth(content: Any) -> None:
    """Evens the inputs of each dense layer that alone reads a layer norm, in a float32 model.

    Layers that share weights but follow norms that differ are left as they are.

    Args:
        content: the model, which is changed.
    """
    found: dict[int, list[tuple[Any, Any, np.ndarray]]] = {}
    readers = _readers(content)
    for graph in content.subgraphs:
        produced = {int(output): operator for operator in graph.operators for output in operator.outputs}
        dense = [
            operator for operator in graph.operators if operator_code(content, operator) == _OPERATORS.FULLY_CONNECTED
        ]
        inputs = [int(operator.inputs[0]) for operator in dense]
        for operator, source in zip(dense, inputs, strict=True):
            weights = graph.tensors[int(operator.inputs[1])]
            scales = _column_scales(content, graph, produced, source) if inputs.count(source) == 1 else None
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


def _column_scales(content: Any, graph: Any, produced: dict[int, Any], source: int) -> np.ndarray | None:
    """How large each column of a layer norm's output gets, relative to the others; None for the output of another.

    The converter writes the norm as x · factor + shift, where factor = weights / deviation and shift = bias - mean · factor.
    """
    while (operator := produced.get(source)) is not None and operator_code(content, operator) == _OPERATORS.RESHAPE:
        source = int(operator.inputs[0])
    if operator is None or operator_code(content, operator) != _OPERATORS.ADD:
        return None
    terms = [produced.get(int(index)) for index in operator.inputs]
    bias = next((found for term in terms if (found := _vector(content, graph, term, _OPERATORS.ADD)) is not None), None)
    factors = [
        produced.get(int(index))
        for term in terms
        if term is not None and operator_code(content, term) == _OPERATORS.MUL
        for index in term.inputs
    ]
    weights = next((found for f in factors if (found := _vector(content, graph, f, _OPERATORS.MUL)) is not None), None)
    if weights is None:
        return None
    # A bias of zeros is left out by the converter.
    largest = _STANDARD_DEVIATIONS * np.abs(weights) + (
        0 if bias is None or bias.size != weights.size else np.abs(bias)
    )
    if not largest.min() > 0:
        return None
    return (largest / np.exp(np.log(largest).mean())).astype(np.float32)


def _vector(content: Any, graph: Any, operator: Any, code: int) -> np.ndarray | None:
    """The constant vector among the inputs of an operator of this code."""
    if operator is None or operator_code(content, operator) != code:
        return None
    for index in operator.inputs:
        tensor = graph.tensors[int(index)]
        data = content.buffers[tensor.buffer].data
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
