"""Whether a vocabulary gives the same ids and spans on every way: one text, many, with offsets, and both in a graph.

    python tests/tokenizer_agreement.py --texts 100000 VOCABULARY...

compares on as many fuzzed strings, and on strings of a million characters without a space; it prints what differs.
"""

import argparse
import random
import sys
import time

import tensorflow as tf
from small_vocabularies import fuzzed_texts

from albert_tf.tokenization.rules import to_utf8
from albert_tf.tokenization.tokenizer import AlbertTokenizer

BATCH = 2000


def disagreements(vocabulary, texts):
    """The texts on which two ways differ."""
    signature = [tf.TensorSpec([None], tf.string)]
    encode = tf.function(vocabulary.graph_encoder(), input_signature=signature)
    encode_with_offsets = tf.function(vocabulary.graph_offset_encoder(), input_signature=signature)
    different = []
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        strings = tf.constant([to_utf8(text) for text in batch], tf.string)
        graph_ids, spans = encode_with_offsets(strings)
        rows = zip(batch, vocabulary.encode_batch(batch), *_lists(encode(strings), graph_ids, spans), strict=True)
        for text, many, in_graph, with_offsets, graph_spans in rows:
            ids, python_spans = vocabulary.encode_with_offsets(text)
            if not ids == vocabulary.encode(text) == many == in_graph == with_offsets or python_spans != graph_spans:
                different.append(text)
    return different


def long_texts(length):
    """Strings of `length` characters without a space."""
    rng = random.Random(0)
    mixed = "".join(rng.choices("abcdefghijklmnop中é한\u0301①9,0ﬁ\u200b▁ΑΣ`", k=length))
    return ["x" * length, "haha" * (length // 4), "中" * length, mixed]


def _lists(ids, graph_ids, spans):
    return ids.to_list(), graph_ids.to_list(), [[tuple(span) for span in row] for row in spans.to_list()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vocabulary", nargs="+", help="a tokenizer's folder or a vocabulary file")
    parser.add_argument("--texts", type=int, default=100_000, help="fuzzed strings (default 100000)")
    parser.add_argument("--length", type=int, default=1_000_000, help="characters without a space (default 1000000)")
    args = parser.parse_args()
    different = []
    for path in args.vocabulary:
        started = time.perf_counter()
        vocabulary = AlbertTokenizer.from_pretrained(path).vocabulary
        found = disagreements(vocabulary, [*fuzzed_texts(args.texts, 1), *long_texts(args.length)])
        print(f"{path}: {len(found)} of {args.texts + 4} texts differ ({time.perf_counter() - started:.0f} s)")
        different += found
    for text in sorted(different, key=len)[:5]:
        print(repr(text[:500]))
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
