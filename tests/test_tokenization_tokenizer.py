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


@BOTH
def test_offsets(vocabulary):
    tokenizer = AlbertTokenizer(vocabulary(), 24)
    for text, pair in zip(LINES, LINES[::-1], strict=True):
        single, double = tokenizer.encode_with_offsets(text), tokenizer.encode_with_offsets(text, pair)
        assert single[:2] == tokenizer.encode(text)
        assert double[:2] == tokenizer.encode(text, pair)
        _, spans_a = tokenizer.vocabulary.encode_with_offsets(text)
        _, spans_b = tokenizer.vocabulary.encode_with_offsets(pair)
        assert single.offsets == [(0, 0), *spans_a[:22], (0, 0)]
        first = double.segment_ids.count(0)
        assert double.offsets[:first] == [(0, 0), *spans_a[: first - 2], (0, 0)]
        assert double.offsets[first:] == [*spans_b[: 24 - first - 1], (0, 0)]
        short = tokenizer.encode_with_offsets(text, pair, length=7)
        assert len(short.token_ids) == len(short.offsets) == 7
    batch = tokenizer.encode_batch_with_offsets(LINES, LINES[::-1], length=9)
    assert [row[:2] for row in batch] == tokenizer.encode_batch(LINES, LINES[::-1], length=9)
    assert batch[3] == tokenizer.encode_with_offsets(LINES[3], LINES[-4], length=9)
    assert [row.offsets for row in tokenizer.encode_batch_with_offsets(["a", ""])] == [
        tokenizer.encode_with_offsets("a").offsets,
        [(0, 0), (0, 0)],
    ]


@BOTH
def test_windows(vocabulary):
    tokenizer = AlbertTokenizer(vocabulary(), 64)
    question, text = "the mill?", " ".join(LINES * 3)
    ids, spans = tokenizer.vocabulary.encode_with_offsets(text)
    windows = tokenizer.encode_windows(question, text, doc_stride=10, length=32)
    seen = {}
    for window in windows:
        asked = tokenizer.vocabulary.encode(question)
        assert window.token_ids[: window.text_start] == [
            tokenizer.vocabulary.cls_id,
            *asked,
            tokenizer.vocabulary.sep_id,
        ]
        assert len(window.token_ids) <= 32
        for place in range(window.text_start, window.text_end):
            token = window.first_token + place - window.text_start
            assert (window.token_ids[place], window.offsets[place]) == (ids[token], spans[token])
            if window.max_context[place]:
                assert token not in seen
                seen[token] = window
    assert sorted(seen) == list(range(len(ids)))
    assert [window.first_token for window in windows] == list(range(0, 10 * len(windows), 10))
    assert [window.token_ids for window in tokenizer.encode_windows("the mill")] == [tokenizer.encode("the mill")[0]]
    assert tokenizer.encode_windows("a", "")[0][:2] == tokenizer.encode("a", "")
    cut = tokenizer.encode_windows(text, text, max_question_length=5)
    assert {window.text_start for window in cut} == {7}


def test_wrong_windows(tokenizer):
    with pytest.raises(InputError, match="doc_stride: expected a whole number of at least 1, got 0"):
        tokenizer.encode_windows("a", "b", doc_stride=0)
    with pytest.raises(InputError, match=r"max_question_length: expected a whole number of at least 1, got 2\.5"):
        tokenizer.encode_windows("a", "b", max_question_length=2.5)
    with pytest.raises(InputError, match=r"length: expected 3 to 8 \(max_length\), got 9"):
        tokenizer.encode_windows("a", "b", length=9)
    with pytest.raises(InputError, match="8 tokens leave no room for the text beside a question of 5 and 3 special"):
        tokenizer.encode_windows("a b a b a", "b")
    with pytest.raises(InputError, match=r"text\[1\]: expected a string, got list"):
        tokenizer.encode_windows("a", ["b"])


@BOTH
def test_special_tokens_and_pieces(vocabulary):
    tokenizer = AlbertTokenizer(vocabulary())
    pad, unknown = ("[PAD]", "[UNK]") if tokenizer.vocabulary.kind == "wordpiece" else ("<pad>", "<unk>")
    assert tokenizer.special_tokens == {pad: 0, unknown: 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
    assert tokenizer.pieces(np.array([2, 0])) == ["[CLS]", pad]
    with pytest.raises(InputError, match="token id -1: expected 0 to"):
        tokenizer.pieces([-1])


@BOTH
def test_without_tensorflow(tmp_path, vocabulary):
    AlbertTokenizer(vocabulary()).save(tmp_path / "saved")
    code = (
        "import sys; from albert_tf.tokenization.tokenizer import AlbertTokenizer\n"
        f"tokenizer = AlbertTokenizer.from_pretrained({str(tmp_path / 'saved')!r})\n"
        "tokenizer(['a', 'Café'], ['b', 'c']), tokenizer.encode_with_offsets('a'), tokenizer.encode_windows('a', 'b c')\n"
        "print([name for name in ('tensorflow', 'keras') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
