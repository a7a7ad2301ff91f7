"""Fine-tuning of text classifiers."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from albert_tf.data.glue import read_labelled
from albert_tf.data.schema import TextExample
from albert_tf.data.tables import discover_labels, encode_labels, write_labels
from albert_tf.errors import InputError
from albert_tf.evaluation.report import plot_confusion_matrix
from albert_tf.inference.runner import Prepared
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.training.task_runs import ClassificationRun, GlueRun
from albert_tf.training.tasks.finetune_task import TrainingRows


def read_run_examples(run: GlueRun, path: str, report: Callable[[str], None]) -> list[TextExample]:
    """The labelled texts in a file of the run."""
    columns = {role: getattr(run, role) for role in ("text_column", "pair_column", "label_column")}
    return read_labelled(path, report, glue=run.glue, **columns)


def class_weights(asked: str | None, label_ids: Sequence[int], labels: Sequence[str]) -> list[float] | None:
    """What each label counts in the loss.

    Args:
        asked: None for all the same; "balanced", by examples / (labels · examples of the label), as scikit-learn has it;
            or the numbers themselves, with commas between.
        label_ids: of the training examples.
        labels: the labels of the ids.

    Raises:
        InputError: not as many positive numbers as labels, or no example of a label to balance.
    """
    if asked is None:
        return None
    if asked == "balanced":
        counts = [Counter(label_ids)[number] for number in range(len(labels))]
        if 0 in counts:
            raise InputError(f"--class-weights balanced: the label {labels[counts.index(0)]!r} has no example")
        return [len(label_ids) / (len(labels) * count) for count in counts]
    try:
        weights = [float(part) for part in asked.split(",")]
    except ValueError:
        weights = []
    if len(weights) != len(labels) or not all(0 < weight < math.inf for weight in weights):
        raise InputError(
            f"--class-weights: expected balanced, or {len(labels)} numbers above 0 with commas between, for the labels "
            f"{', '.join(labels)}; got {asked!r}"
        )
    return weights


class FinetuneClassification:
    """A labelled table → `AlbertTextClassifier`; see `FinetuneTask`."""

    model_class = AlbertTextClassifier
    metric = "accuracy"

    def read(self, run: ClassificationRun, path: str, report: Callable[[str], None]) -> list[TextExample]:
        return read_run_examples(run, path, report)

    def head_settings(self, run: ClassificationRun, examples: Sequence[TextExample]) -> dict[str, Any]:
        labels = discover_labels(examples, run.label_file, source=run.train)
        if run.best_metric == "f1" and len(labels) != 2:
            raise InputError(f"--best-metric f1 is that of two labels, {run.train} has {len(labels)}; choose macro_f1")
        return {
            "labels": labels,
            "classifier_dropout": run.classifier_dropout,
            "class_weights": class_weights(run.class_weights, encode_labels(examples, labels, run.train), labels),
            "label_smoothing": run.label_smoothing,
            "temperature": 1.0,  # one that was fitted to the source is not that of the weights to come
        }

    def training_rows(
        self, model: AlbertTextClassifier, examples: Sequence[TextExample], prepared: Prepared, source: str
    ) -> TrainingRows:
        return TrainingRows(prepared.rows, {"label": encode_labels(examples, model.labels, source)})

    def describe(self, model: AlbertTextClassifier) -> str:
        return f"labels {', '.join(model.labels)}"

    def write(self, folder: Path, model: AlbertTextClassifier, metrics: dict[str, Any]) -> None:
        write_labels(folder / "labels.txt", model.labels)
        if metrics:
            plot_confusion_matrix(metrics["confusion_matrix"], model.labels, folder / "confusion_matrix.png")
