import itertools
import random

import pytest
from small_vocabularies import unigram_model


def ids_and_ends(segments):
    ids, ends, splits = segments
    return [(ids[start:end].tolist(), ends[start:end].tolist()) for start, end in itertools.pairwise(splits)]


@pytest.mark.parametrize("alphabet", ["ab#", "▁abcé#", "ab中😀xyz#"])
@pytest.mark.parametrize("count", [1, 50, 10_000])
def test_many_words_are_as_each_alone(alphabet, count):
    rng = random.Random(count)
    pieces = sorted({"".join(rng.choices(alphabet[:-1], k=rng.randrange(1, 6))) for _ in range(40)})
    # Few different scores, so that there are many ties.
    model = unigram_model({piece: -rng.randrange(4, 9) / 3 for piece in pieces})
    words = ["".join(rng.choices(alphabet, k=rng.randrange(30))) for _ in range(count)]
    assert ids_and_ends(model.segment_all(words)) == list(map(model.segment, words))


def test_sums_are_those_of_float32():
    found = unigram_model({"▁": -16777216.0, "xy": -0.75, "x": -0.25, "y": -0.25}).segment_all(["xy", "▁xy"])
    assert ids_and_ends(found) == [([3, 4], [1, 2]), ([1, 2], [1, 3])]  # see test_tokenization_unigram.py


def test_no_words():
    model = unigram_model({"a": -2.0})
    assert ids_and_ends(model.segment_all([])) == []
    assert ids_and_ends(model.segment_all(["", "a", ""])) == [([], []), ([1], [1]), ([], [])]
