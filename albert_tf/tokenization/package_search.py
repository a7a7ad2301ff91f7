"""The search of the sentencepiece package, which is compiled, for the words in which it is that of unigram.py.

Both go through a word from left to right, add float32 numbers and keep the first of equal sums. The package's is another
one, so that unigram.py is needed, in three cases:

- Characters that no piece covers: they cost once each in the package, once for each of their bytes in TensorFlow Text.
- Words that are long: beyond a sum of 100,000 the package counts anew from 0.
- Releases before 0.2.2: they compare sums before they are rounded to float32, and never count anew.

A call costs more than a word, so words go through one by one in a single text, with line ends between them: a piece so
unlikely that after it the package counts anew, so that each word is as if it were alone.
"""

import functools
from collections.abc import Sequence
from typing import Any

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from albert_tf.tokenization.sentencepiece_model import is_text, search_model

_COUNTS_ANEW = 100_000
_BETWEEN = "\n"
END = b"\xff\xff\xff\xff"  # after each word; neither an id nor within two of them

# "xy" and "x" "y" are equal as float32 after -65536, where there are 128 numbers to 1; and not so where 0 is before.
_PROBE = {"a": -65536.0, "xy": -0.005, "x": -0.001, "y": -0.00395}
_PROBE_PIECES = ["a", "xy", "\n", "x", "y"]


class PackageSearch:
    """The package's search on the words that it cuts as `UnigramModel` does.

    Args:
        proto: the parsed model.
        unk_id: its unknown piece.

    Attributes:
        longest: the most characters of such a word; below 0 where there is none.
    """

    def __init__(self, proto: Any, unk_id: int) -> None:
        pieces = [piece for piece in proto.pieces if is_text(piece)]
        model = search_model(proto.SerializeToString(), unk_id)
        can_join = is_known_search() and not any(_BETWEEN in piece.piece for piece in proto.pieces)
        if can_join:
            model.pieces.add(piece=_BETWEEN, score=-2 * _COUNTS_ANEW)
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
        characters = {piece.piece for piece in pieces if len(piece.piece) == 1} - {"\0"}
        self._characters = frozenset(characters)
        greatest = max(1.0, *(abs(piece.score) for piece in pieces))
        self.longest = int(_COUNTS_ANEW / greatest) - 1 if can_join else -1

    def takes(self, word: str) -> bool:
        """Whether a word, normalized, is one of those."""
        return self._characters.issuperset(word) and len(word) <= self.longest

    def encode(self, word: str) -> list[int]:
        """The ids of a word that is."""
        return self._processor.encode(word)

    def rows_of(self, lines: str, rows: Sequence[bytes]) -> list[bytes]:
        """For each line, a word that is: `rows[id]` of all its ids, joined. The last row is END, which is in no other."""
        return b"".join(map(rows.__getitem__, self._processor.encode(lines))).split(END)[:-1]


@functools.cache
def is_known_search() -> bool:
    """Whether the installed package searches as is said above: in the float32 sums, and anew after an unlikely piece."""
    proto = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]  # protobuf makes it at run time
    proto.pieces.add(piece="<unk>", type=proto.SentencePiece.UNKNOWN)
    for piece, score in (_PROBE | {_BETWEEN: -2.0 * _COUNTS_ANEW}).items():
        proto.pieces.add(piece=piece, score=score)
    model = search_model(proto.SerializeToString(), 0).SerializeToString()
    return sentencepiece.SentencePieceProcessor(model_proto=model).encode("axy\nxy", out_type=str) == _PROBE_PIECES
