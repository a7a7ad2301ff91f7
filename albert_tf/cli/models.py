"""A model given on the command line: a run folder, or a `.tflite` file."""

from pathlib import Path
from typing import TYPE_CHECKING

from albert_tf.errors import InputError
from albert_tf.evaluation.evaluate import Classifier

if TYPE_CHECKING:
    from albert_tf.tasks.classification import AlbertTextClassifier


def open_classifier(path: Path, *, threads: int = 1) -> Classifier:
    """The classifier in `path`. TensorFlow is loaded for a run folder only.

    Raises:
        InputError: neither, or not readable, or a number of threads below 1.
    """
    if threads < 1:
        raise InputError(f"--threads: expected at least 1, got {threads}")
    if path.is_dir():
        return open_task(path)
    if not path.exists():
        raise InputError(f"{path}: no such file or folder; expected a run folder or a .tflite file")
    from export.runtime import TFLiteRunner

    return TFLiteRunner(path, threads=threads)


def open_task(folder: Path) -> "AlbertTextClassifier":
    """The trained classifier of a run folder.

    Raises:
        InputError: not a run folder, or not readable.
    """
    from albert_tf.presets import read_task_settings

    if folder.exists() and read_task_settings(folder) is None:
        raise InputError(f"{folder}: no trained task here (no task.json); expected a run folder of albert-tf finetune")
    from albert_tf.tasks.classification import AlbertTextClassifier

    return AlbertTextClassifier.from_pretrained(folder)
