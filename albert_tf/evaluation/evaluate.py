"""A trained task on examples with known answers → metrics, whatever runs it."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from albert_tf.data.choices import ChoiceExample
from albert_tf.data.conll import TaggedExample
from albert_tf.data.schema import TextExample
from albert_tf.data.tables import encode_labels, encode_values
from albert_tf.errors import InputError
from albert_tf.evaluation.classification_metrics import classification_metrics
from albert_tf.evaluation.entity_metrics import entity_metrics
from albert_tf.evaluation.regression_metrics import regression_metrics
from albert_tf.inference.classification import ClassificationPipeline
from albert_tf.inference.multiple_choice import MultipleChoicePipeline
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.inference.regression import RegressionPipeline
from albert_tf.inference.runner import Prepared, Runner
from albert_tf.inference.tagging import TaggingPipeline


def evaluate(runner: Runner, examples: Sequence[Any], *, source: str) -> dict[str, Any]:
    """Metrics of `runner` on `examples`, which came from `source`.

    Raises:
        InputError: an example has an answer that the model cannot give, such as an unknown label.
    """
    pipeline = pipeline_of(runner)
    return EVALUATIONS[runner.task](pipeline, examples, pipeline.prepare(examples), source)


def evaluate_classification(
    pipeline: ClassificationPipeline, examples: Sequence[TextExample], prepared: Prepared, source: str
) -> dict[str, Any]:
    """See `classification_metrics`."""
    label_ids = encode_labels(examples, pipeline.labels, source)
    probabilities = np.array([list(answer.probabilities.values()) for answer in pipeline.answer(prepared)])
    return classification_metrics(label_ids, probabilities.argmax(axis=-1), pipeline.labels, probabilities)


def evaluate_regression(
    pipeline: RegressionPipeline, examples: Sequence[TextExample], prepared: Prepared, source: str
) -> dict[str, Any]:
    """See `regression_metrics`."""
    return regression_metrics(encode_values(examples, source), pipeline.answer(prepared))


def evaluate_multiple_choice(
    pipeline: MultipleChoicePipeline, examples: Sequence[ChoiceExample], prepared: Prepared, source: str
) -> dict[str, Any]:
    """`accuracy` (RACE's figure) and `loss`, the mean cross-entropy in nats."""
    answers = [example.answer for example in examples]
    if None in answers:
        raise InputError(f"{source}: question {answers.index(None) + 1} has no answer to compare with")
    choices = pipeline.answer(prepared)
    right = [choice.option == answer for choice, answer in zip(choices, answers, strict=True)]
    losses = [-math.log(max(c.probabilities[a or 0], 1e-30)) for c, a in zip(choices, answers, strict=True)]
    return {"accuracy": float(np.mean(right)), "loss": float(np.mean(losses)), "examples": len(examples)}


def evaluate_tagging(
    pipeline: TaggingPipeline, examples: Sequence[TaggedExample], prepared: Prepared, source: str
) -> dict[str, Any]:
    """See `entity_metrics`."""
    if (number := next((n for n, e in enumerate(examples, start=1) if e.labels is None), None)) is not None:
        raise InputError(f"{source}: text {number} has no labels to compare with")
    answers = pipeline.answer(prepared)
    return entity_metrics([e.labels or () for e in examples], [answer.labels for answer in answers])


# Task → (its pipeline, examples, these prepared by it, their source) → metrics; the flat numbers among them can pick
# the best weights of a training.
EVALUATIONS: dict[str, Callable[[Any, Sequence[Any], Prepared, str], dict[str, Any]]] = {
    "classification": evaluate_classification,
    "regression": evaluate_regression,
    "multiple-choice": evaluate_multiple_choice,
    "tagging": evaluate_tagging,
}
