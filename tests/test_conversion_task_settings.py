"""What a form has no place for of a task is told, and what comes back from it is a model that runs."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_vocabularies import sentencepiece_vocabulary
from tiny_models import TINY

from albert_tf.conversion.checkpoint import Weights, checked_task, settings_in_weights
from albert_tf.conversion.huggingface import write_huggingface
from albert_tf.conversion.keras_hub import write_keras_hub
from albert_tf.conversion.model_garden import write_model_garden
from albert_tf.conversion.tf1 import write_tf1
from albert_tf.errors import InputError
from albert_tf.parameters import backbone_weight_shapes
from albert_tf.presets import load_checkpoint, read_task_settings, save_preset
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.tasks.trained import load_task
from albert_tf.tokenization.tokenizer import AlbertTokenizer

CONFIG = dataclasses.replace(TINY, vocabulary_size=sentencepiece_vocabulary().size)
WRITERS = [write_huggingface, write_keras_hub, write_tf1, write_model_garden]
LABELS = ["no", "yes", "perhaps"]


def weights_with(head: str | None = None, outputs: int = 0) -> Weights:
    shapes = backbone_weight_shapes(CONFIG)
    if head is not None:
        shapes |= {f"{head}/kernel": (CONFIG.hidden_dim, outputs), f"{head}/bias": (outputs,)}
    random = np.random.default_rng(0)
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def task_file(task: str, settings: dict[str, Any]) -> dict[str, str]:
    return {"task.json": json.dumps({"task": task, "settings": settings})}


def tokenizer() -> AlbertTokenizer:
    return AlbertTokenizer(sentencepiece_vocabulary(), 9)


def test_nothing_is_told_of_what_is_kept_or_as_usual() -> None:
    assert settings_in_weights({}, None) == ({}, [])
    settings: dict[str, Any] = {"labels": LABELS, "classifier_dropout": 0.1, "class_weights": None, "normalize": False}
    assert settings_in_weights({}, {"task": "t", "settings": settings | {"scale": 2.0}}, ("labels",)) == (
        {},
        ["settings of the task are left out: normalize = false, scale = 2.0"],
    )
    assert settings_in_weights({}, {"task": "t", "settings": {"labels": [], "classifier_dropout": 0.2}}) == (
        {},
        ["settings of the task are left out: classifier_dropout = 0.2"],
    )


@pytest.mark.parametrize("write", WRITERS)
def test_a_temperature_is_in_the_head(tmp_path: Path, write: Any) -> None:
    """What is written and read back has the probabilities of the calibrated classifier, without a temperature."""
    weights = weights_with("classifier", 3)
    settings = {"labels": LABELS, "temperature": 1.5}
    save_preset(tmp_path / "ours", CONFIG, weights, tokenizer(), extra_files=task_file("classification", settings))
    ours = AlbertTextClassifier.from_pretrained(tmp_path / "ours")
    task = {"task": "classification", "settings": settings}
    notes = write(tmp_path / "theirs", CONFIG, weights, tokenizer(), task=task)
    assert "the temperature 1.5 is in the head: its weights are divided by it" in notes
    assert not any("left out" in note and "temperature" in note for note in notes)
    if write is write_model_garden:
        read = load_checkpoint(tmp_path / "theirs", config=tmp_path / "theirs" / "albert_config.json").weights
    else:
        read = load_checkpoint(tmp_path / "theirs").weights
    for name, weight in weights.items():
        wanted = weight / np.float32(1.5) if name.startswith("classifier/") else weight
        np.testing.assert_array_equal(read[name], wanted, err_msg=name)
    # in place: `ours` keeps its temperature, and its logits over it are those of the weights that were written
    texts = ["hello world", "a b c"]
    np.testing.assert_array_equal(weights["classifier/kernel"], np.asarray(ours.classifier.kernel))
    probabilities = ours.predict_probabilities(texts)
    ours.classifier.set_weights([read["classifier/kernel"], read["classifier/bias"]])
    ours.temperature = 1.0
    del ours._infer
    np.testing.assert_allclose(ours.predict_probabilities(texts), probabilities, rtol=0, atol=1e-6)


@pytest.mark.parametrize("temperature", ["2", True, 0.0, -1.0, float("inf"), float("nan"), None])
def test_a_temperature_that_is_none(temperature: Any) -> None:
    with pytest.raises(InputError, match="here: temperature: expected a number above 0, found "):
        checked_task({"task": "classification", "settings": {"temperature": temperature}}, "here")


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(
    ("task", "head", "outputs", "settings", "told"),
    [
        ("classification", "classifier", 3, {"labels": LABELS, "label_smoothing": 0.1}, "label_smoothing = 0.1"),
        ("question-answering", "question_answering", 2, {"head": "span", "doc_stride": 64}, "doc_stride = 64"),
        ("similarity", None, 0, {"pooling": "mean", "labels": []}, 'pooling = "mean"'),
    ],
)
def test_every_form_tells(
    tmp_path: Path, write: Any, task: str, head: str | None, outputs: int, settings: dict[str, Any], told: str
) -> None:
    weights = weights_with(head, outputs)
    notes = write(tmp_path / "out", CONFIG, weights, None, task={"task": task, "settings": settings})
    assert f"settings of the task are left out: {told}" in notes


def test_a_threshold_is_told(tmp_path: Path) -> None:
    task = {"task": "multi-label", "settings": {"labels": LABELS, "threshold": 0.3}}
    notes = write_huggingface(tmp_path / "out", CONFIG, weights_with("multi_label", 3), None, task=task)
    assert notes == ["settings of the task are left out: threshold = 0.3"]


def test_a_regression_comes_back_from_kerashub(tmp_path: Path) -> None:
    """Its classifier with one output, which is no softmax."""
    weights = weights_with("classifier", 1)
    task = {"task": "regression", "settings": {"classifier_dropout": 0.2}}
    notes = write_keras_hub(tmp_path / "out", CONFIG, weights, tokenizer(), task=task)
    assert not any("labels" in note for note in notes)
    read = load_checkpoint(tmp_path / "out")
    assert read.task == task
    assert read.weights.keys() == weights.keys()
    model = load_task(tmp_path / "out")
    assert model.task == "regression" and not model.head_is_new
    saved = json.loads((tmp_path / "out" / "task.json").read_text())
    saved["config"]["activation"] = "softmax"
    (tmp_path / "out" / "task.json").write_text(json.dumps(saved))
    with pytest.raises(InputError, match=r"task\.json: a softmax over num_classes = 1 is 1 whatever the text"):
        load_checkpoint(tmp_path / "out")


def test_a_task_of_kerashub_runs(tmp_path: Path) -> None:
    """Its task.json is not of our form."""
    task = {"task": "classification", "settings": {"labels": LABELS}}
    notes = write_keras_hub(tmp_path / "out", CONFIG, weights_with("classifier", 3), tokenizer(), task=task)
    assert "the labels' names are left out: KerasHub has no place for them" in notes
    assert read_task_settings(tmp_path / "out") is None
    model = load_task(tmp_path / "out")
    assert model.settings()["labels"] == ["LABEL_0", "LABEL_1", "LABEL_2"] and not model.head_is_new


def test_settings_of_no_use_are_told_with_the_file(tmp_path: Path) -> None:
    """In a config of Hugging Face that transformers takes: labels twice."""
    write_huggingface(tmp_path / "out", CONFIG, weights_with("classifier", 3), tokenizer())
    fields = json.loads((tmp_path / "out" / "config.json").read_text())
    fields["id2label"] = {"0": "a", "1": "a", "2": "b"}
    (tmp_path / "out" / "config.json").write_text(json.dumps(fields))
    with pytest.raises(InputError, match="out: labels: "):
        load_task(tmp_path / "out")
