"""`albert_tf.cli.models`: a run folder or a .tflite file, told apart and checked."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from albert_tf.cli.models import open_runner
from albert_tf.errors import InputError
from albert_tf.inference.classification import ClassificationPipeline
from albert_tf.tasks.classification import AlbertTextClassifier
from export.runtime import TFLiteRunner

TEXTS = ["ice and snow", "fire"]


def test_both_answer_alike(finished_run: Path, finished_tflite: Path) -> None:
    folder, file = open_runner(finished_run), open_runner(finished_tflite, threads=2)
    assert isinstance(folder, AlbertTextClassifier) and isinstance(file, TFLiteRunner)
    assert folder.task_settings == file.task_settings
    ours, theirs = (ClassificationPipeline(runner).predict_probabilities(TEXTS) for runner in (folder, file))
    np.testing.assert_allclose(ours, theirs, atol=0.05)  # int8


def test_a_link_to_a_run_folder(finished_run: Path, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(finished_run)
    assert open_runner(tmp_path / "latest").task_settings["labels"] == ["cold", "warm"]


def test_what_is_neither(finished_run: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no model")
    shutil.copytree(finished_run, tmp_path / "other")
    (tmp_path / "other" / "task.json").write_text('{"task": "poetry", "settings": {}}')
    for path, expected in (
        (tmp_path / "absent", "no such file or folder; expected a run folder or a .tflite file"),
        (tmp_path / "notes.txt", "expected a TFLite file"),
        (tmp_path / "other", "task.json: expected a task among classification.*, found 'poetry'"),
    ):
        with pytest.raises(InputError, match=expected):
            open_runner(path)


@pytest.mark.parametrize("threads", [0, -1])
def test_threads(finished_run: Path, finished_tflite: Path, threads: int) -> None:
    for path in (finished_run, finished_tflite):
        with pytest.raises(InputError, match=f"--threads: expected at least 1, got {threads}"):
            open_runner(path, threads=threads)
