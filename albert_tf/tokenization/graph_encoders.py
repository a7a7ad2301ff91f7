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
from albert_tf.tokenization.wordpiece import MAX_WORD_LENGTH

if TYPE_CHECKING:
    from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary
    from albert_tf.tokenization.wordpiece import WordPieceVocabulary

_TOO_LONG = "x" * (4 * MAX_WORD_LENGTH + 1)  # more bytes than a word of MAX_WORD_LENGTH characters can have


class SentencePieceEncoder(tf.Module):
    """`SentencePieceVocabulary.encode` in a graph."""

    def __init__(self, vocabulary: "SentencePieceVocabulary") -> None:
        super().__init__()
        self._lower, self._quotes = vocabulary.lower, vocabulary.quotes
        self._table = _folding(vocabulary.lower, vocabulary.keep_accents)
        with tf.init_scope():  # its constants belong to this object, whatever graph is being built
            self._segmenter = tensorflow_text.FastSentencepieceTokenizer(vocabulary.graph_model())
        rows = vocabulary.digit_comma_ids()
        self._ids = np.array([new for row in rows for new in row], np.int32)
        self._id_splits = np.cumsum([0, *map(len, rows)]).astype(np.int64)

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        words = tf.strings.split(self._normalize(texts))
        ids = self._segmenter.tokenize(words.values).with_row_splits_dtype(tf.int64)  # (words, None)
        replacements = tf.RaggedTensor.from_row_splits(self._ids, self._id_splits, validate=False)
        ids = ids.with_values(tf.gather(replacements, ids.values)).merge_dims(1, 2)
        return words.with_values(ids).merge_dims(1, 2)

    def _normalize(self, texts: tf.Tensor) -> tf.Tensor:
        """`rules.normalize`, up to the number of spaces; ASCII texts take a shorter way."""
        if self._quotes:
            texts = tf.strings.regex_replace(texts, "``|''", '"')
        # All that `str.split` takes for whitespace in ASCII.
        plain = tf.strings.regex_replace(texts, r"[\t-\r\x1c-\x1f]", " ")
        if self._lower:
            plain = tf.strings.lower(plain)
        other = tf.where(~tf.strings.regex_full_match(texts, r"[\x00-\x7f]*"))
        code_points = self._table(graph_rules.decode(tf.gather_nd(texts, other)))
        if self._lower:
            code_points = graph_rules.final_sigma(code_points)
        return tf.tensor_scatter_nd_update(plain, other, graph_rules.encode(code_points))


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
        code_points = self._clean(graph_rules.decode(texts))
        if self._lower:
            code_points = graph_rules.final_sigma(code_points)
        words = tf.strings.split(graph_rules.encode(self._space(code_points)))
        too_long = tf.strings.length(words.values, "UTF8_CHAR") > MAX_WORD_LENGTH
        ids = self._segmenter.tokenize(tf.where(too_long, _TOO_LONG, words.values))  # (words, None)
        return words.with_values(ids).merge_dims(1, 2)


@functools.cache
def _folding(lower: bool, keep_accents: bool) -> graph_rules.CodePointTable:
    """`rules.sentencepiece_words` by character, but for capital sigma."""

    def rule(character: str) -> str:
        if character.isspace() or character == rules.WORD_START:
            return " "
        text = rules.fold(character, lower=False, keep_accents=keep_accents)
        return rules.lower_except_sigma(text) if lower else text

    return graph_rules.CodePointTable(rule)


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
