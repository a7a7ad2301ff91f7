"""Integer weights against the float weights they were made from, read out of the flatbuffer with NumPy."""

import functools

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from tflite_graph import read_graph
from tiny_exports import classifier, exported, random_inputs, wide_classifier

from export.runtime import TFLiteRunner
from export.tflite import export_tflite

RECIPES = ("dynamic_int8", "weight_only_int8", "int4", "int4_int8_table")


@functools.cache
def wide(recipe, folder):
    path = folder / f"{recipe}.tflite"
    export_tflite(wide_classifier(), path, recipe=recipe, overwrite=True)
    return path


def dequantised(path):
    """Every stored integer matrix as floats: shape → arrays. Nibbles, blocks and scales are read here anew."""
    model = schema.ModelT.InitFromPackedBuf(bytearray(path.read_bytes()))
    found = {}
    for graph in model.subgraphs:
        for tensor in graph.tensors:
            data = model.buffers[tensor.buffer].data
            if data is None or tensor.type not in (schema.TensorType.INT8, schema.TensorType.INT4):
                continue
            raw = np.asarray(data, np.uint8)
            if tensor.type == schema.TensorType.INT4:
                raw = np.stack([raw & 15, raw >> 4], -1).ravel()
                values = raw.astype(np.int64) - 16 * (raw > 7)
            else:
                values = raw.view(np.int8).astype(np.int64)
            values = values[: int(np.prod(tensor.shape))].reshape([int(n) for n in tensor.shape])
            quantisation = tensor.quantization
            if quantisation.detailsType == schema.QuantizationDetails.BlockwiseQuantization:
                scales = graph.tensors[quantisation.details.scales]
                scales = np.asarray(model.buffers[scales.buffer].data, np.uint8).view(np.float16).astype(np.float64)
                scales = scales.reshape(values.shape[0], -1).repeat(quantisation.details.blockSize, axis=1)
            else:
                assert not np.any(quantisation.zeroPoint)
                scales = np.asarray(quantisation.scale, np.float64).reshape(-1, 1)
            found.setdefault(values.shape, []).append(values * scales)
    return found


@pytest.mark.parametrize("recipe", RECIPES)
def test_dense_weights_are_the_models(recipe, tmp_path_factory):
    found = dequantised(wide(recipe, tmp_path_factory.getbasetemp()))
    task = wide_classifier()
    limit = 0.15 if "int4" in recipe else 0.01
    for path in ("encoder/feed_forward_0/intermediate/kernel", "encoder/attention_0/key/kernel"):
        weights = task.named_weights()
        wanted = np.asarray(weights[path]).T
        if "intermediate" in path and recipe != "weight_only_int8":  # its inputs are divided by the norm's weights
            gamma, beta = (np.asarray(weights[f"encoder/attention_0/layer_norm/{name}"]) for name in ("gamma", "beta"))
            largest = 3 * np.abs(gamma) + np.abs(beta)
            wanted = wanted * largest / np.exp(np.mean(np.log(largest)))
        errors = [np.std(candidate - wanted) / np.std(wanted) for candidate in found[wanted.shape]]
        assert 0 < min(errors) < limit


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_word_has_its_own_scale(recipe, tmp_path):
    """Rows of very different sizes: one scale for all would leave nothing of the small ones."""
    task = classifier()
    table = task.backbone.embeddings.word_embedding.embeddings
    before = np.asarray(table)
    try:
        table.assign(before * np.geomspace(0.01, 1, len(before))[:, None])
        export_tflite(task, tmp_path / "m.tflite", recipe=recipe)
        found, graph = TFLiteRunner(tmp_path / "m.tflite"), read_graph(tmp_path / "m.tflite")
        assert "EMBEDDING_LOOKUP" in {name for subgraph in graph for name in subgraph.names()}
        small = [[token] * 3 for token in (0, 1, 2, 3)]
        reference = [np.asarray(task.run_rows([(ids, [0] * 3)])[0]["probabilities"]) for ids in small]
        answers = [found.run(ids, [0] * 3)["probabilities"] for ids in small]
        assert np.abs(np.array(answers) - reference).max() < (0.02 if "int4" not in recipe else 0.2)
    finally:
        table.assign(before)


@pytest.mark.parametrize("form", ["loop", "unrolled"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_every_length(recipe, form):
    """Lengths that grow and shrink, against Keras."""
    runner = TFLiteRunner(exported("all", recipe, form))
    for length in (24, 3, 11, 17):
        ids, segments = random_inputs(length)
        wanted = classifier().run_rows([(ids, segments)])[0]["probabilities"]
        limit = 0.02 if "int4" not in recipe else 0.25
        np.testing.assert_allclose(runner.run(ids, segments)["probabilities"], wanted, rtol=0, atol=limit)
