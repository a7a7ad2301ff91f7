"""Words and best labels in the graph, against Python's."""

import numpy as np
import tensorflow as tf
from small_vocabularies import LINES, fuzzed_texts

from albert_tf.inference.tagging import best_path, word_places
from albert_tf.tokenization.rules import to_utf8
from export.served_tagging import best_paths, words_of

LABELS = ("O", "B-PER", "I-PER", "I-LOC", "B-LOC")


def test_words() -> None:
    blocks = ["".join(map(chr, range(start, start + 300))) for start in range(0, 0x3300, 300)]
    apart = [
        " ".join(f"{chr(c)}a{chr(c)}{chr(c)}" for c in range(start, start + 97)) for start in range(0, 0x11000, 971)
    ]
    texts = ["", " ", "a", "你好world_x9", "_", *LINES, *blocks, *apart, *fuzzed_texts(400, 33)]
    found = words_of(tf.constant([to_utf8(text) for text in texts]))
    splits, starts, ends = found.splits.numpy(), found.starts.numpy(), found.ends.numpy()
    words = [word.decode() for word in found.texts.numpy()]
    for number, text in enumerate(texts):
        own = slice(splits[number], splits[number + 1])
        places = list(zip(starts[own].tolist(), ends[own].tolist(), strict=True))
        assert places == word_places(text), ascii(text)
        assert words[own] == [to_utf8(text[start:end]).decode() for start, end in places]
    assert len(words_of(tf.constant([], tf.string)).texts) == 0


def test_best_labels() -> None:
    random = np.random.default_rng(0)
    tables = [random.dirichlet([0.3] * len(LABELS), size).astype(np.float32) for size in (0, 1, 2, 7, 40, 3)]
    tables[2][0] = [0, 0, 1, 0, 0]  # only what may not come first
    tables[3][2:5] = [0, 0, 0, 1, 0]  # only what may not follow
    padded = np.zeros((len(tables), 40, len(LABELS)), np.float32)
    for row, table in zip(padded, tables, strict=True):
        row[: len(table)] = table
    found = best_paths(tf.constant(padded), tf.constant([len(table) for table in tables], tf.int64), LABELS).numpy()
    for row, table in zip(found, tables, strict=True):
        assert row[: len(table)].tolist() == best_path(table, LABELS)
    assert any(best_path(table, LABELS) != table.argmax(1).tolist() for table in tables)
    assert best_paths(tf.zeros([2, 0, len(LABELS)]), tf.constant([0, 0], tf.int64), LABELS).shape == (2, 0)
    assert best_paths(tf.zeros([0, 0, len(LABELS)]), tf.constant([], tf.int64), LABELS).shape == (0, 0)
