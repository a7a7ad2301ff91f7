"""`albert-tf train-vocab`: text files → a tokenizer's folder."""

import gzip

import pytest
from command_line import albert_tf, assert_refused
from small_vocabularies import LINES
from tiny_data import read_json

from albert_tf.tokenization.tokenizer import AlbertTokenizer


@pytest.fixture
def files(tmp_path):
    (tmp_path / "one.txt").write_text("\n".join(LINES[:4] * 20), encoding="utf-8")
    (tmp_path / "two.txt.gz").write_bytes(gzip.compress("\n".join(LINES[4:] * 20).encode()))
    return tmp_path / "one.txt", tmp_path / "two.txt.gz"


def test_tokenizer_of_two_files(files, tmp_path, capsys):
    command = albert_tf(capsys)
    done = command("train-vocab", *files, "--size", 140, "--out", tmp_path / "vocab", "--max-length", 64)
    assert (done.code, done.err, done.out) == (0, "", f"written: {tmp_path / 'vocab'}\n")
    tokenizer = AlbertTokenizer.from_pretrained(tmp_path / "vocab")
    assert (tokenizer.vocabulary.size, tokenizer.max_length) == (140, 64)
    assert tokenizer.decode(tokenizer.vocabulary.encode("The OLD mill")) == "the old mill"
    for word in ("▁the", "ο"):  # from the first and from the second file
        assert word in tokenizer.vocabulary.pieces(range(140))

    command("train-vocab", *files, "--size", 140, "--out", tmp_path / "again")
    first, second = tmp_path / "vocab" / "vocabulary.spm", tmp_path / "again" / "vocabulary.spm"
    assert first.read_bytes() == second.read_bytes()
    assert str(tmp_path).encode() not in first.read_bytes()


def test_options(files, tmp_path, capsys):
    options = ("--cased", "--keep-accents", "--quotes", "--symbol", "[E1]", "--symbol", "[E2]")
    done = albert_tf(capsys)("train-vocab", *files, "--size", 160, "--out", tmp_path / "vocab", *options)
    assert done.code == 0
    settings = read_json(tmp_path / "vocab" / "tokenizer.json")
    assert settings["options"] == {"lower": False, "keep_accents": True, "quotes": True}
    vocabulary = AlbertTokenizer.from_pretrained(tmp_path / "vocab").vocabulary
    assert vocabulary.pieces([13, 14]) == ["[E1]", "[E2]"]
    assert 13 in vocabulary.encode("the [E1]mill")


def test_sample(files, tmp_path, capsys):
    command = albert_tf(capsys)
    for name in ("one", "two"):
        assert command("train-vocab", *files, "--size", 100, "--sample", 20, "--out", tmp_path / name).code == 0
    command("train-vocab", *files, "--size", 100, "--out", tmp_path / "all")
    one, two, every = ((tmp_path / name / "vocabulary.spm").read_bytes() for name in ("one", "two", "all"))
    assert one == two != every


def test_wrong_use(files, tmp_path, capsys):
    command = albert_tf(capsys)
    out = tmp_path / "vocab"
    assert_refused(command("train-vocab", tmp_path / "no.txt", "--size", 140, "--out", out), "cannot read", "no.txt")
    assert_refused(command("train-vocab", *files, "--size", 9000, "--out", out), "9000 is more than this text gives")
    assert_refused(command("train-vocab", *files, "--size", 140, "--sample", 0, "--out", out), "--sample", "above 0")
    assert_refused(command("train-vocab", *files, "--size", 140, "--symbol", "[CLS]", "--out", out), "'[CLS]'")
    assert_refused(
        command("train-vocab", *files, "--size", 140, "--max-length", 2, "--out", out), "--max-length", "got 2"
    )
    (tmp_path / "bad.txt").write_bytes(b"fine\nbad \xff\n")
    bad = command("train-vocab", *files, tmp_path / "bad.txt", "--size", 140, "--out", out)
    assert_refused(bad, "bad.txt, line 2", "0xff")
    (tmp_path / "empty.txt").write_text("\n \n")
    assert_refused(command("train-vocab", tmp_path / "empty.txt", "--size", 140, "--out", out), "found none")
    assert not out.exists()


def test_existing_tokenizer_is_kept(files, tmp_path, capsys):
    command = albert_tf(capsys)
    out = tmp_path / "vocab"
    out.mkdir()
    (out / "vocabulary.spm").write_text("mine")
    assert_refused(command("train-vocab", *files, "--size", 140, "--out", out), "exists already")
    assert (out / "vocabulary.spm").read_text() == "mine"
    assert command("train-vocab", *files, "--size", 140, "--out", out, "--overwrite").code == 0
