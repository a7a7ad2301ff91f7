"""Fine-tuning of models for multiple choice."""

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.data.choices import ChoiceExample, read_choices
from albert_tf.errors import InputError
from albert_tf.inference.runner import Prepared
from albert_tf.tasks.multiple_choice import AlbertMultipleChoice
from albert_tf.training.task_runs import MultipleChoiceRun
from albert_tf.training.tasks.finetune_task import TrainingRows


class FinetuneMultipleChoice:
    """RACE or ARC files → `AlbertMultipleChoice`; see `FinetuneTask`."""

    model_class = AlbertMultipleChoice
    metric = "accuracy"

    def read(self, run: MultipleChoiceRun, path: str, report: Callable[[str], None]) -> list[ChoiceExample]:
        left_out: list[str] = []
        examples = read_choices(path, left_out=left_out if run.leave_out_unusable else None)
        if left_out:
            report(f"{path}: {len(left_out)} questions left out, the first: {left_out[0]}")
        return examples

    def head_settings(self, run: MultipleChoiceRun, examples: Sequence[ChoiceExample]) -> dict[str, Any]:
        return {"classifier_dropout": run.classifier_dropout}

    def training_rows(
        self, model: AlbertMultipleChoice, examples: Sequence[ChoiceExample], prepared: Prepared, source: str
    ) -> TrainingRows:
        most = max(prepared.context)
        rows = []
        present = np.zeros((len(examples), most), np.float32)
        for index, (start, end) in enumerate(pairwise(accumulate(prepared.context, initial=0))):
            own = prepared.rows[start:end]
            present[index, : len(own)] = 1.0
            # Rows that fill up are masked in the loss; the shortest costs least.
            rows += [*own, *[min(own, key=lambda row: len(row[0]))] * (most - len(own))]
        answers = [example.answer for example in examples]
        if None in answers:
            raise InputError(f"{source}: question {answers.index(None) + 1} has no answer; training needs one for each")
        return TrainingRows(rows, {"answer": answers, "options": present}, most)

    def describe(self, model: AlbertMultipleChoice) -> str:
        return "one answer each"

    def write(self, folder: Path, model: AlbertMultipleChoice, metrics: dict[str, Any]) -> None:
        pass
