"""More training rows from those there are: words replaced by others that may stand there (TinyBERT, Jiao et al., 2020,
section 3.2 and algorithm 1).

A word of one piece is replaced with a probability by one of its candidates: the most probable pieces of a masked language
model, or the nearest in a table of word embeddings. Words of several pieces stay: the paper takes whole words near them in
another table, which there is none of for a vocabulary of pieces.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from albert_tf.data.masking import MaskingVocabulary
from albert_tf.data.word_starts import begins_word
from albert_tf.errors import InputError
from albert_tf.tokenization.api import Vocabulary
from albert_tf.tokenization.packing import Packed

Array = np.ndarray
# Rows, and (row, position) of words in them → the candidates of each word, int (words, K).
Proposing = Callable[[Sequence[Packed], Sequence[tuple[int, int]]], Array]

_ROWS_AT_ONCE = 256  # of a table of cosines


@dataclasses.dataclass(frozen=True)
class ReplacementRules:
    """How rows are varied; the numbers are the paper's.

    Attributes:
        copies: new rows of each row.
        probability: that a word is replaced, in each of them.
        candidates: pieces that a word may be replaced by.
    """

    copies: int = 20
    probability: float = 0.4
    candidates: int = 15


class ReplacementVocabulary:
    """Which pieces can replace which: those that begin a word, those that begin a word.

    Raises:
        InputError: fewer such pieces than candidates.
    """

    def __init__(self, vocabulary: Vocabulary, rules: ReplacementRules) -> None:
        fixed = MaskingVocabulary(vocabulary)
        self.begins_word = begins_word(vocabulary)
        self.is_word = self.begins_word.copy()
        self.is_word[[*np.flatnonzero(fixed.is_fixed), vocabulary.unk_id]] = False
        self.is_special = fixed.is_fixed
        if self.is_word.sum() <= rules.candidates:
            raise InputError(
                f"--augment-candidates: expected fewer than the vocabulary has pieces that begin a word, "
                f"{self.is_word.sum()}; got {rules.candidates}"
            )

    def words(self, token_ids: Sequence[int]) -> Iterator[int]:
        """The positions of words of one piece."""
        ids = np.asarray(token_ids)
        starts = self.begins_word[ids] | self.is_special[ids]
        followed = np.append(starts[1:], True)
        yield from np.flatnonzero(self.is_word[ids] & followed).tolist()


def varied_rows(
    rows: Sequence[Packed], rules: ReplacementRules, vocabulary: ReplacementVocabulary, propose: Proposing, seed: int
) -> list[list[Packed]]:
    """New rows of each row, of its own length, `rules.copies` of them.

    A row's depend on the seed, its number and its candidates alone.
    """
    places = [(number, position) for number, (ids, _) in enumerate(rows) for position in vocabulary.words(ids)]
    proposed = propose(rows, places)
    varied: list[list[Packed]] = []
    start = 0
    for number, (token_ids, segment_ids) in enumerate(rows):
        end = start
        while end < len(places) and places[end][0] == number:
            end += 1
        positions = [position for _, position in places[start:end]]
        random = np.random.default_rng((seed, number))
        copies: list[Packed] = []
        for _ in range(rules.copies):
            ids = np.array(token_ids, np.int64)
            chosen = random.integers(rules.candidates, size=len(positions))
            is_replaced = random.random(len(positions)) < rules.probability
            at = np.flatnonzero(is_replaced)
            ids[np.asarray(positions, np.int64)[at]] = proposed[start + at, chosen[at]]
            copies.append((ids.tolist(), list(segment_ids)))
        varied.append(copies)
        start = end
    return varied


def nearest_pieces(table: Array, vocabulary: ReplacementVocabulary, rules: ReplacementRules) -> Proposing:
    """Candidates by cosine in a table of word embeddings (V, E), the same wherever a word stands."""
    ids = np.flatnonzero(vocabulary.is_word)
    vectors = table[ids] / np.maximum(np.linalg.norm(table[ids], axis=1, keepdims=True), 1e-12)
    place_of = np.full(len(table), -1)
    place_of[ids] = np.arange(len(ids))

    def propose(rows: Sequence[Packed], places: Sequence[tuple[int, int]]) -> Array:
        wanted = np.array([rows[row][0][position] for row, position in places], np.int64)
        distinct, back = np.unique(wanted, return_inverse=True)
        found = np.zeros((len(distinct), rules.candidates), np.int64)
        for start in range(0, len(distinct), _ROWS_AT_ONCE):
            own = place_of[distinct[start : start + _ROWS_AT_ONCE]]
            cosines = vectors[own] @ vectors.T
            cosines[np.arange(len(own)), own] = -np.inf
            found[start : start + len(own)] = ids[best_columns(cosines, rules.candidates)]
        return found[back]

    return propose


def best_columns(values: Array, count: int) -> Array:
    """The places of the largest in each row, int (rows, count), the largest first."""
    places = np.argpartition(-values, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(values, places, axis=1), axis=1, kind="stable")
    return np.take_along_axis(places, order, axis=1)
