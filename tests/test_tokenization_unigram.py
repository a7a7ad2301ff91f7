import itertools
import pickle
import random

from albert_tf.tokenization.unigram import UnigramModel

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
        model = UnigramModel([(piece, i, scores[piece]) for i, piece in enumerate(drawn, start=1)], UNKNOWN)
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
    pieces = [("▁", 1, -16777216.0), ("xy", 2, -0.75), ("x", 3, -0.25), ("y", 4, -0.25)]
    model = UnigramModel(pieces, UNKNOWN)
    assert model.segment("xy") == ([3, 4], [1, 2])
    assert model.segment("▁xy") == ([1, 2], [1, 3])  # a tie, in which the longest last piece counts


def test_runs_of_unknown_characters_are_one():
    model = UnigramModel([("▁", 1, -1.0), ("a", 2, -2.0)], UNKNOWN)
    assert model.segment("▁xyaéz") == ([1, UNKNOWN, 2, UNKNOWN], [1, 3, 4, 6])
    assert model.segment("") == ([], [])


def test_equal_segmentations():
    model = UnigramModel([("a", 1, -2.0), ("aa", 2, -3.0), ("aaa", 3, -4.5)], UNKNOWN)
    assert model.segment("aaa") == ([3], [3])
    assert model.segment("aaaa") == ([2, 2], [2, 4])  # -6 against -6.5
    tied = UnigramModel([("a", 1, -2.0), ("aa", 2, -3.0)], UNKNOWN)
    assert tied.segment("aaa") == ([1, 2], [1, 3])  # the longest last piece


def test_pickled():
    model = UnigramModel([("▁", 1, -1.0), ("a", 2, -2.0)], UNKNOWN)
    assert pickle.loads(pickle.dumps(model)).segment("▁a") == ([1, 2], [1, 2])
