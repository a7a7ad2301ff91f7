"""Golden answers of exported folders in MediaPipe Tasks for Python, in Java and in the browser."""

import json
from pathlib import Path
from typing import Any

import pytest
from app_folders import golden_of
from client_python import CONSTRAINTS, ClientPython
from conftest import ROOT
from golden_clients import browser_differences, java_differences, mediapipe_differences
from java_client import Java
from test_clients_mediapipe import CLASSIFY
from tiny_exports import new_classifier
from tiny_tasks import EXAMPLES, TAGS, new_task

from export.android import export_android

pytestmark = pytest.mark.clients

NAMES = ("entities", "messages", "questions", "squad2")


@pytest.fixture(scope="module", params=["float32", "dynamic_int8", "committed"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models of random weights, those of questions with both heads; and the trained ones that are committed."""
    if request.param == "committed":
        return ROOT / "android_demo_assets"
    runs, out = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("assets") / "assets"
    settings = EXAMPLES["question-answering"][0]
    tasks = {
        "messages": new_classifier(),
        "questions": new_task("question-answering", no_answer_threshold=-2.0, **settings),
        "squad2": new_task("question-answering", head="squad2", start_beams=3, end_beams=3, **settings),
        "entities": new_task("tagging", labels=TAGS),
    }
    for name, task in tasks.items():
        if request.param == "float32" or name == "messages":  # random weights in 8 bits answer otherwise
            task.save_pretrained(runs / name)
    export_android(sorted(runs.iterdir()), out, recipe=request.param)
    return out


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> ClientPython:
    return ClientPython(tmp_path_factory.mktemp("client"), [*CONSTRAINTS, "mediapipe"])


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Java:
    return Java(tmp_path_factory.mktemp("java"))


def test_mediapipe_gives_the_golden_answers(client: ClientPython, folder: Path) -> None:
    assert mediapipe_differences(lambda file, texts: client.ask(CLASSIFY, file, texts), folder, "messages") == []


def test_the_browser_gives_the_golden_answers(folder: Path) -> None:
    lines, asked = browser_differences(folder, [name for name in NAMES if (folder / name).is_dir()])
    assert lines == [] and asked > 30


@pytest.mark.parametrize("name", NAMES)
def test_java_gives_the_golden_answers(java: Java, folder: Path, name: str) -> None:
    if (folder / name).is_dir():
        assert java_differences(java, folder, name) == [str(len(golden_of(folder, name)["examples"]))]


def only_the_first(example: dict[str, Any]) -> None:
    outputs = example["rows"][0]["outputs"]
    outputs["probabilities"] = [1.0, *[0.0] * (len(outputs["probabilities"]) - 1)]


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("messages", lambda e: e["rows"][0]["token_ids"].__setitem__(1, 7), "other token ids or segment ids in row 1"),
        (
            "entities",
            lambda e: e["rows"][0]["segment_ids"].__setitem__(1, 1),
            "other token ids or segment ids in row 1",
        ),
        ("entities", lambda e: e["rows"].append(e["rows"][0]), "rows, golden has "),
        ("messages", lambda e: e["answer"].__setitem__("label", "maybe"), "golden says maybe"),
        ("questions", lambda e: e["answer"].update(answer="x", start=0, end=1), "golden says x (0 to 1)"),
        (
            "messages",
            only_the_first,
            "probabilities differ by",
        ),
        (
            "entities",
            lambda e: e["answer"].__setitem__("entities", [{"type": "X", "start": 0, "end": 1}]),
            "X (0 to 1)",
        ),
    ],
)
def test_java_tells_what_differs(
    java: Java, folder: Path, tmp_path: Path, name: str, change: Any, expected: str
) -> None:
    if not (folder / name).is_dir():
        return
    golden = golden_of(folder, name)
    change(golden["examples"][3])
    (tmp_path / "golden.json").write_text(json.dumps(golden), encoding="utf-8")
    # A row of other ids is not run.
    _, *lines = java_differences(
        java, folder, name, tmp_path / "golden.json", outputs=not expected.startswith(("other", "rows"))
    )
    assert any(line.startswith("example 4: ") and expected in line for line in lines), lines
    assert not [line for line in lines if not line.startswith("example 4: ")]


def test_java_refuses_golden_answers_of_another_task(java: Java, folder: Path, tmp_path: Path) -> None:
    path = folder / "messages" / "messages.tflite"
    (tmp_path / "other.json").write_text('{"format": 1, "task": "tagging"}', encoding="utf-8")
    (line,) = java.run("golden", path, tmp_path / "other.json", "none")
    assert line.startswith("InputException: golden.json: expected format 1 and the task classification")
