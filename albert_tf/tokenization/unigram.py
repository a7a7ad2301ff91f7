"""The most likely segmentation of a word under a unigram language model: SentencePiece's search, to the last bit.

Releases of sentencepiece and TensorFlow Text break ties differently ("!!!!!!!" is "!!!" "!!!" "!" or "!!!" "!" "!!!"),
and their float32 sums over a whole text drift apart (1 text of 200 words in 1,000 differs). So texts are cut at spaces,
which no piece crosses, and this search adds and compares exactly as `tensorflow_text.FastSentencepieceTokenizer` does
(optimized_encoder.cc): the graph gives the same ids, whatever the installed release of sentencepiece.
"""

import math
import struct
from collections.abc import Iterable

_UNKNOWN_PENALTY = 10.0  # kUnkPenalty of sentencepiece
_FLOAT32 = struct.Struct("f")


class UnigramModel:
    """Pieces with their log probabilities.

    Args:
        pieces: (piece, id, score) of each piece that may be part of a text.
        unk_id: stands for a run of characters that no piece covers.
    """

    def __init__(self, pieces: Iterable[tuple[str, int, float]], unk_id: int) -> None:
        self.unk_id = unk_id
        self._longest = 1
        # Piece → (id, score); the beginning of a longer piece that is none itself → None.
        self._pieces: dict[str, tuple[int, float] | None] = {}
        lowest = 0.0
        for piece, index, score in pieces:
            self._pieces[piece] = (index, score)
            for length in range(len(piece) - 1, 0, -1):
                if piece[:length] in self._pieces:
                    break  # its own beginnings are there already
                self._pieces[piece[:length]] = None
            self._longest = max(self._longest, len(piece))
            lowest = min(lowest, score)
        self._unknown_score = _float32(lowest - _UNKNOWN_PENALTY)

    def segment(self, word: str) -> list[int]:
        """The ids of the best segmentation (Viterbi); of equal ones, that with the longest last piece.

        Args:
            word: text as the model's own normaliser leaves it, with "▁" in front.
        """
        pieces, pack, unpack = self._pieces, _FLOAT32.pack, _FLOAT32.unpack
        length = len(word)
        scores, starts, ids = [-math.inf] * (length + 1), [0] * (length + 1), [-1] * (length + 1)
        scores[0] = 0.0
        for start in range(length):
            before = scores[start]
            if not pieces.get(word[start]):
                score = self._unknown(word[start], before)
                if score > scores[start + 1]:
                    merged = ids[start] == self.unk_id
                    scores[start + 1], ids[start + 1] = score, self.unk_id
                    starts[start + 1] = starts[start] if merged else start
            for end in range(start + 1, min(length, start + self._longest) + 1):
                piece = word[start:end]
                if piece not in pieces:
                    break
                if entry := pieces[piece]:
                    # Rounded to float32: of the sum of two float32, this is float32 addition.
                    score = unpack(pack(before + entry[1]))[0]
                    if score > scores[end]:
                        scores[end], starts[end], ids[end] = score, start, entry[0]
        path = []
        while length:
            path.append(ids[length])
            length = starts[length]
        return path[::-1]

    def _unknown(self, character: str, score: float) -> float:
        """`score` after a character that is no piece: the penalty counts once for every UTF-8 byte."""
        for _ in character.encode("utf-8"):
            score = _float32(score + self._unknown_score)
        return score


def _float32(value: float) -> float:
    return _FLOAT32.unpack(_FLOAT32.pack(value))[0]
