"""Fine-tuning of text classifiers."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from albert_tf.data.schema import TextExample
from albert_tf.data.tables import discover_labels, encode_labels, read_examples, write_labels
from albert_tf.errors import InputError
from albert_tf.evaluation.report import plot_confusion_matrix
from albert_tf.inference.runner import Prepared
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.training.run_config import ClassificationRun
from albert_tf.training.tasks.finetune_task import TrainingRows


class FinetuneClassification:
    """A labelled table → `AlbertTextClassifier`; see `FinetuneTask`."""

    model_class = AlbertTextClassifier
    metric = "accuracy"

    def read(self, run: ClassificationRun, path: str, report: Callable[[str], None]) -> list[TextExample]:
        return read_examples(
            path, text_column=run.text_column, pair_column=run.pair_column, label_column=run.label_column
        )

    def head_settings(self, run: ClassificationRun, examples: Sequence[TextExample]) -> dict[str, Any]:
        labels = discover_labels(examples, run.label_file)
        if run.best_metric == "f1" and len(labels) != 2:
            raise InputError(f"--best-metric f1 is that of two labels, {run.train} has {len(labels)}; choose macro_f1")
        return {"labels": labels, "classifier_dropout": run.classifier_dropout}

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
