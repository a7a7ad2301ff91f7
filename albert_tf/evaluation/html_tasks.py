"""The parts of a run's page that are a task's own: confusion matrix, tables by label, scatter plots, the worst examples."""

import base64
import dataclasses
import functools
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.data.conll import entities
from albert_tf.data.multi_label import encode_label_sets
from albert_tf.data.similarity import scores_of
from albert_tf.data.tables import encode_values
from albert_tf.evaluation.html_charts import scatter_chart
from albert_tf.evaluation.html_text import data_text, escaped, number, paragraph, table
from albert_tf.evaluation.most_wrong import WrongExample, most_wrong
from albert_tf.evaluation.report import plot_confusion_matrix
from albert_tf.inference.runner import Pipeline, Prepared

Part = tuple[str, Callable[[], str]]  # a title, and what makes the HTML under it
MOST_LABELS = 25  # of a matrix in cells
_MOST_ROWS = 200
_MOST_CONFUSIONS = 20
_LABEL_CHARACTERS = 60
_BY_LABEL = ("examples", "predicted", "right", "precision", "recall", "F1")


@dataclasses.dataclass(frozen=True)
class Validated:
    """A trained task with what it was validated on.

    Attributes:
        pipeline: the task's.
        examples: with their answers.
        prepared: the examples as the pipeline prepares them.
        source: the examples' file.
        metrics: of the task's answers to them.
    """

    pipeline: Pipeline
    examples: Sequence[Any]
    prepared: Prepared
    source: str
    metrics: dict[str, Any]

    @functools.cached_property
    def answers(self) -> list[Any]:
        """The pipeline's answers."""
        return self.pipeline.answer(self.prepared)


def task_parts(task: str, validated: Validated) -> list[Part]:
    """The parts of the page of a run of `task`, a key of `albert_tf.evaluation.evaluate.EVALUATIONS`."""
    parts = [(title, functools.partial(make, validated)) for title, make in _PARTS.get(task, [])]
    return [*parts, ("Most wrong", lambda: wrong_examples(validated))]


def wrong_examples(validated: Validated) -> str:
    """The validation's worst examples."""
    v = validated
    found = most_wrong(v.pipeline, v.examples, v.prepared, v.answers, v.source)
    if not found.examples:
        return paragraph(f"All {len(v.examples):,} examples are answered as they should be.")
    told = paragraph(
        f"The {len(found.examples)} worst of the {len(v.examples):,} examples in {v.source}, worst first. "
        f"Error: {found.measure}."
    )
    return told + '<div class="cards">\n' + "".join(map(_card, found.examples)) + "</div>\n"


def confusion_table(matrix: Sequence[Sequence[int]] | np.ndarray, labels: Sequence[str]) -> str:
    """Counts in cells, darker with the share of the true label; of many labels a picture and the most frequent mistakes."""
    counts = np.asarray(matrix)
    if len(labels) > MOST_LABELS:
        return _confusion_picture(counts, labels)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    rows = [
        [_label(label), *(f'<div style="--share:{s:.3f}">{number(int(c))}</div>' for c, s in zip(*both, strict=True))]
        for label, *both in zip(labels, counts, shares, strict=True)
    ]
    columns = ["true \\ predicted", *(label[:_LABEL_CHARACTERS] for label in labels)]
    return table("Confusion matrix: rows the true label, columns the predicted one", columns, rows, style="matrix")


def by_label_table(caption: str, counts: Sequence[tuple[str, int, int, int]]) -> str:
    """Precision, recall and F1 of each label.

    Args:
        caption: of the table.
        counts: for each label its name, how often it is true, how often it is predicted, and how often both.
    """
    shown = sorted(counts, key=lambda row: -row[1])[:_MOST_ROWS] if len(counts) > _MOST_ROWS else counts
    rows = []
    for label, true, predicted, right in shown:
        figures = [true, predicted, right, *(_share(right, whole) for whole in (predicted, true))]
        rows.append([_label(label), *map(number, [*figures, _share(2 * right, true + predicted)])])
    some = "" if len(shown) == len(counts) else f", the {_MOST_ROWS} most frequent of {len(counts):,}"
    return table(caption + some, ("label", *_BY_LABEL), rows, style="figures")


def _classification(validated: Validated) -> str:
    labels, matrix = list(validated.metrics["support"]), np.asarray(validated.metrics["confusion_matrix"])
    sides = matrix.sum(axis=1).tolist(), matrix.sum(axis=0).tolist(), matrix.diagonal().tolist()
    counts = list(zip(labels, *sides, strict=True))
    return confusion_table(matrix, labels) + by_label_table("By label", counts)


def _multi_label(validated: Validated) -> str:
    labels = list(validated.metrics["support"])
    true = encode_label_sets(validated.examples, labels, validated.source) > 0.5
    given = np.array([[label in answer.labels for label in labels] for answer in validated.answers])
    sides = (side.sum(axis=0).tolist() for side in (true, given, true & given))
    return by_label_table("By label", list(zip(labels, *sides, strict=True)))


def _tagging(validated: Validated) -> str:
    sides = [Counter[str]() for _ in range(3)]
    for example, answer in zip(validated.examples, validated.answers, strict=True):
        ours, theirs = set(entities(example.labels)), set(entities(answer.labels))
        for counter, found in zip(sides, (ours, theirs, ours & theirs), strict=True):
            counter.update(kind for kind, _, _ in found)
    kinds = sorted(sides[0] | sides[1])
    true, given, right = sides
    return by_label_table("Entities by type", [(kind, true[kind], given[kind], right[kind]) for kind in kinds])


def _regression(validated: Validated) -> str:
    true = encode_values(validated.examples, validated.source)
    return scatter_chart(true, validated.answers, ("true value", "predicted value"), "scatter")


def _similarity(validated: Validated) -> str:
    scores = scores_of(validated.examples, validated.source)
    if scores is None:
        return paragraph(
            "The pairs have no scores: what belongs together was searched for among all texts; see Metrics."
        )
    return scatter_chart(scores, validated.answers, ("score", "cosine"), "scatter")


def _question_answering(validated: Validated) -> str:
    figures, rows = validated.metrics, []
    for name, prefix in (("all", ""), ("with answer", "answerable_"), ("without answer", "unanswerable_")):
        if f"{prefix}f1" in figures:
            rows.append([name, *(number(figures[prefix + column]) for column in ("examples", "exact_match", "f1"))])
    return table("Questions", ("questions", "examples", "exact match %", "F1 %"), rows, style="figures")


_PARTS: dict[str, list[tuple[str, Callable[[Validated], str]]]] = {
    "classification": [("Confusion matrix", _classification)],
    "multi-label": [("Labels", _multi_label)],
    "tagging": [("Entities", _tagging)],
    "regression": [("Predicted and true", _regression)],
    "similarity": [("Cosines and scores", _similarity)],
    "question-answering": [("Answers", _question_answering)],
}


def _card(example: WrongExample) -> str:
    lines = [*example.texts.items(), ("true", example.true), ("predicted", example.predicted)]
    told = "".join(f"<dt>{escaped(name)}</dt><dd>{data_text(text)}</dd>\n" for name, text in lines)
    if example.score is not None:
        told += f"<dt>score</dt><dd>{number(example.score)}</dd>\n"
    told += f"<dt>error</dt><dd>{number(example.error)}</dd>\n"
    right = ", answered right" if example.true == example.predicted else ""
    return f"<article><h3>Example {example.number:,}{right}</h3>\n<dl>{told}</dl></article>\n"


def _confusion_picture(counts: np.ndarray, labels: Sequence[str]) -> str:
    wrong = counts * (1 - np.eye(len(labels), dtype=counts.dtype))
    order = np.argsort(-wrong, axis=None, kind="stable")[:_MOST_CONFUSIONS]
    pairs = [divmod(int(place), len(labels)) for place in order]
    rows = [[_label(labels[i]), _label(labels[j]), number(int(wrong[i, j]))] for i, j in pairs if wrong[i, j]]
    frequent = table("Most frequent mistakes", ("true", "predicted", "examples"), rows)
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "matrix.png"
        plot_confusion_matrix(counts, labels, picture)
        data = base64.b64encode(picture.read_bytes()).decode("ascii")
    told = f"Confusion matrix of {len(labels)} labels; the most frequent mistakes are in the table below."
    return f'<figure class="paper"><img alt="{told}" src="data:image/png;base64,{data}"></figure>\n{frequent}'


def _label(text: str) -> str:
    return data_text(text, _LABEL_CHARACTERS)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
