"""Files with a signature for each of several lengths: the answers of files of one length, on weights stored once."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tflite_graph import read_graph, weights
from tiny_exports import classifier, random_inputs, wide_classifier
from tiny_tasks import tiny_task

from albert_tf.data.conll import TaggedExample
from albert_tf.errors import InputError
from export.inspection import inspect_file
from export.metadata import SETTINGS_FILE, append_files, read_files, read_settings
from export.quantization import RECIPES
from export.runtime import TFLiteRunner
from export.signatures import recorded_length, signature_names
from export.tflite import export_tflite

LENGTHS = (4, 9, 16)
WAYS = [(r, f) for r in ("float32", "float16", "dynamic_int8", "int4") for f in ("loop", "unrolled")]


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    path = tmp_path_factory.mktemp("several") / "m.tflite"
    export_tflite(classifier(), path, recipe="float32", length=LENGTHS, measure=False)
    return path


def test_names():
    assert signature_names(None) == {"serving_default": None}
    assert signature_names(16) == {"serving_default": 16}
    assert signature_names((64, 16)) == {"length_16": 16, "length_64": 64}
    assert [recorded_length({"length": n}) for n in (None, 16, [16, 64])] == [None, 16, (16, 64)]


def test_each_row_takes_the_shortest_that_it_fits(several):
    runner, whole = TFLiteRunner(several), classifier()
    assert runner.length == runner.lengths == LENGTHS and runner.tokenizer.max_length == max(LENGTHS)
    taken = {}
    for tokens in (1, 3, 4, 5, 9, 10, 16):
        ids, segments = random_inputs(tokens, seed=tokens)
        taken[tokens], _ = runner._model.signature(tokens)
        wanted = whole.run_rows([(ids, segments)])[0]["probabilities"]
        np.testing.assert_allclose(runner.run(ids, segments)["probabilities"], wanted, rtol=0, atol=2e-6)
    assert taken == {1: 4, 3: 4, 4: 4, 5: 9, 9: 9, 10: 16, 16: 16}
    with pytest.raises(InputError, match="takes 1 to 16 tokens, got 17"):
        runner.run([5] * 17, [0] * 17)
    with pytest.raises(InputError, match="takes at most 16 tokens, got 17"):
        runner._model.signature(17)


@pytest.mark.parametrize(("recipe", "form"), WAYS)
def test_weights_are_stored_once(recipe, form, tmp_path):
    task, sizes = wide_classifier(), {}
    for length in (32, (8, 16, 32)):
        report = export_tflite(task, tmp_path / "m.tflite", recipe=recipe, form=form, length=length, overwrite=True)
        sizes[length] = report.model_bytes
        assert report.repeated_bytes == 0 and report.comparison.agreement == 1
    # Graphs are written out for each length; weights are not: here they are megabytes.
    assert sizes[8, 16, 32] - sizes[32] < 130_000 < RECIPES[recipe].weight_bytes * task.count_params()
    assert len(read_graph(tmp_path / "m.tflite")) == (3 if form == "unrolled" else 9)
    large = [t.shape for t in weights(read_graph(tmp_path / "m.tflite")).values() if 8000 in t.shape and 128 in t.shape]
    assert large == [(8000, 128)]


def test_outputs_for_each_token(tmp_path):
    task, path = tiny_task("tagging"), tmp_path / "m.tflite"
    export_tflite(task, path, recipe="float32", length=LENGTHS, measure=False)
    rows = task.required_tokenizer.encode_batch(["a", "the mill", "the old mill by"], length=16)
    for outputs, wanted in zip(TFLiteRunner(path).run_rows(rows), task.run_rows(rows), strict=True):
        np.testing.assert_allclose(outputs["label_probabilities"], wanted["label_probabilities"], rtol=0, atol=1e-5)
    words = tuple(["the", "old", "mill", "by", "the", "river"] * 9)  # in parts of at most 16 tokens
    parts = TFLiteRunner(path).pipeline.prepare([TaggedExample(words)])
    assert {len(ids) <= 16 for ids, _ in parts.rows} == {True} and len(parts.rows) > 3


def test_threads_on_different_lengths(several):
    runner = TFLiteRunner(several)
    rows = [random_inputs(tokens, seed=tokens) for tokens in range(1, 17)] * 3
    wanted = [outputs["probabilities"] for outputs in TFLiteRunner(several).run_rows(rows)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda row: runner.run(*row)["probabilities"], rows))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)


def test_inspected(several):
    found = inspect_file(several)
    assert found.problems == ()
    assert {signature.key: signature.inputs[0].shape for signature in found.signatures} == {
        f"length_{n}": (1, n) for n in LENGTHS
    }


@pytest.mark.parametrize(
    ("length", "message"),
    [
        ([4, 9], r"signature|inputs of int32"),
        ([4, 9, 20], "the runtime cannot load it|signature"),
        (16, "the runtime cannot load it|signature"),
        ([], "missing or of a wrong type: length"),
        ([9, 4, 16], "missing or of a wrong type: length"),
        ([4, 4, 16], "missing or of a wrong type: length"),
        ([4, "9"], "missing or of a wrong type: length"),
        ([0, 9], "missing or of a wrong type: length"),
        (0, "missing or of a wrong type: length"),
        (True, "missing or of a wrong type: length"),
    ],
)
def test_settings_that_do_not_fit(several, tmp_path, length, message):
    files = read_files(several)
    settings = read_settings(files, several)
    model = several.read_bytes()[: settings["model_bytes"]]
    settings["length"] = length
    path = tmp_path / "m.tflite"
    path.write_bytes(append_files(model, files | {SETTINGS_FILE: json.dumps(settings).encode()}))
    if length == [4, 9]:  # two of the three are a file as well
        assert TFLiteRunner(path).lengths == (4, 9)
        return
    with pytest.raises(InputError, match=message):
        TFLiteRunner(path)
