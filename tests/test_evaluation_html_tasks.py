"""The parts of a page that are a task's own, against scikit-learn and seqeval on the same answers."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pages import Page
from sklearn import metrics as sklearn_metrics

from albert_tf.data.conll import TaggedExample
from albert_tf.data.multi_label import MultiLabelExample
from albert_tf.data.schema import Prediction, TextExample
from albert_tf.data.similarity import SimilarityExample
from albert_tf.data.squad import Answer, QuestionExample
from albert_tf.evaluation.classification_metrics import classification_metrics
from albert_tf.evaluation.entity_metrics import entity_metrics
from albert_tf.evaluation.html_tasks import Validated, by_label_table, confusion_table, task_parts
from albert_tf.evaluation.multi_label_metrics import multi_label_metrics
from albert_tf.evaluation.squad_metrics import answer_metrics
from albert_tf.inference.multi_label import LabelSet
from albert_tf.inference.question_answering import AnswerSettings, FoundAnswer
from albert_tf.inference.runner import Prepared
from albert_tf.inference.tagging import Tagged


def page_of(task: str, examples: list[Any], answers: list[Any], figures: dict[str, Any], **of_pipeline: Any) -> Page:
    calls: list[int] = []

    def answer(prepared: Prepared) -> list[Any]:
        calls.append(1)
        return answers

    pipeline: Any = SimpleNamespace(runner=SimpleNamespace(task=task), answer=answer, **of_pipeline)
    parts = task_parts(task, Validated(pipeline, examples, Prepared([]), "dev.tsv", figures))
    html = "".join(f"<h2>{title}</h2>{make()}" for title, make in parts)
    assert len(calls) == 1
    return Page(f'<!DOCTYPE html><html lang="en"><body>{html}</body></html>')


def classified(
    size: int, labels: list[str], texts: list[str]
) -> tuple[list[TextExample], list[Prediction], dict[str, Any]]:
    random = np.random.default_rng(0)
    rows, true = random.dirichlet(np.ones(len(labels)), size), random.integers(len(labels), size=size)
    examples = [TextExample(texts[n % len(texts)], None, labels[t]) for n, t in enumerate(true)]
    answers = [Prediction.from_probabilities(row, labels) for row in rows]
    return examples, answers, classification_metrics(true, rows.argmax(axis=1), labels, rows)


def test_classification() -> None:
    labels = ["<b>", "שלום", "正面"]
    examples, answers, figures = classified(50, labels, ["<script>x</script>", "y" * 10_000])
    page = page_of("classification", examples, answers, figures, labels=labels)
    true, given = [e.label for e in examples], [a.label for a in answers]
    matrix = sklearn_metrics.confusion_matrix(true, given, labels=labels)
    caption = "Confusion matrix: rows the true label, columns the predicted one"
    assert page.tables[caption] == [[label, *row] for label, row in zip(labels, matrix.tolist(), strict=True)]
    assert page.headers[caption] == ["true \\ predicted", *labels]
    scores = sklearn_metrics.precision_recall_fscore_support(true, given, labels=labels, zero_division=0)
    for row, label, *expected in zip(page.tables["By label"], labels, *scores, strict=True):
        assert row[0] == label and row[1] == expected[3]
        assert row[4:] == pytest.approx(expected[:3])
    assert page.sections == ["Confusion matrix", "Most wrong"] and len(page.cards) == 20
    assert {len(card["text"]) for card in page.cards.values()} <= {18, 300}


def test_many_labels_are_a_picture_and_the_most_frequent_mistakes() -> None:
    labels = [f"label {n}" for n in range(30)]
    examples, answers, figures = classified(3000, labels, ["x"])
    page = page_of("classification", examples, answers, figures, labels=labels)
    assert page.pictures == ["Confusion matrix of 30 labels; the most frequent mistakes are in the table below."]
    rows = page.tables["Most frequent mistakes"]
    matrix = np.array(figures["confusion_matrix"])
    wrong = sorted((int(n) for n in (matrix - np.diag(matrix.diagonal())).ravel()), reverse=True)
    assert [row[2] for row in rows] == wrong[:20]
    for true, given, count in rows:
        assert matrix[labels.index(true), labels.index(given)] == count


def test_a_thousand_labels_are_cut_to_the_most_frequent() -> None:
    counts = [(f"label {n}", n, n, 0) for n in range(1000)]
    page = Page(f'<!DOCTYPE html><html lang="en"><body>{by_label_table("By label", counts)}</body></html>')
    rows = page.tables["By label, the 200 most frequent of 1,000"]
    assert [row[1] for row in rows] == list(range(999, 799, -1))
    assert "data:image/png" in confusion_table(np.eye(1000, dtype=int), [name for name, *_ in counts])


def test_multi_label() -> None:
    random = np.random.default_rng(0)
    labels = ("a", "b", "c")
    true, rows = random.random((40, 3)) > 0.6, random.random((40, 3))
    examples = [MultiLabelExample("x", None, tuple(np.array(labels)[row])) for row in true]
    answers = [
        LabelSet(tuple(np.array(labels)[row > 0.5]), dict(zip(labels, row.tolist(), strict=True))) for row in rows
    ]
    figures = multi_label_metrics(true, rows > 0.5, labels, rows)
    page = page_of("multi-label", examples, answers, figures, labels=labels)
    scores = sklearn_metrics.precision_recall_fscore_support(true, rows > 0.5, zero_division=0)
    for row, label, *expected in zip(page.tables["By label"], labels, *scores, strict=True):
        assert row[4:] == pytest.approx(expected[:3]) and row[6] == pytest.approx(figures["f1_by_label"][label])


def test_tagging_as_seqeval_counts() -> None:
    random = np.random.default_rng(0)
    labels = np.array(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"])
    sides = [[tuple(labels[random.integers(5, size=12)]) for _ in range(20)] for _ in range(2)]
    examples = [TaggedExample(tuple("abcdefghijkl"), row) for row in sides[0]]
    answers = [Tagged(row, (0.5,) * 12) for row in sides[1]]
    figures = entity_metrics(*sides)
    rows = page_of("tagging", examples, answers, figures).tables["Entities by type"]
    assert [row[0] for row in rows] == ["LOC", "PER"]
    for kind, true, _, _, _, _, f1 in rows:
        assert true == figures["support"][kind] and f1 == pytest.approx(figures["f1_by_type"][kind])


def test_numbers_are_a_scatter_plot() -> None:
    examples = [TextExample("x", None, str(n)) for n in range(5)]
    page = page_of("regression", examples, [0.5] * 5, {})
    assert page.pictures[0].startswith("Scatter plot of predicted value over true value of 5 examples.")
    pairs = [SimilarityExample("x", "y", str(n)) for n in range(5)]
    page = page_of("similarity", pairs, [0.1 * n for n in range(5)], {})
    assert page.pictures[0].startswith("Scatter plot of cosine over score of 5 examples.")


def test_questions_with_and_without_answers() -> None:
    examples = [
        QuestionExample("1", "the house", "q", (Answer("house", 4),)),
        QuestionExample("2", "the house", "q"),
        QuestionExample("3", "the house", "q"),
    ]
    answers = [FoundAnswer(t, 0, 1, 0.5, float(n), ()) for n, t in enumerate(["the house", "", "house"])]
    settings = AnswerSettings(no_answer_threshold=0.0)
    figures = answer_metrics(examples, answers, settings)
    page = page_of("question-answering", examples, answers, figures, settings=settings)
    assert page.tables["Questions"] == [
        ["all", 3, pytest.approx(200 / 3), pytest.approx(200 / 3)],
        ["with answer", 1, 100, 100],
        ["without answer", 2, 50, 50],
    ]
    assert list(page.cards) == ["Example 3"]


def test_all_right_and_a_right_answer_among_the_worst() -> None:
    examples = [TextExample("x", None, "a"), TextExample("y", None, "a")]
    answers = [Prediction.from_probabilities(row, ("a", "b")) for row in ((0.9, 0.1), (0.2, 0.8))]
    figures = classification_metrics([0, 0], [0, 1], ("a", "b"))
    assert list(page_of("classification", examples, answers, figures, labels=("a", "b")).cards) == [
        "Example 2",
        "Example 1, answered right",
    ]
    page = page_of("regression", [TextExample("x", None, "1")], [1.0], {})
    assert not page.cards and "All 1 examples are answered as they should be." in page.text
