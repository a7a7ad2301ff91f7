"""Statements in the graph, against those of `ChoiceExample`."""

import tensorflow as tf
from small_vocabularies import fuzzed_texts

from albert_tf.data.choices import ChoiceExample
from albert_tf.tokenization.rules import to_utf8
from export.served_choices import filled


def test_statements() -> None:
    fuzzed = fuzzed_texts(60, 34)
    questions = ["", "_", "a _ b", "__", "_a", "why?", "\0_\0", *fuzzed, *[f"{text}_{text}" for text in fuzzed]]
    options = ["", "_", "x\\1", "\0", "中", "a _", "o", *fuzzed[::-1], *fuzzed]
    found = filled(*(tf.constant([to_utf8(text) for text in texts]) for texts in (questions, options)))
    expected = [
        to_utf8(ChoiceExample("", question, (option,)).statements()[0])
        for question, option in zip(questions, options, strict=True)
    ]
    assert found.numpy().tolist() == expected
    assert filled(tf.constant([], tf.string), tf.constant([], tf.string)).shape == (0,)
