"""`albert_tf.cli.models`: a run folder or a .tflite file, told apart and checked."""

from pathlib import Path

import numpy as np
import pytest

from albert_tf.cli.models import open_classifier
from albert_tf.errors import InputError
from albert_tf.tasks.classification import AlbertTextClassifier
from export.runtime import TFLiteRunner

TEXTS = ["ice and snow", "fire"]


def test_both_answer_alike(finished_run: Path, finished_tflite: Path) -> None:
    folder, file = open_classifier(finished_run), open_classifier(finished_tflite, threads=2)
    assert isinstance(folder, AlbertTextClassifier) and isinstance(file, TFLiteRunner)
    assert tuple(folder.labels) == tuple(file.labels) == ("cold", "warm")
    ours, theirs = folder.predict_probabilities(TEXTS), file.predict_probabilities(TEXTS)
    np.testing.assert_allclose(ours, theirs, atol=0.05)  # int8


def test_a_link_to_a_run_folder(finished_run: Path, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(finished_run)
    assert open_classifier(tmp_path / "latest").labels == ("cold", "warm")


def test_what_is_neither(finished_run: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no model")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "task.json").write_text('{"task": "tagging", "settings": {}}')
    for path, expected in (
        (tmp_path / "absent", "no such file or folder; expected a run folder or a .tflite file"),
        (tmp_path / "notes.txt", "expected a TFLite file"),
        (tmp_path / "other", "found only task.json"),
    ):
        with pytest.raises(InputError, match=expected):
            open_classifier(path)


@pytest.mark.parametrize("threads", [0, -1])
def test_threads(finished_run: Path, finished_tflite: Path, threads: int) -> None:
    for path in (finished_run, finished_tflite):
        with pytest.raises(InputError, match=f"--threads: expected at least 1, got {threads}"):
            open_classifier(path, threads=threads)
