"""`albert_tf.inference.classification`: what goes to the model and what comes of its outputs."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from small_vocabularies import sentencepiece_vocabulary

from albert_tf.data.schema import Prediction, TextExample
from albert_tf.inference.classification import ClassificationPipeline, texts_and_pairs
from albert_tf.inference.runner import Outputs
from albert_tf.tokenization.packing import Packed
from albert_tf.tokenization.tokenizer import AlbertTokenizer


class Lengths:
    """A model whose probability of "long" is a hundredth for each token of the row."""

    task = "classification"
    task_settings: ClassVar[dict[str, Any]] = {"labels": ["short", "long"]}
    required_tokenizer = AlbertTokenizer(sentencepiece_vocabulary(), max_length=90)

    def run_rows(self, rows: Sequence[Packed]) -> list[Outputs]:
        return [{"probabilities": np.float32([1 - len(ids) / 100, len(ids) / 100])} for ids, _ in rows]


def test_answers_in_order() -> None:
    pipeline = ClassificationPipeline(Lengths())
    texts = ["mill", "the river " * 60, ""]
    sizes = [len(ids) for ids, _ in Lengths.required_tokenizer.encode_batch(texts)]
    rows = pipeline.predict_probabilities(texts)
    assert rows.dtype == np.float32 and rows[:, 1] == pytest.approx([size / 100 for size in sizes])
    answers = pipeline(texts)
    assert answers == [Prediction.from_probabilities(row, ("short", "long")) for row in rows]
    assert [answer.label for answer in answers] == ["short", "long", "short"]
    assert pipeline.answer(pipeline.prepare([TextExample(text) for text in texts])) == answers
    assert pipeline([]) == [] and pipeline.predict_probabilities([]).shape == (0, 2)


def test_decision_and_margin() -> None:
    decision, margin = ClassificationPipeline(Lengths()).decision({"probabilities": np.float32([0.2, 0.1, 0.7])})
    assert decision == 2 and margin == pytest.approx(0.5)


def test_texts_and_pairs() -> None:
    assert texts_and_pairs([TextExample("a", "b"), TextExample("c", None)]) == (["a", "c"], ["b", ""])
    assert texts_and_pairs([TextExample("a")]) == (["a"], None)
