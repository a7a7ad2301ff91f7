"""The tokenizer as TensorFlow operations: for tf.data pipelines, tf.function and SavedModels that take raw text."""

from typing import Any

import tensorflow as tf

from albert_tf.data.schema import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from albert_tf.errors import InputError
from albert_tf.tokenization.graph_rules import row_numbers
from albert_tf.tokenization.tokenizer import AlbertTokenizer

OFFSETS = "offsets"


class GraphTokenizer(tf.Module):
    """`AlbertTokenizer` on tf.string tensors: the same arrays, for a batch of any size.

    The strings are UTF-8; `rules.to_utf8` makes them of any Python string.

    Args:
        tokenizer: its vocabulary and `max_length` are built into the graph.
        encode: the vocabulary's `graph_encoder`, where there is one already.
    """

    def __init__(self, tokenizer: AlbertTokenizer, *, encode: Any = None) -> None:
        super().__init__()
        self._vocabulary = tokenizer.vocabulary
        self._max_length = tokenizer.max_length
        self._encode = encode or tokenizer.vocabulary.graph_encoder()
        self._encode_with_offsets: Any = None  # made when it is needed: not every vocabulary has it

    def __call__(
        self, texts: tf.Tensor, pairs: tf.Tensor | None = None, *, length: int | None = None
    ) -> dict[str, tf.Tensor]:
        """The model inputs of a batch of texts.

        Args:
            texts: tf.string (batch,).
            pairs: tf.string (batch,), the second text of each row.
            length: pad, and truncate, to this many tokens; None for the longest row.

        Returns:
            token_ids, segment_ids and padding_mask, int32 (batch, sequence).
        """
        ids_a = self._encode(_as_strings(texts, "texts"))
        ids_b = None if pairs is None else self._encode(_as_strings(pairs, "pairs"))
        return self._inputs(ids_a, ids_b, self._room(length, pairs), length)

    def encode_with_offsets(
        self, texts: tf.Tensor, pairs: tf.Tensor | None = None, *, length: int | None = None
    ) -> dict[str, tf.Tensor]:
        """The model inputs, and where the tokens come from; arguments as above.

        Returns:
            The inputs and `offsets`, int32 (batch, sequence, 2): start and end (excluded) of each token in its text, in
            characters (Unicode code points, not bytes); 0 and 0 for special tokens and padding. Equal to
            `AlbertTokenizer.encode_with_offsets`.

        Raises:
            InputError: a vocabulary in which a character is part of a piece but no piece itself.
        """
        if self._encode_with_offsets is None:
            self._encode_with_offsets = self._vocabulary.graph_offset_encoder()
        room = self._room(length, pairs)
        ids_a, spans_a = self._encode_with_offsets(_as_strings(texts, "texts"))
        nothing = tf.zeros([ids_a.nrows(), 1, 2], tf.int32)
        if pairs is None:
            inputs = self._inputs(ids_a, None, room, length)
            spans = tf.concat([nothing, spans_a[:, :room], nothing], 1)
        else:
            ids_b, spans_b = self._encode_with_offsets(_as_strings(pairs, "pairs"))
            inputs = self._inputs(ids_a, ids_b, room, length)
            spans_a, spans_b = _truncated(spans_a, spans_b, room)
            spans = tf.concat([nothing, spans_a, nothing, spans_b, nothing], 1)
        return inputs | {OFFSETS: spans.to_tensor(0, shape=[None, length, 2])}

    def _room(self, length: int | None, pairs: tf.Tensor | None) -> int:
        """How many tokens there may be beside the special ones."""
        if length is not None and not 3 <= length <= self._max_length:
            raise InputError(f"length: expected 3 to {self._max_length} (max_length), got {length!r}")
        return (length or self._max_length) - (2 if pairs is None else 3)

    def _inputs(
        self, ids_a: tf.RaggedTensor, ids_b: tf.RaggedTensor | None, room: int, length: int | None
    ) -> dict[str, tf.Tensor]:
        rows = ids_a.nrows()[None]
        cls = tf.fill(tf.concat([rows, [1]], 0), self._vocabulary.cls_id)
        sep = tf.fill(tf.concat([rows, [1]], 0), self._vocabulary.sep_id)
        if ids_b is None:
            first = tf.concat([cls, ids_a[:, :room], sep], 1)
            token_ids, segment_ids = first, tf.zeros_like(first)
        else:
            ids_a, ids_b = _truncated(ids_a, ids_b, room)
            first, second = tf.concat([cls, ids_a, sep], 1), tf.concat([ids_b, sep], 1)
            token_ids = tf.concat([first, second], 1)
            segment_ids = tf.concat([tf.zeros_like(first), tf.ones_like(second)], 1)
        shape = [None, length]
        return {
            TOKEN_IDS: token_ids.to_tensor(self._vocabulary.pad_id, shape=shape),
            SEGMENT_IDS: segment_ids.to_tensor(0, shape=shape),
            PADDING_MASK: tf.ones_like(token_ids).to_tensor(0, shape=shape),
        }


def _as_strings(texts: tf.Tensor, name: str) -> tf.Tensor:
    texts = texts if tf.is_tensor(texts) else tf.constant(texts, tf.string)
    if texts.dtype != tf.string or texts.shape.rank != 1:
        raise InputError(
            f"{name}: expected tf.string (batch,), got {texts.dtype.name} {texts.shape}; batch the texts first"
        )
    return texts


def _truncated(ids_a: tf.RaggedTensor, ids_b: tf.RaggedTensor, room: int) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """`packing.truncated_lengths` for every row."""
    length_a, length_b = ids_a.row_lengths(), ids_b.row_lengths()
    kept_a = tf.minimum(length_a, tf.maximum(room - length_b, (room + 1) // 2))
    kept_b = tf.minimum(length_b, tf.maximum(room - length_a, room // 2))
    return _row_starts(ids_a, kept_a), _row_starts(ids_b, kept_b)


def _row_starts(ragged: tf.RaggedTensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """The first `lengths[i]` values of row i; lengths int64 (n,)."""
    splits = ragged.row_splits
    end = tf.gather(splits[:-1] + lengths, row_numbers(ragged))
    kept = tf.range(splits[-1]) < end
    return tf.RaggedTensor.from_row_lengths(tf.boolean_mask(ragged.values, kept), lengths, validate=False)
