"""`albert-tf pretrain-data`: from text to a folder, what it prints, and wrong use."""

import json
import sys
from pathlib import Path

import pytest
from command_line import Done, albert_tf, assert_refused
from pretraining_texts import documents, tokenizer, write_documents

from albert_tf.data.pretraining_data import PretrainingData
from albert_tf.data.pretraining_manifest import Manifest
from albert_tf.data.pretraining_records import read_published


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Text and tokenizer."""
    tokenizer().save(tmp_path / "vocabulary")
    return write_documents(tmp_path / "text.txt", documents(30, seed=1)), tmp_path / "vocabulary"


@pytest.fixture
def command(files, tmp_path: Path, capsys):
    text, vocabulary = files
    run = albert_tf(capsys)

    def with_files(*options: str, text: Path = text, vocabulary: Path = vocabulary) -> Done:
        return run(
            "pretrain-data", text, "--tokenizer", vocabulary, "--out", tmp_path / "data", "--workers", 1, *options
        )

    return with_files


def test_from_text_to_batches(command, tmp_path: Path) -> None:
    done = command("--max-length", "64", "--held-out", "0.2", "--json", str(tmp_path / "totals.json"))
    assert done.code == 0, done.err
    data = PretrainingData(tmp_path / "data")
    assert data.max_length == 64
    assert f"{data.num_tokens:,}" in done.out
    assert f"written: {tmp_path / 'data'}" in done.out
    totals = json.loads((tmp_path / "totals.json").read_text(encoding="utf-8"))
    assert totals["train"]["examples"] == data.num_examples
    assert totals["held_out"]["examples"] == data.num_held_out


def test_every_option_reaches_the_settings(command, tmp_path: Path) -> None:
    done = command(
        *("--paragraphs", "--max-length", "32", "--short-probability", "0.3", "--duplicates", "2", "--held-out", "0"),
        *("--nsp", "--seed", "7", "--shard-megabytes", "0.5", "--static-masks", "--masked-share", "0.2"),
        *("--max-ngram", "2", "--max-predictions", "5"),
    )
    assert done.code == 0, done.err
    settings = Manifest.read(tmp_path / "data").settings
    rules = settings.pop("static_masks")
    assert (rules["rate"], rules["max_ngram"], rules["max_predictions"]) == (0.2, 2, 5)
    assert settings == {
        "inputs": [str(tmp_path / "text.txt")],
        "max_length": 32,
        "short_probability": 0.3,
        "paragraphs": True,
        "next_sentence": True,
        "chinese_words": False,
        "duplicates": 2,
        "held_out": 0.0,
        "shard_megabytes": 0.5,
        "seed": 7,
    }
    arrays = read_published(tmp_path / "data/train-00000-00000.tfrecord")
    assert arrays["token_ids"].shape[1] == 32 and arrays["masked_ids"].shape[1] == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-length", "4"], "--max-length: expected a whole number from 8"),
        (["--max-ngram", "2"], "--masked-share, --max-ngram and --max-predictions go with --static-masks"),
        (["--static-masks", "--masked-share", "0"], "share of masked tokens"),
        (["--workers", "0"], "--workers: expected a whole number of at least 1"),
        (["--chinese-words"], "--chinese-words: expected"),
        (["--held-out", "x"], "--held-out"),
    ],
)
def test_wrong_options(command, tmp_path: Path, options: list[str], message: str) -> None:
    assert_refused(command(*options), message)
    assert not (tmp_path / "data").exists()


def test_beam_is_an_extra(files, tmp_path: Path, capsys, monkeypatch) -> None:
    """Where apache-beam is not installed; test_clients_beam.py has the rest."""
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    monkeypatch.delitem(sys.modules, "albert_tf.data.pretraining_beam", raising=False)
    words = (
        "pretrain-data",
        files[0],
        "--tokenizer",
        files[1],
        "--out",
        tmp_path / "data",
        "--beam=--runner=DirectRunner",
    )
    assert_refused(
        albert_tf(capsys)(*words), "--beam: expected the package apache-beam", 'pip install "albert-tf[beam]"'
    )
    assert_refused(albert_tf(capsys)(*words, "--workers", 2), "--workers: Beam's own options say how many")
    assert not (tmp_path / "data").exists()


def test_wrong_files(command, tmp_path: Path) -> None:
    assert_refused(command(text=tmp_path / "none.txt"), "none.txt: no such file; expected a text file")
    assert_refused(command(vocabulary=tmp_path / "none"), "none: no such file or folder; expected a tokenizer's folder")


def test_nothing_is_overwritten_unasked(command, tmp_path: Path) -> None:
    assert command().code == 0
    assert_refused(command(), "exists already; pass --overwrite")
    assert command("--overwrite", "--seed", "1").code == 0
    assert Manifest.read(tmp_path / "data").settings["seed"] == 1
    (tmp_path / "kept.json").write_text("{}", encoding="utf-8")
    assert_refused(command("--json", str(tmp_path / "kept.json")), "exists already")


def test_paragraphs_and_sentences(command, tmp_path: Path) -> None:
    """The same text, a paragraph or a sentence a line."""
    sentences = ["The mill turned all day long.", "Nobody came to see it.", "Then it stopped.", "It was late."] * 5
    text = tmp_path / "paragraphs.txt"
    text.write_text(" ".join(sentences), encoding="utf-8")
    assert command("--paragraphs", "--held-out", "0", text=text).code == 0
    assert Manifest.read(tmp_path / "data").totals("train")["sentences"] == 20
    text.write_text("\n".join(sentences), encoding="utf-8")
    assert command("--held-out", "0", "--overwrite", text=text).code == 0
    assert Manifest.read(tmp_path / "data").totals("train")["sentences"] == 20
