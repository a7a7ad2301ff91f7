"""Files for MediaPipe Tasks and Task Library: what is in them, and what is refused before anything is converted."""

import dataclasses

import numpy as np
import pytest
from small_vocabularies import sentencepiece_vocabulary, wordpiece_vocabulary
from tiny_exports import BASE
from tiny_models import randomize
from tiny_tasks import tiny_task

from albert_tf.backbone import AlbertBackbone
from albert_tf.errors import InputError
from albert_tf.tasks.question_answering import AlbertQuestionAnswerer
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from export.device_runtimes import RUNTIMES, checked_form, device_files, runtime_length, runtime_recipe, with_metadata
from export.inspection import inspect_file
from export.metadata import read_files, read_settings
from export.quantization import RECIPES
from export.runtime import TFLiteRunner
from export.tflite import export_tflite

CLASSES = [(runtime, task, served.name) for runtime in RUNTIMES for task, served in RUNTIMES[runtime].classes.items()]


def answerer(max_length=384, **settings):
    config = dataclasses.replace(BASE, max_sequence_length=512)
    tokenizer = AlbertTokenizer(sentencepiece_vocabulary(), max_length=max_length)
    task = AlbertQuestionAnswerer(AlbertBackbone(config, pooler=False), tokenizer, **settings)
    randomize(task)
    return task


def verdict(path, runtime, name):
    part = {"mediapipe": "MediaPipe", "task-library": "Task Library"}[runtime]
    [found] = [v for v in inspect_file(path).runtimes if part in v.runtime and v.runtime.endswith(name)]
    return found


def test_what_there_is():
    assert [(runtime, task, name) for runtime, task, name in CLASSES if "classif" not in name.lower()] == [
        ("mediapipe", "similarity", "TextEmbedder"),
        ("task-library", "similarity", "TextEmbedder"),
        ("task-library", "question-answering", "BertQuestionAnswerer"),
    ]
    assert {name for _, task, name in CLASSES if task == "multi-label"} == {"TextClassifier", "BertNLClassifier"}


@pytest.mark.parametrize(("runtime", "task", "name"), CLASSES)
def test_inspect_says_that_the_class_takes_it(runtime, task, name, tmp_path):
    path = tmp_path / "m.tflite"
    model = answerer() if task == "question-answering" else tiny_task(task)
    export_tflite(model, path, recipe="float32", runtime=runtime, measure=False)
    found = inspect_file(path)
    assert found.problems == ()
    assert verdict(path, runtime, name).takes == "yes", verdict(path, runtime, name)
    assert (found.settings["runtime"], found.settings["form"]) == (runtime, RUNTIMES[runtime].form)
    labels = [[file.name for file in tensor.files] for tensor in found.metadata.outputs]
    assert labels == ([["labels.txt"]] if "lassifier" in name else [[]] * len(labels))
    assert ("labels.txt" in found.files) == ("lassifier" in name)
    [unit] = found.metadata.input_process_units
    assert [file.name for file in unit.files] == ["device.spm"] and "device.spm" in found.files


@pytest.mark.parametrize("recipe", ["float16", "dynamic_int8", "weight_only_int8"])
def test_recipes_in_operators_of_task_library(recipe, tmp_path):
    for runtime in ("litert", "task-library"):
        options = {"recipe": recipe, "runtime": runtime, "measure": False, "force": True}  # random weights lose much
        export_tflite(tiny_task("similarity"), tmp_path / runtime, **options)
    plain, old = (TFLiteRunner(tmp_path / runtime) for runtime in ("litert", "task-library"))
    assert verdict(old.path, "task-library", "TextEmbedder").takes == "yes"
    assert old.settings["recipe"]["scales_apart"] == ("int8" in recipe)
    assert not plain.settings["recipe"]["scales_apart"]
    # Their tables are rounded otherwise (measured 0.019); test_export_weight_editor compares the operators on equal ones.
    tolerance = 0.03 if "int8" in recipe else 1e-5
    np.testing.assert_allclose(old(["the mill"])[0], plain(["the mill"])[0], rtol=0, atol=tolerance)


def test_a_word_piece_vocabulary_is_named_as_it_is(tmp_path):
    vocabulary = wordpiece_vocabulary()
    config = dataclasses.replace(BASE, vocabulary_size=vocabulary.size)
    task = type(tiny_task("similarity"))(AlbertBackbone(config), AlbertTokenizer(vocabulary, max_length=24))
    randomize(task)
    export_tflite(task, tmp_path / "m.tflite", recipe="float32", runtime="task-library", measure=False)
    [unit] = inspect_file(tmp_path / "m.tflite").metadata.input_process_units
    assert (unit.kind, [file.name for file in unit.files]) == ("BERT tokenizer", ["vocab.txt"])
    assert device_files(task, "task-library") == {}


def test_answers_are_not_looked_for_in_padding(tmp_path):
    export_tflite(answerer(), tmp_path / "m.tflite", recipe="float32", runtime="task-library", measure=False)
    runner = TFLiteRunner(tmp_path / "m.tflite")
    assert (runner.length, read_settings(read_files(runner.path), "m")["form"]) == (384, "loop")
    from ai_edge_litert.interpreter import Interpreter

    model = Interpreter(str(runner.path)).get_signature_runner()
    ids, segments = np.full((1, 384), 5, np.int32), np.zeros((1, 384), np.int32)
    is_token = np.arange(384)[None] < 7
    outputs = model(token_ids=ids, segment_ids=segments, padding_mask=is_token.astype(np.int32))
    for name in ("start_logits", "end_logits"):
        assert outputs[name][~is_token].max() < -1e8
        assert np.abs(outputs[name][is_token]).max() < 100


def test_litert_gets_nothing():
    task, model = tiny_task("similarity"), b"a model"
    assert with_metadata(task, model, "litert") is model
    assert device_files(task, "litert") == {}
    assert runtime_length(task, 7, "litert") == 7
    assert runtime_recipe(RECIPES["int4"], "litert") is RECIPES["int4"]


def test_lengths():
    task = answerer()
    for length in (None, 384, [384], (384,)):
        assert runtime_length(task, length, "task-library") == 384
    assert runtime_length(tiny_task("similarity"), None, "task-library") is None
    with pytest.raises(InputError, match="length: BertQuestionAnswerer writes 384 tokens; expected 384, got 128"):
        runtime_length(task, 128, "task-library")
    with pytest.raises(InputError, match="writes 384 tokens, this model takes 200; fine-tune with --max-length 384"):
        runtime_length(answerer(200), None, "task-library")


@pytest.mark.parametrize(
    ("recipe", "reason"),
    [
        ("int4", "knows no integers of 4 bits, so int4 cannot be had for it; expected float32, float16, dynamic_int8"),
        ("int4_int8_table", "knows no integers of 4 bits, so int4_int8_table"),
        ("int8", "takes no square roots of 16-bit integers, so int8 cannot"),
        ("int16x8", "takes no square roots of 16-bit integers, so int16x8 cannot"),
    ],
)
def test_recipes_that_task_library_does_not_run(recipe, reason):
    assert runtime_recipe(RECIPES[recipe], "mediapipe") is RECIPES[recipe]
    with pytest.raises(InputError, match=f"recipe: TFLite Task Library 0.4.4 {reason}"):
        runtime_recipe(RECIPES[recipe], "task-library")


@pytest.mark.parametrize(
    ("runtime", "task", "reason"),
    [
        (
            "mediapipe",
            lambda: tiny_task("tagging"),
            "MediaPipe Tasks has no class for tagging: expected classification ",
        ),
        ("mediapipe", answerer, r"no class for question-answering: .*similarity \(TextEmbedder\); or use litert"),
        ("task-library", lambda: tiny_task("regression"), r"no class for regression: .*question-answering \(BertQ"),
        ("task-library", lambda: answerer(head="squad2"), "the head squad2 has ends that depend on the start"),
        ("phone", answerer, "runtime: expected one of litert, mediapipe, task-library; got 'phone'"),
    ],
)
def test_tasks_that_a_runtime_has_no_class_for(runtime, task, reason, tmp_path):
    with pytest.raises(InputError, match=reason):
        export_tflite(task(), tmp_path / "m.tflite", recipe="float32", runtime=runtime)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("runtime", ["mediapipe", "task-library"])
def test_a_cased_vocabulary(runtime):
    task = answerer() if runtime == "task-library" else tiny_task("similarity")
    cased = AlbertTokenizer(sentencepiece_vocabulary(lower=False), max_length=24)
    task = type(task)(task.backbone, cased)
    with pytest.raises(InputError, match=f"{RUNTIMES[runtime].title} lower-cases every text, this model's tokenizer"):
        checked_form(task, None, runtime, RECIPES["float32"])


def test_loops():
    task = tiny_task("similarity")
    assert checked_form(task, "unrolled", "task-library", RECIPES["float32"]) == "unrolled"
    with pytest.raises(InputError, match="MediaPipe Tasks takes only files with one subgraph: expected unrolled"):
        checked_form(task, "loop", "mediapipe", RECIPES["float32"])
