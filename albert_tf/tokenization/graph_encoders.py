"""The vocabularies' encoders as TensorFlow operations: tf.string (n,) → ragged int32 ids (n, None).

Each gives the ids of its vocabulary's `encode`. They are `tf.Module`s without state other than constants, so they work
in tf.function, in tf.data and in a SavedModel (which needs `import tensorflow_text` where it is loaded).
"""

import functools
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf
import tensorflow_text

from albert_tf.tokenization import graph_rules, rules
from albert_tf.tokenization.graph_rules import ragged
from albert_tf.tokenization.graph_words import KnownWords, joined, places_of, plain_words
from albert_tf.tokenization.wordpiece import MAX_WORD_LENGTH

if TYPE_CHECKING:
    from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary
    from albert_tf.tokenization.wordpiece import WordPieceVocabulary

_TOO_LONG = "x" * (4 * MAX_WORD_LENGTH + 1)  # more bytes than a word of MAX_WORD_LENGTH characters can have


class SentencePieceEncoder(tf.Module):
    """`SentencePieceVocabulary.encode` in a graph.

    Attributes:
        lower, quotes: text rules.
        table: the other text rules, by character, but for capital sigma.
        row_splits: of the ids that the digit-comma rule puts in the place of each id.
        known: frequent words.
        plain: a regular expression for words in which nothing but case changes.
    """

    def __init__(self, vocabulary: "SentencePieceVocabulary") -> None:
        super().__init__()
        self.lower, self.quotes = vocabulary.lower, vocabulary.quotes
        self.table = _folding(vocabulary.lower, vocabulary.keep_accents)
        with tf.init_scope():  # its constants belong to this object, whatever graph is being built
            self._segmenter = tensorflow_text.FastSentencepieceTokenizer(vocabulary.graph_model())
        rows = vocabulary.digit_comma_ids()
        self._ids = np.array([new for row in rows for new in row], np.int32)
        self.row_splits = np.cumsum([0, *map(len, rows)]).astype(np.int64)
        self.known, self.plain = KnownWords(vocabulary), plain_words(vocabulary)

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        # The rules do not reach from one word into the next, so each different word is encoded once.
        words = graph_rules.split(texts)
        different, numbers = tf.unique(words.values)
        known, plain, other, rows = self.kinds(different)
        ids, places = joined(
            [
                (known, self.known.rows(self.known.pieces[:, :, 0], rows)),
                (plain, self.segment(self.lower_plain(tf.gather(different, plain)))),
                (other, self._ids_of(tf.gather(different, other))),
            ]
        )
        ids = tf.gather(ids, tf.gather(places, numbers))  # (words, None)
        return ragged(ids.values, tf.gather(ids.row_splits, words.row_splits))

    def kinds(self, words: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        """The places of known, plain and other words, and the numbers of the known ones in `self.known`."""
        numbers, is_known = self.known.look_up(words)
        known, unknown = places_of(is_known)
        plain, other = places_of(tf.strings.regex_full_match(tf.gather(words, unknown), self.plain))
        return known, tf.gather(unknown, plain), tf.gather(unknown, other), tf.gather(numbers, known)

    def lower_plain(self, words: tf.Tensor) -> tf.Tensor:
        """Plain words after the text rules. No digit-comma rule follows: there is no comma in them."""
        return tf.strings.lower(words) if self.lower else words

    def segment(self, words: tf.Tensor) -> tf.RaggedTensor:
        """Ids (words, None), before the digit-comma rule."""
        pieces = self._segmenter.tokenize(words)
        return ragged(pieces.values, tf.cast(pieces.row_splits, tf.int64))

    def without_digit_commas(self, ids: tf.Tensor) -> tf.RaggedTensor:
        """What the digit-comma rule puts in the place of each id (ids, None): mostly itself."""
        return tf.gather(ragged(self._ids, self.row_splits), ids)

    def _ids_of(self, words: tf.Tensor) -> tf.RaggedTensor:
        """Ids of any words (words, None): `rules.rewritten_word`, segmentation, digit-comma rule."""
        if self.quotes:
            words = tf.strings.regex_replace(words, "``|''", '"')
        characters = self.table(graph_rules.decode(words))
        if self.lower:
            characters = graph_rules.final_sigma(characters)
        parts = graph_rules.split(graph_rules.encode(characters))  # (words, None): mostly one, but "a▁b" is two
        pieces = self.segment(parts.values)  # (parts, None)
        ids = self.without_digit_commas(pieces.values)  # (pieces, None)
        return ragged(ids.values, tf.gather(ids.row_splits, tf.gather(pieces.row_splits, parts.row_splits)))


class WordPieceEncoder(tf.Module):
    """`WordPieceVocabulary.encode` in a graph."""

    def __init__(self, vocabulary: "WordPieceVocabulary") -> None:
        super().__init__()
        self._lower = vocabulary.lower
        self._clean, self._space = _cleaning(vocabulary.lower), _spacing(vocabulary.lower)
        with tf.init_scope():
            self._segmenter = tensorflow_text.FastWordpieceTokenizer(
                vocabulary.tokens,
                max_bytes_per_word=len(_TOO_LONG) - 1,
                token_out_type=tf.int32,
                unknown_token=vocabulary.tokens[vocabulary.unk_id],
                no_pretokenization=True,
            )

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        characters, _ = self.spaced(graph_rules.decode(texts))
        words = graph_rules.split(graph_rules.encode(characters))
        ids = self.segment(words.values)  # (words, None)
        return ragged(ids.values, tf.gather(ids.row_splits, words.row_splits))

    def spaced(self, code_points: tf.RaggedTensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """`rules.spaced_text`, and for each value the place in `code_points.values` that it comes from, int32."""
        values, sources = self._clean.with_sources(code_points)
        if self._lower:
            values = graph_rules.final_sigma(values)
        values, cleaned_sources = self._space.with_sources(values)
        return values, tf.gather(sources, cleaned_sources)

    def segment(self, words: tf.Tensor) -> tf.RaggedTensor:
        """Ids (words, None)."""
        too_long = tf.strings.length(words, "UTF8_CHAR") > MAX_WORD_LENGTH
        return self._segmenter.tokenize(tf.where(too_long, _TOO_LONG, words)).with_row_splits_dtype(tf.int64)


@functools.cache
def _folding(lower: bool, keep_accents: bool) -> graph_rules.CodePointTable:
    return graph_rules.CodePointTable(functools.partial(rules.fold_character, lower=lower, keep_accents=keep_accents))


@functools.cache
def _cleaning(lower: bool) -> graph_rules.CodePointTable:
    """The first half of `rules.bert_words` by character, but for capital sigma."""

    def rule(character: str) -> str:
        text = rules.clean_character(character)
        return rules.lower_except_sigma(text) if lower else text

    return graph_rules.CodePointTable(rule)


@functools.cache
def _spacing(lower: bool) -> graph_rules.CodePointTable:
    """The second half of `rules.bert_words` by character."""
    return graph_rules.CodePointTable(rules.strip_and_space_character if lower else rules.space_character)
