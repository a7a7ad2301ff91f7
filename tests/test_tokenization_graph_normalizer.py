import itertools

import pytest
import sentencepiece
import tensorflow as tf
from sentencepiece import sentencepiece_model_pb2
from small_vocabularies import LINES, fuzzed_texts, sentencepiece_vocabulary

from albert_tf.tokenization import graph_rules
from albert_tf.tokenization.alignment import sources_of_starts
from albert_tf.tokenization.charsmap import compile_charsmap
from albert_tf.tokenization.graph_normalizer import GraphNormalizer
from albert_tf.tokenization.rules import WORD_START, without_surrogates

WORDS = [
    *(
        "a\u200bb",
        "a\u200b\u200b",
        "\u200ba",
        "\u1112\u1161\u11ab\u1100",
        "a\x01b\x01",
        "\u200b",
        "\x01",
        "x",
        "\0",
        "a\0b",
    ),
    *("\u200b\u200bx\u200b\u200by\x01\u200b", "¨", "a¨", "¨a", "a\u200b¨", "e\u0301", "ﷺ", "", "ＡＢ", "한글"),
]
MAPS = {
    "own": None,
    "none": {},
    "several": {"a": "bc", "ab": "x", "abc": "", "b": " ", "é": "  z ", "x": "y  y", "ﬁn": "fin", "中": "中国"},
}


def normalized(charsmap, words):
    """For each word what the graph makes of it: text, starts and ends, those of "▁" left out."""
    graph = tf.function(
        lambda strings: GraphNormalizer(charsmap)(graph_rules.decode(strings)),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    strings = tf.constant([word.encode() for word in words], tf.string)
    characters, starts, ends = graph(strings)
    firsts, splits = (ragged.row_splits.numpy().tolist() for ragged in (graph_rules.decode(strings), characters))
    texts = [text.decode() for text in graph_rules.encode(characters).numpy()]
    all_spans = list(zip(starts.numpy().tolist(), ends.numpy().tolist(), strict=True))
    result = []
    for text, first, (begin, end) in zip(texts, firsts[:-1], itertools.pairwise(splits), strict=True):
        spans = [(a - first, b - first) for a, b in all_spans[begin:end]]
        result.append((text, [span for character, span in zip(text, spans, strict=True) if character != WORD_START]))
    return result


@pytest.mark.parametrize("name", MAPS)
def test_is_the_normaliser_of_sentencepiece(name):
    proto = sentencepiece_model_pb2.ModelProto.FromString(sentencepiece_vocabulary().graph_model())
    if MAPS[name] is not None:
        proto.normalizer_spec.precompiled_charsmap = compile_charsmap(MAPS[name]) if MAPS[name] else b""
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    texts = [*LINES, *fuzzed_texts(1500, 40), "abcabab éaé xéx fiﬁn ﬁnﬁn 中é中b"]
    # The text rules leave no "▁" in a word.
    words = [word for text in texts for word in without_surrogates(text).replace(WORD_START, " ").split()]
    words = [*WORDS, *dict.fromkeys(words)]
    expected = []
    for word in words:
        text, starts = processor.normalize(word, with_offsets=True)
        spans = zip(*sources_of_starts(starts), strict=True)
        expected.append((text, [span for c, span in zip(text, spans, strict=True) if c != WORD_START]))
    found = normalized(proto.normalizer_spec.precompiled_charsmap, words)
    assert [(w, a, b) for w, a, b in zip(words, found, expected, strict=True) if a != b] == []


def test_no_words():
    charsmap = sentencepiece_vocabulary().charsmap
    assert normalized(charsmap, []) == []
    assert normalized(charsmap, [""]) == [("", [])]
