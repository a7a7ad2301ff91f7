"""A trained task on examples with known answers → metrics, whatever runs it."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from albert_tf.data.choices import ChoiceExample
from albert_tf.data.conll import TaggedExample
from albert_tf.data.multi_label import MultiLabelExample, encode_label_sets
from albert_tf.data.schema import TextExample
from albert_tf.data.similarity import SimilarityExample, scores_of
from albert_tf.data.squad import QuestionExample
from albert_tf.data.tables import encode_labels, encode_values
from albert_tf.errors import InputError
from albert_tf.evaluation.classification_metrics import classification_metrics
from albert_tf.evaluation.entity_metrics import entity_metrics
from albert_tf.evaluation.multi_label_metrics import multi_label_metrics
from albert_tf.evaluation.regression_metrics import regression_metrics
from albert_tf.evaluation.similarity_metrics import retrieval_metrics, similarity_metrics
from albert_tf.evaluation.squad_metrics import answer_metrics
from albert_tf.inference.classification import ClassificationPipeline
from albert_tf.inference.multi_label import MultiLabelPipeline
from albert_tf.inference.multiple_choice import MultipleChoicePipeline
from albert_tf.inference.pipelines import PIPELINES, pipeline_of
from albert_tf.inference.question_answering import QuestionAnsweringPipeline
from albert_tf.inference.regression import RegressionPipeline
from albert_tf.inference.runner import Pipeline, Prepared, Runner
from albert_tf.inference.similarity import SimilarityPipeline, text_numbers
from albert_tf.inference.tagging import TaggingPipeline


def evaluate(
    runner: Runner, examples: Sequence[Any], *, source: str, pipeline: Pipeline | None = None
) -> dict[str, Any]:
    """Metrics of `runner` on `examples`, which came from `source`.

    Args:
        runner: what runs the model.
        examples: with their answers.
        source: what to call the examples in an error message.
        pipeline: the runner's, where its options are not the usual ones.

    Raises:
        InputError: an example has an answer that the model cannot give, such as an unknown label.
    """
    if runner.task in PIPELINES and runner.task not in EVALUATIONS:
        raise InputError(f"no figures are taken of models for {runner.task}; expected one for {', '.join(EVALUATIONS)}")
    pipeline = pipeline or pipeline_of(runner)
    return EVALUATIONS[runner.task](pipeline, examples, pipeline.prepare(examples), source)


def evaluate_classification(
    pipeline: ClassificationPipeline, examples: Sequence[TextExample], prepared: Prepared, source: str
) -> dict[str, Any]:
    """See `classification_metrics`."""
    label_ids, probabilities = true_and_predicted(pipeline, examples, prepared, source)
    return classification_metrics(label_ids, probabilities.argmax(axis=-1), pipeline.labels, probabilities)


def true_and_predicted(
    pipeline: ClassificationPipeline, examples: Sequence[TextExample], prepared: Prepared, source: str
) -> tuple[list[int], np.ndarray]:
    """The id of each example's label, and the probabilities (examples, labels)."""
    label_ids = encode_labels(examples, pipeline.labels, source)
    return label_ids, np.array([list(answer.probabilities.values()) for answer in pipeline.answer(prepared)])


def evaluate_multi_label(
    pipeline: MultiLabelPipeline, examples: Sequence[MultiLabelExample], prepared: Prepared, source: str
) -> dict[str, Any]:
    """See `multi_label_metrics`."""
    true = encode_label_sets(examples, pipeline.labels, source)
    probabilities = np.array([list(answer.probabilities.values()) for answer in pipeline.answer(prepared)])
    return multi_label_metrics(true, probabilities > pipeline.threshold, pipeline.labels, probabilities)


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


def evaluate_similarity(
    pipeline: SimilarityPipeline, examples: Sequence[SimilarityExample], prepared: Prepared, source: str
) -> dict[str, Any]:
    """Of pairs with scores, see `similarity_metrics`; of pairs or triples without, see `retrieval_metrics`."""
    scores = scores_of(examples, source)
    if scores is not None:
        return similarity_metrics(scores, pipeline.answer(prepared))
    return retrieval_metrics(np.stack(pipeline.embeddings(prepared)), text_numbers(prepared))


def evaluate_question_answering(
    pipeline: QuestionAnsweringPipeline, examples: Sequence[QuestionExample], prepared: Prepared, source: str
) -> dict[str, Any]:
    """See `answer_metrics`."""
    if not any(example.answers for example in examples):
        raise InputError(f"{source}: no question has an answer to compare with")
    return answer_metrics(examples, pipeline.answer(prepared), pipeline.settings)


# Task → (its pipeline, examples, these prepared by it, their source) → metrics; the flat numbers among them can pick
# the best weights of a training.
EVALUATIONS: dict[str, Callable[[Any, Sequence[Any], Prepared, str], dict[str, Any]]] = {
    "classification": evaluate_classification,
    "multi-label": evaluate_multi_label,
    "regression": evaluate_regression,
    "multiple-choice": evaluate_multiple_choice,
    "tagging": evaluate_tagging,
    "question-answering": evaluate_question_answering,
    "similarity": evaluate_similarity,
}
