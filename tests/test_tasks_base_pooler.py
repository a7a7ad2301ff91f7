"""Checkpoints without a pooler: tasks that need none take them as they are, others make a new one and say so."""

import dataclasses
import logging
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from peer_models import random_weights
from small_vocabularies import sentencepiece_vocabulary
from tiny_models import TINY, example_inputs

from albert_tf.backbone import AlbertBackbone
from albert_tf.conversion.huggingface import write_huggingface
from albert_tf.errors import InputError
from albert_tf.presets import load_checkpoint
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.tasks.multiple_choice import AlbertMultipleChoice
from albert_tf.tasks.question_answering import AlbertQuestionAnswerer
from albert_tf.tasks.regression import AlbertTextRegressor
from albert_tf.tasks.similarity import AlbertTextEmbedder
from albert_tf.tasks.token_classification import AlbertTokenClassifier
from albert_tf.tasks.trained import load_task
from albert_tf.tokenization.tokenizer import AlbertTokenizer

CONFIG = dataclasses.replace(TINY, vocabulary_size=sentencepiece_vocabulary().size)
LABELS: dict[str, Any] = {"labels": ["O", "B-X"]}


def saved(folder: Path, head: str, *, pooler: bool = False) -> Path:
    """What transformers saves of AlbertForMaskedLM, AlbertForTokenClassification or AlbertForQuestionAnswering."""
    weights = random_weights(CONFIG, heads=True)
    kept = ("embeddings", "encoder", *(["pooler"] if pooler else []), *(["masked_lm"] if head == "masked_lm" else []))
    weights = {name: weight for name, weight in weights.items() if name.startswith(kept)}
    if head != "masked_lm":
        random = np.random.default_rng(3)
        weights |= {
            f"{head}/kernel": random.standard_normal((16, 2), np.float32),
            f"{head}/bias": np.ones(2, np.float32),
        }
    write_huggingface(folder, CONFIG, weights, AlbertTokenizer(sentencepiece_vocabulary(), 12))
    return folder


@pytest.mark.parametrize("head", ["masked_lm", "token_classification", "question_answering"])
@pytest.mark.parametrize(
    ("model_class", "settings"),
    [
        (AlbertTokenClassifier, LABELS),
        (AlbertQuestionAnswerer, {"head": "span"}),
        (AlbertTextEmbedder, {"pooling": "cls"}),
    ],
)
def test_a_task_without_pooled_output(
    head: str, model_class: type[AlbertTask], settings: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = saved(tmp_path / "source", head)
    weights = load_checkpoint(source).weights
    model = model_class.from_pretrained(source, **settings)
    assert model.backbone.pooler is None and not model.pooler_is_new and caplog.records == []
    for name, variable in model.named_weights().items():
        if name.startswith(("embeddings", "encoder")):
            np.testing.assert_array_equal(variable, weights[name], name)
    own = {name for name in model.named_weights() if not name.startswith(("embeddings", "encoder"))}
    assert model.head_is_new is not (bool(own) and own <= weights.keys()) or not own


def test_a_fine_tuned_head_comes_along(tmp_path: Path) -> None:
    source = saved(tmp_path / "source", "token_classification")
    model = load_task(source)
    assert isinstance(model, AlbertTokenClassifier) and not model.head_is_new and model.backbone.pooler is None
    np.testing.assert_array_equal(model.token_classification.bias, np.ones(2))
    model.save_pretrained(tmp_path / "again")
    assert AlbertTokenClassifier.from_pretrained(tmp_path / "again").backbone.pooler is None


def test_a_pooler_that_the_task_does_not_use_is_left_aside(tmp_path: Path) -> None:
    source = saved(tmp_path / "source", "token_classification", pooler=True)
    model = AlbertTokenClassifier.from_pretrained(source)
    assert model.backbone.pooler is None and not model.head_is_new
    without = AlbertTokenClassifier.from_pretrained(saved(tmp_path / "without", "token_classification"))
    assert model.named_weights().keys() == without.named_weights().keys()


@pytest.mark.parametrize(
    ("model_class", "settings"),
    [
        (AlbertTextClassifier, LABELS),
        (AlbertTextRegressor, {"classifier_dropout": 0.0}),
        (AlbertMultipleChoice, {"name": "m"}),
    ],
)
def test_a_task_on_the_pooled_output(
    model_class: type[AlbertTask], settings: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The new pooler is as an initialiser makes it, is told, and repeats with the seed."""
    caplog.set_level(logging.INFO)
    source = saved(tmp_path / "source", "masked_lm")
    models = []
    for seed in (1, 1, 2):
        keras.utils.set_random_seed(seed)
        models.append(model_class.from_pretrained(source, **settings))
    model = models[0]
    assert model.pooler_is_new and model.head_is_new
    (told, *_) = caplog.messages
    assert f"{source} has no pooler" in told and caplog.records[0].levelno == logging.INFO  # the head is new too
    kernels = [np.asarray(each.named_weights()["pooler/kernel"]) for each in models]
    assert 0.01 < kernels[0].std() < 0.03 and np.abs(kernels[0]).max() <= 0.0401
    np.testing.assert_array_equal(kernels[0], kernels[1])
    assert not np.array_equal(kernels[0], kernels[2])
    np.testing.assert_array_equal(model.named_weights()["pooler/bias"], np.zeros(16))
    assert np.isfinite(np.asarray(model(example_inputs()))).all()
    caplog.clear()
    model.save_pretrained(tmp_path / "again")
    again = model_class.from_pretrained(tmp_path / "again")
    assert not again.pooler_is_new and not again.head_is_new and caplog.records == []


def test_a_backbone_has_what_the_checkpoint_has(tmp_path: Path) -> None:
    source = saved(tmp_path / "source", "masked_lm")
    backbone = AlbertBackbone.from_pretrained(source)
    assert backbone.pooler is None and set(backbone(example_inputs())) == {"sequence_output"}
    with pytest.raises(InputError, match="2 missing: pooler/kernel"):
        AlbertBackbone.from_pretrained(source, pooler=True)
    assert AlbertBackbone.from_pretrained(saved(tmp_path / "with", "masked_lm", pooler=True)).pooler is not None
