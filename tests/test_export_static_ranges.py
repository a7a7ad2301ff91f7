"""Recipes that compute in integers alone: what is left in float, what they answer, what they refuse."""

import dataclasses

import numpy as np
import pytest
from small_vocabularies import LINES
from tflite_graph import read_graph, weights
from tiny_exports import BASE, CONFIGS, FIXED_LENGTH, MAX_LENGTH, classifier, new_classifier, random_inputs
from tiny_tasks import new_task

from albert_tf.errors import InputError
from export.device_graph import _calibration_rows
from export.metadata import read_files, read_settings
from export.runtime import TFLiteRunner
from export.tflite import export_tflite
from export.tflite_model import read_model
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
        ({"calibration": [("a", "b", "c")]}, r"calibration\[0\]\[0\]: expected a string, got tuple"),
        ({"calibration": [("a", 1)]}, r"calibration\[0\]\[1\]: expected a string, got int"),
        ({"calibration": "the mill"}, "expected a list of strings"),
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


def test_scores_of_excluded_places_leave_the_others_their_bits(tmp_path):
    """Their range would be that of -1e9: no two tokens of the passage could be told apart."""
    task = new_task("question-answering", head="squad2", doc_stride=5, max_question_length=9)
    path = tmp_path / "m.tflite"
    calibration = [("where is the mill", "the old mill by the river"), *LINES]
    export_tflite(task, path, recipe="int16x8", length=MAX_LENGTH, calibration=calibration, measure=False, force=True)
    rows = task.required_tokenizer.encode_batch(["who came"], ["the old mill by the river"])
    [found], [wanted] = TFLiteRunner(path).run_rows(rows), task.run_rows(rows)
    assert task.question_answering.excluded == -1e9  # as it was
    for name in ("start_log_probs", "end_log_probs"):
        kept = wanted[name] > -1e3
        assert np.ptp(wanted[name][kept]) > 0.1
        np.testing.assert_allclose(found[name][kept], wanted[name][kept], rtol=0, atol=0.5)
        assert found[name][~kept].max() < found[name][kept].min() - 20
    assert read_settings(read_files(path), path)["recipe"]["calibration_texts"] == len(calibration)


def test_pairs_are_calibrated_as_pairs():
    rows = _calibration_rows(new_task("multiple-choice"), ["the mill", ("a", "river"), "the wheel"], 16)
    assert [segments.count(1) > 0 for _, segments in rows] == [True] * 3
    rows = _calibration_rows(new_task("regression"), ["the mill", ("a", "river"), "the wheel"], 16)
    assert [segments.count(1) > 0 for _, segments in rows] == [False, False, True]


def test_a_softmax_over_a_vocabulary_is_in_floats(tmp_path, monkeypatch):
    """Of 16 bits most of its probabilities would be 0."""
    task, files = new_task("fill-mask"), {}
    for most in (BASE.vocabulary_size, BASE.vocabulary_size - 1):
        monkeypatch.setattr("export.static_ranges.MOST_CLASSES", most)
        files[most] = tmp_path / f"{most}.tflite"
        options = {"length": FIXED_LENGTH, "calibration": LINES}
        export_tflite(task, files[most], recipe="int16x8", measure=False, force=True, **options)
    counts = {}
    for most, path in files.items():
        (graph,) = read_model(path.read_bytes()).subgraphs
        ends = [operator.outputs[0] for operator in graph.operators if operator.name == "SOFTMAX"]
        counts[most] = [graph.tensors[end].type for end in ends]
    assert counts == {140: ["INT16"] * 4, 139: ["INT16"] * 3 + ["FLOAT32"]}
