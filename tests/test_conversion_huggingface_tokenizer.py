"""Tokenizer files of transformers: which is read, with which rules, and what is written."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from small_vocabularies import fuzzed_texts, sentencepiece_vocabulary, wordpiece_vocabulary

from albert_tf.conversion.huggingface_tokenizer import read_tokenizer_files, write_tokenizer_files
from albert_tf.errors import InputError
from albert_tf.tokenization.tokenizer import AlbertTokenizer

RULES = {"lower": True, "keep_accents": False, "quotes": True}


def settings(folder: Path, **values: Any) -> Path:
    (folder / "tokenizer_config.json").write_text(json.dumps(values))
    return folder


def fast_file(folder: Path, **changes: Any) -> Path:
    """tokenizer.json of the small SentencePiece vocabulary, as the tokenizers library writes it."""
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto.FromString(sentencepiece_vocabulary().model)
    special = {"<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"}
    added = [
        {"id": index, "content": piece.piece, "special": piece.piece in special}
        for index, piece in enumerate(model.pieces)
        if piece.type in (piece.UNKNOWN, piece.CONTROL, piece.USER_DEFINED)
    ]
    charsmap = base64.b64encode(model.normalizer_spec.precompiled_charsmap).decode()
    steps = [{"type": "NFKD"}, {"type": "Lowercase"}, {"type": "Precompiled", "precompiled_charsmap": charsmap}]
    saved = {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "model": {"type": "Unigram", "unk_id": 1, "vocab": [[piece.piece, piece.score] for piece in model.pieces]},
    }
    (folder / "tokenizer.json").write_text(json.dumps(saved | changes))
    return folder


def test_a_sentencepiece_model(tmp_path: Path) -> None:
    (tmp_path / "spiece.model").touch()
    assert read_tokenizer_files(tmp_path) == (tmp_path / "spiece.model", RULES)
    settings(tmp_path, do_lower_case=False, keep_accents=True, model_max_length=512)
    assert read_tokenizer_files(tmp_path)[1] == {"lower": False, "keep_accents": True, "quotes": True}


def test_a_wordpiece_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").touch()
    assert read_tokenizer_files(tmp_path) == (tmp_path / "vocab.txt", {"lower": True})
    settings(tmp_path, do_lower_case=False, strip_accents=False, tokenize_chinese_chars=True)
    assert read_tokenizer_files(tmp_path)[1] == {"lower": False}
    for values, message in (
        ({"strip_accents": False}, "strip_accents=False with do_lower_case=True: albert-tf does both or neither"),
        ({"tokenize_chinese_chars": False}, "tokenize_chinese_chars=False: albert-tf has no form for that"),
        ({"do_basic_tokenize": False}, "do_basic_tokenize=False"),
    ):
        with pytest.raises(InputError, match=message):
            read_tokenizer_files(settings(tmp_path, **values))


def test_none_and_two(tmp_path: Path) -> None:
    assert read_tokenizer_files(tmp_path) == (None, {})
    (tmp_path / "vocab.txt").touch()
    (tmp_path / "spiece.model").touch()
    with pytest.raises(InputError, match=r"has spiece\.model and vocab\.txt; leave only the one"):
        read_tokenizer_files(tmp_path)


@pytest.mark.parametrize("name", ["do_lower_case", "keep_accents"])
def test_text_rules_are_true_or_false(tmp_path: Path, name: str) -> None:
    for value in (None, 1, "yes"):
        with pytest.raises(InputError, match=rf"tokenizer_config\.json: {name}: expected true or false, got"):
            read_tokenizer_files(settings(tmp_path, **{name: value}))


@pytest.mark.parametrize("text", ["{", "[]"])
def test_damaged_settings(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokenizer_config.json").write_text(text)
    with pytest.raises(InputError, match=r"tokenizer_config\.json.*(not JSON|expected a JSON object)"):
        read_tokenizer_files(tmp_path)


def test_a_fast_tokenizer_alone_gives_the_same_ids(tmp_path: Path) -> None:
    path, rules = read_tokenizer_files(fast_file(tmp_path))
    assert path is not None and rules == RULES
    made = AlbertTokenizer.from_pretrained(path, **rules).vocabulary
    expected = sentencepiece_vocabulary(quotes=True)
    assert (made.size, made.unk_id, made.mask_id) == (expected.size, expected.unk_id, expected.mask_id)
    for text in fuzzed_texts(300, seed=5):
        assert made.encode(text) == expected.encode(text)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"a": 0}}},
        {"model": {"type": "Unigram", "unk_id": 1, "vocab": [["a"]]}},
        {"added_tokens": [{"id": 0}]},
        {"added_tokens": None},
        {"normalizer": {"normalizers": [{"type": "Precompiled", "precompiled_charsmap": "?"}]}},
        {"model": {"type": "Unigram", "unk_id": None, "vocab": [["a", 0.0]]}},
        {"model": {"type": "Unigram", "unk_id": 10**30, "vocab": [["a", 0.0]]}},
        {"model": {"type": "Unigram", "unk_id": 0, "vocab": [["a", "b"]]}},
    ],
)
def test_fast_tokenizers_of_other_kinds(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"put the vocabulary that the model was trained with, spiece\.model or vocab"):
        read_tokenizer_files(fast_file(tmp_path, **changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"normalizer": {"normalizers": [{"type": "Precompiled", "precompiled_charsmap": "AAAA"}]}},
            "cannot be parsed",
        ),
        ({"model": {"unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0]]}}, "expected the special pieces"),
        ({"model": {"unk_id": 0, "vocab": [["<unk>", 0.0], ["a", 1e9]]}}, r"and the score 1e\+09"),
        ({"model": {"unk_id": 5, "vocab": [["<unk>", 0.0]]}}, "cannot be parsed"),
    ],
)
def test_fast_tokenizers_that_make_no_model(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    """The message names the file that there is, not the one that was made."""
    folder = fast_file(tmp_path, **changes, **({"added_tokens": []} if "model" in changes else {}))
    with pytest.raises(InputError, match=rf"tokenizer\.json: made a SentencePiece model again, .*{message}"):
        read_tokenizer_files(folder)


@pytest.mark.parametrize("name", ["tokenizer_config.json", "spiece.model", "vocab.txt", "tokenizer.json"])
def test_a_link_to_nothing_is_not_taken_for_no_file(tmp_path: Path, name: str) -> None:
    """Text rules, or a whole tokenizer, would be lost without a word."""
    (tmp_path / name).symlink_to(tmp_path / "blobs" / "gone")
    with pytest.raises(InputError, match=f"{name}: expected a file, found a link to nothing"):
        read_tokenizer_files(tmp_path)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    vocabulary = sentencepiece_vocabulary(keep_accents=True)
    notes = write_tokenizer_files(tmp_path, AlbertTokenizer(vocabulary, max_length=99))
    assert len(notes) == 2 and "transformers turns `` and '' into" in notes[1]
    assert {path.name for path in tmp_path.iterdir()} == {"spiece.model", "tokenizer_config.json"}
    assert (tmp_path / "spiece.model").read_bytes() == vocabulary.model
    written = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert written == {
        "tokenizer_class": "AlbertTokenizer",
        "do_lower_case": True,
        "keep_accents": True,
        "model_max_length": 99,
        "unk_token": "<unk>",
        "pad_token": "<pad>",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    }
    assert read_tokenizer_files(tmp_path) == (tmp_path / "spiece.model", RULES | {"keep_accents": True})


def test_a_written_wordpiece_vocabulary(tmp_path: Path) -> None:
    vocabulary = wordpiece_vocabulary(lower=False)
    assert write_tokenizer_files(tmp_path, AlbertTokenizer(vocabulary)) == []
    path, rules = read_tokenizer_files(tmp_path)
    assert path is not None and rules == {"lower": False}
    assert AlbertTokenizer.from_pretrained(path, **rules).vocabulary.tokens == vocabulary.tokens
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["tokenizer_class"] == "BertTokenizer"
