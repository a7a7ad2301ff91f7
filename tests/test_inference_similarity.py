"""`albert_tf.inference.similarity`: texts into rows, embeddings and cosines out."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from small_vocabularies import sentencepiece_vocabulary

from albert_tf.data.schema import TextExample
from albert_tf.data.similarity import SimilarityExample
from albert_tf.errors import InputError
from albert_tf.inference.runner import Outputs
from albert_tf.inference.similarity import SimilarityPipeline, cosine, text_numbers
from albert_tf.tokenization.packing import Packed
from albert_tf.tokenization.tokenizer import AlbertTokenizer


class Counter:
    """The embedding of a text: how many tokens it has of each of three kinds, and 1."""

    task = "similarity"
    task_settings: ClassVar[dict[str, Any]] = {}
    required_tokenizer = AlbertTokenizer(sentencepiece_vocabulary())

    def run_rows(self, rows: Sequence[Packed]) -> list[Outputs]:
        counts = [[sum(i % 3 == kind for i in ids) for kind in range(3)] for ids, _ in rows]
        return [{"embedding": np.float32([*count, 1])} for count in counts]


TEXTS, PAIRS = ["the mill", "", "the water at work"], ["the river", "a mill", "the water at work"]


def test_embeddings_and_cosines() -> None:
    runner = Counter()
    pipeline = SimilarityPipeline(runner)
    embeddings = pipeline.embed(TEXTS)
    rows = runner.required_tokenizer.encode_batch(TEXTS)
    np.testing.assert_array_equal(embeddings, [row["embedding"] for row in runner.run_rows(rows)])
    np.testing.assert_array_equal(pipeline(TEXTS), embeddings)
    first, second = embeddings.astype(float), pipeline.embed(PAIRS).astype(float)
    expected = (first * second).sum(-1) / np.linalg.norm(first, axis=-1) / np.linalg.norm(second, axis=-1)
    assert pipeline(TEXTS, PAIRS) == pytest.approx(expected.tolist())
    assert pipeline(TEXTS, PAIRS)[2] == pytest.approx(1)
    assert pipeline([]) == [] and pipeline([], []) == [] and len(pipeline.embed([])) == 0


def test_answers_by_example() -> None:
    """A text alone, a pair and a triple in one call."""
    pipeline = SimilarityPipeline(Counter())
    examples = [TextExample("the mill"), TextExample("the mill", "a mill"), SimilarityExample("a", "b", None, "c")]
    prepared = pipeline.prepare(examples)
    assert (len(prepared.rows), prepared.context) == (6, [1, 2, 3])
    alone, pair, triple = pipeline.answer(prepared)
    np.testing.assert_array_equal(alone, pipeline.embed(["the mill"])[0])
    assert [pair, triple] == pipeline(["the mill", "a"], ["a mill", "b"])
    assert [len(rows) for rows in pipeline.embeddings(prepared)] == [1, 2, 3]


def test_numbers_of_texts() -> None:
    """Equal where the model sees the same ids."""
    pipeline = SimilarityPipeline(Counter())
    prepared = pipeline.prepare([TextExample("a", "b"), TextExample("b", "A"), TextExample("c", "  a ")])
    np.testing.assert_array_equal(text_numbers(prepared), [[0, 1], [1, 0], [2, 0]])


def test_cosine() -> None:
    assert cosine(np.float32([1, 0]), np.float32([2, 2])) == pytest.approx(2**-0.5)
    assert cosine(np.zeros(2), np.ones(2)) == 0.0


def test_wrong_use() -> None:
    pipeline = SimilarityPipeline(Counter())
    with pytest.raises(InputError, match="pairs: expected one for each text; got 3 texts and 1 pairs"):
        pipeline(TEXTS, ["a"])
    with pytest.raises(InputError, match="texts: expected a list of strings"):
        pipeline("the mill")
