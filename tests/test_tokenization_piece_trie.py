import random

import numpy as np
import pytest

from albert_tf.tokenization.piece_trie import NO_PIECE, PieceTrie


def walked(trie, text):
    """The node that `text` leads to, or None."""
    node = 0
    for character in text:
        child = trie.base[node] + trie.alphabet.find(character) + 1
        if trie.parent[child] != node:
            return None
        node = child
    return node


@pytest.mark.parametrize("alphabet", ["ab", "▁abcdé中😀", "".join(map(chr, range(0x4E00, 0x5600)))], ids=len)
def test_holds_the_pieces_and_their_beginnings(alphabet):
    rng = random.Random(0)
    entries = {"".join(rng.choices(alphabet, k=rng.randrange(1, 9))): (i, -i / 4) for i in range(3000)}
    ids, scores = np.array(list(entries.values())).T
    trie = PieceTrie(list(entries), ids.astype(np.int32), scores.astype(np.float32))
    beginnings = {piece[:length] for piece in entries for length in range(1, len(piece) + 1)}
    nodes = {text: walked(trie, text) for text in beginnings}
    assert len(set(nodes.values())) == len(beginnings) == np.count_nonzero(trie.parent >= 0)
    for text, node in nodes.items():
        index, score = entries.get(text, (NO_PIECE, -np.inf))
        assert (trie.ids[node], trie.scores[node]) == (index, score)
    for _ in range(3000):
        text = "".join(rng.choices(alphabet + "#", k=rng.randrange(1, 9)))
        assert (walked(trie, text) is not None) == (text in beginnings)


def test_alphabet():
    trie = PieceTrie(["ba", "c", "\0"], np.arange(3, dtype=np.int32), np.zeros(3, np.float32))
    assert trie.alphabet == "\0abc"
    assert trie.is_piece.tolist() == [False, True, False, False, True]
