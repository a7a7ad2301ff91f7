"""`albert-tf evaluate` of each task: how its file is read, figures equal to an independent scorer's, options refused."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from command_line import albert_tf, assert_refused
from scipy import stats
from seqeval.metrics import f1_score, precision_score, recall_score
from tiny_data import read_json, write_table
from tiny_tasks import TAGS, save_task

from albert_tf.data.conll import to_iob2

WORDS = ["the", "people", "turning", "by", "people"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    for name in ("tagging", "multiple-choice", "regression"):
        save_task(folder / name, name)
    return folder


@pytest.mark.parametrize("more", [(), ("--unconstrained",)], ids=["constrained", "free"])
def test_tagging_is_scored_as_seqeval_does(
    more: tuple[str, ...], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the answers of predict; the file is in BIOES, with the faults of real ones."""
    command = albert_tf(capsys)
    labels = [["B-PER", "E-PER", "O", "S-LOC", "O"], ["O", "O", "S-PER", "S-PER", "B-LOC"], ["O"] * 5]
    blocks = ["\n".join(f"{word} {label} " for word, label in zip(WORDS, own, strict=True)) for own in labels]
    data = tmp_path / "test.conll"
    data.write_bytes(("\ufeff-DOCSTART- O\n\n" + "\n \n".join(blocks)).replace("\n", "\r\n").encode())
    done = command("evaluate", folder / "tagging", "--data", data, "--json", tmp_path / "m.json", *more)
    assert done.code == 0 and "labels are BIOES, read as IOB2" in done.out
    metrics = read_json(tmp_path / "m.json")
    (tmp_path / "in.jsonl").write_text((json.dumps({"tokens": WORDS}) + "\n") * 3)
    lines = command("predict", folder / "tagging", "--file", tmp_path / "in.jsonl", "--jsonl", *more).out.splitlines()
    found = [json.loads(line)["labels"] for line in lines]
    true = [list(to_iob2(own)) for own in labels]
    for name, score in (("f1", f1_score), ("precision", precision_score), ("recall", recall_score)):
        assert metrics[name] == pytest.approx(score(true, found, zero_division=0))
    assert metrics["words"] == 15 and {label for own in found for label in own} <= set(TAGS)


def test_multiple_choice_leaves_out_what_cannot_be_used(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = albert_tf(capsys)
    rows = [
        ["Who is turning?", "people", "the", "by", "", "C"],
        ["None?", "", "", "", "", "A"],
        ["What?", "turning", "by", "", "", "b"],
        ["Wrong?", "turning", "by", "", "", "D"],
        ["Five?", "turning", "by", "the", "people", "E"],
    ]
    rows[4].insert(4, "wheel")
    rows = [row[:-1] + [""] * (7 - len(row)) + row[-1:] for row in rows]
    with (tmp_path / "arc.csv").open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file).writerows(rows)
    model = folder / "multiple-choice"
    refused = command("evaluate", model, "--data", tmp_path / "arc.csv")
    assert_refused(refused, "arc.csv, line 2 ('None?'): expected 2 to 26 options, found 0")
    words = ("evaluate", model, "--data", tmp_path / "arc.csv", "--leave-out-unusable", "--json", tmp_path / "m.json")
    done = command(*words)
    assert done.code == 0 and "2 questions left out, the first:" in done.out and "None?" in done.out
    metrics = read_json(tmp_path / "m.json")
    questions = [(row[0], [cell for cell in row[1:-1] if cell], row[-1].upper()) for row in rows]
    usable = [questions[0], questions[2], questions[4]]
    objects = [json.dumps({"question": question, "options": options}) for question, options, _ in usable]
    (tmp_path / "in.jsonl").write_text("\n".join(objects))
    lines = command("predict", model, "--file", tmp_path / "in.jsonl").out.splitlines()
    right = [line.split("\t")[0] == answer for line, (_, _, answer) in zip(lines, usable, strict=True)]
    assert metrics["examples"] == 3 and metrics["accuracy"] == pytest.approx(sum(right) / 3)


def test_sts_b_is_scored_as_scipy_does(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = albert_tf(capsys)
    (tmp_path / "STS-B").mkdir()
    texts = [("the people", "turning"), ("by people", "by the"), ("turning", 'a "wheel'), ("people", "people")]
    values = ["1.5", "0.0", "4.750", "5.000"]
    names = tuple(
        ["index", "genre", "filename", "year", "old_index", "source1", "source2", "sentence1", "sentence2", "score"]
    )
    rows = [(str(n), *"abcdef", *pair, value) for n, (pair, value) in enumerate(zip(texts, values, strict=True))]
    write_table(tmp_path / "STS-B" / "dev.tsv", rows, names)
    write_table(tmp_path / "STS-B" / "test.tsv", [row[:-1] for row in rows], names[:-1])
    out = tmp_path / "m.json"
    glue = ("--glue", "sts-b")
    assert command("evaluate", folder / "regression", *glue, "--data", tmp_path / "STS-B", "--json", out).code == 0
    metrics = read_json(out)
    assert list(metrics)[:2] == ["pearson", "spearman"]
    done = command("predict", folder / "regression", *glue, "--file", tmp_path / "STS-B")
    lines = done.out.splitlines()
    assert done.err == "GLUE takes these predictions as STS-B.tsv\n"
    assert lines[0] == "index\tprediction" and [line.split("\t")[0] for line in lines[1:]] == list("0123")
    words = [word for text, pair in texts for word in ("--text", text, "--pair", pair)]
    found = [float(line.split("\t")[0]) for line in command("predict", folder / "regression", *words).out.splitlines()]
    assert [float(line.split("\t")[1]) for line in lines[1:]] == pytest.approx(np.clip(found, 0, 5), abs=1e-3)
    assert metrics["pearson"] == pytest.approx(stats.pearsonr(list(map(float, values)), found).statistic, abs=1e-3)


@pytest.mark.parametrize(
    ("model", "words", "expected"),
    [
        ("tagging", ("--text-column", "a"), "--text-column is for classification, "),
        ("tagging", ("--leave-out-unusable",), "--leave-out-unusable is for multiple-choice"),
        (
            "multiple-choice",
            ("--glue", "RTE"),
            "--glue is for classification, regression; this model is for multiple",
        ),
        ("regression", ("--calibration",), "--calibration is for classification; this model is for regression"),
        ("regression", ("--glue", "xyz"), "--glue: expected one of CoLA"),
        ("regression", ("--glue", "RTE", "--label-column", "a"), "--label-column: --glue says which columns there are"),
    ],
)
def test_options_of_other_tasks(
    model: str, words: tuple[str, ...], expected: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_refused(albert_tf(capsys)("evaluate", folder / model, "--data", "absent.tsv", *words), expected)
