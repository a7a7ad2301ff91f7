"""A model given on the command line: a run folder or another checkpoint of a task, a bundled one, or a `.tflite` file."""

from pathlib import Path

from albert_tf.bundled import bundled_model
from albert_tf.conversion.archive import is_archive
from albert_tf.errors import InputError
from albert_tf.inference.runner import Runner


def open_runner(path: Path, *, threads: int = 1) -> Runner:
    """The trained task in `path`, or of that name in the package. TensorFlow is not loaded for a `.tflite` file.

    Raises:
        InputError: neither, or not readable, or a number of threads below 1.
    """
    if threads < 1:
        raise InputError(f"--threads: expected at least 1, got {threads}")
    path = bundled_model(path) or path
    if path.is_dir() or path.suffix.lower() == ".keras" or is_archive(path):
        from albert_tf.tasks.trained import load_task

        return load_task(path)
    if not path.exists():
        raise InputError(f"{path}: no such file or folder; expected a run folder or a .tflite file")
    from export.runtime import TFLiteRunner

    return TFLiteRunner(path, threads=threads)
