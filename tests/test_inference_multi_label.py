"""`albert_tf.inference.multi_label`: labels above the threshold, whatever runs the model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from small_vocabularies import sentencepiece_vocabulary

from albert_tf.data.multi_label import MultiLabelExample
from albert_tf.errors import InputError
from albert_tf.inference.multi_label import MultiLabelPipeline
from albert_tf.inference.runner import Outputs
from albert_tf.tokenization.packing import Packed
from albert_tf.tokenization.tokenizer import AlbertTokenizer

ROWS = np.array([[0.6, 0.5, 0.2], [0.1, 0.2, 0.3], [0.9, 0.51, 0.8]], np.float32)


class Judge:
    """A model that puts out `ROWS`."""

    task = "multi-label"

    def __init__(self, **settings: Any) -> None:
        self.task_settings = {"labels": ["a", "b", "c"]} | settings
        self.required_tokenizer = AlbertTokenizer(sentencepiece_vocabulary())
        self.rows: list[Packed] = []

    def run_rows(self, rows: Sequence[Packed]) -> list[Outputs]:
        self.rows = list(rows)
        return [{"sigmoid_probabilities": row} for row in ROWS[: len(rows)]]


def test_labels_above_the_threshold() -> None:
    pipeline = MultiLabelPipeline(Judge())
    assert [answer.labels for answer in pipeline(["x", "y", "z"])] == [("a",), (), ("a", "b", "c")]
    pipeline.threshold = 0.25
    assert [answer.labels for answer in pipeline(["x", "y", "z"])] == [("a", "b"), ("c",), ("a", "b", "c")]
    (answer,) = MultiLabelPipeline(Judge(threshold=0.55))(["x"])
    assert answer.labels == ("a",)
    assert answer.probabilities == pytest.approx({"a": 0.6, "b": 0.5, "c": 0.2})
    assert pipeline.outputs({}) == {"sigmoid_probabilities": (3,)}


def test_pairs_and_single_texts() -> None:
    judge = Judge()
    pipeline = MultiLabelPipeline(judge)
    pipeline.answer(pipeline.prepare([MultiLabelExample("the people", "turning"), MultiLabelExample("by")]))
    assert judge.rows == judge.required_tokenizer.encode_batch(["the people", "by"], ["turning", ""])
    pipeline.answer(pipeline.prepare([MultiLabelExample("by")]))
    assert judge.rows == judge.required_tokenizer.encode_batch(["by"])


def test_decision_is_the_set_and_the_nearest_label_to_the_threshold() -> None:
    decision, margin = MultiLabelPipeline(Judge()).decision({"sigmoid_probabilities": ROWS[2]})
    assert decision == (True, True, True) and margin == pytest.approx(0.01)


def test_wrong_use() -> None:
    with pytest.raises(InputError, match="expected a multi-label classifier with labels, found None"):
        MultiLabelPipeline(Judge(labels=None))
    for value in (0.0, 1.0, -1.0):
        with pytest.raises(InputError, match=f"threshold: expected a probability above 0 and below 1, got {value}"):
            MultiLabelPipeline(Judge()).threshold = value
