"""`albert-tf evaluate`: the metrics of what `predict` answers, for a run folder and a .tflite file."""

from pathlib import Path

import numpy as np
import pytest
from command_line import albert_tf, assert_refused
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, log_loss, matthews_corrcoef
from tiny_data import TinyFiles, read_json, separable_rows, write_table

ROWS = separable_rows(30, seed=5)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Texts with the wrong label now and then, so that no metric is 1."""
    rows = [(text, "warm" if index % 5 == 0 else label) for index, (text, label) in enumerate(ROWS)]
    return write_table(tmp_path / "test.tsv", rows, ("said", "season"))


@pytest.fixture(params=["folder", "tflite"])
def model(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue({"folder": "finished_run", "tflite": "finished_tflite"}[request.param])


def test_metrics_are_those_of_the_predictions(
    model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = albert_tf(capsys)
    columns = ("--text-column", "said", "--label-column", "season")
    done = command("evaluate", model, "--data", data, *columns, "--json", tmp_path / "metrics.json")
    assert (done.code, done.err) == (0, "")
    metrics = read_json(tmp_path / "metrics.json")

    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text, _ in ROWS))
    answers = command("predict", model, "--file", tmp_path / "texts.txt", "--jsonl").out.splitlines()
    (tmp_path / "answers.json").write_text(f"[{','.join(answers)}]")
    answers = read_json(tmp_path / "answers.json")
    true = [line.split("\t")[1] for line in data.read_text().splitlines()[1:]]
    predicted = [answer["label"] for answer in answers]
    rows = np.array([[answer["probabilities"][label] for label in ("cold", "warm")] for answer in answers])
    rows /= rows.sum(axis=1, keepdims=True)
    assert 0.5 < metrics["accuracy"] < 1
    assert metrics["accuracy"] == accuracy_score(true, predicted)
    assert metrics["f1"] == pytest.approx(f1_score(true, predicted, pos_label="warm"))
    assert metrics["macro_f1"] == pytest.approx(f1_score(true, predicted, average="macro"))
    assert metrics["matthews_correlation"] == pytest.approx(matthews_corrcoef(true, predicted))
    assert metrics["loss"] == pytest.approx(log_loss(true, rows, labels=["cold", "warm"]), abs=1e-5)
    assert metrics["confusion_matrix"] == confusion_matrix(true, predicted).tolist()
    assert metrics["support"] == {"cold": true.count("cold"), "warm": true.count("warm")}
    assert f"{metrics['accuracy']:.4f}" in done.out and "30 examples" in " ".join(done.out.split())


def test_metrics_json_of_the_run_is_the_same(
    finished_run: Path, tiny_files: TinyFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    albert_tf(capsys)("evaluate", finished_run, "--data", tiny_files.dev, "--json", tmp_path / "metrics.json")
    ours, theirs = read_json(tmp_path / "metrics.json"), read_json(finished_run / "metrics.json")["valid"]
    assert ours.pop("loss") == pytest.approx(theirs.pop("loss"), abs=1e-6)
    assert ours == theirs


def test_pairs_count(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command, losses = albert_tf(capsys), []
    for header in (("text", "id", "label"), ("text_a", "text_b", "label")):  # the second is known as a pair
        data = write_table(tmp_path / f"{header[0]}.tsv", [(a, "fire", b) for a, b in ROWS[:6]], header)
        out = tmp_path / f"{header[0]}.json"
        assert command("evaluate", model, "--data", data, "--json", out).code == 0
        losses.append(read_json(out)["loss"])
    assert losses[0] != losses[1]


@pytest.mark.parametrize(
    ("content", "words", "expected"),
    [
        ("text\tlabel\na\thot\n", (), "row 1 ('a') has the label 'hot'; the model's labels are cold, warm"),
        ("text\na\n", (), "which column is the label"),
        ("text\tlabel\na\t\n", (), "line 2: expected a label"),
        ("", (), "the file is empty"),
        ("text\tlabel\na\tcold\n", ("--threads", "0"), "--threads: expected at least 1, got 0"),
        ("text\tlabel\na\tcold\n", ("--text-column", "7"), "no column 7"),
    ],
    ids=["unknown label", "no labels", "blank label", "empty", "threads", "column"],
)
def test_unusable_input_is_one_line(
    content: str, words: tuple[str, ...], expected: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data.tsv").write_text(content)
    assert_refused(albert_tf(capsys)("evaluate", model, "--data", tmp_path / "data.tsv", *words), expected)


def test_missing_files(finished_tflite: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = albert_tf(capsys)
    columns = ("--text-column", "said", "--label-column", "season")
    assert_refused(command("evaluate", tmp_path / "absent", "--data", data, *columns), "absent: no such file or folder")
    assert_refused(command("evaluate", finished_tflite, "--data", tmp_path / "no.tsv"), "cannot read", "no.tsv")
    (tmp_path / "old.json").write_text("{}")
    done = command("evaluate", finished_tflite, "--data", data, *columns, "--json", tmp_path / "old.json")
    assert_refused(done, "old.json exists already")
    done = command(
        "evaluate", finished_tflite, "--data", data, *columns, "--json", tmp_path / "old.json", "--overwrite"
    )
    assert done.code == 0 and read_json(tmp_path / "old.json")["examples"] == 30
