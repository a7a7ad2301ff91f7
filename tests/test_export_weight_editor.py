"""Dense layers with their scales behind them, against the same layers with a scale for each output."""

import dataclasses

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from tiny_exports import CONFIGS, classifier, exported, new_classifier, random_inputs

from export.device_graph import convert
from export.integer_weights import WeightBits, rewrite_weights
from export.quantization import RECIPES
from export.tflite_metadata import packed

OLDEST_KNOWN = {"FULLY_CONNECTED": 10, "EMBEDDING_LOOKUP": 3, "MUL": 7, "ADD": 5}  # by TFLite Task Library 0.4.4
_PLAIN = RECIPES["dynamic_int8"]


def run(model: bytes, length: int) -> np.ndarray:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=model)
    token_ids, segment_ids = random_inputs(length)
    inputs = {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": [1] * length}
    arrays = {name: np.array([values], np.int32) for name, values in inputs.items()}
    return interpreter.get_signature_runner()(**arrays)["probabilities"]


@pytest.mark.parametrize("name", CONFIGS)
def test_the_same_answers_in_older_operators(name):
    floats = convert(classifier(name), RECIPES["float32"], form="loop", length=None)
    models = [rewrite_weights(floats, WeightBits(scales_apart=apart, compact_tables=False)) for apart in (False, True)]
    assert models[1] == convert(
        classifier(name), dataclasses.replace(_PLAIN, scales_apart=True), form="loop", length=None
    )
    for length in (3, 17):
        plain, apart = (run(model, length) for model in models)
        np.testing.assert_allclose(apart, plain, rtol=0, atol=1e-5)
        assert np.abs(plain - plain.mean()).max() > 0.01
    for model, newer in zip(models, (True, False), strict=True):
        content = schema.ModelT.InitFromPackedBuf(bytearray(model))
        names = {value: name for name, value in vars(schema.BuiltinOperator).items() if isinstance(value, int)}
        versions = [(names[code.builtinCode], code.version) for code in content.operatorCodes]
        assert any(version > OLDEST_KNOWN.get(name, 99) for name, version in versions) == newer
    assert len(models[1]) < 1.25 * len(models[0])


def test_activations_stay_with_their_layer():
    """The converter fuses ReLU into a dense layer, which becomes the last of three operators."""
    recipe = dataclasses.replace(_PLAIN, scales_apart=True)
    model = convert(classifier("attention, E=H, relu"), recipe, form="loop", length=None)
    content = schema.ModelT.InitFromPackedBuf(bytearray(model))
    options = [operator.builtinOptions for graph in content.subgraphs for operator in graph.operators]
    relu = schema.ActivationFunctionType.RELU
    fused = {type(held).__name__ for held in options if getattr(held, "fusedActivationFunction", 0) == relu}
    assert fused == {"AddOptionsT"}


def test_layers_without_a_bias():
    content = schema.ModelT.InitFromPackedBuf(bytearray(exported("attention, E=H, relu", form="unrolled").read_bytes()))
    for operator in content.subgraphs[0].operators:
        if isinstance(operator.builtinOptions, schema.FullyConnectedOptionsT):
            operator.inputs[2] = -1
    model = packed(content, 1 << 20)
    plain, apart = (
        run(rewrite_weights(model, WeightBits(scales_apart=apart, compact_tables=False)), 9) for apart in (False, True)
    )
    np.testing.assert_allclose(apart, plain, rtol=0, atol=1e-5)
    assert np.abs(plain - run(model, 9)).max() < 0.05


@pytest.mark.parametrize("length", [None, (70, 90)])
def test_positions_and_words_scales_in_a_byte_and_two(length):
    task = new_classifier(dataclasses.replace(CONFIGS["all"], max_sequence_length=128))
    content = schema.ModelT.InitFromPackedBuf(bytearray(convert(task, _PLAIN, form="loop", length=length)))
    codes = [max(code.builtinCode, code.deprecatedBuiltinCode) for code in content.operatorCodes]
    stored: dict[int, set[tuple[int, int]]] = {}
    for graph in content.subgraphs:
        for operator in graph.operators:
            if codes[operator.opcodeIndex] == schema.BuiltinOperator.DEQUANTIZE:
                tensor = graph.tensors[operator.inputs[0]]
                data = content.buffers[tensor.buffer].data
                assert len(data) == np.prod(tensor.shape) * (1 if tensor.type == schema.TensorType.INT8 else 2)
                stored.setdefault(tensor.type, set()).add(tuple(int(n) for n in tensor.shape[-2:]))
    config = task.backbone.config
    rows = {128} if length is None else {70, 90}
    assert stored == {
        schema.TensorType.INT8: {(count, config.embedding_dim) for count in rows},
        schema.TensorType.FLOAT16: {(config.vocabulary_size, 1)},
    }


def test_answers_with_positions_in_a_byte():
    task = new_classifier(dataclasses.replace(CONFIGS["all"], max_sequence_length=128))
    model = convert(task, RECIPES["float32"], form="loop", length=None)
    byte, full = (
        run(rewrite_weights(model, WeightBits(computes_in_float=True, compact_tables=compact)), 17)
        for compact in (True, False)
    )
    assert 0 < np.abs(byte - full).max() < 3e-3
