import itertools
import pickle
import random

from small_vocabularies import unigram_model

UNKNOWN = 0


def best_total(word, scores, unknown_score):
    """The best sum of scores over all ways to cut `word`; a character that is no piece costs so much for each byte."""
    totals = []
    for cuts in itertools.product([False, True], repeat=len(word) - 1):
        ends = [*(i + 1 for i, cut in enumerate(cuts) if cut), len(word)]
        parts = [word[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]
        if all(part in scores or len(part) == 1 for part in parts):
            totals.append(sum(scores.get(part, unknown_score * len(part.encode())) for part in parts))
    return max(totals)


def test_segment_is_the_best_of_all():
    rng = random.Random(0)
    alphabet = "▁abcé"
    unknown = 0
    for _ in range(300):
        drawn = sorted({"".join(rng.choices(alphabet, k=rng.randrange(1, 4))) for _ in range(rng.randrange(3, 12))})
        # Multiples of 1/64 add up exactly, in any order.
        scores = {piece: -rng.randrange(64, 640) / 64 for piece in drawn}
        unknown_score = min(scores.values()) - 10
        model = unigram_model(scores)
        word = "▁" + "".join(rng.choices(alphabet, k=rng.randrange(8)))
        ids, ends = model.segment(word)
        found = [drawn[index - 1] for index in ids if index != UNKNOWN]
        uncovered = len(word.encode()) - len("".join(found).encode())
        total = sum(scores[piece] for piece in found) + unknown_score * uncovered
        assert total == best_total(word, scores, unknown_score), (word, scores, found)
        parts = [word[start:end] for start, end in itertools.pairwise([0, *ends])]
        assert "".join(parts) == word
        assert all(index == UNKNOWN or drawn[index - 1] == part for index, part in zip(ids, parts, strict=True))
        unknown += uncovered > 0
    assert 50 < unknown < 250


def test_sums_are_those_of_float32():
    # Beyond 16777216 float32 has even numbers only: there, half a point is no difference.
    model = unigram_model({"▁": -16777216.0, "xy": -0.75, "x": -0.25, "y": -0.25})
    assert model.segment("xy") == ([3, 4], [1, 2])
    assert model.segment("▁xy") == ([1, 2], [1, 3])  # a tie, in which the longest last piece counts


def test_runs_of_unknown_characters_are_one():
    model = unigram_model({"▁": -1.0, "a": -2.0})
    assert model.segment("▁xyaéz") == ([1, UNKNOWN, 2, UNKNOWN], [1, 3, 4, 6])
    assert model.segment("") == ([], [])


def test_equal_segmentations():
    model = unigram_model({"a": -2.0, "aa": -3.0, "aaa": -4.5})
    assert model.segment("aaa") == ([3], [3])
    assert model.segment("aaaa") == ([2, 2], [2, 4])  # -6 against -6.5
    tied = unigram_model({"a": -2.0, "aa": -3.0})
    assert tied.segment("aaa") == ([1, 2], [1, 3])  # the longest last piece


def test_pickled():
    model = unigram_model({"▁": -1.0, "a": -2.0})
    assert pickle.loads(pickle.dumps(model)).segment("▁a") == ([1, 2], [1, 2])
