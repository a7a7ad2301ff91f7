"""Several labels a text, from a table to a trained model, its file and its figures; never taken for a softmax."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import albert_tf, assert_refused
from sklearn.metrics import accuracy_score, f1_score
from tiny_data import WORDS, TinyFiles, read_json, run_quietly, tiny_task_run, write_table
from tiny_exports import new_classifier

from albert_tf.errors import InputError
from albert_tf.tasks.multi_label import AlbertMultiLabelClassifier
from albert_tf.training.task_runs import MultiLabelRun

LABELS = list(WORDS)


def rows(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Texts with words of none, one or both labels."""
    random = np.random.default_rng(seed)
    found = []
    for index in range(count):
        own = [label for number, label in enumerate(LABELS) if index >> number & 1]
        words = [str(random.choice(WORDS[label].split())) for label in own for _ in range(2)]
        found.append((" ".join(["the", *words, "day", "of"]), ",".join(own)))
    return found


@pytest.fixture(scope="module")
def trained(tiny_files: TinyFiles, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("multi_label")
    train = write_table(folder / "train.tsv", rows(48))
    run = tiny_task_run(MultiLabelRun, tiny_files, folder / "run", train, epochs=8.0, threshold=0.4)
    assert run_quietly(run)["valid"]["micro_f1"] > 0.8
    return folder / "run"


def test_figures_are_those_of_scikit_learn(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the answers of predict, for the folder and for the file."""
    from export.tflite import export_tflite

    export_tflite(AlbertMultiLabelClassifier.from_pretrained(trained), tmp_path / "m.tflite")
    command, test = albert_tf(capsys), rows(24, seed=5)
    wrong = [(text, labels if number % 5 else "cold") for number, (text, labels) in enumerate(test)]
    data = write_table(tmp_path / "test.tsv", wrong)
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text, "labels": []}) + "\n" for text, _ in test))
    for model in (trained, tmp_path / "m.tflite"):
        for threshold in ((), ("--threshold", "0.9")):
            done = command("predict", model, "--file", tmp_path / "in.jsonl", "--jsonl", *threshold)
            answers = [json.loads(line) for line in done.out.splitlines()]
            least = float((*threshold, "0.4")[1 if threshold else 0])
            for answer in answers:
                assert answer["labels"] == [label for label, p in answer["probabilities"].items() if p > least]
                assert answer["input_labels"] == []
            out = tmp_path / "m.json"
            assert command("evaluate", model, "--data", data, "--json", out, "--overwrite", *threshold).code == 0
            metrics = read_json(out)
            true = np.array([[label in labels.split(",") for label in LABELS] for _, labels in wrong])
            predicted = np.array([[label in answer["labels"] for label in LABELS] for answer in answers])
            assert metrics["micro_f1"] == pytest.approx(f1_score(true, predicted, average="micro"))
            assert metrics["macro_f1"] == pytest.approx(f1_score(true, predicted, average="macro"))
            assert metrics["subset_accuracy"] == accuracy_score(true, predicted) < 1
    columns = command("predict", trained, "--text", "ice snow fire sun", "--text", "the day").out.splitlines()
    assert columns == ["cold, warm\tice snow fire sun", "\tthe day"]


def test_it_is_not_taken_for_a_softmax(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from albert_tf.tasks.classification import AlbertTextClassifier
    from albert_tf.tasks.trained import load_task

    saved = read_json(trained / "task.json")
    assert saved["task"] == "multi-label" and saved["settings"]["threshold"] == 0.4
    assert isinstance(load_task(trained), AlbertMultiLabelClassifier)
    with pytest.raises(InputError, match="classification"):
        AlbertTextClassifier.from_pretrained(trained)
    # With the same labels a new head, not the other task's.
    assert AlbertTextClassifier.from_pretrained(trained, labels=LABELS).head_is_new
    softmax = new_classifier()
    softmax.save_pretrained(tmp_path / "softmax")
    assert AlbertMultiLabelClassifier.from_pretrained(tmp_path / "softmax", labels=softmax.labels).head_is_new
    done = albert_tf(capsys)("evaluate", trained, "--data", "x.tsv", "--calibration")
    assert_refused(done, "--calibration is for classification; this model is for multi-label")


def test_wrong_use(trained: Path, tiny_files: TinyFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = albert_tf(capsys)
    assert_refused(command("predict", trained, "--text", "a", "--threshold", "1"), "threshold: expected a probability")
    data = write_table(tmp_path / "data.tsv", [("a", "cold,hot")])
    assert_refused(command("evaluate", trained, "--data", data), "row 1 ('a') has the label 'hot'")
    with pytest.raises(InputError, match=r"--threshold: expected a number above 0.0 and below 1.0, got 1.0"):
        tiny_task_run(MultiLabelRun, tiny_files, tmp_path / "x", data, threshold=1.0)
