"""Fine-tuning of taggers."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from albert_tf.data.conll import OUTSIDE, TaggedExample, read_tagged
from albert_tf.data.tables import write_labels
from albert_tf.errors import InputError
from albert_tf.inference.runner import Prepared
from albert_tf.tasks.token_classification import AlbertTokenClassifier
from albert_tf.training.task_runs import TaggingRun
from albert_tf.training.tasks.finetune_task import TrainingRows

_UNLABELLED = -1


class FinetuneTagging:
    """CoNLL columns or JSON lines → `AlbertTokenClassifier`; see `FinetuneTask`."""

    model_class = AlbertTokenClassifier
    metric = "f1"

    def read(self, run: TaggingRun, path: str, report: Callable[[str], None]) -> list[TaggedExample]:
        return read_tagged(path, report)

    def head_settings(self, run: TaggingRun, examples: Sequence[TaggedExample]) -> dict[str, Any]:
        found = Counter(label for example in examples for label in example.labels or ())
        kinds = sorted({label.partition("-")[2] for label in found} - {""})
        if not kinds:
            raise InputError(f"{run.train}: expected words with labels such as B-PER, found none")
        # Both labels of each type, whether the file has them or not: entities of two words do occur later.
        labels = [OUTSIDE, *(f"{prefix}-{kind}" for kind in kinds for prefix in "BI")]
        return {"labels": labels, "classifier_dropout": run.classifier_dropout}

    def training_rows(
        self, model: AlbertTokenClassifier, examples: Sequence[TaggedExample], prepared: Prepared, source: str
    ) -> TrainingRows:
        numbers = {label: number for number, label in enumerate(model.labels)}
        places, _ = prepared.context
        targets, weights = [], []
        for (token_ids, _), (index, starts) in zip(prepared.rows, places, strict=True):
            labels = examples[index].labels
            if labels is None:
                raise InputError(f"{source}: text {index + 1} has no labels")
            row = [_UNLABELLED] * len(token_ids)
            for word, position in starts.items():
                if labels[word] not in numbers:
                    raise InputError(
                        f"{source}: text {index + 1} has the label {labels[word]!r}; the model's labels are "
                        f"{', '.join(model.labels)}"
                    )
                row[position] = numbers[labels[word]]
            targets.append(row)
            weights.append(float(len(starts)))
        return TrainingRows(prepared.rows, {"labels": targets, "weight": weights})

    def describe(self, model: AlbertTokenClassifier) -> str:
        return f"labels {', '.join(model.labels)}"

    def write(self, folder: Path, model: AlbertTokenClassifier, metrics: dict[str, Any]) -> None:
        write_labels(folder / "labels.txt", model.labels)
