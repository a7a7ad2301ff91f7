"""Fixtures that several test modules use."""

import os
from pathlib import Path

import pytest
from tiny_data import TinyFiles, tiny_run, write_files

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

pytest_plugins = ["app_folders", "tf1_folders"]

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data; tests that need it skip where it is absent (it is not part of the project)."""
    folder = Path(os.environ.get("ALBERT_TF_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"real data not found at {folder}; set ALBERT_TF_DATA")
    return folder


@pytest.fixture(scope="session")
def tiny_files(tmp_path_factory: pytest.TempPathFactory) -> TinyFiles:
    """Files that a tiny run reads; no test changes them."""
    return write_files(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def finished_run(tiny_files: TinyFiles, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of `tiny_run`; no test changes it."""
    from albert_tf.training.finetune import finetune

    out = tmp_path_factory.mktemp("runs") / "finished"
    finetune(tiny_run(tiny_files, out), report=lambda line: None)
    return out


@pytest.fixture(scope="session")
def finished_tflite(finished_run: Path) -> Path:
    """`finished_run` as a dynamic_int8 file beside it; no test changes it."""
    from albert_tf.tasks.classification import AlbertTextClassifier
    from export.tflite import export_tflite

    path = finished_run.with_suffix(".tflite")
    export_tflite(AlbertTextClassifier.from_pretrained(finished_run), path)
    return path
