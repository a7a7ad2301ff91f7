"""A student that learns from a teacher: the model that `fit` is called on while a student is trained.

The teacher runs in the student's training step, without gradient and without dropout; or, where all that is learned of it
is one vector for each example, its outputs come with the targets, as `TEACHER_OUTPUTS`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.data.pipeline import SCALE
from albert_tf.data.schema import PADDING_MASK
from albert_tf.errors import InputError
from albert_tf.tasks.accumulation import AccumulatingModel
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.depth import depth_weighted
from albert_tf.tasks.distillation_losses import (
    SOFT_LOSSES,
    attention_losses,
    comparable,
    hidden_losses,
    row_losses,
    word_losses,
)

# Targets beside the task's own: outputs of the teacher that are known before, and 1 for an example with a label, else 0.
TEACHER_OUTPUTS, LABELLED = "teacher_outputs", "labelled"
PARTS = ("hard", "soft", "hidden", "attention", "word")


@dataclasses.dataclass(frozen=True)
class Lesson:
    """What a student learns.

    Attributes:
        hard_weight: of the task's own loss, of examples with labels.
        soft_weight: of the loss of the teacher's outputs.
        hidden_weight, attention_weight: of the sums over `layer_map` of the losses of hidden states and attention scores.
        word_weight: of the loss of the teacher's vectors of words, which come with the targets.
        temperature: of soft outputs.
        hidden_loss: "mse" or "cosine".
        layer_map: pairs (pass of the student, pass of the teacher), counted from 1; 0 stands for the embeddings, which have
            no attention.
    """

    hard_weight: float = 0.5
    soft_weight: float = 0.5
    hidden_weight: float = 0.0
    attention_weight: float = 0.0
    word_weight: float = 0.0
    temperature: float = 1.0
    hidden_loss: str = "mse"
    layer_map: tuple[tuple[int, int], ...] = ()

    @property
    def looks_inside(self) -> bool:
        """Whether it asks for the teacher's inner states."""
        return self.hidden_weight > 0 or self.attention_weight > 0

    def check(self, student: AlbertConfig, teacher: AlbertConfig) -> None:
        """Raises InputError where the two encoders cannot be compared as it says."""
        for own, other in self.layer_map:
            if not 0 <= own <= student.num_layers or not 0 <= other <= teacher.num_layers:
                raise InputError(
                    f"--layer-map {own}:{other}: the student has the passes 0 to {student.num_layers}, the teacher 0 to "
                    f"{teacher.num_layers}"
                )
        if self.attention_weight > 0 and student.num_heads != teacher.num_heads:
            raise InputError(
                f"--attention-weight: head is compared with head, but the student has {student.num_heads} and the teacher "
                f"{teacher.num_heads}; give --heads {teacher.num_heads}, or learn --hidden-weight without it"
            )
        if self.attention_weight > 0 and not any(own and other for own, other in self.layer_map):
            raise InputError(
                "--attention-weight: --layer-map names no pass but the embeddings, which have no attention"
            )


def uniform_layer_map(student_layers: int, teacher_layers: int) -> tuple[tuple[int, int], ...]:
    """TinyBERT's: pass m of M goes with pass m · N / M of the teacher's N, rounded; the embeddings with the embeddings."""
    ratio = teacher_layers / student_layers
    return tuple((layer, int(layer * ratio + 0.5)) for layer in range(student_layers + 1))


class DistillationModel(AccumulatingModel):
    """A student with what teaches it. Compiled without a loss, `fit` minimises the lesson's, a sum over examples.

    Beside the student's, its weights are the projections of hidden states (TinyBERT's W_e and W_h, without bias), where the
    teacher is of another width: one for the embeddings, one for all passes; and one of words. They are not part of what is
    saved.

    Args:
        student: the task to train.
        lesson: what it learns.
        teacher: a task of the same kind; None where all that is learned comes with the targets.
        word_dim: the length of the teacher's vectors of words, where they are learned.
        all_labelled: whether the student's own figures, such as accuracy, can be taken: every example has a label.

    Raises:
        InputError: the two cannot be compared, or a lesson on inner states without a teacher.
    """

    def __init__(
        self,
        student: AlbertTask,
        lesson: Lesson,
        teacher: AlbertTask | None = None,
        *,
        word_dim: int | None = None,
        all_labelled: bool = True,
    ) -> None:
        super().__init__(student.input, student.output, name="distillation")
        if lesson.looks_inside and teacher is None:
            raise InputError(
                "--hidden-weight and --attention-weight ask for the teacher's inner states; give --teacher"
            )
        if teacher is not None:
            lesson.check(student.backbone.config, teacher.backbone.config)
        self.student = student
        self.lesson = lesson
        self.all_labelled = all_labelled
        # In a box, as Keras takes every model that is an attribute for a part of this one.
        self._teacher = _Box(teacher)
        self.projections = _projections(student, teacher, lesson, word_dim)
        self._figures = {part: keras.metrics.Mean(f"{part}_loss") for part in PARTS if self._weight(part) > 0}

    @property
    def metrics(self) -> list[Any]:
        """Keras hook: the student's figures too."""
        return [*super().metrics, *(self.student.metrics if self.all_labelled else [])]

    def training_outputs(self, x: Any, training: bool = True) -> Any:
        """`states` and `outputs` of student and teacher, as far as the lesson asks for them."""
        states = self.student.states(x, training=True)
        student = {"states": states, "outputs": self.student.outputs_of(states, x, training=True)}
        teacher: Any = None
        if (model := self._teacher.content) is not None:
            states = model.states(x, training=False)
            teacher = {"states": states, "outputs": model.head_outputs(states[-1], x, None, False)}
            teacher = tf.nest.map_structure(ops.stop_gradient, teacher)
        return {"student": student, "teacher": teacher}

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """Keras hook: the lesson's loss, in the mean over the whole batch; see `AlbertTask.compute_loss`."""
        if not isinstance(y, Mapping) or SCALE not in y:
            raise InputError(f"targets: expected them by name, {SCALE!r} among them")
        losses = self.losses_of(dict(y), x, y_pred)
        total = sum(self._weight(part) * values for part, values in losses.items())
        return ops.sum(total * y[SCALE])

    def losses_of(self, y: dict[str, Any], x: Any, seen: Any) -> dict[str, Any]:
        """The losses of examples (B,) by part, unweighted."""
        student, teacher = seen["student"], seen["teacher"]
        own = student["outputs"] if isinstance(student["outputs"], list) else [student["outputs"]]
        labelled = y.get(LABELLED)
        losses: dict[str, Any] = {}
        if self._weight("hard") > 0:
            hard = depth_weighted([self.student.training_losses(y, one) for one in own])
            losses["hard"] = hard if labelled is None else hard * labelled
        if self.all_labelled:
            self.student.note_figures(y, own[-1])
        if self._weight("soft") > 0:
            losses["soft"] = self._soft_losses(y, x, own, teacher)
        if self.lesson.looks_inside:
            inner = self._inner_losses(student["states"], teacher["states"], x[PADDING_MASK])
            losses |= {part: row_losses(values, y) for part, values in inner.items()}
        if self._weight("word") > 0:
            losses["word"] = word_losses(student["states"][-1], y, self.projections["word"])
        for part, values in losses.items():
            share = y[SCALE] if part != "hard" or labelled is None else y[SCALE] * labelled
            self._figures[part].update_state(values, share)
        return losses

    def loss_share(self, y: Any) -> Any:
        return ops.sum(y[SCALE])

    def _weight(self, part: str) -> float:
        return float(getattr(self.lesson, f"{part}_weight"))

    def _soft_losses(self, y: dict[str, Any], x: Any, own: list[Any], teacher: Any) -> Any:
        wanted = y.get(TEACHER_OUTPUTS)
        if wanted is None and teacher is not None:
            wanted = comparable(self._teacher.content, y, teacher["outputs"])
        soft, temperature = SOFT_LOSSES[self.student.task], self.lesson.temperature
        outputs = [comparable(self.student, y, one) for one in own]
        return depth_weighted([soft(self.student, y, x, one, wanted, temperature) for one in outputs])

    def _inner_losses(self, states: list[Any], wanted: list[Any], padding_mask: Any) -> dict[str, Any]:
        """The sums over the layer map, each (rows,)."""
        teacher = self._teacher.content
        sums: dict[str, Any] = {}
        for own, other in self.lesson.layer_map:
            if self.lesson.hidden_weight > 0:
                projection = self.projections.get("hidden" if own else "embedding")
                vectors = _after(self.student, states, own)
                vectors = vectors if projection is None else projection(ops.cast(vectors, "float32"))
                target = _after(teacher, wanted, other)
                found = hidden_losses(vectors, target, padding_mask, self.lesson.hidden_loss)
                sums["hidden"] = sums.get("hidden", 0.0) + found
            if self.lesson.attention_weight > 0 and own and other:
                scores, target = _scores(self.student, states, own), _scores(teacher, wanted, other)
                found = attention_losses(scores, ops.stop_gradient(target), padding_mask)
                sums["attention"] = sums.get("attention", 0.0) + found
        return sums


@dataclasses.dataclass(frozen=True)
class _Box:
    content: AlbertTask | None


def _projections(
    student: AlbertTask, teacher: AlbertTask | None, lesson: Lesson, word_dim: int | None
) -> dict[str, keras.layers.Dense]:
    own = student.backbone.config.hidden_dim
    widths: dict[str, int] = {}
    if teacher is not None and lesson.hidden_weight > 0 and own != (other := teacher.backbone.config.hidden_dim):
        widths = {"hidden" if number else "embedding": other for number, _ in sorted(lesson.layer_map)}
    if word_dim is not None:
        widths["word"] = word_dim
    initializer = keras.initializers.TruncatedNormal(stddev=student.backbone.config.initializer_range)
    layers = {}
    for name, width in sorted(widths.items()):
        layers[name] = keras.layers.Dense(
            width, use_bias=False, kernel_initializer=initializer, dtype="float32", name=f"{name}_projection"
        )
        layers[name].build((None, own))
    return layers


def _after(task: Any, states: list[Any], number: int) -> Any:
    """The vectors after pass `number`; 0: the embeddings."""
    return states[number * task.backbone.config.num_inner_repetitions]


def _scores(task: Any, states: list[Any], number: int) -> Any:
    """The attention scores of the last step of pass `number`, from 1, computed once more from what went into it."""
    last = number * task.backbone.config.num_inner_repetitions - 1
    attention, _ = task.backbone.config.block_schedule[last]
    return task.backbone.encoder.attention_blocks[attention].scores(states[last])
