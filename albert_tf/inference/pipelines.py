"""The pipeline of each task."""

from albert_tf.errors import InputError
from albert_tf.inference.classification import ClassificationPipeline
from albert_tf.inference.fill_mask import FillMaskPipeline
from albert_tf.inference.multi_label import MultiLabelPipeline
from albert_tf.inference.multiple_choice import MultipleChoicePipeline
from albert_tf.inference.question_answering import QuestionAnsweringPipeline
from albert_tf.inference.regression import RegressionPipeline
from albert_tf.inference.runner import Pipeline, Runner
from albert_tf.inference.similarity import SimilarityPipeline
from albert_tf.inference.tagging import TaggingPipeline

PIPELINES: dict[str, type] = {
    "classification": ClassificationPipeline,
    "multi-label": MultiLabelPipeline,
    "regression": RegressionPipeline,
    "multiple-choice": MultipleChoicePipeline,
    "tagging": TaggingPipeline,
    "similarity": SimilarityPipeline,
    "fill-mask": FillMaskPipeline,
    "question-answering": QuestionAnsweringPipeline,
}


def pipeline_of(runner: Runner) -> Pipeline:
    """The pipeline of the task that the runner runs.

    Raises:
        InputError: an unknown task.
    """
    if runner.task not in PIPELINES:
        raise InputError(f"expected a model of a task among {', '.join(PIPELINES)}; got {runner.task!r}")
    pipeline: Pipeline = PIPELINES[runner.task](runner)
    return pipeline
