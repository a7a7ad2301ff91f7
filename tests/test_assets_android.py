"""The models in android_demo_assets: what the manifest says, small enough, and right where they were measured."""

import json
from typing import Any

import pytest
from conftest import ROOT

from export.android_manifest import MANIFEST, folder_differences, manifest_of, manifest_text, read_manifest

FOLDER = ROOT / "android_demo_assets"
NAMES = ["entities", "messages", "questions"]
MOST_BYTES = 25_000_000


def golden(name: str) -> list[dict[str, Any]]:
    examples: list[dict[str, Any]] = json.loads((FOLDER / name / "golden.json").read_text(encoding="utf-8"))["examples"]
    return examples


def test_the_manifest_is_made_of_the_files_that_are_there() -> None:
    assert [model["name"] for model in read_manifest(FOLDER)["models"]] == NAMES
    assert manifest_text(manifest_of(FOLDER, NAMES)) == (FOLDER / MANIFEST).read_text(encoding="utf-8")
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) <= MOST_BYTES


def test_the_files_answer_as_the_golden_answers_say() -> None:
    assert folder_differences(FOLDER) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_licence_names_the_encoder_and_its_teacher(name: str) -> None:
    (note,) = [path for path in (FOLDER / name).iterdir() if "licen" in path.name.casefold()]
    text = note.read_text(encoding="utf-8")
    assert "albert_tiny_en" in text and "all-MiniLM-L6-v2" in text


def test_there_are_enough_golden_examples() -> None:
    for name in NAMES:
        assert len(golden(name)) >= 20 and all("answer" in example for example in golden(name)), name
