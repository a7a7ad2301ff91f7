"""`albert_tf.inference.multiple_choice`: rows for options, and the choice among their scores."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from small_vocabularies import sentencepiece_vocabulary

from albert_tf.data.choices import ChoiceExample
from albert_tf.inference.multiple_choice import MultipleChoicePipeline
from albert_tf.inference.runner import Outputs
from albert_tf.tokenization.packing import Packed
from albert_tf.tokenization.tokenizer import AlbertTokenizer


class Longest:
    """A model that scores a row by its length."""

    task = "multiple-choice"
    task_settings: ClassVar[dict[str, Any]] = {}
    required_tokenizer = AlbertTokenizer(sentencepiece_vocabulary())

    def run_rows(self, rows: Sequence[Packed]) -> list[Outputs]:
        return [{"score": np.float32([len(ids)])} for ids, _ in rows]


def test_questions_with_different_numbers_of_options() -> None:
    examples = [
        ChoiceExample("the old mill", "who _ it?", ("a", "the old mill by the river", "no")),
        ChoiceExample("", "where?", ("by the river of the mill", "here")),
    ]
    pipeline, tokenizer = MultipleChoicePipeline(Longest()), Longest.required_tokenizer
    prepared = pipeline.prepare(examples)
    assert prepared.rows[:3] == tokenizer.encode_batch(["the old mill"] * 3, examples[0].statements())
    assert prepared.rows[3:] == tokenizer.encode_batch(examples[1].statements())
    first, second = pipeline.answer(prepared)
    assert (first.option, second.option) == (1, 0)
    scores = np.array([len(ids) for ids, _ in prepared.rows[:3]], float)
    assert first.probabilities == pytest.approx(np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum())
    assert sum(second.probabilities) == pytest.approx(1)
    assert pipeline([e.question for e in examples], [e.options for e in examples], [e.context for e in examples]) == [
        first,
        second,
    ]
    assert pipeline.answer(pipeline.prepare([])) == []
