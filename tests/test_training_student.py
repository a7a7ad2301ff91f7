"""`albert_tf.training.student`: which weights of a teacher its student starts with."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from tiny_data import TinyFiles
from tiny_models import randomize
from tiny_teachers import TEACHER_SHAPE, begun, save_teacher, student_run

from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.training.student import student_of


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory, tiny_files: TinyFiles) -> Path:
    return save_teacher(tmp_path_factory.mktemp("teacher") / "teacher", "classification", tiny_files)


def test_a_student_with_fewer_passes_of_one_block_has_every_weight(teacher: Path, tiny_files: TinyFiles) -> None:
    training, model, _ = begun(student_run(tiny_files, teacher, Path("out")))
    wanted = {variable.path: np.asarray(variable) for variable in training.teacher.weights}
    assert model.backbone.config == dataclasses.replace(TEACHER_SHAPE, num_layers=2) and not model.head_is_new
    for variable in model.weights:
        np.testing.assert_array_equal(np.asarray(variable), wanted[variable.path])
    assert training.origin(training.run, model) == f"student: every weight from {teacher}"


def test_layers_with_weights_of_their_own_are_those_they_stand_for(tiny_files: TinyFiles, tmp_path: Path) -> None:
    own = save_teacher(tmp_path / "teacher", "classification", tiny_files, shape={"sharing": "none", "num_layers": 4})
    teacher = AlbertTextClassifier.from_pretrained(own)
    student, new = student_of(teacher, {"num_layers": 2}, {}, {"labels": ["cold", "warm"]})
    assert new == []
    weights, wanted = ({v.path: np.asarray(v) for v in model.weights} for model in (student, teacher))
    for half in ("attention", "feed_forward"):
        for layer, place in ((0, 1), (1, 3)):
            kernel = f"encoder/{half}_{{}}/output/kernel"
            np.testing.assert_array_equal(weights[kernel.format(layer)], wanted[kernel.format(place)])


def test_a_narrower_student_keeps_what_fits(teacher: Path) -> None:
    model = AlbertTextClassifier.from_pretrained(teacher)
    randomize(model, 5)
    student, new = student_of(model, {"hidden_dim": 12}, {}, {"labels": ["cold", "warm"]})
    assert {name.partition("/")[0] for name in new} == {"embeddings", "encoder", "pooler", "classifier"}
    kept = {v.path for v in student.weights} - set(new)
    assert "embeddings/word_embedding/embeddings" in kept and "embeddings/projection/kernel" in new
    assert student.head_is_new and student.pooler_is_new
