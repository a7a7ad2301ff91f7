"""`albert_tf.evaluation.evaluate`: labels matched by name, pairs passed on."""

from collections.abc import Sequence

import numpy as np
import pytest

from albert_tf.data.schema import TextExample
from albert_tf.errors import InputError
from albert_tf.evaluation.evaluate import evaluate_classifier, texts_and_pairs


class Oracle:
    """Says "b" of texts that contain a b, with probability 0.75; remembers what it was asked."""

    labels: Sequence[str] = ("b", "a")

    def __init__(self) -> None:
        self.asked: tuple[list[str], list[str] | None] | None = None

    def predict_probabilities(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> np.ndarray:
        self.asked = list(texts), None if pairs is None else list(pairs)
        return np.array([[0.75, 0.25] if "b" in text else [0.25, 0.75] for text in texts], np.float32)


def test_metrics() -> None:
    """Three of four right; the labels' order is the model's, not the alphabet's."""
    examples = [TextExample(text, None, label) for text, label in (("b", "b"), ("a", "a"), ("ab", "a"), ("", "a"))]
    metrics = evaluate_classifier(Oracle(), examples, source="dev.tsv")
    assert metrics["accuracy"] == 0.75
    assert metrics["confusion_matrix"] == [[1, 0], [1, 2]]
    assert metrics["support"] == {"b": 1, "a": 3}
    assert metrics["loss"] == pytest.approx(-(3 * np.log(0.75) + np.log(0.25)) / 4)


def test_a_label_that_the_model_does_not_know() -> None:
    with pytest.raises(InputError, match=r"dev.tsv, row 2 \('y'\) has the label 'c'; the model's labels are b, a"):
        evaluate_classifier(Oracle(), [TextExample("x", None, "a"), TextExample("y", None, "c")], source="dev.tsv")
    with pytest.raises(InputError, match=r"row 1 \('x'\) has no label"):
        evaluate_classifier(Oracle(), [TextExample("x")], source="dev.tsv")


def test_pairs_reach_the_model() -> None:
    oracle = Oracle()
    evaluate_classifier(oracle, [TextExample("x", "y", "a"), TextExample("b", "", "b")], source="dev.tsv")
    assert oracle.asked == (["x", "b"], ["y", ""])
    evaluate_classifier(oracle, [TextExample("x", None, "a")], source="dev.tsv")
    assert oracle.asked == (["x"], None)


def test_texts_and_pairs() -> None:
    assert texts_and_pairs([TextExample("a", "b"), TextExample("c", None)]) == (["a", "c"], ["b", ""])
    assert texts_and_pairs([TextExample("a")]) == (["a"], None)
