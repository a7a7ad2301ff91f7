"""`albert_tf.tasks.classification`: the head, its labels, and answers to every kind of text."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from references import numpy_albert
from tiny_data import TinyFiles
from tiny_models import TINY, example_inputs, randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.errors import InputError
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.tokenization.tokenizer import AlbertTokenizer

# float32 against float64, logits up to 3; measured at most 7.2e-7.
TOLERANCE = 2e-6
ODD_TEXTS = [
    "",
    "   ",
    "word " * 10_000,
    "w" * 10_000,
    "😀👩‍👩‍👧",
    "a\0b",
    "\ud83d",
    "\u202etxet",
    "١٢٣ 明天",
    "\n\t\r\n",
]


@pytest.fixture(scope="module")
def classifier(tiny_files: TinyFiles) -> AlbertTextClassifier:
    tokenizer = AlbertTokenizer.from_pretrained(tiny_files.vocabulary, max_length=32)
    config = dataclasses.replace(TINY, vocabulary_size=tokenizer.vocabulary.size, max_sequence_length=32)
    model = AlbertTextClassifier(AlbertBackbone(config), tokenizer, labels=("no", "yes"))
    randomize(model)
    return model


def test_logits_against_numpy() -> None:
    model = AlbertTextClassifier(AlbertBackbone(TINY), labels=("a", "b", "c"))
    weights = randomize(model)
    pooled = numpy_albert.encode(weights, TINY, **example_inputs())["pooled_output"]
    expected = pooled @ weights["classifier/kernel"] + weights["classifier/bias"]
    logits = model(example_inputs())
    assert np.abs(expected).max() > 0.5
    np.testing.assert_allclose(logits, expected, rtol=0, atol=TOLERANCE)
    probabilities = model.device_outputs(model.backbone(example_inputs())["sequence_output"], None)["probabilities"]
    exponentials = np.exp(expected)
    np.testing.assert_allclose(
        probabilities, exponentials / exponentials.sum(-1, keepdims=True), rtol=0, atol=TOLERANCE
    )


def test_the_classifiers_dropout_works_in_training_only() -> None:
    model = AlbertTextClassifier(AlbertBackbone(TINY), labels=("a", "b"), classifier_dropout=0.5)
    randomize(model)
    calm = [np.asarray(model(example_inputs(), training=False)) for _ in range(2)]
    shaken = [np.asarray(model(example_inputs(), training=True)) for _ in range(2)]
    np.testing.assert_array_equal(*calm)
    assert np.abs(shaken[0] - shaken[1]).max() > 1e-3


def test_logits_are_float32_in_half_precision() -> None:
    model = AlbertTextClassifier(AlbertBackbone(TINY, dtype="mixed_bfloat16"), labels=("a", "b"))
    assert model(example_inputs()).dtype == "float32" and model.compute_dtype == "float32"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (None, "expected their names"),
        ([], "at least two different"),
        (["a"], "at least two different"),
        (["a", "a"], "at least two different"),
        ("yes", "expected a list of names"),
        ([0, 1], "expected a list of names"),
        (["a", ""], "of one line without control characters"),
        (["a", " b"], "of one line without control characters"),
        (["a", "b\nc"], "of one line"),
    ],
)
def test_unusable_labels(labels: Any, expected: str) -> None:
    with pytest.raises(InputError, match=f"labels: .*{expected}"):
        AlbertTextClassifier(AlbertBackbone(TINY), labels=labels)


def test_a_pooler_is_needed() -> None:
    with pytest.raises(InputError, match="pooler=True"):
        AlbertTextClassifier(AlbertBackbone(TINY, pooler=False), labels=("a", "b"))


def test_predictions(classifier: AlbertTextClassifier) -> None:
    answers = classifier.classify(["snow and ice", "the fire"])
    rows = classifier.predict_probabilities(["snow and ice", "the fire"])
    for answer, row in zip(answers, rows, strict=True):
        assert list(answer.probabilities) == ["no", "yes"]
        assert sum(answer.probabilities.values()) == pytest.approx(1, abs=1e-6)
        assert answer.label == ("no", "yes")[row.argmax()] and answer.score == max(answer.probabilities.values())


def test_no_texts(classifier: AlbertTextClassifier) -> None:
    assert classifier.classify([]) == []
    assert classifier.predict_probabilities([]).shape == (0, 2)
    with pytest.raises(InputError, match="expected one for each text"):
        classifier.classify([], ["a"])


@pytest.mark.parametrize("text", ODD_TEXTS, ids=ascii)
def test_odd_texts(classifier: AlbertTextClassifier, text: str) -> None:
    (answer,) = classifier.classify([text])
    assert 0.5 <= answer.score <= 1
    assert classifier.classify([text], [text])[0].score <= 1


def test_long_texts_are_cut(classifier: AlbertTextClassifier) -> None:
    assert len(classifier.encode(["snow " * 10_000])[0][0]) == 32
    cut, whole = classifier.classify(["snow " * 10_000, "snow " * 30])
    assert cut == whole


def test_the_second_text_counts(classifier: AlbertTextClassifier) -> None:
    alone, pair = classifier.predict_probabilities(["snow"]), classifier.predict_probabilities(["snow"], ["fire"])
    swapped, empty = (
        classifier.predict_probabilities(["fire"], ["snow"]),
        classifier.predict_probabilities(["snow"], [""]),
    )
    for first, second in ((alone, pair), (pair, swapped), (alone, empty)):
        assert np.abs(first - second).max() > 20 * TOLERANCE


@pytest.mark.parametrize(
    ("texts", "pairs", "expected"),
    [
        ("snow", None, "expected a list of strings"),
        ([None], None, r"texts\[0\]: expected a string, got NoneType"),
        (["snow"], ["a", "b"], "got 1 texts and 2 pairs"),
    ],
)
def test_what_is_not_a_list_of_texts(classifier: AlbertTextClassifier, texts: Any, pairs: Any, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        classifier.classify(texts, pairs)
