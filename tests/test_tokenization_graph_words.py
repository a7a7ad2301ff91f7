import re

import numpy as np
import pytest
import tensorflow as tf
from small_vocabularies import LINES, fuzzed_texts, sentencepiece_vocabulary

from albert_tf.tokenization.graph_rules import split
from albert_tf.tokenization.graph_words import KnownWords, joined, places_of, plain_words, starts_of_words
from albert_tf.tokenization.rules import sentencepiece_words, to_utf8


def test_known_words_have_the_pieces_of_python():
    vocabulary = sentencepiece_vocabulary()
    known = KnownWords(vocabulary)
    words = ["the", "THE", "the,", "The.", "22,", "the;", "thé", "wheelbarrow", ",", "\x1c"]
    numbers, is_known = known.look_up(tf.constant(words))
    found = is_known.numpy().tolist()
    assert found == [True, True, True, True, vocabulary.encode("22,")[0] != 1 and found[4], *[False] * 5]
    rows = known.rows(known.pieces, tf.boolean_mask(numbers, is_known)).to_list()
    for word, row in zip(np.array(words)[found].tolist(), rows, strict=True):
        ids, spans = vocabulary.encode_with_offsets(word)
        assert [(index, (start, end)) for index, start, end in row] == list(zip(ids, spans, strict=True))


@pytest.mark.parametrize("options", [{}, {"lower": False}, {"keep_accents": True, "quotes": True}])
def test_plain_words_change_their_case_alone(options):
    vocabulary = sentencepiece_vocabulary(**options)
    is_plain = re.compile(plain_words(vocabulary)).fullmatch
    texts = [word for text in [*LINES, *fuzzed_texts(2000, 70)] for word in text.split()]
    plain = [text for text in texts if is_plain(text)]
    assert len(plain) > 100
    for text in plain:
        assert sentencepiece_words(text, **vocabulary.options()) == [text.lower() if vocabulary.lower else text]
        assert vocabulary.unk_id not in vocabulary.encode(text)
    assert not is_plain("7,") and not is_plain("é") and is_plain("a,b7")
    assert not (vocabulary.quotes and is_plain("a'b"))


def test_starts_of_words():
    texts = ["", "  a", "é b\t\tc ", "한 글", " ", "x\ny\x0bz", "a\x1cb c", *fuzzed_texts(500, 71)]
    strings = tf.constant([to_utf8(text) for text in texts])
    words = split(strings)
    starts = words.with_values(starts_of_words(strings, words)).to_list()
    for text, found in zip(texts, starts, strict=True):
        assert found == [match.start() for match in re.finditer(r"[^ \t-\r]+", text)]
    assert starts_of_words(strings[:0], split(strings[:0])).shape == (0,)


def test_split():
    texts = tf.constant(["a b", "", " c\x1cd\n", "é "])
    assert split(texts).to_list() == tf.strings.split(texts).to_list()


def test_joined():
    first, other = places_of(tf.constant([False, True, True, False]))
    rows, places = joined([(first, tf.ragged.constant([[1, 1], []])), (other, tf.ragged.constant([[2], [3, 3]]))])
    assert tf.gather(rows, places).to_list() == [[2], [1, 1], [], [3, 3]]
