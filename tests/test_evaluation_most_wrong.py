"""The worst examples of each task, against a sort of errors that are computed here by other means."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from albert_tf.data.choices import ChoiceExample
from albert_tf.data.conll import TaggedExample
from albert_tf.data.multi_label import MultiLabelExample
from albert_tf.data.schema import Prediction, TextExample
from albert_tf.data.similarity import SimilarityExample
from albert_tf.data.squad import Answer, QuestionExample
from albert_tf.errors import InputError
from albert_tf.evaluation.most_wrong import MOST_EXAMPLES, MostWrong, most_wrong
from albert_tf.inference.multi_label import LabelSet
from albert_tf.inference.multiple_choice import Choice
from albert_tf.inference.question_answering import AnswerSettings, FoundAnswer
from albert_tf.inference.runner import Prepared
from albert_tf.inference.tagging import Tagged


def found(task: str, examples: list[Any], answers: list[Any], prepared: Any = None, **of_pipeline: Any) -> MostWrong:
    pipeline = SimpleNamespace(runner=SimpleNamespace(task=task), **of_pipeline)
    return most_wrong(pipeline, examples, prepared or Prepared([]), answers, "dev.tsv")


def test_classification_by_loss() -> None:
    random = np.random.default_rng(0)
    rows = random.dirichlet([1, 1, 1], 60)
    labels = ("a", "b", "c")
    true = random.integers(3, size=60)
    examples = [TextExample(f"text {n}", None, labels[t]) for n, t in enumerate(true)]
    answers = [Prediction.from_probabilities(row, labels) for row in rows]
    worst = found("classification", examples, answers, labels=labels).examples
    losses = -np.log(rows[np.arange(60), true])
    expected = sorted(range(60), key=lambda n: -losses[n])[:MOST_EXAMPLES]
    assert [example.number - 1 for example in worst] == expected and len(worst) == 20
    np.testing.assert_allclose([example.error for example in worst], losses[expected])
    first = worst[0]
    assert first.texts == {"text": f"text {expected[0]}"} and first.true == labels[true[expected[0]]]
    assert first.predicted == labels[rows[expected[0]].argmax()] and first.score == rows[expected[0]].max()
    with pytest.raises(InputError, match="'d'"):
        found("classification", [TextExample("x", None, "d")], answers[:1], labels=labels)


def test_a_probability_of_nothing_or_no_number_comes_first() -> None:
    rows = [(0.9, 0.1), (1.0, 0.0), (float("nan"), float("nan"))]
    answers = [Prediction.from_probabilities(row, ("a", "b")) for row in rows]
    worst = found("classification", [TextExample("x", "y", "b")] * 3, answers, labels=("a", "b")).examples
    assert [example.number for example in worst][-1] == 1
    assert worst[0].texts == {"text": "x", "second text": "y"}


def test_multi_label_by_mean_cross_entropy() -> None:
    rows = np.array([[0.9, 0.2], [0.1, 0.6], [0.5, 0.5]])
    sets: list[tuple[str, ...]] = [("a",), ("a",), ()]
    examples = [MultiLabelExample(f"t{n}", None, labels) for n, labels in enumerate(sets)]
    answers = [
        LabelSet(tuple(name for name, p in zip("ab", row, strict=True) if p > 0.5), dict(zip("ab", row, strict=True)))
        for row in rows.tolist()
    ]
    worst = found("multi-label", examples, answers, labels=("a", "b")).examples
    losses = [-(np.log(0.9) + np.log(0.8)) / 2, -(np.log(0.1) + np.log(0.4)) / 2, np.log(2)]
    assert [example.number for example in worst] == [2, 3, 1]
    assert [example.error for example in worst] == pytest.approx([losses[1], losses[2], losses[0]])
    assert (worst[0].true, worst[0].predicted) == ("a", "b") and worst[1].true == "(none)"
    assert worst[0].texts["most probable"] == "b 0.60, a 0.10"


def test_regression_by_absolute_error_and_without_those_that_are_right() -> None:
    examples = [TextExample(f"t{n}", None, value) for n, value in enumerate(["1", "2.5", "4", "0"])]
    worst = found("regression", examples, [1.0, 2.0, 1.0, 0.5]).examples
    assert [(example.number, example.error) for example in worst] == [(3, 3.0), (2, 0.5), (4, 0.5)]
    assert (worst[0].true, worst[0].predicted) == ("4", "1.0000")


def test_multiple_choice_by_loss() -> None:
    examples = [ChoiceExample("p", "q1", ("x", "y"), 0), ChoiceExample("", "q2", ("x", "y", "z"), 2)]
    worst = found("multiple-choice", examples, [Choice(0, (0.6, 0.4)), Choice(1, (0.1, 0.7, 0.2))]).examples
    assert [example.number for example in worst] == [2, 1]
    assert [example.error for example in worst] == pytest.approx([-np.log(0.2), -np.log(0.6)])
    assert worst[0].texts == {"question": "q2", "option A": "x", "option B": "y", "option C": "z"}
    assert (worst[0].true, worst[0].predicted, worst[0].score) == ("C: z", "B: y", 0.7)
    assert worst[1].texts["passage"] == "p"


def test_tagging_by_probability_of_wrong_labels() -> None:
    words = ("上", "海", "is", "big")
    examples = [TaggedExample(words, ("B-LOC", "I-LOC", "O", "O"))] * 3
    answers = [
        Tagged(("B-LOC", "I-LOC", "O", "O"), (0.9,) * 4),
        Tagged(("B-LOC", "O", "O", "O"), (0.9, 0.6, 0.9, 0.9)),
        Tagged(("O", "O", "B-PER", "O"), (0.3, 0.4, 0.5, 0.9)),
    ]
    worst = found("tagging", examples, answers).examples
    assert [(example.number, example.error) for example in worst] == [(3, pytest.approx(1.2)), (2, pytest.approx(0.6))]
    assert worst[0].texts == {"text": "上海 is big", "wrong words": "3"}
    assert (worst[0].true, worst[0].predicted) == ("LOC 上海", "PER is")
    assert (worst[1].true, worst[1].predicted) == ("LOC 上海", "LOC 上")


def test_questions_by_f1_the_surest_first() -> None:
    passage = "x" * 500 + " the red house"
    examples = [
        QuestionExample("1", passage, "q1", (Answer("the red house", 501),)),
        QuestionExample("2", passage, "q2", (Answer("red", 505), Answer("the red house", 501))),
        QuestionExample("3", passage, "q3"),
        QuestionExample("4", passage, "q4", (Answer("house", 509),)),
    ]
    answers = [
        FoundAnswer("red", 505, 508, 0.5, 0.0, ()),
        FoundAnswer("Red", 505, 508, 0.5, 0.0, ()),
        FoundAnswer("house", 509, 514, 0.4, 0.0, ()),
        FoundAnswer("", None, None, 0.8, 0.0, ()),
    ]
    worst = found("question-answering", examples, answers, settings=AnswerSettings()).examples
    assert [example.number for example in worst] == [4, 3, 1]
    assert [example.error for example in worst] == pytest.approx([1, 1, 1 - 2 / 3])
    assert (worst[0].true, worst[0].predicted) == ("house", "(no answer)")
    assert worst[1].true == "(no answer)" and "red house" in worst[1].texts["passage"]
    assert len(worst[2].texts["passage"]) < 200 and "the red house" in worst[2].texts["passage"]


def test_similarity_by_places_in_the_two_orders() -> None:
    random = np.random.default_rng(1)
    scores, cosines = random.integers(6, size=40).astype(float), random.normal(size=40)
    examples = [SimilarityExample(f"a{n}", f"b{n}", str(score)) for n, score in enumerate(scores)]
    worst = found("similarity", examples, cosines.tolist()).examples
    distances = np.abs(stats.rankdata(scores) - stats.rankdata(cosines)) / 40
    assert [example.number - 1 for example in worst] == sorted(range(40), key=lambda n: -distances[n])[:20]
    assert worst[0].error == pytest.approx(distances.max())


def test_retrieval_by_what_was_found_before() -> None:
    vectors = np.array([[[1, 0], [0, 1]], [[0.1, 1], [1, 0.1]], [[1, 1], [1, 1]]], np.float32)
    rows: list[Any] = [([n], [0]) for n in range(6)]
    pipeline = {"embeddings": lambda prepared: list(vectors)}
    examples = [SimilarityExample(f"a{n}", f"b{n}") for n in range(3)]
    worst = found("similarity", examples, [0.0] * 3, Prepared(rows, [2, 2, 2]), **pipeline).examples
    assert [(example.number, example.error) for example in worst] == [(1, 2.0), (2, 2.0)]
    assert [example.predicted for example in worst] == ["b1", "b0"]
    assert worst[0].true == "rank 3" and worst[0].texts == {"query": "a0", "belongs to it": "b0"}


def test_all_right() -> None:
    assert found("regression", [TextExample("x", None, "1")], [1.0]).examples == []
