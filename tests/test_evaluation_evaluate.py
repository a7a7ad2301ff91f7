"""`albert_tf.evaluation.evaluate`: labels matched by name, pairs passed on."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from small_vocabularies import sentencepiece_vocabulary

from albert_tf.data.schema import TextExample
from albert_tf.errors import InputError
from albert_tf.evaluation.evaluate import evaluate
from albert_tf.inference.runner import Outputs
from albert_tf.tokenization.packing import Packed
from albert_tf.tokenization.tokenizer import AlbertTokenizer


class Oracle:
    """Says "b" with probability 0.75 of the text "river", else "a"; remembers what it was asked."""

    task = "classification"
    required_tokenizer = AlbertTokenizer(sentencepiece_vocabulary())

    def __init__(self) -> None:
        self.asked: Sequence[Packed] = ()
        self.river = self.required_tokenizer.encode("river")

    @property
    def task_settings(self) -> dict[str, Any]:
        return {"labels": ["b", "a"]}

    def run_rows(self, rows: Sequence[Packed]) -> list[Outputs]:
        self.asked = rows
        says_b, says_a = np.float32([0.75, 0.25]), np.float32([0.25, 0.75])
        return [{"probabilities": says_b if row == self.river else says_a} for row in rows]


def test_metrics() -> None:
    """Three of four right; the labels' order is the model's, not the alphabet's."""
    examples = [
        TextExample(text, None, label) for text, label in (("river", "b"), ("mill", "a"), ("river", "a"), ("", "a"))
    ]
    metrics = evaluate(Oracle(), examples, source="dev.tsv")
    assert metrics["accuracy"] == 0.75
    assert metrics["confusion_matrix"] == [[1, 0], [1, 2]]
    assert metrics["support"] == {"b": 1, "a": 3}
    assert metrics["loss"] == pytest.approx(-(3 * np.log(0.75) + np.log(0.25)) / 4)


def test_a_label_that_the_model_does_not_know() -> None:
    with pytest.raises(InputError, match=r"dev.tsv, row 2 \('y'\) has the label 'c'; the model's labels are b, a"):
        evaluate(Oracle(), [TextExample("x", None, "a"), TextExample("y", None, "c")], source="dev.tsv")
    with pytest.raises(InputError, match=r"row 1 \('x'\) has no label"):
        evaluate(Oracle(), [TextExample("x")], source="dev.tsv")


def test_pairs_reach_the_model() -> None:
    oracle = Oracle()
    evaluate(oracle, [TextExample("x", "y", "a"), TextExample("b", "", "b")], source="dev.tsv")
    assert oracle.asked == oracle.required_tokenizer.encode_batch(["x", "b"], ["y", ""])
    evaluate(oracle, [TextExample("x", None, "a")], source="dev.tsv")
    assert oracle.asked == oracle.required_tokenizer.encode_batch(["x"])


def test_a_task_of_another_version() -> None:
    oracle = Oracle()
    oracle.task = "poetry"
    with pytest.raises(InputError, match=r"expected a model of a task among classification.*; got 'poetry'"):
        evaluate(oracle, [], source="dev.tsv")
