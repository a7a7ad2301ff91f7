"""Weights of a float32 TFLite model → integers, in the flatbuffer itself.

The converter quantises a looked-up table with one scale for all words. Here every row has its own. A runtime wants 12
bytes for a row's scale, so a table of 8 bits is stored without, and the rows' scales are a second table: what is looked
up in both is multiplied. A table of 4 bits has scales of 2 bytes for blocks of a row. Dense layers have a scale for each
output, or for each block of inputs.
"""

import dataclasses
from typing import Any

from ai_edge_litert import schema_py_generated as schema

from export.rounding import Quantized, block_size
from export.smoothing import smooth
from export.tflite_metadata import packed
from export.weight_editor import WeightEditor, operator_code

# Smaller arrays stay as they are: the converter's own limit (tensorflow/lite quantization, min_elements_for_weights).
SMALLEST = 1024
_TABLE_BLOCK = 64


@dataclasses.dataclass(frozen=True)
class WeightBits:
    """How weights are stored.

    Attributes:
        dense: bits of a dense layer's weights, 8 or 4.
        table: bits of the word table.
        block: inputs that share a scale in a dense layer of 4 bits; 0 for one scale for each output.
        computes_in_float: turn dense weights into floats before they are used, instead of multiplying integers.
        scales_apart: multiply the outputs of a dense layer of integers by their scales behind it, for runtimes that know one
            scale a layer.
        compact_tables: positions as integers of 8 bits, and scales of a word table of 8 bits as float16; else both float32.
    """

    dense: int = 8
    table: int = 8
    block: int = 0
    computes_in_float: bool = False
    scales_apart: bool = False
    compact_tables: bool = True


def rewrite_weights(model: bytes, bits: WeightBits) -> bytes:
    """The model with its large weights as integers; the same input gives the same bytes.

    Args:
        model: a bare float32 TFLite model.
        bits: how to store weights.
    """
    content = schema.ModelT.InitFromPackedBuf(bytearray(model))
    _share_equal_buffers(content)
    if not bits.computes_in_float:
        smooth(content)
    uses = _uses(content)
    stored: dict[int, Quantized] = {}
    for graph in content.subgraphs:
        editor = WeightEditor(content, graph)
        for operator in list(graph.operators):
            _rewrite(editor, operator, bits, uses, stored)
    return packed(content, len(model))


def with_shared_buffers(model: bytes) -> bytes:
    """The model with weights that are equal stored once."""
    content = schema.ModelT.InitFromPackedBuf(bytearray(model))
    _share_equal_buffers(content)
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
            code = operator_code(content, operator)
            for place, index in enumerate(operator.inputs):
                if index < 0 or not _is_large(content, graph.tensors[index]):
                    continue
                kind = "other"
                if code == schema.BuiltinOperator.GATHER and place == 0 and len(graph.tensors[index].shape) == 2:
                    kind = "table"
                if code == schema.BuiltinOperator.FULLY_CONNECTED and place == 1:
                    kind = "dense"
                uses.setdefault(graph.tensors[index].buffer, set()).add(kind)
        for index in filter(lambda index: _is_large(content, graph.tensors[index]), graph.outputs):
            uses.setdefault(graph.tensors[index].buffer, set()).add("other")
    return uses


def _is_large(content: Any, tensor: Any) -> bool:
    data = content.buffers[tensor.buffer].data
    is_float = tensor.type == schema.TensorType.FLOAT32 and tensor.shape is not None and len(tensor.shape) >= 2
    return is_float and data is not None and len(data) >= 4 * SMALLEST


def _rewrite(editor: WeightEditor, operator: Any, bits: WeightBits, uses: Any, stored: dict[int, Quantized]) -> None:
    code = operator_code(editor.content, operator)
    for place, index in enumerate(operator.inputs):
        tensor = editor.graph.tensors[index] if index >= 0 else None
        if tensor is None or tensor.buffer not in uses:
            continue
        kinds = uses[tensor.buffer]
        if kinds == {"other"}:
            if bits.compact_tables and len(tensor.shape) <= 3:  # positions
                editor.store(tensor, stored, bits=8, block=0)
                editor.dequantize(operator, place)
        elif "other" not in kinds:
            # A table that a dense layer shares has a scale for each row in both.
            table = "table" in kinds
            held = bits.table if table else bits.dense
            block = 0 if held == 8 else block_size(int(tensor.shape[-1]), _TABLE_BLOCK if table else bits.block)
            half_scales = table and bits.compact_tables
            editor.store(tensor, stored, bits=held, block=block, half_scales=half_scales)
            if code == schema.BuiltinOperator.GATHER:
                editor.look_up(operator, stored[tensor.buffer], shared="dense" in kinds)
            elif bits.computes_in_float:
                editor.dequantize(operator, place)
            elif bits.scales_apart and not table:
                editor.multiply_with_scales_apart(operator, stored[tensor.buffer])
            else:
                editor.multiply_integers(operator, 4 if tensor.type == schema.TensorType.INT4 else 8)
