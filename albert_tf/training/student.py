"""A student made of its teacher: of the teacher's weights, those that fit.

ALBERT's passes share their block, so a student with fewer passes starts with every weight of its teacher. Where layers have
weights of their own, each layer of the student starts as the teacher's that it stands for (DistilBERT, Sanh et al., 2019,
section 3, takes one layer out of two).
"""

import dataclasses
from typing import Any

import numpy as np

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.distillation import uniform_layer_map
from albert_tf.tokenization.tokenizer import AlbertTokenizer


def student_of(
    teacher: AlbertTask, changes: dict[str, Any], options: dict[str, Any], settings: dict[str, Any]
) -> tuple[AlbertTask, list[str]]:
    """The student, and the names of the weights that are new, not the teacher's.

    Args:
        teacher: with its tokenizer.
        changes: fields of the teacher's config that are others in the student's.
        options: arguments of the student's `AlbertBackbone`.
        settings: those of its head.
    """
    config = dataclasses.replace(teacher.backbone.config, **changes)
    backbone = AlbertBackbone(config, pooler=type(teacher).uses_pooler, **options)
    own = teacher.required_tokenizer
    student = type(teacher)(backbone, AlbertTokenizer(own.vocabulary, own.max_length), **settings)
    weights = named_for_student(teacher, config)
    new = []
    for name, variable in student.named_weights().items():
        value = weights.get(name)
        if value is None or value.shape != tuple(variable.shape):
            new.append(name)
        else:
            variable.assign(value)
    student.head_is_new = any(not name.startswith(("embeddings/", "encoder/", "pooler/")) for name in new)
    student.pooler_is_new = any(name.startswith("pooler/") for name in new)
    student.source_config, student.source_settings = teacher.backbone.config, teacher.settings()
    return student, new


def named_for_student(teacher: AlbertTask, config: AlbertConfig) -> dict[str, np.ndarray]:
    """The teacher's weights, those of a block under the name of the student's block that stands for it."""
    weights = {name: np.asarray(variable) for name, variable in teacher.named_weights().items()}
    own, other = config, teacher.backbone.config
    if own.num_inner_repetitions != other.num_inner_repetitions:
        raise InputError("num_inner_repetitions: expected the teacher's")
    inner = own.num_inner_repetitions
    renamed: dict[str, str] = {}
    for layer, place in uniform_layer_map(own.num_layers, other.num_layers)[1:]:
        for repetition in range(inner):
            blocks = own.block_schedule[(layer - 1) * inner + repetition]
            taken = other.block_schedule[(max(place, 1) - 1) * inner + repetition]
            for half, block, source in zip(("attention", "feed_forward"), blocks, taken, strict=True):
                renamed.setdefault(f"encoder/{half}_{block}/", f"encoder/{half}_{source}/")
    encoder = {
        start + name.removeprefix(source): value
        for start, source in renamed.items()
        for name, value in weights.items()
        if name.startswith(source)
    }
    return {name: value for name, value in weights.items() if not name.startswith("encoder/")} | encoder


def told(new: list[str], teacher: str) -> str:
    """A line on what a student has of its teacher."""
    if not new:
        return f"student: every weight from {teacher}"
    parts = sorted({name.partition("/")[0] for name in new})
    return f"student: weights from {teacher}; new: {', '.join(parts)}"
