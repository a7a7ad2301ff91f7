"""`albert-tf finetune`: from a published archive to an answer, and every wrong input in one line."""

import json
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import albert_tf, assert_refused
from conftest import ROOT
from safetensors.numpy import load_file
from tf1_writer import PUBLISHED, save_folder, variables
from tiny_data import TinyFiles, flags, read_json, separable_rows, tiny_run, write_table


@pytest.fixture
def archive(tiny_files: TinyFiles, tmp_path: Path) -> tuple[Path, dict[str, np.ndarray]]:
    """An archive like Google's, and its variables."""
    config = PUBLISHED | {
        "vocab_size": 50,
        "embedding_size": 16,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "max_position_embeddings": 32,
    }
    values = {name: 0.1 * value for name, value in variables(config).items()}
    values |= {name: 1 + value for name, value in values.items() if name.endswith("gamma")}
    folder = save_folder(tmp_path / "albert_tiny", config, values)
    (folder / "30k-clean.model").write_bytes(tiny_files.vocabulary.read_bytes())
    (folder / "30k-clean.vocab").write_text("<pad>\t0\n")
    path = tmp_path / "albert_tiny.tar.gz"
    with tarfile.open(path, "w:gz") as file:
        file.add(folder, "albert_tiny")
    return path, values


def test_from_a_published_archive_to_a_file_that_answers(
    archive: tuple[Path, dict[str, np.ndarray]],
    tiny_files: TinyFiles,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, values = archive
    command, out = albert_tf(capsys), tmp_path / "runs" / "seasons"
    done = command(
        *("finetune", "classification", "--from", path, "--train", tiny_files.train, "--valid", tiny_files.dev),
        *(
            "--out",
            out,
            "--epochs",
            4,
            "--batch-size",
            8,
            "--learning-rate",
            "5e-3",
            "--json",
            tmp_path / "summary.json",
        ),
    )
    assert done.code == 0, done.err
    assert f"encoder from {path}, new head" in done.out and f"written: {out}\n" in done.out
    summary = read_json(tmp_path / "summary.json")
    assert summary == read_json(out / "metrics.json")
    assert f"{summary['valid']['accuracy']:.4f}" in done.out and summary["valid"]["accuracy"] > 0.7
    weights = load_file(out / "weights.safetensors")
    assert not any(name.startswith(("masked_lm", "sentence_order")) for name in weights)
    moved = np.abs(weights["pooler/kernel"] - values["bert/pooler/dense/kernel"])
    assert 0 < moved.max() < 0.2 < np.abs(values["bert/pooler/dense/kernel"]).max()  # trained on from there

    file = tmp_path / "seasons.tflite"
    assert command("export", "tflite", out, "--out", file).code == 0
    for model in (out, file):
        done = command("predict", model, "--text", "ice and snow and frost", "--text", "fire and sun")
        assert [line.split("\t")[0] for line in done.out.splitlines()] == ["cold", "warm"], done


def test_labels_and_paths_are_printed_as_they_are(
    tiny_files: TinyFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Brackets are not rich's markup here."""
    names = {"cold": "[/bold]", "warm": "[red]"}
    train = write_table(tmp_path / "train.tsv", [(text, names[label]) for text, label in separable_rows(8)])
    out = tmp_path / ("[/i]" + "a long name " * 8)
    run = tiny_run(tiny_files, out, train=str(train), valid=str(train), epochs=1.0)
    done = albert_tf(capsys)(*flags(run))
    assert done.code == 0, done.err
    assert "labels [/bold], [red];" in done.out and f"written: {out}\n" in done.out


@pytest.mark.parametrize(
    ("content", "changes", "expected"),
    [
        (b"text\tlabel\na\tx\nb\tx\n", {}, "one class only"),
        (b"", {}, "the file is empty"),
        (b"words\tlabel\na\tx\n", {}, "which column is the text"),
        (b"text\tlabel\ncaf\xe9\tx\n", {}, "expected UTF-8"),
        (b"text\tlabel\na\tx\nb\ty\n", {"from_scratch": "absent.json"}, "cannot read absent.json"),
        (b"text\tlabel\na\tx\nb\ty\n", {"label_column": "[/b]"}, "no column '[/b]'"),
    ],
    ids=["one class", "empty", "no text column", "latin-1", "no shape", "no label column"],
)
def test_unusable_input_is_one_line(
    content: bytes,
    changes: dict[str, Any],
    expected: str,
    tiny_files: TinyFiles,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "train.tsv").write_bytes(content)
    run = tiny_run(tiny_files, tmp_path / "run", train=str(tmp_path / "train.tsv"), valid=None, **changes)
    assert_refused(albert_tf(capsys)(*flags(run)), expected)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--from-scratch", "albert_base_v2"], "--tokenizer goes with --from-scratch"),
        (["--from", "a", "--tokenizer", "b"], "--tokenizer goes with --from-scratch"),
        (["--from", "a", "--from-scratch", "b"], "give either --from CHECKPOINT"),
        (["--from", "a", "--epochs", "0"], "--epochs: expected a number above 0"),
        (["--from", "a", "--learning-rate", "nan"], "--learning-rate: expected a number above 0.0, got nan"),
        (["--from", "a", "--precision", "float16"], "argument --precision: invalid choice: 'float16'"),
    ],
    ids=lambda words: words[2] if isinstance(words, list) and len(words) > 2 else "",
)
def test_wrong_flags(words: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = albert_tf(capsys)("finetune", "classification", "--train", "t.tsv", "--out", "o", *words)
    assert_refused(done, expected)


def test_outputs_that_exist_are_refused_at_once(
    finished_run: Path, tiny_files: TinyFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = albert_tf(capsys)
    assert_refused(command(*flags(tiny_run(tiny_files, finished_run))), f"{finished_run} exists already")
    (tmp_path / "old.json").write_text("{}")
    new = flags(tiny_run(tiny_files, tmp_path / "run"))
    assert_refused(command(*new, "--json", tmp_path / "old.json"), "old.json exists already; pass --overwrite")
    assert_refused(command(*new, "--overwrite", "--json", tmp_path), "is a folder, so no file is written in its place")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.json"]


def test_ctrl_c(tiny_files: TinyFiles, tmp_path: Path) -> None:
    """One line, 130, and the state kept."""
    run = tiny_run(tiny_files, tmp_path / "run", epochs=5000.0)
    process = subprocess.Popen(
        [sys.executable, "-m", "albert_tf.cli.main", *flags(run)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.startswith("round 2/"):
                process.send_signal(signal.SIGINT)
                break
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert (process.returncode, errors) == (130, "albert-tf: interrupted\n")
    assert json.loads((tmp_path / "run.training" / "run.json").read_text())["epochs"] == 5000
    assert (tmp_path / "run.training" / "state.safetensors").exists() and not (tmp_path / "run").exists()
