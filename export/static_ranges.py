"""A float32 model whose activations are integers too, with ranges from the user's own texts.

ai-edge-quantizer does the work; it is installed with `pip install albert-tf[quantizer]`.
"""

import contextlib
import io
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from albert_tf.errors import InputError
from albert_tf.layers import channel_factors
from export.quiet import without_native_notes
from export.tflite_metadata import packed

# For texts that go beyond the ranges of those seen; 16 bits can spare two for it.
HEADROOM = {8: channel_factors.HEADROOM, 16: 4.0}
# Probabilities of 16 bits are multiples of 1/32768, which is as much as a word of a vocabulary may have: those of more
# classes than this are computed in floats.
MOST_CLASSES = 1024


def with_static_ranges(model: bytes, inputs: list[dict[str, np.ndarray]], signature: str, *, dense_bits: int) -> bytes:
    """The model in integers from its inputs up to its outputs, which stay float32, as does a softmax over a vocabulary.

    Args:
        model: a float32 model of fixed length.
        inputs: what to run it on to see how far its values go.
        signature: its signature.
        dense_bits: of what dense layers compute with: 8 or 16. All else has 16.

    Raises:
        InputError: ai-edge-quantizer is not installed.
    """
    try:
        from ai_edge_quantizer import calibrator, qtyping, quantizer, recipe, recipe_manager
        from ai_edge_quantizer.algorithm_manager import AlgorithmName
        from ai_edge_quantizer.utils import qsv_utils
    except ImportError as error:
        raise InputError(
            "recipes with integer activations need ai-edge-quantizer: pip install 'albert-tf[quantizer]'"
        ) from error
    operations = qtyping.TFLOperationName
    manager = recipe_manager.RecipeManager()
    manager.load_quantization_recipe(recipe.static_wi8_ai16())
    manager.add_quantization_config(".*", operations.OUTPUT, None, AlgorithmName.NO_QUANTIZE)
    for name in _wide_softmaxes(model):
        manager.add_quantization_config(re.escape(name), operations.SOFTMAX, None, AlgorithmName.NO_QUANTIZE)
    if dense_bits == 8:
        manager.add_static_config(".*", operations.FULLY_CONNECTED, 8, 8)
    bars = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())  # and a summary
    with bars[0], bars[1], without_native_notes():
        # The usual moving average would cut off what few texts reach: whole channels of trained models.
        runs = calibrator.Calibrator(bytearray(model), qsv_update_func=qsv_utils.min_max_update)
        runs.calibrate({signature: inputs}, manager)
        ranges = runs.get_model_qsvs()
        around_dense = _around_dense(model)
        ranges = {
            name: _widened(found, HEADROOM[dense_bits if name in around_dense else 16])
            for name, found in ranges.items()
        }
        quantised = quantizer.Quantizer(bytearray(model), manager.get_quantization_recipe()).quantize(ranges)
    return merge_equal_tensors(bytes(quantised.quantized_model))


def _widened(found: dict[str, Any], factor: float) -> dict[str, Any]:
    return {name: value * factor if name in ("min", "max") else value for name, value in found.items()}


def _around_dense(model: bytes) -> set[str]:
    """The names of what goes into dense layers and comes out."""
    ends = _ends(model, schema.BuiltinOperator.FULLY_CONNECTED)
    return {tensor.name.decode() for pair in ends for tensor in pair}


def _wide_softmaxes(model: bytes) -> set[str]:
    """The names of what comes out of softmaxes over many classes."""
    ends = _ends(model, schema.BuiltinOperator.SOFTMAX)
    return {output.name.decode() for _, output in ends if output.shape[-1] > MOST_CLASSES}


def _ends(model: bytes, code: int) -> Iterator[tuple[Any, Any]]:
    """The first input and output of every operator of one kind."""
    content = schema.ModelT.InitFromPackedBuf(bytearray(model))
    for graph in content.subgraphs:
        for operator in graph.operators:
            if content.operatorCodes[operator.opcodeIndex].builtinCode == code:
                yield graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]


def merge_equal_tensors(model: bytes) -> bytes:
    """A shared weight is one tensor again; the quantizer makes one for each pass, with as many lists of scales."""
    content = schema.ModelT.InitFromPackedBuf(bytearray(model))
    for buffer in content.buffers:
        if buffer.offset > 1:  # the quantizer writes weights behind the flatbuffer
            buffer.data = np.frombuffer(model[buffer.offset : buffer.offset + buffer.size], np.uint8)
        buffer.offset = buffer.size = 0
    for graph in content.subgraphs:
        kept: dict[tuple[Any, ...], int] = {}
        place = {}
        for index, tensor in enumerate(graph.tensors):
            data = content.buffers[tensor.buffer].data
            if data is None or tensor.quantization is None or tensor.quantization.scale is None:
                continue
            scales = np.asarray(tensor.quantization.scale, np.float32).tobytes()
            shape = tuple(np.asarray(tensor.shape).tolist())
            place[index] = kept.setdefault((bytes(data), tensor.type, shape, scales), index)
        for operator in graph.operators:
            operator.inputs = np.array([place.get(int(i), int(i)) for i in operator.inputs], np.int32)
        _drop_unused(graph, {index for index, first in place.items() if index != first})
    used = {t.buffer for graph in content.subgraphs for t in graph.tensors} | {m.buffer for m in content.metadata or []}
    for index, buffer in enumerate(content.buffers):
        if index not in used:
            buffer.data = None
    return packed(content, len(model))


def _drop_unused(graph: Any, dropped: set[int]) -> None:
    """Empties the tensors, which keep their places: signatures and operators name tensors by number."""
    for index in dropped:
        tensor = graph.tensors[index]
        tensor.quantization, tensor.buffer, tensor.name = None, 0, b""
        tensor.shape = np.zeros(0, np.int32)
