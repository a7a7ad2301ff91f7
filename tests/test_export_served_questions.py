"""Answers decoded in the graph, against the pipeline's."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from small_vocabularies import LINES, fuzzed_texts, sentencepiece_vocabulary, wordpiece_vocabulary
from tiny_exports import BASE, MAX_LENGTH
from tiny_models import randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.errors import InputError
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.tasks.question_answering import AlbertQuestionAnswerer
from albert_tf.tokenization.rules import to_utf8
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from export.served_questions import NOWHERE, ServedQuestionAnswerer

QUESTIONS = ["who", "the mill", "Ο ΗΡΩΑΣ", "9,000", "🎬"]


def new_task(vocabulary: Any, **settings: Any) -> Any:
    config = dataclasses.replace(BASE, vocabulary_size=vocabulary.size, num_layers=1)
    tokenizer = AlbertTokenizer(vocabulary, max_length=MAX_LENGTH)
    task = AlbertQuestionAnswerer(AlbertBackbone(config), tokenizer, **settings)
    randomize(task, scale=0.4)
    return task


def answers(task: Any, questions: list[str], passages: list[str]) -> dict[str, np.ndarray]:
    answer = ServedQuestionAnswerer(task).signatures()["serving_default"].answer
    given = [tf.constant([to_utf8(text) for text in texts]) for texts in (questions, passages)]
    return {name: tensor.numpy() for name, tensor in tf.function(answer, autograph=False)(*given).items()}


@pytest.mark.parametrize("head", ["span", "squad2"])
@pytest.mark.parametrize("vocabulary", [sentencepiece_vocabulary, wordpiece_vocabulary], ids=["spm", "wordpiece"])
def test_as_the_pipeline(vocabulary: Any, head: str) -> None:
    task = new_task(vocabulary(), head=head, doc_stride=4, max_question_length=8, max_answer_length=6, n_best=7)
    passages = ["", " \u3000", "haha " * 40, " ".join(LINES), *LINES, *fuzzed_texts(90, 35)]
    questions = [QUESTIONS[i % len(QUESTIONS)] for i in range(len(passages))]
    undecided = pipeline_of(task)(questions, passages)
    scores = sorted(found.no_answer_score for found in undecided)
    # Between two scores, so that half of the questions have no answer.
    task.answering = dataclasses.replace(task.answering, no_answer_threshold=sum(scores[len(scores) // 2 :][:2]) / 2)
    expected = pipeline_of(task)(questions, passages)
    found = answers(task, questions, passages)
    assert 0.3 < np.mean([answer.start is None for answer in expected]) < 0.7
    for number, (wanted, passage) in enumerate(zip(expected, passages, strict=True)):
        row = {name: values[number] for name, values in found.items()}
        place = (NOWHERE, NOWHERE) if wanted.start is None else (wanted.start, wanted.end)
        assert (row["start"], row["end"]) == place, ascii(passage)
        assert row["answer"] == to_utf8(wanted.text)
        assert row["score"] == pytest.approx(wanted.score, abs=1e-4)
        assert row["no_answer_score"] == pytest.approx(wanted.no_answer_score, abs=1e-3)


def test_questions_that_the_pipeline_refuses() -> None:
    """One request must not fail for what another one in its batch asks."""
    task = new_task(sentencepiece_vocabulary(), doc_stride=4, max_question_length=64)
    long = " ".join(LINES)
    with pytest.raises(InputError, match="leaves no room for the passage"):
        pipeline_of(task)([long], [LINES[0]])
    found = answers(task, [long, "", "who"], [LINES[0], LINES[1], LINES[2]])
    (alone,) = pipeline_of(task)(["who"], [LINES[2]])
    assert (found["start"][2], found["end"][2]) == (alone.start, alone.end)
    for number in range(2):
        start, end = found["start"][number], found["end"][number]
        assert found["answer"][number] == to_utf8(LINES[number][start:end]) != b""
