"""The most likely segmentation of a word under a unigram language model: SentencePiece's search, to the last bit.

Releases of sentencepiece and TensorFlow Text break ties differently ("!!!!!!!" is "!!!" "!!!" "!" or "!!!" "!" "!!!"),
and their float32 sums over a whole text drift apart (1 text of 200 words in 1,000 differs). So texts are cut at spaces,
which no piece crosses, and this search adds and compares exactly as `tensorflow_text.FastSentencepieceTokenizer` does
(optimized_encoder.cc): the graph gives the same ids, whatever the installed release of sentencepiece. Most words can be
left to package_search.py, which is quicker.
"""

import math
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf.tokenization.piece_trie import NO_PIECE, PieceTrie

_UNKNOWN_PENALTY = 10.0  # kUnkPenalty of sentencepiece


class UnigramModel:
    """Pieces with their log probabilities.

    Args:
        pieces: those that may be part of a text; all different.
        ids, scores: of each piece, int32 and float32.
        unk_id: stands for a run of characters that no piece covers.

    Attributes:
        trie: the pieces.
    """

    def __init__(self, pieces: Sequence[str], ids: np.ndarray, scores: np.ndarray, unk_id: int) -> None:
        self.trie = PieceTrie(pieces, ids, scores)
        self._numbers = {character: number for number, character in enumerate(self.trie.alphabet, start=1)}
        self._is_piece = self.trie.is_piece.tolist()
        self._unk_id = unk_id
        self._unknown_score = _float32(min(0.0, scores.min().item()) - _UNKNOWN_PENALTY)
        self._views = self._trie_views()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_views"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._views = self._trie_views()

    def _trie_views(self) -> tuple[memoryview, ...]:
        """The arrays of the trie in a form that is quick to index."""
        return self.trie.base.data, self.trie.parent.data, self.trie.scores.data, self.trie.ids.data

    def segment(self, word: str) -> tuple[list[int], list[int]]:
        """The best segmentation (Viterbi); of equal ones, that with the longest last piece.

        Args:
            word: text as the model's own normaliser leaves it, with "▁" in front.

        Returns:
            The ids, and the character (from 0) before which each piece ends.
        """
        bases, parents, weights, piece_ids = self._views
        length = len(word)
        scores, starts, ids = [-math.inf] * (length + 1), [0] * (length + 1), [NO_PIECE] * (length + 1)
        scores[0] = 0.0
        rounded = array("f", [0.0])  # assigning rounds to float32: of the sum of two float32, this is float32 addition
        numbers = [self._numbers.get(character, 0) for character in word]
        for start in range(length):
            before = scores[start]
            if not self._is_piece[numbers[start]]:
                score = self._after_unknown(word[start], before)
                if score > scores[start + 1]:
                    merged = ids[start] == self._unk_id
                    scores[start + 1], ids[start + 1] = score, self._unk_id
                    starts[start + 1] = starts[start] if merged else start
            node = 0
            for end in range(start + 1, length + 1):
                child = bases[node] + numbers[end - 1]
                if parents[child] != node:
                    break
                node = child
                # What is not greater before rounding is not greater after it.
                if before + weights[node] > scores[end]:
                    rounded[0] = before + weights[node]
                    if rounded[0] > scores[end]:
                        scores[end], starts[end], ids[end] = rounded[0], start, piece_ids[node]
        path = []
        while length:
            path.append(length)
            length = starts[length]
        ends = path[::-1]
        return [ids[end] for end in ends], ends

    def _after_unknown(self, character: str, score: float) -> float:
        """`score` after a character that is no piece: the penalty counts once for every UTF-8 byte."""
        for _ in character.encode("utf-8"):
            score = _float32(score + self._unknown_score)
        return score


def _float32(value: float) -> float:
    return array("f", [value])[0]
