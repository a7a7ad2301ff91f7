"""The search of unigram.py on many words at once, with numpy: the same sums, comparisons and ties."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from albert_tf.tokenization.piece_trie import PieceTrie, code_points

_BLOCK = 8192  # words searched together: their arrays fit into the processor's cache


class Segments(NamedTuple):
    """The segmentations of several words, one after the other.

    Attributes:
        ids: int32 (pieces,).
        ends: int32 (pieces,), the character of its word (from 0) before which each piece ends.
        splits: int64 (words + 1,); word i has the pieces `splits[i]` to `splits[i + 1]` (excluded).
    """

    ids: np.ndarray
    ends: np.ndarray
    splits: np.ndarray


class BatchSearch:
    """`UnigramModel.segment` for many words.

    Args:
        trie: the pieces.
        unknown_score: of each UTF-8 byte of a character that is no piece.
        unk_id: stands for a run of such characters.
    """

    def __init__(self, trie: PieceTrie, unknown_score: float, unk_id: int) -> None:
        self._trie = trie
        self._unknown_score = np.float32(unknown_score)
        self._unk_id = unk_id
        # The child of the root by each character, -1 where there is none.
        self._first_nodes = trie.base[0] + np.arange(len(trie.alphabet) + 1, dtype=np.int32)
        self._first_nodes[trie.parent[self._first_nodes] != 0] = -1

    def segment(self, words: Sequence[str]) -> Segments:
        """The best segmentation of each word. Memory grows with the length of the longest."""
        blocks = [self._segment_block(words[start : start + _BLOCK]) for start in range(0, len(words), _BLOCK)]
        if not blocks:
            return Segments(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(1, np.int64))
        counts = np.concatenate([np.diff(block.splits) for block in blocks])
        return Segments(
            np.concatenate([block.ids for block in blocks]),
            np.concatenate([block.ends for block in blocks]),
            np.concatenate([[0], np.cumsum(counts)]),
        )

    def _segment_block(self, words: Sequence[str]) -> Segments:
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        # Longest first: those that have a character at a place are the first so many.
        order = np.argsort(-lengths, kind="stable")
        firsts = (np.cumsum(lengths) - lengths)[order]
        lengths = lengths[order]
        having = np.searchsorted(-lengths, -np.arange(lengths[0] + 1))  # words longer than each place
        points = code_points(words)
        characters = self._trie.numbers(points)
        unknown = ~self._trie.is_piece.take(characters)
        byte_counts = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)
        shape = (lengths[0] + 1, len(words))
        paths = _Paths(np.full(shape, -np.inf, np.float32), np.zeros(shape, np.int32))
        paths.scores[0] = 0
        columns = [firsts[: having[place]] + place for place in range(lengths[0])]
        characters_at = [characters.take(column) for column in columns]
        for start, column in enumerate(columns):
            here = np.flatnonzero(unknown.take(column))
            if len(here):
                self._add_unknown(start, here, byte_counts.take(column.take(here)), paths)
            self._add_pieces(start, characters_at, paths)
        return self._followed_back(order, lengths, paths)

    def _add_unknown(self, start: int, words: np.ndarray, byte_counts: np.ndarray, paths: "_Paths") -> None:
        """Extends the best paths of `words` up to `start` by a character that is no piece."""
        found = paths.scores[start].take(words)
        for number in range(byte_counts.max()):
            found = np.where(byte_counts > number, found + self._unknown_score, found)
        better = found > paths.scores[start + 1].take(words)
        words = words[better]
        before = paths.last[start].take(words)
        paths.scores[start + 1][words] = found[better]
        paths.last[start + 1][words] = np.where(before < 0, before, ~start)

    def _add_pieces(self, start: int, characters: list[np.ndarray], paths: "_Paths") -> None:
        """Extends the best paths up to `start` by every piece that begins there."""
        base, parent = self._trie.base, self._trie.parent
        words, before = np.arange(len(characters[start])), paths.scores[start]
        nodes = self._first_nodes.take(characters[start])
        found = (nodes >= 0).nonzero()[0]
        for end in range(start + 1, len(characters) + 1):  # of all pieces that end there; take() is the quick indexing
            if len(found) < len(words):
                words, nodes, before = words.take(found), nodes.take(found), before.take(found)
            scores = before[: len(words)] + self._trie.scores.take(nodes)
            better = (scores > paths.scores[end].take(words)).nonzero()[0]
            where = words.take(better)
            paths.scores[end][where] = scores.take(better)
            paths.last[end][where] = nodes.take(better)
            if end == len(characters):
                break
            column = characters[end]
            kept = words.searchsorted(len(column))  # the words that have it
            words, nodes, before = words[:kept], nodes[:kept], before[:kept]
            children = base.take(nodes) + column.take(words)
            found = (parent.take(children) == nodes).nonzero()[0]
            nodes = children
            if not len(found):
                break

    def _followed_back(self, order: np.ndarray, lengths: np.ndarray, paths: "_Paths") -> Segments:
        """The pieces of the best paths to the ends of the words; column i of the paths is word `order[i]`."""
        steps = []
        words = np.flatnonzero(lengths)
        places = lengths[words]
        counts = np.zeros(len(order), np.int64)
        while len(words):
            last = paths.last[places, words]
            steps.append((order[words], last, places))
            counts[order[words]] += 1
            places = np.where(last < 0, ~last, places - self._trie.depths.take(last, mode="clip"))
            words, places = words[places > 0], places[places > 0]
        splits = np.concatenate([[0], np.cumsum(counts)])
        nodes, ends = np.empty(splits[-1], np.int32), np.empty(splits[-1], np.int32)
        for number, (word, last, end) in enumerate(steps, start=1):
            nodes[splits[word + 1] - number], ends[splits[word + 1] - number] = last, end
        ids = np.where(nodes < 0, self._unk_id, self._trie.ids.take(nodes, mode="clip"))
        return Segments(ids.astype(np.int32), ends, splits)


class _Paths(NamedTuple):
    """The best path to each place (row) of each word (column).

    Attributes:
        scores: its score.
        last: the node of its last piece; or, of a run of unknown characters, `~start`, which is negative.
    """

    scores: np.ndarray
    last: np.ndarray
