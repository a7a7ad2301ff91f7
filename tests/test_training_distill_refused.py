"""Teachers and students that do not go together: refused before the first step."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from tiny_data import TinyFiles
from tiny_teachers import TEACHER_SHAPE, begun, distill_quietly, save_teacher, student_run

from albert_tf.data.tables import read_examples
from albert_tf.errors import InputError
from albert_tf.training.distill_runs import DistillQuestionAnsweringRun, DistillTaggingRun


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory, tiny_files: TinyFiles) -> Path:
    return save_teacher(tmp_path_factory.mktemp("teacher") / "teacher", "classification", tiny_files)


def refused(run: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        distill_quietly(run)
    assert not Path(run.out).exists()


def test_a_teacher_of_another_task(teacher: Path, tiny_files: TinyFiles, tmp_path: Path) -> None:
    run = DistillTaggingRun(out=str(tmp_path / "run"), train=str(tiny_files.train), teacher=str(teacher))
    refused(run, "a model for classification; expected one for tagging")


def test_a_teacher_of_another_vocabulary(teacher: Path, tiny_files: TinyFiles, tmp_path: Path) -> None:
    """For answers alone it reads texts by its own; inner states have to be of the same tokens."""
    from albert_tf.tokenization.training import train_sentencepiece

    train_sentencepiece([example.text for example in read_examples(tiny_files.train)], 40).save(tmp_path)
    scratch = {"from_scratch": str(tiny_files.shape), "tokenizer": str(tmp_path / "vocabulary.spm"), "layers": None}
    run = student_run(tiny_files, teacher, tmp_path / "run", **scratch, epochs=1.0)
    refused(dataclasses.replace(run, hidden_weight=1.0), "has another vocabulary or other text rules than the student")
    refused(dataclasses.replace(run, augment=1, augment_candidates=2), "cannot propose words for it")
    _, student, rows = begun(run)
    assert student.backbone.config.vocabulary_size == 40 and rows.targets["teacher_outputs"].shape == (64, 2)


def test_a_teacher_for_shorter_texts(tiny_files: TinyFiles, tmp_path: Path) -> None:
    short = save_teacher(tmp_path / "teacher", "classification", tiny_files, shape={"max_sequence_length": 16})
    run = student_run(tiny_files, short, tmp_path / "run", from_scratch=str(tiny_files.shape), layers=None)
    refused(dataclasses.replace(run, hidden_weight=1.0), "--max-length 32: the teacher takes 16 tokens")


def test_labels_that_are_not_the_teachers(teacher: Path, tiny_files: TinyFiles, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("warm\ncold\n", encoding="utf-8")
    run = student_run(tiny_files, teacher, tmp_path / "run", label_file=str(tmp_path / "labels.txt"))
    refused(run, "has the labels warm, cold; the teacher's are cold, warm")
    (tmp_path / "train.tsv").write_text("text\tlabel\na day\thot\n", encoding="utf-8")
    refused(student_run(tiny_files, teacher, tmp_path / "run", train=str(tmp_path / "train.tsv")), "hot")


def test_heads_of_questions_have_to_be_alike(tiny_files: TinyFiles, tmp_path: Path) -> None:
    from tiny_questions import questions, write_questions

    own = save_teacher(tmp_path / "teacher", "question-answering", tiny_files, head="squad2")
    train = write_questions(tmp_path / "train.json", questions(4))
    run = DistillQuestionAnsweringRun(out=str(tmp_path / "run"), train=str(train), teacher=str(own), max_length=32)
    refused(run, "the teacher's head is squad2; give --head squad2")


def test_other_widths_of_attention(teacher: Path, tiny_files: TinyFiles, tmp_path: Path) -> None:
    run = student_run(tiny_files, teacher, tmp_path / "run", attention_weight=1.0, heads=4)
    refused(run, "the student has 4 and the teacher 2; give --heads 2")
    assert TEACHER_SHAPE.num_heads == 2
