"""What `albert-tf export android --check` finds in a folder."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from app_folders import golden_of
from command_line import Done, albert_tf, assert_refused

from albert_tf.evaluation.report import write_json
from export.android_manifest import folder_differences, read_manifest


@pytest.fixture
def copied(app_folder: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(app_folder, tmp_path / "copied"))


def checked(folder: Path, capsys: pytest.CaptureFixture[str]) -> Done:
    return albert_tf(capsys)("export", "android", "--check", folder)


@pytest.mark.parametrize("file", ["messages/messages.tflite", "questions/device.spm", "entities/labels.txt"])
def test_a_changed_file_is_named(file: str, copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = copied / file
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    done = checked(copied, capsys)
    assert done.code == 1 and done.out == ""
    assert done.err.startswith(f"albert-tf: {file}: has the sha256 ") and done.err.count("\n") == 1


def test_missing_added_and_longer_files_are_named(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copied / "messages" / "labels.txt").unlink()
    (copied / "messages" / "notes.txt").write_text("new", encoding="utf-8")
    with (copied / "entities" / "licence.txt").open("a", encoding="utf-8") as file:
        file.write("more\n")
    done = checked(copied, capsys)
    assert done.code == 1
    for line in (
        "messages/labels.txt: missing",
        "messages/notes.txt: not in manifest.json",
        "entities/licence.txt: has ",
    ):
        assert f"albert-tf: {line}" in done.err


def resealed(folder: Path, name: str, change: Any) -> None:
    """Changes a model's golden answers, with the sum in the manifest, so that only running the file tells."""
    golden = golden_of(folder, name)
    change(golden)
    text = json.dumps(golden)
    (folder / name / "golden.json").write_text(text, encoding="utf-8")
    manifest = read_manifest(folder)
    for model in manifest["models"]:
        for file in model["files"]:
            if (model["name"], file["name"]) == (name, "golden.json"):
                file |= {"bytes": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    write_json(folder / "manifest.json", manifest, overwrite=True)


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        (
            "messages",
            lambda g: g["examples"][3]["rows"][0]["token_ids"].__setitem__(1, 7),
            "other token ids or segment ids",
        ),
        (
            "messages",
            lambda g: g["examples"][3]["rows"][0]["outputs"].__setitem__("probabilities", [0.2, 0.3, 0.5]),
            "probabilities differ by",
        ),
        ("questions", lambda g: g["examples"][3]["answer"].__setitem__("answer", "elsewhere"), "golden says"),
        ("entities", lambda g: g["examples"][3]["answer"].__setitem__("entities", [1]), "golden says"),
        ("entities", lambda g: g.__setitem__("task", "qa"), "task: golden has qa, the file tagging"),
        ("entities", lambda g: g.__setitem__("format", 9), "expected golden answers of format 1"),
    ],
)
def test_other_answers_are_told(
    name: str, change: Any, expected: str, copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    resealed(copied, name, change)
    done = checked(copied, capsys)
    assert done.code == 1 and f"albert-tf: {name}: " in done.err and expected in done.err


def test_a_manifest_that_says_other_things_than_the_files(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = read_manifest(copied)
    manifest["models"][1]["parameters"] += 1
    write_json(copied / "manifest.json", manifest, overwrite=True)
    done = checked(copied, capsys)
    assert done.code == 1 and "manifest.json: models[1].parameters is" in done.err


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": 2}', '{"format": 1, "models": [{"name": "../x", "files": []}]}']
)
def test_damaged_manifests_are_refused(text: str, copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copied / "manifest.json").write_text(text, encoding="utf-8")
    assert_refused(checked(copied, capsys), "manifest.json")


def test_whole_again(copied: Path) -> None:
    assert folder_differences(copied) == []
