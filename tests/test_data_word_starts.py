"""`albert_tf.data.word_starts`: the published test of both kinds of vocabulary, and Chinese words."""

import sys
import types
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_vocabularies import sentencepiece_vocabulary, wordpiece_vocabulary

from albert_tf.data.word_starts import begins_word, word_starts
from albert_tf.errors import InputError
from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary
from albert_tf.tokenization.wordpiece import WordPieceVocabulary

CHINESE = WordPieceVocabulary(
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"我爱北京天安门的人，。", "tf", "##lite", "ab"]
)


class Pieces:
    """A vocabulary that has pieces and nothing else."""

    kind = "sentencepiece"

    def __init__(self, pieces: list[str]) -> None:
        self.all = pieces
        self.size = len(pieces)

    def pieces(self, ids: list[int]) -> list[str]:
        return [self.all[index] for index in ids]


def published_start_of_sentencepiece(piece: str) -> bool:
    """_is_start_piece_sp of google-research/albert, as its documentation and cases say, letter by letter."""
    if piece[:1] in ("▁", "<"):
        return True
    if len(piece) == 1 and 33 <= ord(piece) <= 126 and not piece.isalnum():
        return True
    for character in piece:
        ascii_letter = "a" <= character.lower() <= "z" and ord(character) < 128
        ascii_mark = 33 <= ord(character) <= 126 and not character.isalnum()
        if not ascii_letter and not ascii_mark:
            return True
    return False


@pytest.mark.parametrize(
    ("piece", "expected"),
    [
        *(("▁the", True), ("▁", True), ("<pad>", True), ("ing", False), ("'s", False), (".", True), ("--", False)),
        *(("[MASK]", False), ("1", True), ("a1", True), ("é", True), ("€", True), ("文", True), ("ING", False)),
    ],
)
def test_sentencepiece_pieces(piece: str, expected: bool) -> None:
    assert begins_word(Pieces([piece])).tolist() == [expected]
    assert published_start_of_sentencepiece(piece) == expected


@given(st.text(alphabet="▁<ab.Z'1é文", min_size=1, max_size=4))
def test_sentencepiece_pieces_as_published(piece: str) -> None:
    assert begins_word(Pieces([piece])).tolist() == [published_start_of_sentencepiece(piece)]


def test_wordpiece_pieces() -> None:
    vocabulary = wordpiece_vocabulary()
    assert begins_word(vocabulary).tolist() == [not token.startswith("##") for token in vocabulary.tokens]


def test_the_first_token_always_begins_a_word() -> None:
    vocabulary = wordpiece_vocabulary()
    ids = np.array(vocabulary.encode("mills aaa the"), np.int32)
    assert vocabulary.pieces(ids.tolist()) == ["mill", "##s", "a", "##aa", "the"]
    starts = word_starts(vocabulary)
    assert starts(ids).tolist() == [True, False, True, False, True]
    assert starts(ids[1:]).tolist() == [True, True, False, True]
    assert starts(ids[:0]).tolist() == []


@pytest.fixture
def jieba(monkeypatch) -> list[str]:
    """Stands in for jieba: cuts the words that its dictionary has; returns what it was asked."""
    asked: list[str] = []

    def cut(text: str):
        asked.append(text)
        while text:
            word = next((w for w in ("天安门", "北京") if text.startswith(w)), text[0])
            yield word
            text = text.removeprefix(word)

    module = types.ModuleType("jieba")
    module.cut, module.setLogLevel = cut, lambda level: None
    monkeypatch.setitem(sys.modules, "jieba", module)
    return asked


def test_chinese_words(jieba: list[str]) -> None:
    ids = np.array(CHINESE.encode("我爱北京天安门，tflite 北京的人。"), np.int32)
    pieces = CHINESE.pieces(ids.tolist())
    starts = word_starts(CHINESE, chinese_words=True)(ids)
    words = "".join(("|" if start else "") + piece for piece, start in zip(pieces, starts, strict=True))
    assert words == "|我|爱|北京|天安门|，|tf##lite|北京|的|人|。"
    assert jieba == ["我爱北京天安门", "北京的人"], "runs of ideographs alone"
    assert word_starts(CHINESE)(ids).tolist() == [not piece.startswith("##") for piece in pieces]


def test_an_unknown_ideograph_parts_words(jieba: list[str]) -> None:
    ids = np.array(CHINESE.encode("北京龘天安门"), np.int32)
    assert word_starts(CHINESE, chinese_words=True)(ids).tolist() == [True, False, True, True, False, False]


def test_chinese_words_without_jieba(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "jieba", None)
    with pytest.raises(InputError, match=r'the package jieba.*pip install "albert-tf\[chinese\]"'):
        word_starts(CHINESE, chinese_words=True)


@pytest.mark.parametrize(
    "vocabulary", [sentencepiece_vocabulary(), WordPieceVocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])]
)
def test_chinese_words_need_single_ideographs(vocabulary, jieba) -> None:
    with pytest.raises(InputError, match="expected a WordPiece vocabulary with ideographs"):
        word_starts(vocabulary, chinese_words=True)


def test_the_published_vocabulary(shared_data: Path) -> None:
    vocabulary = SentencePieceVocabulary.load(shared_data / "albert_vocab_en/30k-clean.model")
    pieces = vocabulary.pieces(list(range(vocabulary.size)))
    assert begins_word(vocabulary).tolist() == [published_start_of_sentencepiece(piece) for piece in pieces]
    text = vocabulary.encode("the unbelievably long-winded sentence's end in 1999 for £5")
    starts = word_starts(vocabulary)(np.array(text))
    words = "".join(
        ("|" if start else "") + piece for piece, start in zip(vocabulary.pieces(text), starts, strict=True)
    )
    assert words == "|▁the|▁unbelievably|▁long|-winded|▁sentence|'s|▁end|▁in|▁1999|▁for|▁|£|5"
