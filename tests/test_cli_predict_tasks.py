"""What `albert-tf predict` reads and prints of each task: JSON objects in and out, words with labels, options chosen."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import albert_tf, assert_refused
from tiny_tasks import save_task

QUESTIONS = [
    {"passage": "the people", "question": "who is turning?", "options": ["people", "the sea"], "answer": "A", "id": 7},
    {"question": "the _ is turning", "options": ["sea", "wheel", "people", "day", "wind"]},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    for name in ("tagging", "multiple-choice", "regression"):
        save_task(folder / name, name)
    return folder


@pytest.fixture(scope="module")
def files(folder: Path) -> dict[str, list[Path]]:
    """Task → its folder and its .tflite file."""
    from albert_tf.tasks.trained import load_task
    from export.tflite import export_tflite

    for name in ("tagging", "multiple-choice"):
        export_tflite(load_task(folder / name), folder / f"{name}.tflite", recipe="float32")
    return {name: [folder / name, folder / f"{name}.tflite"] for name in ("tagging", "multiple-choice")}


def jsonl(path: Path, objects: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(item) + "\n" for item in objects), encoding="utf-8")
    return path


def answers(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_objects_keep_their_fields(finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = albert_tf(capsys)
    given = [
        {"id": 1, "text": "ice and snow", "label": "warm", "more": {"a": [None, 1.5]}},
        {"Sentence1": "ice", "sentence2": "snow", "id": "x"},
    ]
    done = command("predict", finished_run, "--file", jsonl(tmp_path / "in.jsonl", given), "--jsonl")
    first, second = answers(done.out)
    assert {"id": 1, "text": "ice and snow", "input_label": "warm", "more": {"a": [None, 1.5]}}.items() <= first.items()
    assert first["label"] == "cold" and first["probabilities"].keys() == {"cold", "warm"}
    assert second["Sentence1"] == "ice" and second["id"] == "x" and "input_label" not in second
    (pair,) = answers(command("predict", finished_run, "--text", "ice", "--pair", "snow", "--jsonl").out)
    assert pair["probabilities"] == pytest.approx(second["probabilities"], abs=1e-6)
    columns = command("predict", finished_run, "--file", tmp_path / "in.jsonl").out.splitlines()
    assert [line.split("\t")[::2] for line in columns] == [["cold", "ice and snow"], [second["label"], "ice"]]


def test_objects_from_standard_input(
    finished_tflite: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content = '\ufeff{"review": "ice and snow", "text": "fire"}\r\n{"review": "the fire of summer", "text": "snow"}\n\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    words = ("predict", finished_tflite, "--input", "jsonl", "--text-column", "review", "--jsonl")
    assert [answer["label"] for answer in answers(albert_tf(capsys)(*words).out)] == ["cold", "warm"]


def test_a_file_of_objects_may_be_read_as_lines(
    finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = jsonl(tmp_path / "in.jsonl", [{"text": "ice"}])
    done = albert_tf(capsys)("predict", finished_run, "--file", path, "--input", "lines")
    assert done.out.endswith('\t{"text": "ice"}\n')


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"text": "a"}\n{"body": "b"}\n', "in.jsonl, line 2: the object: which column is the text?"),
        ('{"text": 5}\n', "in.jsonl, line 1: the object: expected a string as the text, got 5"),
        ('{"text": "a"\n', "in.jsonl, line 1: not JSON"),
        ('["a"]\n', "in.jsonl, line 1: expected a JSON object, got"),
        ('{"text": "a"}\n\n{"text": "b"}\n', "in.jsonl, line 2: a blank line between JSON objects; remove it"),
        ('{"text": "a", "text": "b"}\n', "in.jsonl, line 1: the key 'text' stands twice"),
        ('{"text": "a", "label": 1, "input_label": 2}\n', "line 1: has 'label' and 'input_label' too"),
        ("", "expected texts, one a line; found none"),
    ],
)
def test_objects_that_cannot_be_used(
    content: str, expected: str, finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.jsonl").write_text(content)
    assert_refused(albert_tf(capsys)("predict", finished_run, "--file", tmp_path / "in.jsonl", "--jsonl"), expected)


def test_words_with_labels(files: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Columns and JSON lines say the same, and so do a text and its words, a folder and a file."""
    command = albert_tf(capsys)
    texts = ["the people, turning by 明天", ""]
    tokens = [["the", "people", ",", "turning", "by", "明", "天"], []]
    path = jsonl(tmp_path / "in.jsonl", [{"tokens": words, "labels": ["O"] * len(words), "n": 1} for words in tokens])
    (tmp_path / "in.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    seen = []
    for model in files["tagging"]:
        of_texts = answers(command("predict", model, "--file", tmp_path / "in.txt", "--jsonl").out)
        of_words = answers(command("predict", model, "--file", path, "--jsonl").out)
        assert [answer["tokens"] for answer in of_texts] == tokens
        assert [answer["text"] for answer in of_texts] == texts
        for ours, theirs in zip(of_texts, of_words, strict=True):
            assert ours["labels"] == theirs["labels"] and ours["scores"] == theirs["scores"]
            assert theirs["n"] == 1 and set(theirs["input_labels"]) <= {"O"}
            for entity, other in zip(ours["entities"], theirs["entities"], strict=True):
                assert ours["text"][entity["start"] : entity["end"]] == entity["text"]
                own = ours["labels"][other["first_word"] : other["last_word"] + 1]
                assert own == [f"B-{entity['type']}", *[f"I-{entity['type']}"] * (len(own) - 1)]
                assert (entity["type"], entity["score"]) == (other["type"], other["score"])
        lines = command("predict", model, "--file", tmp_path / "in.txt").out
        words = [f"{word}\t{label}" for word, label in zip(tokens[0], of_texts[0]["labels"], strict=True)]
        assert lines == "\n".join([*words, "", "", ""])
        seen.append(of_texts[0]["labels"])
    assert seen[0] == seen[1] and len(set(seen[0])) > 1


def test_a_terminal_shows_entities_in_color(folder: Path) -> None:
    from albert_tf.cli.predict_tasks import PREDICT_TASKS
    from albert_tf.data.conll import TaggedExample
    from albert_tf.inference.tagging import Tagged

    words = ("the", "old", "people", "sing")
    answer = Tagged(("O", "B-PER", "I-PER", "B-LOC"), (1.0,) * 4)
    colored = PREDICT_TASKS["tagging"].colored
    assert colored is not None
    for record in ({"tokens": list(words)}, {"text": "the old people sing"}):
        text = colored(record, TaggedExample(words), answer)
        assert text.plain == "the old people PER sing LOC"
        shown = {text.plain[span.start : span.end]: str(span.style) for span in text.spans}
        assert shown.keys() == {"old people", " PER", "sing", " LOC"}
        assert shown["old people"].startswith("black on ") and shown["old people"] != shown["sing"]


def test_unconstrained_tagging(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the rule every word has its most probable label; with it, what goes on has begun."""
    command = albert_tf(capsys)
    words = [word for text in ("the people turning by", "by by the the people turning") for word in ("--text", text)]
    free, ruled = (
        [answer["labels"] for answer in answers(command("predict", folder / "tagging", "--jsonl", *words, *more).out)]
        for more in (("--unconstrained",), ())
    )
    assert free != ruled
    for labels in ruled:
        for before, label in zip(["O", *labels], labels, strict=False):
            assert not label.startswith("I-") or before[1:] == label[1:]


def test_options_chosen(files: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = albert_tf(capsys)
    path = jsonl(tmp_path / "in.jsonl", QUESTIONS)
    for model in files["multiple-choice"]:
        first, second = answers(command("predict", model, "--file", path, "--jsonl").out)
        assert first["input_answer"] == "A" and first["id"] == 7
        for answer, question in ((first, QUESTIONS[0]), (second, QUESTIONS[1])):
            assert len(answer["probabilities"]) == len(question["options"])
            assert sum(answer["probabilities"]) == pytest.approx(1)
            best = max(range(len(question["options"])), key=answer["probabilities"].__getitem__)
            assert (answer["answer"], answer["option"]) == ("ABCDE"[best], question["options"][best])
        lines = [line.split("\t") for line in command("predict", model, "--file", path).out.splitlines()]
        assert [line[::2] for line in lines] == [[a["answer"], a["option"]] for a in (first, second)]
        assert [line[3] for line in lines] == [question["question"] for question in QUESTIONS]


def test_a_value(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = albert_tf(capsys)
    value = float(command("predict", folder / "regression", "--text", "the people").out.split("\t")[0])
    (answer,) = answers(command("predict", folder / "regression", "--text", "the people", "--jsonl").out)
    assert answer == {"text": "the people", "value": pytest.approx(value, abs=1e-4)}


@pytest.mark.parametrize(
    ("model", "words", "expected"),
    [
        ("multiple-choice", ("--text", "a"), "--text: this model takes JSON objects"),
        ("multiple-choice", ("--input", "lines", "--file", "in.jsonl"), "--input lines: this model takes JSON objects"),
        ("multiple-choice", ("--file", "in.jsonl"), "in.jsonl, line 1: the object: expected a string as the question"),
        ("tagging", ("--text", "a", "--pair", "b"), "--pair: this model takes texts"),
        ("tagging", ("--text", "a", "--text-column", "b"), "--text-column is for classification, "),
        ("tagging", ("--file", "in.jsonl"), "line 1: expected a list of words as one of tokens, words, text"),
        (
            "regression",
            ("--text", "a", "--unconstrained"),
            "--unconstrained is for tagging; this model is for regression",
        ),
    ],
)
def test_what_a_task_does_not_take(
    model: str,
    words: tuple[str, ...],
    expected: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "in.jsonl").write_text('{"answer": 1}\n')
    monkeypatch.chdir(tmp_path)
    assert_refused(albert_tf(capsys)("predict", folder / model, *words), expected)
