import random

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.tokenization import graph_rules, rules

# All that is assigned or may be soon, and a sample of the rest.
CODE_POINTS = (*range(0xD800), *range(0xE000, 0x30000), *range(0x30000, 0x110000, 97), *range(0xE0000, 0xE0200))
CHARACTERS = [chr(code_point) for code_point in CODE_POINTS]


def apply(rule, texts):
    """The texts after a graph rule."""
    strings = tf.constant([rules.to_utf8(text) for text in texts], tf.string)
    return [text.decode() for text in graph_rules.encode(rule(graph_rules.decode(strings))).numpy()]


@pytest.mark.parametrize(
    "rule",
    [
        lambda c: rules.fold(c, lower=False, keep_accents=False),
        rules.lower_except_sigma,
        rules.clean_character,
        rules.strip_and_space_character,
    ],
    ids=["fold", "lower", "clean", "space"],
)
def test_table_is_the_rule_for_every_character(rule):
    blocks = ["".join(CHARACTERS[start : start + 4096]) for start in range(0, len(CHARACTERS), 4096)]
    assert apply(graph_rules.CodePointTable(rule), blocks) == ["".join(map(rule, block)) for block in blocks]


def test_table_of_no_text():
    table = graph_rules.CodePointTable(rules.lower_except_sigma)
    assert apply(table, []) == []
    assert apply(table, ["", "", "A", ""]) == ["", "", "a", ""]


def test_final_sigma():
    # Every kind of neighbour: letters, marks, signs that do not count, and the sigma itself.
    kinds = "aΑβΣΣΣ'.·\u0301\u200d 1-中İ\u00adʰⅠ"
    rng = random.Random(0)
    texts = ["".join(rng.choices(kinds, k=rng.randrange(7))) for _ in range(5000)] + ["ΟΔΥΣΣΕΥΣ", "Σ", "ΑΣ", "", "Α"]
    lowered = [rules.lower_except_sigma(text) for text in texts]
    assert apply(graph_rules.final_sigma, lowered) == [text.lower() for text in texts]
    assert apply(graph_rules.final_sigma, []) == []


def test_final_sigma_beside_every_character():
    # Not those that lower-case into several, whose own case-folding would be seen: the test above has one.
    characters = [c for c in CHARACTERS if len(c.lower()) == 1]
    blocks = ["\n".join(f"{c}Σ A{c}Σ AΣ{c} AΣ{c}B" for c in characters[i : i + 4096]) for i in range(0, 0x40000, 4096)]
    lowered = [rules.lower_except_sigma(block) for block in blocks]
    assert apply(graph_rules.final_sigma, lowered) == [block.lower() for block in blocks]


def test_row_numbers():
    ragged = tf.ragged.constant([[], [1, 2], [], [], [3], []])
    assert graph_rules.row_numbers(ragged).numpy().tolist() == [1, 1, 4]
    assert graph_rules.row_numbers(tf.RaggedTensor.from_row_lengths(np.zeros(0), [0, 0])).shape == (0,)
