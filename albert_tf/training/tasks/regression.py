"""Fine-tuning of text regressors."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from albert_tf.data.schema import TextExample
from albert_tf.data.tables import encode_values
from albert_tf.inference.runner import Prepared
from albert_tf.tasks.regression import AlbertTextRegressor
from albert_tf.training.task_runs import RegressionRun
from albert_tf.training.tasks.classification import read_run_examples
from albert_tf.training.tasks.finetune_task import TrainingRows


class FinetuneRegression:
    """A table with numbers → `AlbertTextRegressor`; see `FinetuneTask`."""

    model_class = AlbertTextRegressor
    metric = "spearman"

    def read(self, run: RegressionRun, path: str, report: Callable[[str], None]) -> list[TextExample]:
        return read_run_examples(run, path, report)

    def head_settings(self, run: RegressionRun, examples: Sequence[TextExample]) -> dict[str, Any]:
        return {"classifier_dropout": run.classifier_dropout}

    def training_rows(
        self, model: AlbertTextRegressor, examples: Sequence[TextExample], prepared: Prepared, source: str
    ) -> TrainingRows:
        return TrainingRows(prepared.rows, {"value": encode_values(examples, source)})

    def describe(self, model: AlbertTextRegressor) -> str:
        return "one number each"

    def write(self, folder: Path, model: AlbertTextRegressor, metrics: dict[str, Any]) -> None:
        pass
