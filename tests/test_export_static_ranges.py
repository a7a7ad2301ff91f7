"""Recipes that compute in integers alone: what is left in float, what they answer, what they refuse."""

import dataclasses

import numpy as np
import pytest
from tflite_graph import read_graph, weights
from tiny_exports import CONFIGS, FIXED_LENGTH, classifier, new_classifier, random_inputs

from albert_tf.errors import InputError
from export.metadata import read_files, read_settings
from export.runtime import TFLiteRunner
from export.tflite import export_tflite
from export.validation import CHECK_TEXTS

OPTIONS = {"length": FIXED_LENGTH, "calibration": CHECK_TEXTS}


@pytest.mark.parametrize(("recipe", "dense"), [("int8", "INT8"), ("int16x8", "INT16")])
def test_only_the_outputs_are_floats(recipe, dense, tmp_path):
    path = tmp_path / "m.tflite"
    report = export_tflite(classifier(), path, recipe=recipe, **OPTIONS)
    assert report.comparison.distance < (0.04 if recipe == "int8" else 0.01)
    (graph,) = read_graph(path)
    assert graph.names().count("DEQUANTIZE") == 1
    layers = [operation for operation in graph.operations if operation.name == "FULLY_CONNECTED"]
    assert {layer.inputs[0].type for layer in layers} == {dense}
    assert {layer.inputs[1].type for layer in layers} == {"INT8"}
    assert "FLOAT32" not in {tensor.type for tensor in weights([graph]).values()}
    # Each of three passes has its dense layers; their weights are there once.
    assert len({layer.inputs[1].buffer for layer in layers}) == len(layers) - 2 * 6
    settings = read_settings(read_files(path), path)
    assert settings["recipe"]["calibration_texts"] == len(CHECK_TEXTS)
    ids, segments = random_inputs(9)
    wanted = classifier().run_rows([(ids, segments)])[0]["probabilities"]
    answer = TFLiteRunner(path).run(ids, segments)["probabilities"]
    np.testing.assert_allclose(answer, wanted, rtol=0, atol=0.1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"form": "loop"}, "has to be unrolled; got loop"),
        ({"length": None}, "files have a fixed one"),
        ({"calibration": None}, "takes its ranges from texts"),
        ({"calibration": []}, "at least one text"),
        ({"recipe": "dynamic_int8"}, "measures no ranges"),
    ],
)
def test_refused(changes, message, tmp_path):
    with pytest.raises(InputError, match=message):
        export_tflite(classifier(), tmp_path / "m.tflite", **({"recipe": "int8"} | OPTIONS | changes))
    assert list(tmp_path.iterdir()) == []


def test_more_than_one_group(tmp_path):
    config = dataclasses.replace(CONFIGS["all"], num_groups=2, num_layers=2)
    report = export_tflite(new_classifier(config), tmp_path / "m.tflite", recipe="int16x8", **OPTIONS)
    assert report.comparison.agreement == 1
