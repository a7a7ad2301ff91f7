"""Words in a graph, by the way in which their pieces are found.

The search of TensorFlow Text takes longer than all else together, so frequent words are looked up. The table is made of
constants: a resource would have to be tracked in every SavedModel.
"""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from albert_tf.tokenization.graph_rules import ragged, row_numbers
from albert_tf.tokenization.rules import WORD_START
from albert_tf.tokenization.sentencepiece_model import changes_ascii

if TYPE_CHECKING:
    from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary

_BEHIND = ("", ",", ".")  # what a known word may have behind it
_MOST_PIECES = 2


class KnownWords(tf.Module):
    """Plain words that are pieces of the vocabulary themselves, alone and before a comma or a full stop.

    Attributes:
        pieces: int32 (n, 2, 3), id, start and end of each piece of each word.
    """

    def __init__(self, vocabulary: "SentencePieceVocabulary") -> None:
        super().__init__()
        self._lower = vocabulary.lower
        names = vocabulary.pieces(list(range(vocabulary.size)))  # frequent ones first
        is_plain = re.compile(plain_words(vocabulary)).fullmatch
        found = [name[1:] for name in names if name.startswith(WORD_START) and name != WORD_START]
        words = [word + behind for behind in _BEHIND for word in found]
        words = [word for word in dict.fromkeys(words) if is_plain(word.replace(",", ""))]
        rows = dict(zip(words, vocabulary.encode_batch(words), strict=True))
        words = [word for word, ids in rows.items() if len(ids) <= _MOST_PIECES and vocabulary.unk_id not in ids]
        self._slots = 1 << len(words).bit_length()
        with tf.init_scope():  # now, whatever graph is being built
            slots = self._slots_of(tf.constant(words, tf.string)).numpy()
        # A word whose slot a more frequent one has is not known.
        first = np.sort(np.unique(slots, return_index=True)[1])
        words = [words[index] for index in first]
        self._numbers = np.full(self._slots, len(words), np.int32)
        self._numbers[slots[first]] = np.arange(len(words))
        with tf.init_scope():
            self._words = tf.constant([*words, ""])
        self._counts, self.pieces = _pieces_of(words, [rows[word] for word in words], names)

    def look_up(self, words: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The number of each word (n,), and whether it is known; if not, the number is any."""
        if self._lower:
            words = tf.strings.lower(words)  # ASCII only, as known words are
        numbers = tf.gather(self._numbers, self._slots_of(words))
        return numbers, tf.gather(self._words, numbers) == words

    def _slots_of(self, words: tf.Tensor) -> tf.Tensor:
        return tf.strings.to_hash_bucket_fast(words, self._slots)

    def rows(self, values: np.ndarray, numbers: tf.Tensor) -> tf.RaggedTensor:
        """What `values` (n, 2, …) has for the pieces of words, (words, None, …)."""
        counts = tf.gather(self._counts, numbers)
        is_there = tf.range(_MOST_PIECES) < counts[:, None]
        splits = tf.concat([[0], tf.cumsum(tf.cast(counts, tf.int64))], 0)
        return ragged(tf.gather_nd(tf.gather(values, numbers), tf.where(is_there)), splits)


def plain_words(vocabulary: "SentencePieceVocabulary") -> str:
    """A regular expression for words in which nothing but case changes: ASCII characters that are pieces, and no digit
    before a comma."""
    trie = vocabulary.words.unigram.trie
    pieces = {character for character, is_piece in zip(trie.alphabet, trie.is_piece[1:], strict=True) if is_piece}
    if WORD_START not in pieces or changes_ascii(vocabulary.charsmap):
        return ""
    signs = [sign for sign in map(chr, range(ord("!"), ord("~") + 1)) if not (vocabulary.quotes and sign in "`'")]
    plain = {sign for sign in signs if (sign.lower() if vocabulary.lower else sign) in pieces}
    digits = {sign for sign in plain if sign.isdigit()}
    if not plain - digits - {","}:
        return ""
    after_digits = f"(?:{_one_of(plain - digits - {','})}|$)"
    return f"(?:{_one_of(plain - digits)}|{_one_of(digits)}+{after_digits})*" if digits else f"{_one_of(plain)}*"


def places_of(is_first: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Where `is_first` (n,) is true, and where it is not."""
    return tf.squeeze(tf.where(is_first), 1), tf.squeeze(tf.where(~is_first), 1)


def starts_of_words(texts: tf.Tensor, words: tf.RaggedTensor) -> tf.Tensor:
    """Where each of the `words` (texts, None) of `graph_rules.split` begins in its text, in characters, int32."""
    joined_texts = tf.io.decode_raw(tf.strings.reduce_join(texts, separator=" "), tf.uint8)
    is_space = (joined_texts == ord(" ")) | ((joined_texts >= ord("\t")) & (joined_texts <= ord("\r")))
    places = tf.squeeze(tf.where(~is_space & tf.concat([[True], is_space], 0)[:-1]), 1)
    text_starts = tf.cumsum(tf.strings.length(texts) + 1, exclusive=True)
    # So far in bytes; what is between words is ASCII.
    more = tf.strings.length(words.values) - tf.strings.length(words.values, "UTF8_CHAR")
    more_before = tf.concat([[0], tf.cumsum(more)], 0)
    text_starts -= tf.gather(more_before, words.row_splits[:-1])
    return tf.cast(places, tf.int32) - more_before[:-1] - tf.gather(text_starts, row_numbers(words))


def joined(kinds: Sequence[tuple[tf.Tensor, tf.RaggedTensor]]) -> tuple[tf.RaggedTensor, tf.Tensor]:
    """Rows of several kinds of words as one ragged tensor.

    Args:
        kinds: places of words, which are 0 to n - 1 in all, and a row for each.

    Returns:
        The rows, and which of them is that of each word (n,).
    """
    lengths = tf.concat([rows.row_lengths() for _, rows in kinds], 0)
    splits = tf.concat([[0], tf.cumsum(lengths)], 0)
    values = tf.concat([rows.values for _, rows in kinds], 0)
    return ragged(values, splits), tf.math.invert_permutation(tf.concat([places for places, _ in kinds], 0))


def _one_of(signs: Iterable[str]) -> str:
    return f"[{re.escape(''.join(sorted(signs)))}]"


def _pieces_of(words: Sequence[str], rows: Sequence[list[int]], names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """How many pieces words have, and `KnownWords.pieces`; with one more word, of no pieces."""
    ids = np.zeros((len(words) + 1, _MOST_PIECES), np.int32)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
    lengths = np.array(list(map(len, names)), np.int32)[ids]
    ends = np.cumsum(lengths, 1) - 1  # without the mark in front
    pieces = np.stack([ids, np.maximum(ends - lengths, 0), ends], 2)
    return np.array([*map(len, rows), 0], np.int32), pieces.astype(np.int32)
