"""The normalisation map that a SentencePiece model carries (`normalizer_spec.precompiled_charsmap`): read and made.

A map is a list of replacements, source → target; the longest source that begins at a character wins. Compiled, it is
the size of a trie in bytes (uint32), a Darts-clone double-array trie from the UTF-8 of each source to a place in the
text that follows, and the targets there, each ended by NUL (builder.cc of sentencepiece; layout of the units:
darts.h of darts-clone).
"""

import functools
import io
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

_LEAF = np.uint32(0x80000000)
_LABEL = np.uint32(0x800000FF)


@functools.lru_cache(maxsize=2)  # most models carry the same map, of 200,000 rules
def read_charsmap(compiled: bytes) -> Mapping[str, str]:
    """Source → target of a compiled map; none for an empty one."""
    if not compiled:
        return MappingProxyType({})
    size = int.from_bytes(compiled[:4], "little")
    units = np.frombuffer(compiled[4 : 4 + size], "<u4")
    targets = compiled[4 + size :]
    found: dict[str, str] = {}
    # Breadth first: all nodes of one depth at once, with the bytes that lead to each.
    nodes, keys = np.array([0]), [b""]
    labels = np.arange(1, 256)
    bytes_of = [bytes([label]) for label in range(256)]
    while len(nodes):
        children = nodes[:, None] ^ _offsets(units[nodes])[:, None] ^ labels
        inside = children < len(units)
        is_child = inside & ((units[np.where(inside, children, 0)] & _LABEL) == labels)
        keys = [keys[i] + bytes_of[j + 1] for i, j in zip(*map(np.ndarray.tolist, np.nonzero(is_child)), strict=True)]
        nodes = children[is_child]
        with_value = np.flatnonzero((units[nodes] >> 8) & 1)
        values = units[nodes[with_value] ^ _offsets(units[nodes[with_value]])] & ~_LEAF
        for i, start in zip(with_value.tolist(), values.tolist(), strict=True):
            found[keys[i].decode("utf-8")] = targets[start : targets.index(b"\0", start)].decode("utf-8")
    return MappingProxyType(found)


def compile_charsmap(rules: Mapping[str, str]) -> bytes:
    """The compiled map of `rules`; SentencePiece's own trainer makes it, from a table of code points."""
    model = io.BytesIO()
    kept = next(chr(code) for code in range(0xE000, 0xF8FF) if chr(code) not in rules)  # the trainer wants text, too
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "rules.tsv"
        table.write_text("".join(f"{_code_points(s)}\t{_code_points(t)}\n" for s, t in sorted(rules.items())))
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([kept]),
            model_writer=model,
            model_type="char",
            vocab_size=10,
            hard_vocab_limit=False,
            normalization_rule_tsv=str(table),
            minloglevel=2,
        )
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())  # type: ignore[attr-defined]
    return proto.normalizer_spec.precompiled_charsmap


def _offsets(units: np.ndarray) -> np.ndarray:
    """How far the children of each node are; darts.h: a flag makes the 21 bits count in 256."""
    return (units >> 10) << ((units & 0x200) >> 6)


def _code_points(text: str) -> str:
    return " ".join(f"{ord(character):X}" for character in text)
