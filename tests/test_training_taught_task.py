"""`albert_tf.training.taught_task`: which rows a student is given, with which targets, before anything is trained."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_data import TinyFiles
from tiny_teachers import begun, save_teacher, student_run

from albert_tf.data.tables import read_examples
from albert_tf.errors import InputError
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.tasks.distillation import LABELLED, TEACHER_OUTPUTS
from albert_tf.training.distill_runs import DistillMultiLabelRun, DistillRegressionRun


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory, tiny_files: TinyFiles) -> Path:
    return save_teacher(tmp_path_factory.mktemp("teacher") / "teacher", "classification", tiny_files)


@pytest.fixture(scope="module")
def texts(tiny_files: TinyFiles) -> list[str]:
    return [example.text for example in read_examples(tiny_files.train)]


def softmax(values: Any) -> Any:
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def write_lines(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_answers_of_the_teacher_are_taken_before(teacher: Path, tiny_files: TinyFiles, texts: list[str]) -> None:
    training, model, rows = begun(student_run(tiny_files, teacher, Path("out")))
    assert rows.targets.keys() == {"label", TEACHER_OUTPUTS} and model.labels == ("cold", "warm")
    assert not training.task.runs_in_steps and training.learner(model)._teacher.content is None
    own = AlbertTextClassifier.from_pretrained(teacher).predict_probabilities(texts)
    np.testing.assert_allclose(softmax(rows.targets[TEACHER_OUTPUTS]), own, atol=1e-5)
    training, model, rows = begun(student_run(tiny_files, teacher, Path("out"), hidden_weight=1.0))
    assert rows.targets.keys() == {"label"}
    assert training.task.runs_in_steps and training.learner(model)._teacher.content is training.teacher


def test_recorded_outputs_are_put_in_the_order_of_the_labels(
    teacher: Path, tiny_files: TinyFiles, texts: list[str], tmp_path: Path
) -> None:
    own = AlbertTextClassifier.from_pretrained(teacher).predict_probabilities(texts).astype(float)
    records = [
        {"text": t, "probabilities": {"warm": row[1], "cold": row[0]}} for t, row in zip(texts, own, strict=True)
    ]
    path = write_lines(tmp_path / "outputs.jsonl", [json.dumps(record) for record in records])
    run = student_run(tiny_files, teacher, tmp_path / "run", source=str(teacher))
    run = dataclasses.replace(run, teacher=None, teacher_outputs=str(path))
    training, model, rows = begun(run)
    assert model.labels == ("warm", "cold") and training.teacher is None and model.head_is_new
    np.testing.assert_allclose(softmax(rows.targets[TEACHER_OUTPUTS]), own[:, ::-1], atol=1e-5)
    short = write_lines(tmp_path / "short.jsonl", [json.dumps(record) for record in records[:-1]])
    with pytest.raises(InputError, match="expected a row for each of the 64 rows"):
        begun(dataclasses.replace(run, teacher_outputs=str(short)))


def test_plain_text_and_tables_without_labels(
    teacher: Path, tiny_files: TinyFiles, texts: list[str], tmp_path: Path
) -> None:
    plain = write_lines(tmp_path / "texts.txt", texts)
    table = write_lines(tmp_path / "some.tsv", ["text\tlabel", "ice\tcold", "sun\t", "fire\twarm"])
    for path, labelled in ((plain, [0.0] * 64), (table, [1.0, 0.0, 1.0])):
        lines: list[str] = []
        run = student_run(tiny_files, teacher, tmp_path / "run", train=str(path))
        training, model, rows = begun(run, lines.append)
        np.testing.assert_array_equal(rows.targets[LABELLED], labelled)
        assert (
            f"{sum(labelled):.0f} of {len(labelled)} texts have labels; the others are taught by the teacher alone"
            in lines
        )
        learner = training.learner(model)
        assert learner.lesson.hard_weight == (0.5 if sum(labelled) else 0.0) and not learner.all_labelled
    with pytest.raises(InputError, match=r"--hard-weight 1: no text of .*texts\.txt has a label"):
        begun(student_run(tiny_files, teacher, tmp_path / "run", train=str(plain), hard_weight=1.0))


@pytest.mark.parametrize(
    ("name", "run_class", "settings", "row"),
    [
        ("regression", DistillRegressionRun, {}, "1.5"),
        ("multi-label", DistillMultiLabelRun, {"labels": ["a", "b"]}, "a,b"),
    ],
)
def test_other_tasks_without_labels(
    name: str, run_class: Any, settings: Any, row: str, tiny_files: TinyFiles, tmp_path: Path
) -> None:
    own = save_teacher(tmp_path / "teacher", name, tiny_files, **settings)
    path = write_lines(tmp_path / "train.tsv", ["text\tlabel", f"ice and snow\t{row}"])
    plain = write_lines(tmp_path / "train.txt", ["ice and snow"])
    fields = {"out": str(tmp_path / "run"), "teacher": str(own), "layers": 1, "max_length": 32}
    _, _, rows = begun(run_class(train=str(path), **fields))
    _, _, unlabelled = begun(run_class(train=str(plain), **fields))
    assert LABELLED not in rows.targets and unlabelled.targets[LABELLED].tolist() == [0.0]
    np.testing.assert_array_equal(rows.targets[TEACHER_OUTPUTS], unlabelled.targets[TEACHER_OUTPUTS])


def test_varied_rows_are_answered_by_the_teacher_alone(teacher: Path, tiny_files: TinyFiles, tmp_path: Path) -> None:
    run = student_run(tiny_files, teacher, tmp_path / "run", augment=2, augment_candidates=3)
    _, _, rows = begun(run)
    _, _, plain = begun(dataclasses.replace(run, augment=0))
    assert len(rows.rows) == 3 * 64 and rows.rows[::3] == plain.rows
    assert rows.targets[LABELLED].tolist() == [1.0, 0.0, 0.0] * 64
    np.testing.assert_array_equal(rows.targets["label"], np.repeat(plain.targets["label"], 3))
    own, varied = plain.targets[TEACHER_OUTPUTS], rows.targets[TEACHER_OUTPUTS]
    np.testing.assert_allclose(varied[::3], own, atol=1e-5)
    assert np.abs(varied[1::3] - own).max() > 0.01
    again = begun(run)[2]
    assert again.rows == rows.rows and rows.made_by == plain.made_by != ""
