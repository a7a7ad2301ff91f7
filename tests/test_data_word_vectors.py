"""`albert_tf.data.word_vectors`: which token is of which word, and the vectors of the words of a batch."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_data import TinyFiles

from albert_tf.data.word_vectors import NO_WORD, WORD_VECTORS, WORDS, read_word_vectors, words_of_tokens
from albert_tf.errors import InputError
from albert_tf.tokenization.tokenizer import AlbertTokenizer


def write(folder: Path, texts: list[str], vectors: Any) -> tuple[Path, Path]:
    (folder / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    np.save(folder / "words.npy", vectors)
    return folder / "words.npy", folder / "texts.txt"


def test_vectors_of_a_batch(tmp_path: Path) -> None:
    rows = np.arange(1, 13, dtype=np.float16).reshape(6, 2)
    rows[3] = 0.0  # a word that the encoder did not see
    vectors = read_word_vectors(*write(tmp_path, ["a b", "c", " d  e\tf "], rows))
    seen = rows.any(axis=1, keepdims=True)
    centred = np.where(seen, rows - rows.sum(axis=0, dtype=np.float32) / 5, 0.0)
    np.testing.assert_allclose(vectors.of(np.array([2, 0]), 3), [centred[3:], [*centred[:2], [0.0, 0.0]]])
    inputs, wanted = {"token_ids": np.zeros((2, 4))}, {WORDS: np.array([[-1, 0, 1, -1], [-1, 0, -1, -1]])}
    same, found = vectors.targets(0, np.array([2, 1]), inputs, wanted)
    assert same is inputs and found[WORDS] is wanted[WORDS]
    np.testing.assert_allclose(found[WORD_VECTORS], [centred[3:5], [centred[2], [0.0, 0.0]]])


def test_other_rows_have_another_checksum(tmp_path: Path) -> None:
    rows = np.ones((2, 3), np.float32)
    first = read_word_vectors(*write(tmp_path, ["a b"], rows)).checksum
    assert read_word_vectors(*write(tmp_path, ["a b"], rows)).checksum == first
    assert read_word_vectors(*write(tmp_path, ["a b"], 2 * rows)).checksum != first


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.ones((3, 2), np.float32), "expected a row for each of the 2 words between whitespace in .*, found 3"),
        (np.array([[1.0, 2.0], [np.nan, 0.0]]), "words.npy, row 2: expected finite numbers"),
        (np.ones((2, 2), np.int32), "expected an array of float numbers"),
    ],
)
def test_what_cannot_be_learned(rows: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read_word_vectors(*write(tmp_path, ["a", "b"], rows))


def wordpiece(folder: Path) -> Path:
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "'",
        ".",
        "…",
        *letters,
        *(f"##{letter}" for letter in letters),
    ]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    return folder / "vocab.txt"


@pytest.mark.parametrize("kind", ["sentencepiece", "wordpiece"])
@pytest.mark.parametrize(
    "text", ["It wasn't  unbelievably\u00a0good.", " ﬁne 12345 naïve\u3000x", "👍🏽 ok…", "…", "a\u200bb c", "\u0000 d"]
)
def test_every_token_is_of_the_word_it_stands_in(text: str, kind: str, tiny_files: TinyFiles, tmp_path: Path) -> None:
    vocabulary = wordpiece(tmp_path) if kind == "wordpiece" else tiny_files.vocabulary
    tokenizer = AlbertTokenizer.from_pretrained(vocabulary)
    encoded = tokenizer.encode_with_offsets(text)
    words = words_of_tokens(text, encoded)
    assert len(words) == len(encoded.token_ids) and words[0] == words[-1] == NO_WORD
    split = text.split()
    for word, (start, end) in zip(words[1:-1], encoded.offsets[1:-1], strict=True):
        assert text[start:end].strip() in split[word]
