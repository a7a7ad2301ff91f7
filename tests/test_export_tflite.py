"""Exported files against the Keras model they were made from, and what the flatbuffers hold."""

import dataclasses
import hashlib
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT
from small_vocabularies import sentencepiece_vocabulary
from tflite_graph import read_graph, weights
from tiny_exports import (
    BASE,
    CONFIGS,
    FIXED_LENGTH,
    MAX_LENGTH,
    classifier,
    exported,
    keras_probabilities,
    new_classifier,
    random_inputs,
)

from albert_tf.errors import InputError
from albert_tf.layers.passes import loop_plan
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from export.metadata import read_files, read_settings
from export.runtime import TFLiteRunner
from export.tflite import export_tflite

# Largest difference of a probability. Measured over all files below: 2e-7, 3e-4, 3.5e-3.
TOLERANCES = {"float32": 2e-6, "float16": 1e-3, "dynamic_int8": 1e-2}
# The answers to different inputs lie further apart than any tolerance, or the comparison would say nothing.
LEAST_SPREAD = 3e-2

EVERY_WAY = [(r, f, n) for r in TOLERANCES for f in ("loop", "unrolled") for n in (None, FIXED_LENGTH)]
FILES = [
    *[(name, *way) for name in ("all", "attention, E=H, relu") for way in EVERY_WAY],
    ("none, inner 2", "float32", "loop", None),
    ("none, inner 2", "float16", "unrolled", FIXED_LENGTH),
    ("none, inner 2", "dynamic_int8", "loop", FIXED_LENGTH),
    ("none, inner 2", "dynamic_int8", "unrolled", None),
    ("groups 2, inner 2, erf", "float32", "loop", None),
    ("groups 2, inner 2, erf", "float32", "unrolled", FIXED_LENGTH),
    ("groups 2, inner 2, erf", "float16", "loop", FIXED_LENGTH),
    ("groups 2, inner 2, erf", "dynamic_int8", "unrolled", None),
    ("ffn", "float32", "loop", None),
    ("ffn", "dynamic_int8", "unrolled", FIXED_LENGTH),
    ("words", "float32", "unrolled", FIXED_LENGTH),
    ("pruned", "float32", "loop", None),
    ("pruned", "float32", "unrolled", FIXED_LENGTH),
    ("pruned", "dynamic_int8", "loop", FIXED_LENGTH),
    ("pruned", "dynamic_int8", "unrolled", None),
    ("words", "dynamic_int8", "loop", None),
]


@pytest.mark.parametrize(
    ("fields", "plan"),
    [
        ({"num_layers": 3}, [([(0, 0)], 3)]),
        ({"num_layers": 1}, [([(0, 0)], 1)]),
        ({"num_layers": 3, "sharing": "attention"}, [([(0, 0)], 1), ([(0, 1)], 1), ([(0, 2)], 1)]),
        ({"num_layers": 3, "sharing": "ffn"}, [([(0, 0)], 1), ([(1, 0)], 1), ([(2, 0)], 1)]),
        ({"num_layers": 3, "sharing": "none"}, [([(0, 0)], 1), ([(1, 1)], 1), ([(2, 2)], 1)]),
        ({"num_layers": 4, "num_groups": 2}, [([(0, 0)], 2), ([(1, 1)], 2)]),
        ({"num_layers": 5, "num_groups": 2}, [([(0, 0)], 3), ([(1, 1)], 2)]),
        ({"num_layers": 4, "num_groups": 3}, [([(0, 0)], 2), ([(1, 1)], 1), ([(2, 2)], 1)]),
        ({"num_layers": 3, "num_inner_repetitions": 2}, [([(0, 0), (1, 1)], 3)]),
        (
            {"num_layers": 4, "num_groups": 2, "num_inner_repetitions": 2},
            [([(0, 0), (1, 1)], 2), ([(2, 2), (3, 3)], 2)],
        ),
        (
            {"num_layers": 2, "num_inner_repetitions": 2, "sharing": "attention"},
            [([(0, 0), (1, 1)], 1), ([(0, 2), (1, 3)], 1)],
        ),
        (
            {"num_layers": 2, "num_inner_repetitions": 2, "sharing": "ffn"},
            [([(0, 0), (1, 1)], 1), ([(2, 0), (3, 1)], 1)],
        ),
        (
            {"num_layers": 2, "num_inner_repetitions": 2, "sharing": "none"},
            [([(0, 0), (1, 1)], 1), ([(2, 2), (3, 3)], 1)],
        ),
        (
            {"num_layers": 3, "num_groups": 2, "sharing": "attention"},
            [([(0, 0)], 1), ([(0, 1)], 1), ([(1, 2)], 1)],
        ),
        ({"num_layers": 3, "num_groups": 2, "sharing": "ffn"}, [([(0, 0)], 1), ([(1, 0)], 1), ([(2, 1)], 1)]),
    ],
)
def test_loop_plan(fields, plan):
    config = dataclasses.replace(BASE, **fields)
    found = loop_plan(config.block_schedule, config.num_inner_repetitions)
    assert [(list(layer), passes) for layer, passes in found] == plan


@pytest.mark.parametrize(("name", "recipe", "form", "length"), FILES)
def test_answers_are_those_of_keras(name, recipe, form, length):
    runner = TFLiteRunner(exported(name, recipe, form, length))
    inputs = [random_inputs(tokens, seed) for seed, tokens in enumerate((3, 4, 7, 11, FIXED_LENGTH))]
    from_keras = np.stack([keras_probabilities(classifier(name), *example) for example in inputs])
    from_file = np.stack([runner.run(*example)["probabilities"] for example in inputs])
    assert from_file.dtype == np.float32
    assert np.ptp(from_keras, axis=0).max() > LEAST_SPREAD
    np.testing.assert_allclose(from_file, from_keras, rtol=0, atol=TOLERANCES[recipe])


@pytest.mark.parametrize("form", ["loop", "unrolled"])
@pytest.mark.parametrize("recipe", ["float32", "dynamic_int8"])
def test_dynamic_files_take_every_length(recipe, form):
    runner = TFLiteRunner(exported("all", recipe, form))
    lengths = [*range(MAX_LENGTH, 2, -1), *range(3, MAX_LENGTH + 1, 5)]  # growing and shrinking
    for length in lengths:
        expected = keras_probabilities(classifier(), *random_inputs(length))
        answer = runner.run(*random_inputs(length))["probabilities"]
        np.testing.assert_allclose(answer, expected, rtol=0, atol=TOLERANCES[recipe])
    for length in (0, MAX_LENGTH + 1):
        with pytest.raises(InputError, match=f"takes 1 to {MAX_LENGTH} tokens, got {length}"):
            runner.run([5] * length, [0] * length)


@pytest.mark.parametrize("form", ["loop", "unrolled"])
def test_dynamic_files_cut_what_is_too_long(form):
    runner = TFLiteRunner(exported("all", "float32", form))
    for length in (2, 3, MAX_LENGTH - 1, MAX_LENGTH, MAX_LENGTH + 1, MAX_LENGTH + 2, 700):
        rows = random_inputs(length, seed=length)
        inputs = dict(zip(("token_ids", "segment_ids"), rows, strict=True)) | {"padding_mask": [1] * length}
        answer = runner._model.signature(length)[1](
            **{name: np.array([row], np.int32) for name, row in inputs.items()}
        )["probabilities"]
        kept = [row if length <= MAX_LENGTH else [*row[: MAX_LENGTH - 1], row[-1]] for row in rows]
        np.testing.assert_allclose(answer[0], keras_probabilities(classifier(), *kept), rtol=0, atol=2e-6)


@pytest.mark.parametrize("form", ["loop", "unrolled"])
def test_what_stands_in_the_padding_does_not_matter(form):
    runner = TFLiteRunner(exported("all", "float32", form, FIXED_LENGTH))
    token_ids, segment_ids = random_inputs(5)
    inputs = {name: np.zeros((1, FIXED_LENGTH), np.int32) for name in ("token_ids", "segment_ids", "padding_mask")}
    inputs["token_ids"][0] = [*token_ids, *range(40, 40 + FIXED_LENGTH - 5)]
    inputs["segment_ids"][0] = [*segment_ids, *[1] * (FIXED_LENGTH - 5)]
    inputs["padding_mask"][0, :5] = 1
    answer = runner._model.signature(5)[1](**inputs)["probabilities"]
    np.testing.assert_allclose(answer[0], runner.run(token_ids, segment_ids)["probabilities"], rtol=0, atol=1e-7)
    inputs["padding_mask"][0, :] = 1
    assert np.abs(runner._model.signature(5)[1](**inputs)["probabilities"] - answer).max() > 1e-3


def _dense_weights(subgraphs):
    return [op.inputs[1] for graph in subgraphs for op in graph.operations if op.name == "FULLY_CONNECTED"]


@pytest.mark.parametrize("recipe", ["float32", "dynamic_int8"])
def test_the_loop_has_the_block_once(recipe):
    main, *rest = graphs = read_graph(exported("all", recipe, "loop"))
    assert main.names().count("WHILE") == 1
    bodies = [graph for graph in rest if "FULLY_CONNECTED" in graph.names()]
    assert [graph.names().count("FULLY_CONNECTED") for graph in bodies] == [6]  # q, k, v, output and two feed-forward
    dense = _dense_weights(graphs)
    assert len(dense) == 6 + 3  # projection, pooler, classifier
    assert len({tensor.buffer for tensor in dense}) == 9
    assert [t.shape for t in weights(graphs).values()].count((64, 32)) == 1


def test_a_loop_for_each_group():
    main, *rest = read_graph(exported("groups 2, inner 2, erf", "float32", "loop"))
    assert main.names().count("WHILE") == 2
    assert [g.names().count("FULLY_CONNECTED") for g in rest if "FULLY_CONNECTED" in g.names()] == [12, 12]


def test_no_loop_where_nothing_repeats():
    assert len(read_graph(exported("none, inner 2", "float32", "loop"))) == 1


@pytest.mark.parametrize(("recipe", "length"), [("float32", None), ("dynamic_int8", FIXED_LENGTH)])
def test_unrolled_is_one_subgraph_with_each_weight_stored_once(recipe, length):
    graphs = read_graph(exported("all", recipe, "unrolled", length))
    assert len(graphs) == 1
    dense = _dense_weights(graphs)
    assert len(dense) == 6 * BASE.num_layers + 3
    assert len({tensor.buffer for tensor in dense}) == 9


@pytest.mark.parametrize("form", ["loop", "unrolled"])
def test_inputs_are_named_and_of_the_length_asked_for(form):
    for length in (None, FIXED_LENGTH):
        inputs = read_graph(exported("all", "float32", form, length))[0].inputs
        assert {t.shape_signature for t in inputs} == {(1, length or -1)}
        assert {t.type for t in inputs} == {"INT32"}
        runner = TFLiteRunner(exported("all", "float32", form, length))
        assert set(runner._model.signature(5)[1].get_input_details()) == {"token_ids", "segment_ids", "padding_mask"}


def test_a_short_length_of_a_model_with_long_positions(tmp_path):
    # The converter drops the positions that are never used: here most of the weights.
    task = new_classifier(dataclasses.replace(BASE, max_sequence_length=2000))
    report = export_tflite(task, tmp_path / "m.tflite", recipe="float32", length=8)
    assert report.model_bytes < 4 * 2000 * BASE.embedding_dim


def test_texts_are_cut_to_what_the_model_takes(tmp_path):
    task = new_classifier(dataclasses.replace(BASE, max_sequence_length=10))  # the tokenizer's limit is 24
    export_tflite(task, tmp_path / "m.tflite", recipe="float32")
    text = "the old mill by the river " * 9
    expected = keras_probabilities(task, *task.tokenizer.encode_batch([text], length=10)[0])
    np.testing.assert_allclose(
        TFLiteRunner(tmp_path / "m.tflite").pipeline.predict_probabilities([text])[0], expected, atol=2e-6
    )
    with pytest.raises(
        InputError, match="length: expected a whole number from 3 to 10 tokens, or several such, got 11"
    ):
        export_tflite(task, tmp_path / "n.tflite", length=11)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"recipe": "int7"}, "no recipe is called 'int7'; there are float32, float16, dynamic_int8"),
        ({"form": "rolled"}, "form: expected one of loop, unrolled; got 'rolled'"),
        ({"runtime": "phone"}, "runtime: expected one of litert, mediapipe, task-library; got 'phone'"),
        (
            {"runtime": "mediapipe", "form": "loop"},
            "MediaPipe Tasks takes only files with one subgraph: expected unrolled",
        ),
        ({"length": 2}, "length: expected a whole number from 3 to 24 tokens, or several such, got 2"),
        ({"length": 25}, "length: expected a whole number from 3 to 24 tokens, or several such, got 25"),
        ({"length": "16"}, "length: .*, got '16'"),
        ({"length": ()}, r"or several such, got \(\)"),
        ({"length": (8, True)}, r"or several such, got \(8, True\)"),
        ({"length": (8, 16), "recipe": "int8"}, "int8 measures the ranges of one graph.*expected one number"),
        ({"length": (8, 16), "runtime": "mediapipe"}, "mediapipe runs one signature, several lengths have one each"),
        ({"texts": []}, "texts: expected at least one text"),
        ({"texts": ["a", 1]}, r"texts\[1\]: expected a string"),
    ],
)
def test_wrong_arguments(tmp_path, arguments, message):
    with pytest.raises(InputError, match=message):
        export_tflite(classifier(), tmp_path / "m.tflite", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_task_without_tokenizer(tmp_path):
    from albert_tf.backbone import AlbertBackbone
    from albert_tf.tasks.classification import AlbertTextClassifier

    task = AlbertTextClassifier(AlbertBackbone(BASE), labels=["a", "b"])
    with pytest.raises(InputError, match="no tokenizer"):
        export_tflite(task, tmp_path / "m.tflite")


def test_what_mediapipe_cannot_run(tmp_path):
    task = new_classifier()
    task.tokenizer = AlbertTokenizer(sentencepiece_vocabulary(lower=False), max_length=MAX_LENGTH)
    with pytest.raises(InputError, match="MediaPipe Tasks lower-cases every text, this model's tokenizer does not"):
        export_tflite(task, tmp_path / "m.tflite", runtime="mediapipe")
    task = new_classifier()
    task.task = "tagging"
    with pytest.raises(InputError, match="MediaPipe Tasks has no class for tagging: expected classification"):
        export_tflite(task, tmp_path / "m.tflite", runtime="mediapipe")
    assert list(tmp_path.iterdir()) == []


def test_what_a_file_for_mediapipe_carries(tmp_path):
    path = tmp_path / "m.tflite"
    export_tflite(classifier(), path, recipe="float32", runtime="mediapipe")
    files, plain = read_files(path), read_files(exported("all", "float32", "unrolled"))
    assert files.keys() - plain.keys() == {"device.spm"}
    device = tmp_path / "expected.spm"
    classifier().tokenizer.save_device_model(device)
    assert files["device.spm"] == device.read_bytes()
    settings = read_settings(files, path)
    assert (settings["runtime"], settings["form"]) == ("mediapipe", "unrolled")
    assert read_settings(plain, path)["runtime"] == "litert"


def test_overwriting(tmp_path):
    path = tmp_path / "folder" / "m.tflite"  # the folder is made
    export_tflite(classifier(), path, recipe="float32")
    before = path.read_bytes()
    with pytest.raises(InputError, match="exists already; pass --overwrite"):
        export_tflite(classifier(), path, recipe="dynamic_int8")
    assert path.read_bytes() == before
    export_tflite(classifier(), path, recipe="dynamic_int8", overwrite=True)
    assert len(path.read_bytes()) < len(before)
    assert list(path.parent.iterdir()) == [path]


def test_the_same_model_gives_the_same_bytes(tmp_path):
    export_tflite(new_classifier(), tmp_path / "again.tflite", recipe="dynamic_int8")
    content = exported("all", "dynamic_int8", "loop").read_bytes()
    assert (tmp_path / "again.tflite").read_bytes() == content
    code = (
        "import hashlib; from tiny_exports import exported\n"
        "print(hashlib.sha256(exported('all', 'dynamic_int8', 'loop').read_bytes()).hexdigest())"
    )
    other_process = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'tests')!r}]\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert other_process.stdout.split()[-1] == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_exports_as_its_float32_copy(tmp_path, dtype):
    import keras

    keras.config.set_dtype_policy(dtype)
    try:
        task = new_classifier()  # the same weights as classifier()
        assert task.backbone.policy.compute_dtype != "float32"
        export_tflite(task, tmp_path / "m.tflite", recipe="float32")
        assert task.backbone.policy.compute_dtype != "float32"  # left as it was
    finally:
        keras.config.set_dtype_policy("float32")
    assert (tmp_path / "m.tflite").read_bytes() == exported("all", "float32", "loop").read_bytes()


def test_every_structure_is_tried():
    assert {name for name, *_ in FILES} == set(CONFIGS)
