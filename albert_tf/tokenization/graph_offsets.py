"""The vocabularies' encoders as TensorFlow operations that also say which characters each id stands for.

Each gives what its vocabulary's `encode_with_offsets` does: ids, ragged int32 (n, None), and spans, ragged int32
(n, None, 2), in characters (Unicode code points) of the original text. `tf.strings.substr` counts them with
unit="UTF8_CHAR". Slower than the encoders of graph_encoders.py, which these are built from.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.tokenization import graph_rules, rules
from albert_tf.tokenization.graph_encoders import SentencePieceEncoder, WordPieceEncoder
from albert_tf.tokenization.graph_normalizer import GraphNormalizer
from albert_tf.tokenization.graph_rules import next_starts, ragged, row_numbers
from albert_tf.tokenization.graph_words import joined, starts_of_words
from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary
from albert_tf.tokenization.wordpiece import CONTINUATION, WordPieceVocabulary

_MARK = ord(rules.WORD_START)
_QUOTE = ord('"')

Encoded = tuple[tf.RaggedTensor, tf.RaggedTensor]  # ids, spans


class _Words(NamedTuple):
    """The words of rewritten texts.

    Attributes:
        characters: code points, ragged (words, None).
        starts, ends: for each value of `characters`, its span in the code points of all texts together.
        splits: of the texts among the words.
        text_starts: for each word, the place of its text's first code point.
    """

    characters: tf.RaggedTensor
    starts: tf.Tensor
    ends: tf.Tensor
    splits: tf.Tensor
    text_starts: tf.Tensor


class SentencePieceOffsetEncoder(tf.Module):
    """`SentencePieceVocabulary.encode_with_offsets` in a graph.

    Raises:
        InputError: a character is part of a piece but no piece itself, so that the graph cannot know where unknown ones are.
    """

    def __init__(self, vocabulary: SentencePieceVocabulary) -> None:
        super().__init__()
        trie = vocabulary.words.unigram.trie
        if missing := "".join(np.array(list(trie.alphabet))[~trie.is_piece[1:]][:5]):
            raise InputError(
                f"offsets in a graph: every character of a piece must be a piece itself, as SentencePiece trains models; "
                f"{missing!r} are not. Use encode_with_offsets of the vocabulary, in Python"
            )
        self._encoder = SentencePieceEncoder(vocabulary)
        self._normalizer = GraphNormalizer(vocabulary.charsmap)
        self._alphabet = np.array([ord(character) for character in trie.alphabet], np.int32)  # in order
        self._unk_id = vocabulary.unk_id
        self._piece_lengths = np.array(list(map(len, vocabulary.pieces(list(range(vocabulary.size))))), np.int64)
        rows = [vocabulary.words.row(index) for index in range(vocabulary.size)]
        self._row_lengths = np.array([length for row in rows for _, length in row], np.int64)

    def __call__(self, texts: tf.Tensor) -> Encoded:
        # As in the encoder without offsets: each different word is encoded once.
        words = graph_rules.split(texts)
        different, numbers = tf.unique(words.values)
        known, plain, other, rows = self._encoder.kinds(different)
        pieces, places = joined(
            [
                (known, self._encoder.known.rows(self._encoder.known.pieces, rows)),
                (plain, self._plain_pieces(tf.gather(different, plain))),
                (other, self._pieces(tf.gather(different, other))),
            ]
        )
        pieces = tf.gather(pieces, tf.gather(places, numbers))  # (words, None, 3)
        starts = tf.gather(starts_of_words(texts, words), row_numbers(pieces))
        splits = tf.gather(pieces.row_splits, words.row_splits)
        return ragged(pieces.values[:, 0], splits), ragged(pieces.values[:, 1:] + starts[:, None], splits)

    def _plain_pieces(self, words: tf.Tensor) -> tf.RaggedTensor:
        """Id, start and end of each piece of plain words (words, None, 3)."""
        ids = self._encoder.segment(self._encoder.lower_plain(words))
        lengths = tf.cast(tf.gather(self._piece_lengths, ids.values), tf.int32)
        marked_lengths = tf.strings.length(words) + 1  # with the mark in front
        before = tf.gather(tf.cumsum(marked_lengths, exclusive=True), row_numbers(ids))
        ends = tf.cumsum(lengths) - before - 1
        return ragged(tf.stack([ids.values, tf.maximum(ends - lengths, 0), ends], 1), ids.row_splits)

    def _pieces(self, words: tf.Tensor) -> tf.RaggedTensor:
        """Id, start and end of each piece of any words (words, None, 3)."""
        ids, spans = self._followed(words)
        return ragged(tf.concat([ids.values[:, None], spans.values], 1), ids.row_splits)

    def _followed(self, texts: tf.Tensor) -> Encoded:
        """Ids and spans of any texts; every character is followed through the rules."""
        words = self._words(texts)
        normalized, starts, ends = self._normalizer(words.characters)
        pieces = self._encoder.segment(graph_rules.encode(words.characters))  # (words, None)
        lengths = tf.gather(self._piece_lengths, pieces.values)
        is_unknown = pieces.values == self._unk_id
        lengths = tf.tensor_scatter_nd_update(lengths, tf.where(is_unknown), self._unknown_runs(normalized))
        # The digit-comma rule puts several in the place of one.
        ids = self._encoder.without_digit_commas(pieces.values)  # (pieces, None)
        new_lengths = tf.gather(ragged(self._row_lengths, self._encoder.row_splits), pieces.values).values
        piece = row_numbers(ids)
        lengths = tf.where(tf.gather(is_unknown, piece), tf.gather(lengths, piece), new_lengths)
        # Places in the normalized words, one word after the other; the mark in front of a piece stands for nothing.
        end = tf.cumsum(lengths)
        first = end - lengths
        first += tf.cast(tf.gather(normalized.values, first) == _MARK, tf.int64)
        is_mark = first >= end
        # Places in the words, then in the texts.
        start, last = tf.gather(starts, first), tf.gather(ends, end - 1) - 1
        start, end = tf.gather(words.starts, start), tf.gather(words.ends, tf.where(is_mark, start, last))
        return _of_texts(
            ragged(ids.values, tf.gather(ids.row_splits, pieces.row_splits)),
            start,
            tf.where(is_mark, start, end),
            words,
        )

    def _words(self, texts: tf.Tensor) -> _Words:
        code_points = graph_rules.decode(texts)
        text_splits, places = code_points.row_splits, tf.range(tf.size(code_points.values, tf.int64))
        if self._encoder.quotes:
            code_points, kept = _with_quotes(code_points)
            places = tf.boolean_mask(places, kept)
        values, sources = self._encoder.table.with_sources(code_points)
        if self._encoder.lower:
            values = graph_rules.final_sigma(values)
        return _words_of(values, tf.gather(places, sources), text_splits)

    def _unknown_runs(self, words: tf.RaggedTensor) -> tf.Tensor:
        """The lengths of the runs of unknown characters in words."""
        place = tf.searchsorted(self._alphabet, words.values)
        known = tf.gather(self._alphabet, tf.minimum(place, len(self._alphabet) - 1)) == words.values
        runs, _, _ = _runs(~known, row_numbers(words))
        return runs[1:] - runs[:-1]


class WordPieceOffsetEncoder(tf.Module):
    """`WordPieceVocabulary.encode_with_offsets` in a graph."""

    def __init__(self, vocabulary: WordPieceVocabulary) -> None:
        super().__init__()
        self._encoder = WordPieceEncoder(vocabulary)
        self._unk_id = vocabulary.unk_id
        self._lengths = np.array([len(token.removeprefix(CONTINUATION)) for token in vocabulary.tokens], np.int64)

    def __call__(self, texts: tf.Tensor) -> Encoded:
        code_points = graph_rules.decode(texts)
        values, sources = self._encoder.spaced(code_points)
        words = _words_of(values, tf.cast(sources, tf.int64), code_points.row_splits)
        ids = self._encoder.segment(graph_rules.encode(words.characters))  # (words, None)
        word_lengths = tf.gather(words.characters.row_lengths(), row_numbers(ids))
        lengths = tf.where(ids.values == self._unk_id, word_lengths, tf.gather(self._lengths, ids.values))
        end = tf.cumsum(lengths)
        return _of_texts(ids, tf.gather(words.starts, end - lengths), tf.gather(words.ends, end - 1), words)


def _words_of(values: tf.RaggedTensor, starts: tf.Tensor, text_splits: tf.Tensor) -> _Words:
    """The words of rewritten texts.

    Args:
        values: code points, words with spaces between, ragged (n, None).
        starts: for each of them the place of the code point that it comes from.
        text_splits: of the texts among all these.
    """
    rows = row_numbers(values)
    ends = next_starts(starts, rows, tf.gather(text_splits[1:], rows))
    splits, kept, word_rows = _runs(values.values != ord(" "), rows)
    count = tf.cast(values.nrows(), tf.int32)
    words_of_text = tf.math.bincount(word_rows, minlength=count, maxlength=count)
    return _Words(
        ragged(tf.boolean_mask(values.values, kept), splits),
        tf.boolean_mask(starts, kept),
        tf.boolean_mask(ends, kept),
        tf.concat([[0], tf.cumsum(tf.cast(words_of_text, tf.int64))], 0),
        tf.gather(text_splits, word_rows),
    )


def _runs(mask: tf.Tensor, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The runs of true values in rows: their splits among the true values, the mask again, and the row of each run."""
    size = tf.size(mask)
    after = tf.concat([[False], mask[:-1] & (rows[1:] == rows[:-1])], 0)[:size]
    is_first = mask & ~after
    firsts = tf.where(tf.boolean_mask(is_first, mask))[:, 0]
    return tf.concat([firsts, [tf.math.count_nonzero(mask)]], 0), mask, tf.boolean_mask(rows, is_first)


def _with_quotes(code_points: tf.RaggedTensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
    """Texts with " for `` and \'\', and which of the characters are still there."""
    values, rows = code_points.values, row_numbers(code_points)
    is_second = tf.zeros_like(values, tf.bool)
    for sign in "`'":
        splits, mask, _ = _runs(values == ord(sign), rows)
        place = tf.range(splits[-1]) - tf.gather(splits, row_numbers(ragged(tf.range(splits[-1]), splits)))
        is_second = tf.tensor_scatter_nd_update(is_second, tf.where(mask), place % 2 == 1)
    is_first = tf.concat([is_second[1:], [False]], 0)[: tf.size(values)]
    kept = ~is_second
    values = tf.boolean_mask(tf.where(is_first, _QUOTE, values), kept)
    kept_before = tf.concat([[0], tf.cumsum(tf.cast(kept, tf.int64))], 0)
    return ragged(values, tf.gather(kept_before, code_points.row_splits)), kept


def _of_texts(ids: tf.RaggedTensor, starts: tf.Tensor, ends: tf.Tensor, words: _Words) -> Encoded:
    """Ids of words, and spans in all texts → ids of texts, and spans in each."""
    text_starts = tf.gather(words.text_starts, row_numbers(ids))
    spans = tf.cast(tf.stack([starts - text_starts, ends - text_starts], 1), tf.int32)
    splits = tf.gather(ids.row_splits, words.splits)
    return ragged(ids.values, splits), ragged(spans, splits)
