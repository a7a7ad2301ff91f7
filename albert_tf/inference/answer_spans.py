"""Which spans of a passage a model's outputs speak for, as run_squad of google-research/albert finds them."""

from typing import NamedTuple

import numpy as np


class Room(NamedTuple):
    """Where an answer can stand in a row.

    Attributes:
        starts: for each token, whether an answer may start there.
        end: the position behind the last token that may be in an answer.
        longest: the most tokens of an answer.
    """

    starts: np.ndarray
    end: int
    longest: int


class TokenSpan(NamedTuple):
    """A span of a row.

    Attributes:
        first, last: its first and its last token, as positions in the row.
        score: log-probability, or logit, of the start plus that of the end.
    """

    first: int
    last: int
    score: float


def best_indices(scores: np.ndarray, count: int) -> np.ndarray:
    """The positions of the highest scores, best first; of equal ones the first."""
    return np.argsort(-scores, kind="stable")[:count]


def independent_spans(start_scores: np.ndarray, end_scores: np.ndarray, room: Room, n_best: int) -> list[TokenSpan]:
    """Spans of the `n_best` best starts and as many ends (accumulate_predictions_v1).

    Args:
        start_scores, end_scores: for each token of the row.
        room: where the answer can stand.
        n_best: how many starts and how many ends.
    """
    starts, ends = best_indices(start_scores, n_best), best_indices(end_scores, n_best)
    return _within(room, starts[:, None], ends[None, :], start_scores[starts][:, None] + end_scores[ends])


def beam_spans(
    start_scores: np.ndarray, end_scores: np.ndarray, room: Room, start_beams: int, end_beams: int
) -> list[TokenSpan]:
    """Spans of the best starts, each with its own best ends (accumulate_predictions_v2).

    Args:
        start_scores: for each token of the row.
        end_scores: (tokens, starts): column k belongs to the k-th best start.
        room: where the answer can stand.
        start_beams: how many starts.
        end_beams: how many ends for each of them.
    """
    found = []
    for k, start in enumerate(best_indices(start_scores, start_beams)):
        ends = best_indices(end_scores[:, k], end_beams)
        found += _within(room, np.array(start), ends, start_scores[start] + end_scores[ends, k])
    return found


def _within(room: Room, starts: np.ndarray, ends: np.ndarray, scores: np.ndarray) -> list[TokenSpan]:
    starts, ends, scores = (array.ravel() for array in np.broadcast_arrays(starts, ends, scores))
    fits = room.starts[starts] & (ends >= starts) & (ends < room.end) & (ends - starts < room.longest)
    return [TokenSpan(int(a), int(b), float(s)) for a, b, s in zip(starts[fits], ends[fits], scores[fits], strict=True)]
