"""`albert_tf.data.replacement`: which words are replaced, by what, how often, and always alike."""

from collections.abc import Sequence

import numpy as np
import pytest
from small_vocabularies import sentencepiece_vocabulary, wordpiece_vocabulary

from albert_tf.data.replacement import (
    ReplacementRules,
    ReplacementVocabulary,
    best_columns,
    nearest_pieces,
    varied_rows,
)
from albert_tf.errors import InputError
from albert_tf.tokenization.packing import Packed, pack

RULES = ReplacementRules(copies=40, probability=0.4, candidates=3)


def row(text: str) -> Packed:
    own = sentencepiece_vocabulary()
    return pack(own.encode(text), None, own, 64)


def first_candidates(rows: Sequence[Packed], places: Sequence[tuple[int, int]]) -> np.ndarray:
    """Of a word that stands at p: 100 p, 100 p + 1, 100 p + 2."""
    return np.array([[100 * position + k for k in range(3)] for _, position in places]).reshape(-1, 3)


@pytest.mark.parametrize(
    "own", [sentencepiece_vocabulary(), wordpiece_vocabulary()], ids=["sentencepiece", "wordpiece"]
)
def test_words_of_one_piece_are_found(own: object) -> None:
    vocabulary = ReplacementVocabulary(own, RULES)  # type: ignore[arg-type]
    ids, _ = pack(own.encode("the old mill by the riverbank 12 zq"), None, own, 64)  # type: ignore[attr-defined]
    pieces = own.pieces(ids)  # type: ignore[attr-defined]
    goes_on = [i for i, piece in enumerate(pieces) if i and not vocabulary.begins_word[ids[i]] and i < len(ids) - 1]
    found = list(vocabulary.words(ids))
    assert found and 0 not in found and len(ids) - 1 not in found
    for position in found:
        assert vocabulary.is_word[ids[position]] and position + 1 not in goes_on and position not in goes_on


def test_what_is_replaced() -> None:
    rows = [row("the old mill by the river"), row("by the wheel")]
    vocabulary = ReplacementVocabulary(sentencepiece_vocabulary(), RULES)
    varied = varied_rows(rows, RULES, vocabulary, first_candidates, seed=3)
    assert [len(copies) for copies in varied] == [40, 40]
    for (ids, segments), copies in zip(rows, varied, strict=True):
        words = set(vocabulary.words(ids))
        changed = np.zeros(len(ids))
        for copy, copied_segments in copies:
            assert copied_segments == segments and len(copy) == len(ids)
            for position, (old, new) in enumerate(zip(ids, copy, strict=True)):
                assert new == old or (position in words and new // 100 == position and new % 100 < 3)
                changed[position] += new != old
        share = changed[sorted(words)].mean() / 40
        assert 0.25 < share < 0.55


def test_rows_depend_on_the_seed_and_their_number_alone() -> None:
    rows = [row("the old mill by the river"), row("by the wheel"), row("by the wheel")]
    vocabulary = ReplacementVocabulary(sentencepiece_vocabulary(), RULES)
    first = varied_rows(rows, RULES, vocabulary, first_candidates, seed=3)
    assert varied_rows(rows, RULES, vocabulary, first_candidates, seed=3) == first
    assert varied_rows(rows[:2], RULES, vocabulary, first_candidates, seed=3) == first[:2]
    assert first[1] != first[2]
    assert varied_rows(rows, RULES, vocabulary, first_candidates, seed=4) != first


def test_a_row_without_such_words_stays() -> None:
    own = sentencepiece_vocabulary()
    empty = ([own.cls_id, own.sep_id], [0, 0])
    vocabulary = ReplacementVocabulary(own, RULES)
    assert varied_rows([empty], RULES, vocabulary, first_candidates, seed=0) == [[empty] * 40]


def test_the_nearest_pieces_are_those_of_highest_cosine() -> None:
    own = sentencepiece_vocabulary()
    vocabulary = ReplacementVocabulary(own, RULES)
    table = np.random.default_rng(0).standard_normal((own.size, 8)).astype(np.float32)
    ids, segments = row("the old mill by the river")
    places = [(0, position) for position in vocabulary.words(ids)]
    found = nearest_pieces(table, vocabulary, RULES)([(ids, segments)], places)
    for (_, position), candidates in zip(places, found, strict=True):
        vector = table[ids[position]]
        cosines = {
            other: float(table[other] @ vector / np.linalg.norm(table[other]) / np.linalg.norm(vector))
            for other in np.flatnonzero(vocabulary.is_word)
            if other != ids[position]
        }
        assert candidates.tolist() == sorted(cosines, key=lambda other: -cosines[other])[:3]


def test_best_columns() -> None:
    values = np.array([[1.0, 5.0, 3.0, 4.0], [9.0, 0.0, 8.0, 7.0]])
    assert best_columns(values, 3).tolist() == [[1, 3, 2], [0, 2, 3]]


def test_more_candidates_than_there_are_pieces() -> None:
    with pytest.raises(InputError, match="--augment-candidates: expected fewer than the vocabulary has pieces"):
        ReplacementVocabulary(sentencepiece_vocabulary(), ReplacementRules(candidates=10**6))
