"""`albert-tf tokenizer-check`: one tokenizer in Python, in a graph and on devices."""

import pytest
from command_line import albert_tf, assert_refused
from small_vocabularies import LINES, sentencepiece_vocabulary, wordpiece_vocabulary
from tiny_data import read_json

from albert_tf.tokenization.tokenizer import AlbertTokenizer


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join([*LINES[:5], "", *LINES[6:]]), encoding="utf-8")
    return tmp_path / "texts.txt"


def test_equal_tokenizer(texts, tmp_path, capsys):
    AlbertTokenizer(sentencepiece_vocabulary()).save(tmp_path / "vocab")
    command = albert_tf(capsys)
    report = tmp_path / "report.json"
    done = command("tokenizer-check", tmp_path / "vocab", "--text-file", texts, "--json", report)
    assert (done.code, done.err) == (0, "")
    assert "8 lines" in done.out and "graph" in done.out and "device" in done.out
    figures = read_json(report)
    assert figures["lines"] == 8
    assert figures["device"]["different_lines"] == figures["graph"]["different_lines"] == 0
    assert_refused(command("tokenizer-check", tmp_path / "vocab", "--text-file", texts, "--json", report), "exists")


def test_different_tokenizer_fails_with_examples(tmp_path, capsys):
    wordpiece_vocabulary().save(tmp_path)
    (tmp_path / "texts.txt").write_text("the mill\nthe CAFÉ\n", encoding="utf-8")
    words = ("tokenizer-check", tmp_path / "vocab.txt", "--text-file", tmp_path / "texts.txt")
    command = albert_tf(capsys)
    done = command(*words)
    assert done.code == 1
    assert done.err == (
        "albert-tf: error: lines with other ids than in Python: device 50.000%; at most 0.1% may differ\n"
    )
    assert "line 2\n  Python  the cafe\n  device  the [UNK]\n" in done.out
    assert command(*words, "--max-different", 50).code == 0
    assert "line 2" not in command(*words, "--examples", 0).out


def test_text_rules_of_a_bare_vocabulary(texts, tmp_path, capsys):
    (tmp_path / "bare.model").write_bytes(sentencepiece_vocabulary(lower=False).model)
    command = albert_tf(capsys)
    words = ("tokenizer-check", tmp_path / "bare.model", "--text-file", texts)
    assert command(*words).code == 0
    assert command(*words, "--keep-accents", "--quotes").code == 0
    assert command(*words, "--cased").code == 1  # runtimes lower-case ASCII


def test_wrong_use(texts, tmp_path, capsys):
    AlbertTokenizer(sentencepiece_vocabulary()).save(tmp_path / "vocab")
    command = albert_tf(capsys)
    words = ("tokenizer-check", tmp_path / "vocab", "--text-file")
    assert_refused(command(*words, tmp_path / "none.txt"), "cannot read", "none.txt")
    assert_refused(command(*words, texts, "--max-different", 101), "--max-different", "0 to 100")
    assert_refused(command(*words, texts, "--examples", -1), "--examples", "at least 0")
    assert_refused(command(*words, texts, "--cased"), "records the text rules already")
    (tmp_path / "blank.txt").write_text("\n\n")
    assert_refused(command(*words, tmp_path / "blank.txt"), "blank.txt", "has none")
    assert_refused(command("tokenizer-check", tmp_path / "no", "--text-file", texts), "no such file or folder")
