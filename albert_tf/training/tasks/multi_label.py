"""Fine-tuning of classifiers that give several labels."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from albert_tf.data.multi_label import (
    MultiLabelExample,
    discover_label_names,
    encode_label_sets,
    read_multi_label,
)
from albert_tf.data.tables import write_labels
from albert_tf.inference.runner import Prepared
from albert_tf.tasks.multi_label import AlbertMultiLabelClassifier
from albert_tf.training.task_runs import MultiLabelRun
from albert_tf.training.tasks.finetune_task import TrainingRows


class FinetuneMultiLabel:
    """A table with several labels a row → `AlbertMultiLabelClassifier`; see `FinetuneTask`."""

    model_class = AlbertMultiLabelClassifier
    metric = "micro_f1"

    def read(self, run: MultiLabelRun, path: str, report: Callable[[str], None]) -> list[MultiLabelExample]:
        columns = {role: getattr(run, role) for role in ("text_column", "pair_column", "label_column")}
        return read_multi_label(path, label_separator=run.label_separator, **columns)

    def head_settings(self, run: MultiLabelRun, examples: Sequence[MultiLabelExample]) -> dict[str, Any]:
        return {
            "labels": discover_label_names(examples, run.label_file, source=run.train),
            "threshold": run.threshold,
            "classifier_dropout": run.classifier_dropout,
        }

    def training_rows(
        self,
        model: AlbertMultiLabelClassifier,
        examples: Sequence[MultiLabelExample],
        prepared: Prepared,
        source: str,
    ) -> TrainingRows:
        return TrainingRows(prepared.rows, {"labels": encode_label_sets(examples, model.labels, source)})

    def describe(self, model: AlbertMultiLabelClassifier) -> str:
        return f"labels {', '.join(model.labels)}, any number of them each"

    def write(self, folder: Path, model: AlbertMultiLabelClassifier, metrics: dict[str, Any]) -> None:
        write_labels(folder / "labels.txt", model.labels)
