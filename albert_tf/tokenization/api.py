"""What the rest of the package asks of a subword vocabulary; SentencePiece and WordPiece both answer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol


class Vocabulary(Protocol):
    """A subword model with its text rules: text ↔ ids, in Python and as TensorFlow operations.

    Attributes:
        kind: "sentencepiece" or "wordpiece"; what `tokenizer.json` records.
        size: number of ids.
        pad_id, unk_id, cls_id, sep_id, mask_id: the special tokens.
    """

    kind: str
    size: int
    pad_id: int
    unk_id: int
    cls_id: int
    sep_id: int
    mask_id: int

    def encode(self, text: str) -> list[int]:
        """The ids of one text, without special tokens. Any string is accepted, the empty one gives []."""

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of each text, several times as fast for many."""

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """`encode`, and for each id the characters of `text` that it stands for: start and end (excluded), from 0.

        See alignment.py for characters that the text rules drop, add or join.
        """

    def decode(self, ids: list[int]) -> str:
        """The text that the ids spell; special tokens are left out."""

    def pieces(self, ids: list[int]) -> list[str]:
        """The vocabulary entry of each id.

        Raises:
            InputError: an id is outside the vocabulary.
        """

    def options(self) -> dict[str, Any]:
        """The text rules as keyword arguments of the constructor; saved in `tokenizer.json`."""

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Writes the vocabulary file into `folder` under its fixed name (`vocabulary.spm` or `vocab.txt`).

        Raises:
            InputError: the file exists and `overwrite` is false.
        """

    def graph_encoder(self) -> Any:
        """A callable from a tf.string tensor (n,) to a tf.RaggedTensor of int32 ids (n, None), equal to `encode`.

        Loads TensorFlow and tensorflow-text on the first call.
        """

    def graph_offset_encoder(self) -> Any:
        """A callable from a tf.string tensor (n,) to two ragged int32 tensors, ids (n, None) and spans (n, None, 2), equal
        to `encode_with_offsets`.

        Raises:
            InputError: the graph cannot find the spans of this vocabulary's pieces.
        """
