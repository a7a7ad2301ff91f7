"""Distillation: from a file, a teacher and the settings of a student to a run folder like any other.

Where all that is learned of a teacher is one vector for each text, its outputs are computed once, before the first step:
a teacher is larger than its student, and would take most of every step. Inner states and outputs of each token are too many
to keep: for them it runs in the training step.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from albert_tf.errors import InputError
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.inference.runner import Prepared, Runner
from albert_tf.presets import read_task_settings
from albert_tf.tasks.accumulation import AccumulatingModel
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.distillation import DistillationModel, Lesson, uniform_layer_map
from albert_tf.training.augmentation import same_tokenizer
from albert_tf.training.distill_runs import Distillation
from albert_tf.training.finetune import TASKS, train_task
from albert_tf.training.finetune_rounds import Examples, validation_metrics
from albert_tf.training.run_config import RunConfig
from albert_tf.training.starting_point import backbone_options, config_changes
from albert_tf.training.student import student_of, told
from albert_tf.training.tasks.fill_mask import FinetuneFillMask
from albert_tf.training.tasks.finetune_task import FinetuneTask
from albert_tf.training.taught_task import TaughtTask
from albert_tf.training.training import Training, cut_to_length

_DECIDING = ("classification", "multi-label")  # one decision a row, which can be the teacher's


def distill(run: Distillation, *, overwrite: bool = False, report: Callable[[str], None] = print) -> dict[str, Any]:
    """Trains a student as `run` says and writes the run folder `run.out`; see `finetune`.

    Raises:
        InputError: as `finetune`; or a teacher that cannot teach this student.
    """
    return train_task(run, lambda: DistillationTraining(run, report), overwrite=overwrite, report=report)


class DistillationTraining(Training):
    """A student of a teacher, or of what another system put out.

    Attributes:
        teacher: the model; None for recorded outputs.
    """

    task: TaughtTask

    def __init__(self, run: Distillation, report: Callable[[str], None]) -> None:
        inner: FinetuneTask = FinetuneFillMask() if run.task == "fill-mask" else TASKS[run.task]
        self.run = run
        self.teacher = None if run.teacher is None else load_teacher(run, inner.model_class)
        super().__init__(TaughtTask(run, inner, self.teacher, report))
        self._new_weights: list[str] | None = None

    def build(self, run: RunConfig, settings: dict[str, Any]) -> AlbertTask:
        if self.teacher is None or run.source != self.run.teacher:
            model = super().build(run, settings)
        else:
            options = backbone_options(run)
            model, self._new_weights = student_of(self.teacher, config_changes(run), options, settings)
            cut_to_length(run, model)
        if self.teacher is not None and self.task.runs_in_steps:
            _check_inputs(self.run, model, self.teacher)
            lesson_of(self.run, model, self.teacher).check(model.backbone.config, self.teacher.backbone.config)
        if not self.run.soft_weight and not self.run.hard:
            _freeze_head(model)
        return model

    def prepare(self, model: Any, examples: Sequence[Any]) -> Prepared:
        inner = self.task.inner
        return (
            inner.prepare(model, examples) if isinstance(inner, FinetuneFillMask) else super().prepare(model, examples)
        )

    def learner(self, model: AlbertTask) -> AccumulatingModel:
        teacher = self.teacher if self.task.runs_in_steps else None
        lesson = lesson_of(self.run, model, teacher)
        if not self.task.any_labelled:
            lesson = dataclasses.replace(lesson, hard_weight=0.0)
        word_dim = None if self.task.words is None else self.task.words.length
        return DistillationModel(model, lesson, teacher, word_dim=word_dim, all_labelled=self.task.all_labelled)

    def origin(self, run: RunConfig, model: AlbertTask) -> str:
        if self._new_weights is None:
            return super().origin(run, model)
        return told(self._new_weights, str(run.source))

    def compare(self, runner: Runner, valid: Examples | None) -> dict[str, Any]:
        """The teacher's figures on the validation file, and of how many rows both decide alike."""
        if self.teacher is None or valid is None:
            return {}
        pipeline = pipeline_of(self.teacher)
        prepared = pipeline.prepare(valid.examples)
        metrics = validation_metrics(self.teacher, dataclasses.replace(valid, prepared=prepared))
        figures: dict[str, Any] = {name: value for name, value in metrics.items() if isinstance(value, float)}
        if self.run.task in _DECIDING:
            wanted = [pipeline.decision(row)[0] for row in self.teacher.run_rows(prepared.rows)]
            found = [pipeline_of(runner).decision(row)[0] for row in runner.run_rows(valid.prepared.rows)]
            figures["agreement"] = float(np.mean([a == b for a, b in zip(wanted, found, strict=True)]))
        return {"teacher": figures}


def load_teacher(run: Distillation, model_class: type[AlbertTask]) -> AlbertTask:
    """The teacher.

    Raises:
        InputError: it cannot be read, is of another task, or has an untrained part.
    """
    saved = read_task_settings(str(run.teacher))
    if saved is not None and saved["task"] != run.task:
        raise InputError(f"--teacher {run.teacher}: a model for {saved['task']}; expected one for {run.task}")
    teacher = model_class.from_pretrained(str(run.teacher), backbone_options={"dtype": run.precision})
    if teacher.head_is_new or (model_class.uses_pooler and teacher.pooler_is_new):
        part = "head" if teacher.head_is_new else "pooler"
        raise InputError(f"--teacher {run.teacher}: has no trained {part} for {run.task}; fine-tune it first")
    return teacher


def lesson_of(run: Distillation, student: AlbertTask, teacher: AlbertTask | None) -> Lesson:
    """What the student learns, with the layer map for these two."""
    pairs: tuple[tuple[int, int], ...] = ()
    if teacher is not None and run.looks_inside:
        layers = student.backbone.config.num_layers, teacher.backbone.config.num_layers
        pairs = run.layer_pairs(*layers) or uniform_layer_map(*layers)
    return Lesson(
        hard_weight=run.hard,
        soft_weight=run.soft_weight,
        hidden_weight=run.hidden_weight,
        attention_weight=run.attention_weight,
        word_weight=0.0 if getattr(run, "teacher_words", None) is None else run.word_weight,  # type: ignore[attr-defined]
        temperature=run.soft_temperature,
        hidden_loss=run.hidden_loss,
        layer_map=pairs,
    )


def _check_inputs(run: Distillation, student: AlbertTask, teacher: AlbertTask) -> None:
    """Raises InputError unless the teacher can be given the student's rows."""
    own, other = student.required_tokenizer, teacher.required_tokenizer
    if not same_tokenizer(own, other):
        raise InputError(
            f"--teacher {run.teacher}: has another vocabulary or other text rules than the student, so the same tokens mean "
            "something else to it; take a student of its vocabulary, or for classification, multi-label, regression and "
            "similarity learn its answers alone, without --hidden-weight, --attention-weight and --augment"
        )
    positions = teacher.backbone.config.max_sequence_length
    if own.max_length > positions:
        raise InputError(f"--max-length {own.max_length}: the teacher takes {positions} tokens; give at most that")


def _freeze_head(model: AlbertTask) -> None:
    """Leaves out of training what no loss on inner states reaches."""
    backbone = {id(variable) for variable in (*model.backbone.embeddings.weights, *model.backbone.encoder.weights)}
    for variable in model.weights:
        if id(variable) not in backbone:
            variable.trainable = False
