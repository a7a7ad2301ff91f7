"""report.html of whole runs of each task: its figures, its worst examples, and the command that repeats it."""

import argparse
import dataclasses
import itertools
import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest
from pages import Page
from small_vocabularies import sentencepiece_vocabulary
from tiny_data import TinyFiles, pair_rows, read_json, run_quietly, separable_rows, tiny_run, tiny_task_run, write_table
from tiny_pretraining import SHAPE, make_data
from tiny_pretraining import tiny_run as tiny_pretraining_run
from tiny_questions import question_run

from albert_tf.data.schema import TextExample
from albert_tf.data.tables import read_examples
from albert_tf.evaluation import html_tasks
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from albert_tf.training import pretrain, run_page
from albert_tf.training.run_config import RunConfig
from albert_tf.training.run_page import command_line
from albert_tf.training.settings import Settings
from albert_tf.training.task_runs import (
    ClassificationRun,
    MultiLabelRun,
    MultipleChoiceRun,
    RegressionRun,
    SimilarityRun,
    TaggingRun,
)

FIRST, LAST = ["Metrics", "Curves"], ["Most wrong", "Lengths", "Warnings", "Settings", "Environment", "Again"]
HOSTILE = "the <script>alert('&\"')</script> \u202e fire שלום 😀 snow"


def page_of(folder: Path) -> Page:
    return Page((folder / "report.html").read_text(encoding="utf-8"))


def parsed(run_class: type[Settings], command: str, words: int) -> Settings:
    """The settings that a command line says."""
    parser = argparse.ArgumentParser()
    run_class.add_flags(parser)
    return run_class.from_flags(parser.parse_args(shlex.split(command)[words:]))


def run_of(task: str, files: TinyFiles, folder: Path) -> RunConfig:
    """A run of one round, on hostile texts where the task takes a table."""
    texts = [(HOSTILE if n % 5 == 0 else text, label) for n, (text, label) in enumerate(separable_rows(32))]
    changes: dict[str, Any] = {"epochs": 1.0}
    if task == "question-answering":
        return question_run(files, folder, folder / "run", head="squad2", **changes)
    if task == "tagging":
        own = {"ice", "fire", "sun", "snow"}
        lines = [[f"{w} S-{label}" if w in own else f"{w} O" for w in text.split()] for text, label in texts]
        path = folder / "train.conll"
        path.write_text("\n\n".join(map("\n".join, lines)), encoding="utf-8")
        return tiny_task_run(TaggingRun, files, folder / "run", path, **changes)
    if task == "multiple-choice":
        path = folder / "train.json"
        questions = {
            "questions": [text for text, _ in texts],
            "options": [[a, b] for (a, _), (b, _) in itertools.pairwise(texts)] + [["x", "y"]],
        }
        path.write_text(json.dumps({"article": HOSTILE, "answers": ["A", "B"] * 16} | questions))
        return tiny_task_run(MultipleChoiceRun, files, folder / "run", path, **changes)
    if task == "similarity":
        rows: list[Any] = [(a, b, "5.0" if label == "same" else "0") for a, b, label in pair_rows(32)]
        path = write_table(folder / "train.tsv", rows, ("sentence1", "sentence2", "score"))
        return tiny_task_run(SimilarityRun, files, folder / "run", path, **changes)
    kinds: dict[str, type[RunConfig]] = {"regression": RegressionRun, "multi-label": MultiLabelRun}
    values = {"cold": "1.5", "warm": "4"}
    if task == "regression":
        path = write_table(folder / "train.tsv", [(text, values[label]) for text, label in texts], ("text", "score"))
    else:
        path = write_table(folder / "train.tsv", texts)
    return tiny_task_run(kinds[task], files, folder / "run", path, **changes)


SECTIONS = {
    "multi-label": ["Labels"],
    "tagging": ["Entities"],
    "regression": ["Predicted and true"],
    "multiple-choice": [],
    "similarity": ["Cosines and scores"],
    "question-answering": ["Answers"],
}


@pytest.mark.parametrize("task", SECTIONS)
def test_the_page_of_each_task(task: str, tiny_files: TinyFiles, tmp_path: Path) -> None:
    lines: list[str] = []
    run = run_of(task, tiny_files, tmp_path)
    run_quietly(run, report=lines.append)
    assert not [line for line in lines if "report.html" in line]
    page, summary = page_of(tmp_path / "run"), read_json(tmp_path / "run" / "metrics.json")
    assert page.sections == [*FIRST, *SECTIONS[task], *LAST]
    figures = page.figures(f"On the validation file, weights of round {summary['best_round']}")
    expected = {name: value for name, value in summary["valid"].items() if not isinstance(value, dict)}
    assert figures == expected
    assert page.figures("The run") == {name: value for name, value in summary.items() if name != "valid"}
    assert 0 < len(page.cards) <= 20
    errors = [float(card["error"]) for card in page.cards.values()]
    assert errors == sorted(errors, reverse=True)
    if task == "question-answering":
        assert page.tables["Questions"][0][1:] == [summary["valid"][n] for n in ("examples", "exact_match", "f1")]
        assert [row[0] for row in page.tables["Questions"]] == ["all", "with answer", "without answer"]
    if task == "tagging":
        assert {row[0]: row[1] for row in page.tables["Entities by type"]} == summary["valid"]["support"]
        found = {row[0]: row[6] for row in page.tables["Entities by type"]}
        assert found == pytest.approx(summary["valid"]["f1_by_type"])
    if task == "multi-label":
        assert {row[0]: row[6] for row in page.tables["By label"]} == pytest.approx(summary["valid"]["f1_by_label"])


def test_the_page_of_a_search(tiny_files: TinyFiles, tmp_path: Path) -> None:
    rows = [
        (a, f"{b} {n}")
        for n, ((a, _), (b, _)) in enumerate(zip(separable_rows(32), separable_rows(32, 1), strict=True))
    ]
    path = write_table(tmp_path / "train.tsv", rows, ("sentence1", "sentence2"))
    lines: list[str] = []
    changes = {"loss": "contrastive", "best_metric": "mean_reciprocal_rank", "epochs": 1.0}
    run_quietly(tiny_task_run(SimilarityRun, tiny_files, tmp_path / "run", path, **changes), report=lines.append)
    assert not [line for line in lines if "report.html" in line]
    page, summary = page_of(tmp_path / "run"), read_json(tmp_path / "run" / "metrics.json")
    assert page.figures(f"On the validation file, weights of round {summary['best_round']}") == summary["valid"]
    found = [int(card["error"]) for card in page.cards.values()]
    assert found == sorted(found, reverse=True) and len(found) == 20
    ranks = [int(card["true"].split()[1]) for card in page.cards.values()]
    assert ranks == [error + 1 for error in found]
    belonging = {(card["query"], card["belongs to it"]) for card in page.cards.values()}
    assert belonging <= set(rows) and {card["predicted"] for card in page.cards.values()} <= {b for _, b in rows}


def test_figures_and_worst_examples_are_those_of_the_saved_weights(finished_run: Path, tiny_files: TinyFiles) -> None:
    page, summary = page_of(finished_run), read_json(finished_run / "metrics.json")
    assert page.sections == [*FIRST, "Confusion matrix", *LAST]
    valid = {name: value for name, value in summary["valid"].items() if isinstance(value, (int, float))}
    assert page.figures("On the validation file, weights of round 4") == valid
    matrix = page.tables["Confusion matrix: rows the true label, columns the predicted one"]
    assert [row[1:] for row in matrix] == summary["valid"]["confusion_matrix"]
    examples = read_examples(tiny_files.dev)
    model = AlbertTextClassifier.from_pretrained(finished_run)
    rows = model.predict_probabilities([example.text for example in examples])
    true = [model.labels.index(str(example.label)) for example in examples]
    losses = -np.log(rows[np.arange(len(rows)), true])
    worst = np.argsort(-losses, kind="stable")[:20]
    assert [title.split(",")[0] for title in page.cards] == [f"Example {n + 1}" for n in worst]
    for number, card in zip(worst, page.cards.values(), strict=True):
        assert card["text"] == examples[number].text and card["true"] == examples[number].label
        assert card["predicted"] == model.labels[rows[number].argmax()]
        assert card["error"] == pytest.approx(losses[number], abs=1e-5)
        assert card["score"] == pytest.approx(rows[number].max(), abs=1e-5)
    rounds = [row[0] for row in page.tables["Figures of each round"]]
    assert rounds == ["1", "2", "3", "4 (best)", "5", "6"]
    history = read_json(finished_run / "history.json")
    for row, figures in zip(page.tables["Figures of each round"], history, strict=True):
        names = page.headers["Figures of each round"][1:]
        assert dict(zip([name.replace(" ", "_") for name in names], row[1:], strict=True)) == figures


def test_settings_environment_and_command(finished_run: Path, tiny_files: TinyFiles) -> None:
    page, html = page_of(finished_run), (finished_run / "report.html").read_text()
    run = tiny_run(tiny_files, finished_run)
    shown = {flag: value for flag, value, _ in page.tables["All settings"]}
    assert set(shown) == {run.flag_name(field.name) for field in dataclasses.fields(run)}
    assert shown["--learning-rate"] == 5e-3 and shown["--train"] == str(tiny_files.train) and shown["--from"] == "–"
    environment = page.figures("Where it was trained")
    assert environment["keras"] == keras.__version__ and environment["precision"] == "float32"
    history = read_json(finished_run / "history.json")
    assert environment["seconds_of_training"] == pytest.approx(sum(figures["seconds"] for figures in history))
    assert environment["examples_per_second"] == pytest.approx(48 * 8 / environment["seconds_of_training"])
    command = page.text[page.text.index("albert-tf finetune classification") :].strip()
    assert parsed(ClassificationRun, command, 3) == run
    assert "encoder and head begin with random weights" in html  # a warning of the run


def test_lengths_are_those_before_the_cut(tiny_files: TinyFiles, tmp_path: Path) -> None:
    """One text in four is longer than the model takes; without a validation file there is no part on it."""
    train = write_table(
        tmp_path / "train.tsv", [("snow " * 100 if n % 4 == 0 else "fire", "ab"[n % 2]) for n in range(16)]
    )
    run_quietly(tiny_run(tiny_files, tmp_path / "run", train=str(train), valid=None, epochs=1.0, max_length=20))
    page = page_of(tmp_path / "run")
    assert page.sections == [*FIRST, *LAST[1:]] and not page.cards
    assert "The 16 training examples as tokens. 25.0% are longer than 20 and are cut." in page.text
    (told,) = (told for told in page.pictures if told.startswith("Histogram"))
    assert int(told.split("the longest ")[1].split(";")[0]) > 100
    assert "no validation file" in page.text


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["snow fire"] * 3, "The 3 training examples"),
        (["snow fire"] * 5000, "2,000 of the 5,000 training examples"),
        (["snow fire " * 10_000] * 200, "50 of the 200 training examples"),
    ],
)
def test_of_much_text_some_is_measured(texts: list[str], expected: str) -> None:
    tokenizer = AlbertTokenizer(sentencepiece_vocabulary(), max_length=20)
    model: Any = SimpleNamespace(task="regression", task_settings={}, required_tokenizer=tokenizer)
    run: Any = SimpleNamespace(task="regression")
    html = run_page._finetune_lengths(run, model, [TextExample(text) for text in texts])
    assert f"<p>{expected} as tokens." in html and tokenizer.max_length == 20


def test_a_run_is_not_lost_to_a_drawing(tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no font")

    for place, name in ((run_page, "curves_part"), (html_tasks, "most_wrong"), (run_page, "environment")):
        monkeypatch.setattr(place, name, fails)
    lines: list[str] = []
    run_quietly(tiny_run(tiny_files, tmp_path / "run", epochs=1.0), report=lines.append)
    notes = [line for line in lines if "report.html" in line]
    assert notes == [
        f"note: report.html lacks the part {name!r} (RuntimeError: no font)"
        for name in ("Curves", "Most wrong", "Environment")
    ]
    page = page_of(tmp_path / "run")
    assert page.text.count("This part could not be made (RuntimeError: no font).") == 3
    assert read_json(tmp_path / "run" / "metrics.json")["valid"]


def test_the_page_of_a_pretraining(tmp_path: Path) -> None:
    (tmp_path / "shape.json").write_text(json.dumps(SHAPE))
    run = tiny_pretraining_run(make_data(tmp_path), tmp_path / "shape.json", tmp_path / "run", steps=2, round_steps=1)
    lines: list[str] = []
    summary = pretrain.pretrain(run, report=lines.append)
    assert not [line for line in lines if "report.html" in line]
    page = page_of(tmp_path / "run")
    assert page.sections == ["Metrics", "Curves", "Lengths", "Settings", "Environment", "Again"]
    assert page.figures("The run") == pytest.approx(summary) == read_json(tmp_path / "run" / "metrics.json")
    command = page.text[page.text.index("albert-tf pretrain --") :].strip()
    assert parsed(type(run), command, 2) == run
    assert any("masked lm accuracy" in told for told in page.pictures)


@pytest.mark.parametrize(
    ("changes", "absent", "present"),
    [
        ({"out": "-x y'z", "train": "a b.tsv"}, "--epochs", "--out=-x y'z"),
        ({"recipe": "sst-2"}, "--learning-rate", "--recipe sst-2"),
        ({"recipe": "sst-2", "learning_rate": 3e-5, "jit": True}, "--batch-size", "--learning-rate 3e-05"),
    ],
)
def test_command_lines(changes: dict[str, Any], absent: str, present: str) -> None:
    run = ClassificationRun.of(**{"out": "run", "train": "train.tsv", "source": "albert"} | changes)
    command = command_line(run, ["finetune", "classification"])
    assert parsed(ClassificationRun, command, 3) == run
    assert absent not in command and present in " ".join(shlex.split(command))
    assert ("--jit" in command) == run.jit


def test_the_command_of_a_task_of_glue(tmp_path: Path) -> None:
    for name in ("train.tsv", "dev.tsv"):
        (tmp_path / name).write_text("sentence\tlabel\na\t1\n")
    run = ClassificationRun.of(out="run", train=str(tmp_path), glue="sst-2", source="albert")
    command = command_line(run, ["finetune", "classification"])
    assert parsed(ClassificationRun, command, 3) == run
    assert "--glue SST-2" in command and "--best-metric" not in command
