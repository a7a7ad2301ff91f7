"""Depth on the command line: from finetune to predict on a file, and wrong use in one line."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from command_line import albert_tf, assert_refused
from tiny_data import TinyFiles, flags, read_json, run_quietly, separable_rows, tiny_run, tiny_task_run
from tiny_questions import question_run

from albert_tf.training.task_runs import TaggingRun

TEXT = "ice and snow and frost"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("depth")


@pytest.fixture(scope="module")
def deeper(tiny_files: TinyFiles, folder: Path) -> TinyFiles:
    """Files for a model of three layers."""
    shape = json.loads(tiny_files.shape.read_text(encoding="utf-8")) | {"num_layers": 3}
    (folder / "shape.json").write_text(json.dumps(shape), encoding="utf-8")
    return dataclasses.replace(tiny_files, shape=folder / "shape.json")


def means(lines: str) -> float:
    """The mean depth that `predict` says."""
    return float(lines.removeprefix("albert-tf: ").split()[0])


def test_early_exit_from_training_to_a_file(
    deeper: TinyFiles, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, run = albert_tf(capsys), folder / "run"
    words = flags(tiny_run(deeper, run, epochs=4.0))
    done = command(*words, "--early-exit", "confidence", "--exit-threshold", 0.8)
    assert done.code == 0, done.err
    exits = read_json(run / "task.json")["settings"]["exits"]
    assert exits == {"rule": "confidence", "patience": 1, "threshold": 0.8, "heads": "shared"}

    file = folder / "seasons.tflite"
    done = command("export", "tflite", run, "--recipe", "float32", "--out", file, "--json", folder / "report.json")
    assert done.code == 0 and "mean depth" in done.out, done.err
    assert read_json(folder / "report.json")["depth"]["same_depth"] == 1.0
    for model in (run, file):
        for words, depth in ((("--exit-threshold", 0), 1), (("--exit-threshold", 1), 3), (("--passes", 1), 1)):
            done = command("predict", model, "--text", TEXT, *words)
            assert (done.code, means(done.err)) == (0, depth)
            assert done.out.split("\t")[0] in ("cold", "warm")
            figures = folder / "figures.json"
            done = command("evaluate", model, "--data", deeper.dev, *words, "--json", figures, "--overwrite")
            assert done.code == 0 and read_json(figures)["mean_depth"] == depth
    assert_refused(command("predict", file, "--text", TEXT, "--passes", 4), "expected 1 to 3, the passes of this model")
    done = command("export", "tflite", run, "--form", "unrolled", "--out", folder / "no.tflite")
    assert_refused(done, "unrolled files have every pass written out", "--adaptive none")
    done = command("export", "tflite", run, "--adaptive", "none", "--exit-patience", 2, "--out", folder / "no.tflite")
    assert_refused(done, "go with --adaptive exits, not none")
    assert not (folder / "no.tflite").exists()


@pytest.mark.parametrize("head", ["tagging", "span", "squad2"])
def test_rows_with_several_choices_from_training_to_a_file(
    head: str, deeper: TinyFiles, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, out, own = albert_tf(capsys), folder / head, folder / f"files of {head}"
    own.mkdir()
    exits: dict[str, Any] = {"early_exit": "confidence", "exit_threshold": 0.6, "epochs": 3.0}
    if head == "tagging":
        data = own / "train.conll"
        rows = [[f"{word}\t{'S-X' if len(word) > 4 else 'O'}\n" for word in t.split()] for t, _ in separable_rows(48)]
        data.write_text("\n".join("".join(row) for row in rows), encoding="utf-8")
        run_quietly(tiny_task_run(TaggingRun, deeper, out, data, **exits))
        asked: tuple[Any, ...] = ("--text", TEXT)
    else:
        run = question_run(deeper, own, out, head=head, **exits)
        run_quietly(run)
        data = Path(str(run.valid))
        (own / "passage.txt").write_text(TEXT, encoding="utf-8")
        asked = ("--question", "is it very cold", "--context-file", own / "passage.txt")
    file, figures = folder / f"{head}.tflite", folder / "figures.json"
    done = command("export", "tflite", out, "--recipe", "float32", "--out", file, "--json", folder / f"{head}.json")
    assert done.code == 0 and "mean depth" in done.out, done.err
    assert read_json(folder / f"{head}.json")["depth"]["same_depth"] >= 0.99
    found = []
    for words, depth in ((("--exit-threshold", 0), 1), (("--exit-threshold", 1), 3), ((), None)):
        for model in (out, file):
            done = command("evaluate", model, "--data", data, *words, "--json", figures, "--overwrite")
            assert done.code == 0, done.err
            found.append(read_json(figures))
            assert depth is None or found[-1]["mean_depth"] == depth
            done = command("predict", model, *asked, *words)
            assert done.code == 0 and (means(done.err) == depth or depth is None), done.err
    keras, exported = found[-2:]
    for name in ("f1", "mean_depth"):
        assert exported[name] == pytest.approx(keras[name], rel=0.01)


def test_random_depth_from_training_to_a_file(
    deeper: TinyFiles, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, run = albert_tf(capsys), folder / "random"
    done = command(*flags(tiny_run(deeper, run, epochs=2.0)), "--random-depth", 1)
    assert done.code == 0, done.err
    files: dict[str, Any] = {name: folder / f"{name}.tflite" for name in ("plain", "passes")}
    assert command("export", "tflite", run, "--out", files["plain"]).code == 0
    assert command("export", "tflite", run, "--adaptive", "passes", "--out", files["passes"]).code == 0
    for passes in (1, 2, 3):
        answers = [command("predict", one, "--text", TEXT, "--passes", passes) for one in (run, files["passes"])]
        assert [done.code for done in answers] == [0, 0]
        first, second = (done.out.split("\t") for done in answers)
        assert first[0] == second[0] and float(first[1]) == pytest.approx(float(second[1]), abs=0.02)
    done = command("predict", files["plain"], "--text", TEXT, "--passes", 1)
    assert_refused(done, "always makes all passes", "--adaptive passes")
    done = command("predict", run, "--text", TEXT, "--exit-patience", 1)
    assert_refused(done, "does not exit early", "--early-exit")
    done = command("export", "tflite", run, "--exit-patience", 1, "--out", folder / "no.tflite")
    assert_refused(done, "no early exits; give --exit-rule too")
    served = folder / "served"
    assert (
        command("export", "saved-model", run, "--adaptive", "exits", "--exit-rule", "entropy", "--out", served).code
        == 0
    )


def test_wrong_use_is_told_in_one_line(deeper: TinyFiles, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command, words = albert_tf(capsys), flags(tiny_run(deeper, folder / "never"))
    assert_refused(command(*words, "--early-exit", "mood"), "--early-exit mood", "patience, confidence, entropy")
    done = command(*words, "--random-depth", 9)  # known when the model is there
    assert done.code == 2 and "expected 1 to 3, the layers of this model; got 9" in done.err
    assert_refused(command(*words, "--exit-heads", "own"), "go with --early-exit RULE")
    choices = ("finetune", "multiple-choice", "--train", deeper.train, "--from", folder, "--out", folder / "never")
    done = command(*choices, "--early-exit", "patience")
    assert_refused(done, "--early-exit patience: not for multiple-choice; leave it out")
    questions = ("finetune", "question-answering", *choices[2:], "--early-exit", "patience")
    assert_refused(command(*questions, "--head", "squad2", "--exit-heads", "own"), "the head squad2 is not small")
    assert not (folder / "never").exists()
