"""`albert-tf finetune similarity`, and `predict` and `evaluate` on its run folder and `.tflite` file."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import albert_tf, assert_refused
from tiny_data import TinyFiles, pair_rows, read_json, write_table

from albert_tf.tasks.similarity import AlbertTextEmbedder
from export.tflite import export_tflite


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [(a, b, "1" if label == "same" else "0") for a, b, label in pair_rows(24)]
    return write_table(tmp_path_factory.mktemp("scored") / "train.tsv", rows, ("sentence1", "sentence2", "score"))


@pytest.fixture(scope="module")
def folder(tiny_files: TinyFiles, scored: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from albert_tf.cli.main import main

    out = tmp_path_factory.mktemp("run") / "sts"
    shape = ["--from-scratch", str(tiny_files.shape), "--tokenizer", str(tiny_files.vocabulary), "--max-length", "32"]
    how = ["--max-score", "1", "--epochs", "2", "--learning-rate", "5e-3", "--batch-size", "8", "--pooling", "cls"]
    data = ["--train", str(scored), "--valid", str(scored), "--out", str(out)]
    assert main(["finetune", "similarity", *data, *shape, *how]) == 0
    return out


@pytest.fixture(params=["folder", "tflite"], scope="module")
def model(request: pytest.FixtureRequest, folder: Path) -> Path:
    if request.param == "folder":
        return folder
    path = folder.with_suffix(".tflite")
    export_tflite(AlbertTextEmbedder.from_pretrained(folder), path, recipe="float32")
    return path


def test_pairs(model: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--text", "ice and\tsnow", "--pair", "the sun", "--text", "fire", "--pair", "fire")
    done = albert_tf(capsys)("predict", model, *words)
    (first, *texts), (second, *_) = (line.split("\t") for line in done.out.splitlines())
    assert (texts, float(second)) == (["ice and snow", "the sun"], 1.0)
    done = albert_tf(capsys)("predict", model, "--jsonl", *words)
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert lines[0]["cosine"] == pytest.approx(float(first), abs=1e-4) and lines[0].keys() == {"text", "pair", "cosine"}
    embeddings = AlbertTextEmbedder.from_pretrained(folder).embed(["ice and\tsnow", "the sun"])
    assert lines[0]["cosine"] == pytest.approx(float(embeddings[0] @ embeddings[1]), abs=1e-4)


def test_texts(model: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A JSON object a text, with --jsonl and without: an embedding does not fit into columns."""
    (tmp_path / "texts.txt").write_text("ice\n明天\n", encoding="utf-8")
    plain = albert_tf(capsys)("predict", model, "--file", tmp_path / "texts.txt")
    assert plain == albert_tf(capsys)("predict", model, "--file", tmp_path / "texts.txt", "--jsonl")
    lines = [json.loads(line) for line in plain.out.splitlines()]
    assert [line["text"] for line in lines] == ["ice", "明天"]
    found = np.float32([line["embedding"] for line in lines])
    np.testing.assert_allclose(found, AlbertTextEmbedder.from_pretrained(folder).embed(["ice", "明天"]), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_evaluate(model: Path, folder: Path, scored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = albert_tf(capsys)
    assert command("evaluate", model, "--data", scored, "--json", tmp_path / "scores.json").code == 0
    trained = read_json(folder / "metrics.json")["valid"]
    assert read_json(tmp_path / "scores.json")["spearman"] == pytest.approx(trained["spearman"], abs=1e-3)
    rows = [("ice", "frost", "sun"), ("fire", "lava", "snow")]
    triples = write_table(tmp_path / "triples.tsv", rows, ("a", "b", "c"))
    columns = ("--text-column", "a", "--pair-column", "b", "--negative-column", "c")
    done = command("evaluate", model, "--data", triples, *columns, "--json", tmp_path / "found.json")
    assert done.code == 0 and "mean reciprocal rank" in done.out
    found = read_json(tmp_path / "found.json")
    assert (found["queries"], found["candidates"], found["recall_at_5"]) == (2, 4, 1.0)


def test_wrong_use(folder: Path, scored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = albert_tf(capsys)
    single = write_table(tmp_path / "single.tsv", [("ice", "1")])
    assert_refused(command("evaluate", folder, "--data", single), "expected two texts in each row, found one")
    assert_refused(command("predict", folder, "--text", "ice", "--top-k", "3"), "--top-k is for fill-mask")
    wrong = ("finetune", "similarity", "--train", scored, "--out", tmp_path / "x", "--from", folder)
    assert_refused(command(*wrong), r"scores from 0 to 1; give as --max-score (now 5)")
