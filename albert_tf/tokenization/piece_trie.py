"""The pieces of a vocabulary as a trie in arrays, small and quick to walk."""

import itertools
from collections.abc import Sequence

import numpy as np

NO_PIECE = -1
_ROOM = 2  # slots for each node; with more, bases are found sooner
_SCATTER = 0x9E3779B1  # large, odd, irregular


class PieceTrie:
    """Pieces as a double array: a node is a slot, and its child by a character is slot `base[node] + character`, if
    `parent` there is the node. The root is slot 0. Characters are numbered from 1; 0 stands for those of no piece.

    Args:
        pieces: all different, none empty.
        ids, scores: of each piece.

    Attributes:
        alphabet: the characters of the pieces, in the order of their numbers.
        is_piece: for each number, whether the character alone is a piece.
        base, parent: int32 (slots,); `parent` is -1 where a slot is free.
        ids: int32 (slots,), of the piece that ends at a node; NO_PIECE where none does.
        scores: float32 (slots,), likewise; minus infinity where none does.
    """

    def __init__(self, pieces: Sequence[str], ids: np.ndarray, scores: np.ndarray) -> None:
        order = sorted(range(len(pieces)), key=pieces.__getitem__)
        pieces = [pieces[index] for index in order]
        lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
        joined = np.frombuffer("".join(pieces).encode("utf-32-le"), "<u4")
        alphabet = np.unique(joined)
        self.alphabet = "".join(map(chr, alphabet))
        within = np.arange(lengths.max()) < lengths[:, None]
        characters = np.zeros(within.shape, np.int32)
        characters[within] = np.searchsorted(alphabet, joined) + 1
        # A piece makes nodes for what it does not have in common with the piece before it.
        new = within.copy()
        new[1:] &= np.logical_or.accumulate(characters[1:] != characters[:-1], axis=1)
        nodes = np.zeros(within.shape, np.int32)
        nodes[new] = np.arange(1, np.count_nonzero(new) + 1)
        np.maximum.accumulate(nodes, axis=0, out=nodes)
        parents = np.pad(nodes[:, :-1], ((0, 0), (1, 0)))[new]
        bases = _bases(parents, characters[new])
        slots = np.concatenate([[0], bases[parents] + characters[new]])
        self.base = np.zeros(slots.max() + len(alphabet) + 1, np.int32)
        self.parent = np.full_like(self.base, -1)
        self.base[slots] = bases
        self.parent[slots[1:]] = slots[parents]
        ends = slots[nodes[np.arange(len(pieces)), lengths - 1]]
        self.ids = np.full_like(self.base, NO_PIECE)
        self.ids[ends] = ids[order]
        self.scores = np.full(self.base.shape, -np.inf, np.float32)
        self.scores[ends] = scores[order]
        first_nodes = self.base[0] + np.arange(len(alphabet) + 1)
        self.is_piece = (self.parent[first_nodes] == 0) & (self.ids[first_nodes] != NO_PIECE)


def _bases(parents: np.ndarray, characters: np.ndarray) -> np.ndarray:
    """A base for each node (0 the root; node i + 1 has `parents[i]` and `characters[i]`) such that no two nodes share a
    slot: scattered until all children of the node fall on free slots, first for the nodes with many."""
    size = _ROOM * len(parents)
    bases = np.zeros(len(parents) + 1, np.int32)
    taken = np.zeros(size + int(characters.max()) + 1, bool)
    taken[0] = True
    children = np.argsort(parents, kind="stable")  # of one node after the other
    firsts = np.flatnonzero(np.diff(parents[children], prepend=-1))
    counts = np.diff(firsts, append=len(children))
    magnitudes = np.log2(counts).astype(int)
    for magnitude in range(magnitudes.max(), 0, -1):
        pending = np.flatnonzero(magnitudes == magnitude)
        for attempt in itertools.count():
            if not len(pending):
                break
            count = counts[pending]
            drawn = (_SCATTER * (pending + attempt * len(counts)) % size).astype(np.int32)
            begins = np.cumsum(count) - count
            child = children[np.arange(count.sum()) + np.repeat(firsts[pending] - begins, count)]
            slots = np.repeat(drawn, count) + characters[child]
            alone = np.zeros(len(slots), bool)
            alone[np.unique(slots, return_index=True)[1]] = True
            fits = np.logical_and.reduceat(alone & ~taken[slots], begins)
            taken[slots[np.repeat(fits, count)]] = True
            bases[parents[child[begins[fits]]]] = drawn[fits]
            pending = pending[~fits]
    only = children[firsts[counts == 1]]  # an only child may have any slot
    free = np.flatnonzero(~taken[characters.max() :])[: len(only)] + characters.max()
    bases[parents[only]] = free - characters[only]
    return bases
