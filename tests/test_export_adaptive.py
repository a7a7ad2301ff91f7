"""`export.adaptive`: files whose depth is chosen when they run make the Keras model's decisions."""

import dataclasses
import functools
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from small_vocabularies import sentencepiece_vocabulary
from tiny_exports import BASE, CONFIGS, LABELS, MAX_LENGTH, random_inputs
from tiny_models import randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.data.conll import TaggedExample
from albert_tf.data.squad import QuestionExample
from albert_tf.errors import InputError
from albert_tf.inference.depth import DepthChoice, ExitSettings
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.tasks.question_answering import AlbertQuestionAnswerer
from albert_tf.tasks.regression import AlbertTextRegressor
from albert_tf.tasks.similarity import AlbertTextEmbedder
from albert_tf.tasks.token_classification import AlbertTokenClassifier
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from export.metadata import append_files, read_files
from export.runtime import TFLiteRunner
from export.saved_model import export_saved_model
from export.tflite import export_tflite

DEEP = dataclasses.replace(BASE, num_layers=5)
ROWS = [random_inputs(length, seed=length) for length in range(2, 14)]
FOLDER = tempfile.TemporaryDirectory(prefix="adaptive.")
# Model, exits, config, seed. Groups and layers of their own are several loops.
MODELS: dict[str, tuple[Any, dict[str, Any], Any, int]] = {
    "patience": (AlbertTextClassifier, {"labels": LABELS, "exits": {"rule": "patience"}}, DEEP, 1),
    "confidence, own heads": (
        AlbertTextClassifier,
        {"labels": LABELS, "exits": {"rule": "confidence", "heads": "own"}, "temperature": 1.5},
        DEEP,
        2,
    ),
    "entropy, groups": (
        AlbertTextClassifier,
        {"labels": LABELS[:2], "exits": {"rule": "entropy"}},
        CONFIGS["groups 2, inner 2, erf"],
        3,
    ),
    "regression": (AlbertTextRegressor, {"exits": {"rule": "tolerance"}}, DEEP, 4),
    "similarity": (AlbertTextEmbedder, {"exits": {"rule": "tolerance"}}, dataclasses.replace(DEEP, sharing="none"), 5),
    "tagging, own heads": (
        AlbertTokenClassifier,
        {"labels": LABELS, "exits": {"rule": "confidence", "heads": "own"}},
        DEEP,
        6,
    ),
    "tagging, groups": (
        AlbertTokenClassifier,
        {"labels": LABELS, "exits": {"rule": "entropy"}},
        CONFIGS["groups 2, inner 2, erf"],
        7,
    ),
    "answers, own heads": (AlbertQuestionAnswerer, {"exits": {"rule": "confidence", "heads": "own"}}, DEEP, 8),
    "answers, patience": (AlbertQuestionAnswerer, {"exits": {"rule": "patience", "patience": 1}}, DEEP, 9),
    "squad2": (AlbertQuestionAnswerer, {"head": "squad2", "exits": {"rule": "confidence"}}, DEEP, 10),
}
# What differs by rounding alone may fall on the other side of a threshold.
ROUNDING = 1e-5


@functools.cache
def model(name: str) -> Any:
    """A model with random weights; what is chosen of its depth must be given back."""
    model_class, options, config, seed = MODELS[name]
    return new_model(model_class, options, config, seed)


def new_model(model_class: Any, options: dict[str, Any], config: Any = DEEP, seed: int = 0) -> Any:
    tokenizer = AlbertTokenizer(sentencepiece_vocabulary(), max_length=MAX_LENGTH)
    task = model_class(AlbertBackbone(config), tokenizer, **options)
    randomize(task, seed, 0.15)
    return task


def plain_model() -> Any:
    return new_model(AlbertTextClassifier, {"labels": LABELS})


@functools.cache
def exported(name: str, recipe: str = "float32") -> TFLiteRunner:
    path = Path(FOLDER.name) / f"{name}-{recipe}.tflite"
    # Random weights of a regressor are worse to round than trained ones: this is about where files exit.
    export_tflite(model(name), path, recipe=recipe, measure=False, force=recipe != "float32")
    return TFLiteRunner(path)


def run(runner: Any, rows: Any, choice: DepthChoice) -> list[Any]:
    runner.choose_depth(choice)
    try:
        found: list[Any] = runner.run_rows(rows)
        return found
    finally:
        runner.choose_depth(DepthChoice())


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    seeds=st.lists(st.integers(0, 10_000), min_size=1, max_size=4),
    threshold=st.one_of(st.none(), st.sampled_from([0.0, 1.0]), st.floats(0.0, 1.0, width=32)),
    patience=st.one_of(st.none(), st.integers(1, 7)),
    num_passes=st.one_of(st.none(), st.integers(1, 4)),
)
def test_a_float_file_exits_where_keras_does(
    name: str, seeds: list[int], threshold: float | None, patience: int | None, num_passes: int | None
) -> None:
    rows = [random_inputs(1 + seed % MAX_LENGTH, seed) for seed in seeds]
    choice = DepthChoice(num_passes, patience, threshold)
    keras, file = run(model(name), rows, choice), run(exported(name), rows, choice)
    near = run(model(name), rows, _moved(model(name), choice, -ROUNDING))
    far = run(model(name), rows, _moved(model(name), choice, ROUNDING))
    for ours, theirs, low, high in zip(file, keras, near, far, strict=True):
        if int(low["depth"]) != int(high["depth"]):
            continue
        assert int(ours["depth"]) == int(theirs["depth"])
        for output, value in theirs.items():
            np.testing.assert_allclose(ours[output], value, rtol=1e-3, atol=1e-4)


def _moved(task: Any, choice: DepthChoice, by: float) -> DepthChoice:
    threshold = task.exits.threshold if choice.threshold is None else choice.threshold
    return dataclasses.replace(choice, threshold=max(0.0, threshold + by))


@pytest.mark.parametrize("name", MODELS)
def test_an_int8_file_exits_where_keras_does_or_by_what_its_numbers_say(name: str) -> None:
    file, keras = exported(name, "dynamic_int8"), model(name)
    choices = [DepthChoice(threshold=threshold) for threshold in (0.005, 0.02, 0.1, 0.4, 0.6, 0.8, 0.95)]
    depths = [
        [int(outputs["depth"]) for choice in choices for outputs in run(runner, ROWS, choice)]
        for runner in (file, keras)
    ]
    assert len(set(depths[1])) > 1 and np.mean(np.equal(*depths)) >= 0.85, depths


def test_the_report_and_the_default_are_those_of_the_model(tmp_path: Path) -> None:
    task = model("patience")
    report = export_tflite(task, tmp_path / "a.tflite", recipe="float32", measure=True)
    assert report.depth is not None and report.depth.same_depth == 1.0 and report.depth.num_passes == 5
    assert report.comparison.max_difference < 1e-4 and 1 < report.depth.file_mean_depth <= 5
    runner = TFLiteRunner(tmp_path / "a.tflite")
    assert runner.adaptive == "exits" and runner.task_settings["exits"]["patience"] == 2
    assert runner(["the old mill"])[0].label == task.classify(["the old mill"])[0].label

    whole = export_tflite(task, tmp_path / "b.tflite", recipe="float32", adaptive="none", measure=False)
    assert whole.depth is None and TFLiteRunner(tmp_path / "b.tflite").adaptive == "none"
    with pytest.raises(InputError, match="does not exit early"):
        TFLiteRunner(tmp_path / "b.tflite").choose_depth(DepthChoice(patience=1))

    exits = ExitSettings("confidence", 1, 0.5)
    export_tflite(task, tmp_path / "c.tflite", recipe="float32", exits=exits, measure=False)
    assert TFLiteRunner(tmp_path / "c.tflite").task_settings["exits"]["rule"] == "confidence"
    assert task.exits.rule == "patience" and task.depth == DepthChoice()


@pytest.mark.parametrize("recipe", ["float32", "dynamic_int8"])
def test_a_depth_costs_no_bytes(recipe: str, tmp_path: Path) -> None:
    sizes = {}
    for adaptive, exits in (("none", None), ("passes", None), ("exits", ExitSettings("confidence"))):
        path = tmp_path / f"{adaptive}.tflite"
        export_tflite(plain_model(), path, recipe=recipe, adaptive=adaptive, exits=exits, measure=False)
        sizes[adaptive] = json.loads(read_files(path)["albert_tf.json"])["model_bytes"]
    assert sizes["passes"] - sizes["none"] < 1500
    assert sizes["exits"] - sizes["none"] < 5000
    assert sizes["none"] == min(sizes.values())


def test_a_plain_model_is_written_as_ever(tmp_path: Path) -> None:
    export_tflite(plain_model(), tmp_path / "a.tflite", measure=False)
    export_tflite(plain_model(), tmp_path / "b.tflite", adaptive="none", measure=False)
    assert (tmp_path / "a.tflite").read_bytes() == (tmp_path / "b.tflite").read_bytes()
    assert "adaptive" not in json.loads(read_files(tmp_path / "a.tflite")["albert_tf.json"])


@pytest.mark.parametrize("length", [16, (8, 16), None])
def test_passes_of_a_file_are_those_of_keras(length: Any, tmp_path: Path) -> None:
    task = plain_model()
    export_tflite(task, tmp_path / "a.tflite", recipe="float32", adaptive="passes", length=length, measure=False)
    runner = TFLiteRunner(tmp_path / "a.tflite")
    for passes in (None, 1, 3, 5):
        ours, theirs = (run(one, ROWS, DepthChoice(passes)) for one in (runner, task))
        for mine, wanted in zip(ours, theirs, strict=True):
            assert mine.keys() == {"probabilities"}
            np.testing.assert_allclose(mine["probabilities"], wanted["probabilities"], rtol=1e-3, atol=1e-4)
    with pytest.raises(InputError, match="expected 1 to 5, the passes of this model; got 6"):
        runner.choose_depth(DepthChoice(6))


@pytest.mark.parametrize("name", ["tagging, own heads", "answers, own heads", "squad2"])
def test_padding_of_a_fixed_length_is_not_asked(name: str, tmp_path: Path) -> None:
    task = model(name)
    export_tflite(task, tmp_path / "a.tflite", recipe="float32", length=(8, 16), measure=False)
    runner, found = TFLiteRunner(tmp_path / "a.tflite"), set()
    for choice in (DepthChoice(threshold=0.4), DepthChoice(threshold=0.6), DepthChoice(patience=2, threshold=0.5)):
        for mine, wanted in zip(*(run(one, ROWS, choice) for one in (runner, task)), strict=True):
            found.add(int(wanted["depth"]))
            assert int(mine.pop("depth")) == int(wanted["depth"])
            for output, values in mine.items():
                np.testing.assert_allclose(values, wanted[output], rtol=1e-3, atol=1e-3)
    assert len(found) > 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "unrolled"}, "unrolled files have every pass written out.*--adaptive none"),
        ({"runtime": "mediapipe"}, "unrolled files have every pass written out"),
        ({"runtime": "task-library"}, "knows no input or output for the depth"),
        ({"recipe": "int8", "calibration": ["a"], "length": 16}, "unrolled files have every pass written out"),
        ({"text_input": True}, "a signature for strings has no input for the depth"),
        ({"adaptive": "some"}, "adaptive: expected one of none, passes, exits; got 'some'"),
        ({"exits": ExitSettings("confidence", heads="own")}, "was trained with shared, got own"),
        ({"exits": ExitSettings("tolerance")}, "expected one of patience, confidence, entropy for this task"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        export_tflite(model("patience"), tmp_path / "a.tflite", **options)
    assert not list(tmp_path.iterdir())


def test_exits_of_a_model_without_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="this model has no early exits"):
        export_tflite(plain_model(), tmp_path / "a.tflite", adaptive="exits")
    with pytest.raises(InputError, match="this model has no early exits"):
        export_saved_model(plain_model(), tmp_path / "a", adaptive="exits")


def test_settings_that_are_not_the_models_are_refused(tmp_path: Path) -> None:
    exported("patience")
    path = Path(FOLDER.name) / "patience-float32.tflite"
    files = read_files(path)
    own = json.loads(files["albert_tf.json"])
    content = path.read_bytes()[: own["model_bytes"]]
    for adaptive, message in (("passes", "its settings ask for inputs"), ("depth", "adaptive: expected one of")):
        changed = files | {"albert_tf.json": json.dumps(own | {"adaptive": adaptive}).encode()}
        (tmp_path / "a.tflite").write_bytes(append_files(content, changed))
        with pytest.raises(InputError, match=message):
            TFLiteRunner(tmp_path / "a.tflite")


@pytest.mark.parametrize("name", ["confidence, own heads", "regression", "similarity"])
def test_a_saved_model_exits_where_keras_does(name: str, tmp_path: Path) -> None:
    task = model(name)
    report = export_saved_model(task, tmp_path / "served")
    assert {"serving_default", "texts_at_depth", "tokens_at_depth"} <= set(report.signatures)
    assert report.agreement == 1.0 and task.depth == DepthChoice()  # the check compares depths too
    loaded = tf.saved_model.load(str(tmp_path / "served" / "1"))
    texts = ["the old mill", "by the river", "the wheel the people and the old mill by the river", "12"]
    rows = task.encode(texts)
    own = [int(outputs["depth"]) for outputs in task.run_rows(rows)]
    assert loaded.signatures["serving_default"](texts=tf.constant(texts))["depth"].numpy().tolist() == own
    for choice in (DepthChoice(2), DepthChoice(patience=2, threshold=0.3)):
        numbers = {one: tf.constant(value[0]) for one, value in choice.inputs("exits").items()}
        found = loaded.signatures["texts_at_depth"](texts=tf.constant(texts), **numbers)
        assert found["depth"].numpy().tolist() == [int(one["depth"]) for one in run(task, rows, choice)]


@pytest.mark.parametrize("name", ["tagging, own heads", "answers, own heads", "squad2"])
def test_each_part_of_a_served_text_exits_by_itself(name: str, tmp_path: Path) -> None:
    task = model(name)
    report = export_saved_model(task, tmp_path / "served", exits=dataclasses.replace(task.exits, threshold=0.55))
    asked = "texts_at_depth" if task.task == "tagging" else "questions_at_depth"
    assert {"serving_default", asked, "tokens_at_depth"} <= set(report.signatures)
    assert report.agreement >= 0.99 and task.depth == DepthChoice()  # the check compares depths too
    loaded = tf.saved_model.load(str(tmp_path / "served" / "1"))
    texts = ["the old mill", "by the river " * 12, ""]
    inputs = {"texts": texts} if task.task == "tagging" else {"questions": ["the mill"] * 3, "passages": texts}
    tensors = {field: tf.constant(values) for field, values in inputs.items()}
    choice = DepthChoice(patience=1, threshold=0.5)
    numbers = {one: tf.constant(value[0]) for one, value in choice.inputs("exits").items()}
    found = loaded.signatures[asked](**tensors, **numbers)["depth"].numpy()
    pipeline = pipeline_of(task)
    examples = {
        "tagging": lambda: [TaggedExample(tuple(text.split())) for text in texts],
        "question-answering": lambda: [QuestionExample("", text, "the mill") for text in texts],
    }[task.task]()
    parts = [[int(row["depth"]) for row in run(task, pipeline.prepare([one]).rows, choice)] for one in examples]
    if task.task == "tagging":  # there are no words
        parts[2] = []
    assert found.dtype == np.int32 and found.shape == (3, max(map(len, parts)))
    assert [[depth for depth in row if depth] for row in found.tolist()] == parts
    assert len(parts[1]) > 1

    export_saved_model(task, tmp_path / "passes", adaptive="passes")
    loaded = tf.saved_model.load(str(tmp_path / "passes" / "1"))
    assert "depth" not in loaded.signatures[asked](**tensors, num_passes=tf.constant(2))


def test_a_saved_model_with_passes(tmp_path: Path) -> None:
    task = plain_model()
    export_saved_model(task, tmp_path / "served", adaptive="passes")
    loaded = tf.saved_model.load(str(tmp_path / "served" / "1"))
    assert loaded.signatures.keys() >= {"texts_at_depth", "pairs_at_depth", "tokens_at_depth"}
    texts = ["the old mill", "by the river"]
    wanted = run(task, task.encode(texts), DepthChoice(2))
    found = loaded.signatures["texts_at_depth"](texts=tf.constant(texts), num_passes=tf.constant(2))
    np.testing.assert_allclose(found["probabilities"], [row["probabilities"] for row in wanted], rtol=1e-4, atol=1e-5)
    export_saved_model(model("regression"), tmp_path / "passes", adaptive="passes")
    export_saved_model(model("regression"), tmp_path / "whole", adaptive="none")
    whole = tf.saved_model.load(str(tmp_path / "whole" / "1"))
    assert "tokens_at_depth" not in whole.signatures and "depth" not in whole.signatures["tokens"].structured_outputs
