"""Which tokens begin a word: what whole-word masking keeps together."""

import re
import string
from collections.abc import Callable

import numpy as np

from albert_tf.errors import InputError
from albert_tf.tokenization.api import Vocabulary
from albert_tf.tokenization.rules import WORD_START

Array = np.ndarray
WordStarts = Callable[[Array], Array]  # token ids of a sentence, int (n,) → whether a word begins there, bool (n,)

# A piece of these alone, without "▁" in front, goes on with the word before it.
_GOES_ON = frozenset(string.ascii_letters + string.punctuation)
_IDEOGRAPH = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002ffff]")


def word_starts(vocabulary: Vocabulary, *, chinese_words: bool = False) -> WordStarts:
    """The function from a sentence's ids to its word starts; the first token always begins a word.

    Args:
        chinese_words: ideographs that form a Chinese word, as jieba finds them, are kept together.

    Raises:
        InputError: `chinese_words` without jieba, or for a vocabulary that has no single ideographs.
    """
    table = begins_word(vocabulary)

    def by_table(token_ids: Array) -> Array:
        starts = table[token_ids]
        starts[:1] = True
        return starts

    return _with_chinese_words(vocabulary, by_table) if chinese_words else by_table


def begins_word(vocabulary: Vocabulary) -> Array:
    """For each id whether its piece begins a word, bool (V,) (_is_start_piece_sp and _is_start_piece_bert of
    google-research/albert, create_pretraining_data.py).

    SentencePiece: pieces that begin with "▁" or "<", single ASCII punctuation marks, and pieces with any character that
    is neither an ASCII letter nor punctuation (digits, other scripts). WordPiece: all without "##" in front.
    """
    pieces = vocabulary.pieces(list(range(vocabulary.size)))
    if vocabulary.kind == "wordpiece":
        return np.array([not piece.startswith("##") for piece in pieces])
    return np.array(
        [
            piece.startswith((WORD_START, "<")) or piece in string.punctuation or not _GOES_ON.issuperset(piece)
            for piece in pieces
        ]
    )


def _with_chinese_words(vocabulary: Vocabulary, by_table: WordStarts) -> WordStarts:
    pieces = vocabulary.pieces(list(range(vocabulary.size)))
    is_ideograph = np.array([len(piece) == 1 and _IDEOGRAPH.match(piece) is not None for piece in pieces])
    if vocabulary.kind != "wordpiece" or not is_ideograph.any():
        raise InputError(
            "--chinese-words: expected a WordPiece vocabulary with ideographs, such as that of the Chinese models; pieces "
            f"of this {vocabulary.kind} vocabulary are words already"
        )
    cut = _jieba_cut()

    def by_words(token_ids: Array) -> Array:
        starts = by_table(token_ids)
        ideographs = np.concatenate([[False], is_ideograph[token_ids], [False]])
        edges = np.flatnonzero(ideographs[1:] != ideographs[:-1])
        for first, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            starts[first:end] = False
            position = first
            for word in cut("".join([pieces[i] for i in token_ids[first:end].tolist()])):
                starts[position] = True
                position += len(word)
        return starts

    return by_words


def _jieba_cut() -> Callable[[str], list[str]]:
    try:
        import jieba
    except ImportError as error:
        raise InputError(
            "--chinese-words: expected the package jieba, which finds the words; install it: pip install "
            '"albert-tf[chinese]"'
        ) from error
    import logging

    jieba.setLogLevel(logging.WARNING)  # it reports on its dictionary otherwise

    def cut(text: str) -> list[str]:
        return list(jieba.cut(text))

    return cut
