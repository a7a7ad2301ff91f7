import json
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT
from small_vocabularies import LINES, TOKENS, sentencepiece_vocabulary, wordpiece_vocabulary

from albert_tf.errors import InputError
from albert_tf.tokenization.tokenizer import AlbertTokenizer

BOTH = pytest.mark.parametrize("vocabulary", [sentencepiece_vocabulary, wordpiece_vocabulary], ids=["spm", "wordpiece"])


@pytest.fixture
def tokenizer():
    return AlbertTokenizer(wordpiece_vocabulary(), 8)


def test_model_inputs(tokenizer):
    inputs = tokenizer(["the mills", "a"])
    the, mill, s, a = (TOKENS.index(token) for token in ("the", "mill", "##s", "a"))
    assert inputs["token_ids"].tolist() == [[2, the, mill, s, 3], [2, a, 3, 0, 0]]
    assert inputs["segment_ids"].tolist() == [[0] * 5] * 2
    assert inputs["padding_mask"].tolist() == [[1] * 5, [1, 1, 1, 0, 0]]
    assert {array.dtype for array in inputs.values()} == {np.dtype("int32")}
    pairs = tokenizer(["the", "a"], ["a", "mills"])
    assert pairs["token_ids"].tolist() == [[2, the, 3, a, 3, 0], [2, a, 3, mill, s, 3]]
    assert pairs["segment_ids"].tolist() == [[0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 1]]


def test_length(tokenizer):
    assert tokenizer(["a a a a a a a a a"])["token_ids"].shape == (1, 8)
    assert tokenizer(["a"], length=6)["padding_mask"].tolist() == [[1, 1, 1, 0, 0, 0]]
    assert tokenizer(["a b a b a"], ["b b"], length=6)["token_ids"].shape == (1, 6)
    assert tokenizer([])["token_ids"].shape == (0, 0)
    for length in (2, 9):
        with pytest.raises(InputError, match=rf"length: expected 3 to 8 \(max_length\), got {length}"):
            tokenizer(["a"], length=length)


def test_encode_and_decode(tokenizer):
    token_ids, segment_ids = tokenizer.encode("the mills", "a")
    assert segment_ids == [0, 0, 0, 0, 0, 1, 1]
    assert tokenizer.decode(token_ids) == "the mills a"
    assert tokenizer.decode(tokenizer(["the mills"], length=8)["token_ids"][0]) == "the mills"
    assert len(tokenizer.encode("a " * 10_000)[0]) == 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a text",), r"texts: expected a list of strings, got one str; write \['a text'\]"),
        ((["a", None],), r"texts\[1\]: expected a string, got NoneType None"),
        ((["a", float("nan")],), r"texts\[1\]: expected a string, got float nan"),
        ((["a"], "b"), "pairs: expected a list of strings"),
        ((["a"], [b"b"]), r"pairs\[0\]: expected a string, got bytes"),
        ((["a", "b"], ["b"]), "pairs: expected one for each text; got 2 texts and 1 pairs"),
    ],
)
def test_wrong_arguments(tokenizer, arguments, message):
    with pytest.raises(InputError, match=message):
        tokenizer(*arguments)


@pytest.mark.parametrize("max_length", [2, 0, "128", True])
def test_max_length(max_length):
    with pytest.raises(InputError, match="max_length: expected a whole number of at least 3"):
        AlbertTokenizer(wordpiece_vocabulary(), max_length)


@BOTH
def test_saved_and_read_again(tmp_path, vocabulary):
    tokenizer = AlbertTokenizer(vocabulary(lower=False), 64)
    (tmp_path / "config.json").write_text("{}")
    tokenizer.save(tmp_path)
    loaded = AlbertTokenizer.from_pretrained(tmp_path)
    assert loaded.max_length == 64
    assert loaded.vocabulary.options() == tokenizer.vocabulary.options()
    for line in LINES:
        assert loaded.encode(line, "a b") == tokenizer.encode(line, "a b")
    assert AlbertTokenizer.from_pretrained(tmp_path, max_length=16).max_length == 16
    before = sorted(file.name for file in tmp_path.iterdir())
    with pytest.raises(InputError, match="exists already"):
        tokenizer.save(tmp_path)
    tokenizer.save(tmp_path, overwrite=True)
    assert sorted(file.name for file in tmp_path.iterdir()) == before
    with pytest.raises(InputError, match="records the text rules already; drop lower"):
        AlbertTokenizer.from_pretrained(tmp_path, lower=True)


def test_nothing_is_written_where_one_file_exists(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"tokenizer\.json exists already"):
        AlbertTokenizer(wordpiece_vocabulary()).save(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["tokenizer.json"]


def test_bare_files_and_release_folders(tmp_path):
    spm, wordpiece = tmp_path / "spm" / "30k-clean.model", tmp_path / "zh" / "vocab_chinese.txt"
    for path in (spm, wordpiece):
        path.parent.mkdir()
        (path.parent / "model.ckpt-best.index").write_bytes(b"")
    spm.write_bytes(sentencepiece_vocabulary().model)
    wordpiece.write_text("".join(f"{token}\n" for token in TOKENS), encoding="utf-8")
    for path in (spm, wordpiece, spm.parent, wordpiece.parent):
        kind = "sentencepiece" if "spm" in str(path) else "wordpiece"
        tokenizer = AlbertTokenizer.from_pretrained(path)
        assert (tokenizer.vocabulary.kind, tokenizer.max_length) == (kind, 512)
        assert not AlbertTokenizer.from_pretrained(path, lower=False).vocabulary.options()["lower"]
    with pytest.raises(InputError, match="wordpiece vocabulary are lower, each true or false; got quotes=True"):
        AlbertTokenizer.from_pretrained(wordpiece, quotes=True)


def test_folder_of_transformers(tmp_path):
    (tmp_path / "tokenizer.json").write_text('{"version": "1.0", "model": {}}')
    (tmp_path / "spiece.model").write_bytes(sentencepiece_vocabulary().model)
    assert AlbertTokenizer.from_pretrained(tmp_path).vocabulary.size == 140


def test_what_was_found_is_named(tmp_path):
    def message(path):
        with pytest.raises(InputError) as caught:
            AlbertTokenizer.from_pretrained(path)
        return str(caught.value)

    assert "no such file or folder" in message(tmp_path / "absent")
    assert "found nothing" in message(tmp_path)
    (tmp_path / "notes.md").write_text("")
    assert "found notes.md" in message(tmp_path)
    assert "cannot tell the kind" in message(tmp_path / "notes.md")
    for name in ("vocab.txt", "a.model"):
        (tmp_path / name).write_text("")
    assert "found a.model, vocab.txt. Name the file itself" in message(tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("{", r"tokenizer\.json, line 1: not JSON"),
        (
            {"kind": "bpe", "options": {}, "max_length": 9},
            "kind: expected one of sentencepiece, wordpiece; found 'bpe'",
        ),
        ({"kind": "wordpiece", "options": {}}, "expected the keys kind, options, max_length; found kind, options"),
        ({"kind": "wordpiece", "options": 3, "max_length": 9}, "options: expected an object"),
        ({"kind": "wordpiece", "options": {"lower": "yes"}, "max_length": 9}, "true or false; got lower='yes'"),
        ({"kind": "wordpiece", "options": {}, "max_length": 9}, r"cannot read .*vocab\.txt"),
    ],
)
def test_bad_settings(tmp_path, settings, message):
    (tmp_path / "tokenizer.json").write_text(settings if isinstance(settings, str) else json.dumps(settings))
    with pytest.raises(InputError, match=message):
        AlbertTokenizer.from_pretrained(tmp_path)


@BOTH
def test_independent_of_the_locale(tmp_path, vocabulary):
    AlbertTokenizer(vocabulary()).save(tmp_path / "saved")
    text = "ΟΔΥΣΣ 我爱 Café IS"
    script = tmp_path / "script.py"
    script.write_text(
        "from albert_tf.tokenization.tokenizer import AlbertTokenizer\n"
        f"print(AlbertTokenizer.from_pretrained({str(tmp_path / 'saved')!r}).encode({text!r})[0])",
        encoding="utf-8",
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT), "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == AlbertTokenizer(vocabulary()).encode(text)[0]
