"""A folder for apps, made once of tiny models, and copies of it that tests may damage."""

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_data import read_json

NAMES = ["entities", "messages", "questions"]


@pytest.fixture(scope="session")
def app_runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A run folder of each task, with random weights."""
    from tiny_exports import new_classifier
    from tiny_tasks import EXAMPLES, TAGS, new_task

    folder = tmp_path_factory.mktemp("runs")
    tasks = {
        "messages": new_classifier(),
        "questions": new_task("question-answering", **EXAMPLES["question-answering"][0]),
        "entities": new_task("tagging", labels=TAGS),
    }
    for name, task in tasks.items():
        task.save_pretrained(folder / name)
    settings = {
        "source": "/somewhere/encoder",
        "train": "/somewhere/train.tsv",
        "valid": "gone.tsv",
        "seed": 3,
        "steps": None,
    }
    (folder / "messages" / "run.json").write_text(json.dumps(settings), encoding="utf-8")
    return [folder / name for name in tasks]


@pytest.fixture(scope="session")
def app_folder(app_runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for apps; no test changes it."""
    from export.android import export_android

    out = tmp_path_factory.mktemp("assets") / "assets"
    export_android(app_runs, out, recipe="float32")
    return out


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def golden_of(folder: Path, name: str) -> dict[str, Any]:
    golden: dict[str, Any] = read_json(folder / name / "golden.json")
    return golden
