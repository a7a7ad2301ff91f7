"""Special tokens, segments, truncation and padding: from the ids of texts to the three model inputs."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from albert_tf.data.schema import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from albert_tf.errors import InputError
from albert_tf.tokenization.alignment import Span
from albert_tf.tokenization.api import Vocabulary

Packed = tuple[list[int], list[int]]  # token ids and segment ids of one input, equally long
NO_SPAN = (0, 0)


class Encoded(NamedTuple):
    """One input with the places that its tokens come from.

    Attributes:
        token_ids, segment_ids: as in `Packed`.
        offsets: for each token, start and end (excluded) in the text that its segment stands for, in characters of the
            Python string; (0, 0) for special tokens.
    """

    token_ids: list[int]
    segment_ids: list[int]
    offsets: list[Span]


def pack(ids_a: Sequence[int], ids_b: Sequence[int] | None, vocabulary: Vocabulary, max_length: int) -> Packed:
    """[CLS] A [SEP], or [CLS] A [SEP] B [SEP], at most `max_length` tokens long.

    Args:
        ids_a: the first text, without special tokens.
        ids_b: the second text, or None where there is none (the empty list is a text).

    Returns:
        Token ids and segment ids: 0 up to the first [SEP], 1 after it.
    """
    if ids_b is None:
        token_ids = [vocabulary.cls_id, *ids_a[: max_length - 2], vocabulary.sep_id]
        return token_ids, [0] * len(token_ids)
    kept_a, kept_b = truncated_lengths(len(ids_a), len(ids_b), max_length - 3)
    first = [vocabulary.cls_id, *ids_a[:kept_a], vocabulary.sep_id]
    second = [*ids_b[:kept_b], vocabulary.sep_id]
    return [*first, *second], [0] * len(first) + [1] * len(second)


def pack_offsets(spans_a: Sequence[Span], spans_b: Sequence[Span] | None, max_length: int) -> list[Span]:
    """The spans of the tokens that `pack` makes of two texts with these; NO_SPAN for special tokens."""
    if spans_b is None:
        return [NO_SPAN, *spans_a[: max_length - 2], NO_SPAN]
    kept_a, kept_b = truncated_lengths(len(spans_a), len(spans_b), max_length - 3)
    return [NO_SPAN, *spans_a[:kept_a], NO_SPAN, *spans_b[:kept_b], NO_SPAN]


def truncated_lengths(length_a: int, length_b: int, room: int) -> tuple[int, int]:
    """How much of two texts is kept when the longer one loses its last token until both fit into `room`.

    Of equally long ones the second loses first, so it is the first that keeps the odd token (`_truncate_seq_pair` of
    google-research/albert).
    """
    kept_a = min(length_a, max(room - length_b, (room + 1) // 2))
    kept_b = min(length_b, max(room - length_a, room // 2))
    return kept_a, kept_b


def pad_batch(
    packed: Sequence[Packed], pad_id: int, length: int | None = None, multiple_of: int = 1
) -> dict[str, np.ndarray]:
    """The three model inputs, int32 (batch, sequence).

    Args:
        packed: what `pack` returned, for each row.
        pad_id: fills `token_ids`; `segment_ids` and `padding_mask` are filled with 0.
        length: the sequence length; None for the longest row's, rounded up to a multiple of `multiple_of`.

    Raises:
        InputError: a row is longer than `length`.
    """
    longest = max((len(token_ids) for token_ids, _ in packed), default=0)
    if length is None:
        length = -(-longest // multiple_of) * multiple_of
    elif longest > length:
        raise InputError(f"length: the longest row has {longest} tokens, more than {length}; truncate when packing")
    shape = (len(packed), length)
    arrays = {TOKEN_IDS: np.full(shape, pad_id, np.int32)}
    arrays |= {SEGMENT_IDS: np.zeros(shape, np.int32), PADDING_MASK: np.zeros(shape, np.int32)}
    for row, (token_ids, segment_ids) in enumerate(packed):
        arrays[TOKEN_IDS][row, : len(token_ids)] = token_ids
        arrays[SEGMENT_IDS][row, : len(segment_ids)] = segment_ids
        arrays[PADDING_MASK][row, : len(token_ids)] = 1
    return arrays
