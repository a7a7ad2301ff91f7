"""Pairs and masked examples as TFRecord messages."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from albert_tf.data.pretraining_examples import MASKED_IDS, MASKED_POSITIONS, MASKED_WEIGHTS, SENTENCE_ORDER_LABELS
from albert_tf.data.schema import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from albert_tf.data.sentence_order import NO_LABEL, Pairs
from albert_tf.data.tfrecord import (
    BYTES,
    FLOAT,
    INT64,
    decode_example,
    encode_example,
    packed_int64,
    read_records,
)
from albert_tf.errors import InputError

Array = np.ndarray

# Our array → the feature that google-research/albert (run_pretraining.py) and TF Model Garden read. Theirs is called
# next_sentence_labels whichever task it is; 1 means swapped, or from elsewhere.
PUBLISHED_FEATURES = {
    TOKEN_IDS: "input_ids",
    PADDING_MASK: "input_mask",
    SEGMENT_IDS: "segment_ids",
    MASKED_POSITIONS: "masked_lm_positions",
    MASKED_IDS: "masked_lm_ids",
    MASKED_WEIGHTS: "masked_lm_weights",
    SENTENCE_ORDER_LABELS: "next_sentence_labels",
}
_PAIR_FEATURES = ("first_length", "token_ids", "word_starts")


def pair_records(pairs: Pairs) -> list[bytes]:
    """Each pair as a `tf.train.Example`.

    Features: token_ids, those of the first text, then of the second, without special tokens; first_length, tokens of the
    first; word_starts, a bit for each token, the first in the highest bit of the first byte; and label, where the pair
    has one.
    """
    packed, offsets = packed_int64(pairs.token_ids)
    longest = int(pairs.lengths.max(initial=1))
    numbers = [packed_int64(np.array([number]))[0] for number in range(longest + 1)]
    begins, ends = pairs.begins, pairs.begins + pairs.lengths
    records = []
    for (first, second), (first_end, second_end), (first_byte, second_byte), (
        first_end_byte,
        second_end_byte,
    ), label in zip(
        begins.tolist(),
        ends.tolist(),
        offsets[begins].tolist(),
        offsets[ends].tolist(),
        pairs.labels.tolist(),
        strict=True,
    ):
        starts = np.concatenate([pairs.word_starts[first:first_end], pairs.word_starts[second:second_end]])
        features = {
            "token_ids": (INT64, packed[first_byte:first_end_byte] + packed[second_byte:second_end_byte]),
            "first_length": (INT64, numbers[first_end - first]),
            "word_starts": (BYTES, np.packbits(starts).tobytes()),
        }
        if label != NO_LABEL:
            features["label"] = (INT64, numbers[label])
        records.append(encode_example(features))
    return records


def read_pairs(path: Path) -> Pairs:
    """The pairs of a file of `pair_records`.

    Raises:
        InputError: the file cannot be read, is damaged, or holds something else.
    """
    token_ids, word_starts, first_lengths, labels = [], [], [], []
    for record in read_records(path):
        features = _features(record, path, _PAIR_FEATURES)
        token_ids.append(features["token_ids"])
        bits = np.frombuffer(features["word_starts"], np.uint8)
        word_starts.append(np.unpackbits(bits, count=len(token_ids[-1])))
        first_lengths.append(int(features["first_length"][0]))
        labels.append(int(features["label"][0]) if "label" in features else NO_LABEL)
    totals = np.array([len(ids) for ids in token_ids], np.int64)
    firsts = np.array(first_lengths, np.int64)
    begins = np.cumsum(totals) - totals
    return Pairs(
        np.concatenate([np.zeros(0, np.int32), *token_ids]).astype(np.int32),
        np.concatenate([np.zeros(0, np.uint8), *word_starts]).astype(bool),
        np.stack([begins, begins + firsts], axis=1),
        np.stack([firsts, totals - firsts], axis=1),
        np.array(labels, np.int8),
    )


def published_records(batch: Mapping[str, Array]) -> list[bytes]:
    """Each example of a masked batch as the `tf.train.Example` that other systems read."""
    count = len(batch[TOKEN_IDS])
    columns: dict[str, list[tuple[int, bytes]]] = {}
    for name, feature in PUBLISHED_FEATURES.items():
        rows = batch[name].reshape(count, -1)
        if rows.dtype == np.float32:
            content, size = rows.astype("<f4").tobytes(), 4 * rows.shape[1]
            columns[feature] = [(FLOAT, content[a : a + size]) for a in range(0, len(content), size)]
        else:
            packed, offsets = packed_int64(rows)
            edges = offsets[:: rows.shape[1]].tolist()
            columns[feature] = [(INT64, packed[a:b]) for a, b in itertools.pairwise(edges)]
    return [encode_example(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]


def read_published(path: Path) -> dict[str, Array]:
    """The arrays of the examples in a file of `published_records`, by our names; as `masked_batch` returns them.

    Raises:
        InputError: the file cannot be read, is damaged, or holds something else.
    """
    names = tuple(PUBLISHED_FEATURES.values())
    rows = [_features(record, path, names) for record in read_records(path)]
    arrays = {name: np.stack([row[feature] for row in rows]) for name, feature in PUBLISHED_FEATURES.items()}
    arrays[SENTENCE_ORDER_LABELS] = arrays[SENTENCE_ORDER_LABELS][:, 0]
    return {name: a if a.dtype == np.float32 else a.astype(np.int32) for name, a in arrays.items()}


def _features(record: bytes, path: Path, names: Sequence[str]) -> dict[str, Any]:
    try:
        features = decode_example(record)
    except DecodeError as error:
        raise InputError(f"{path}: expected records that are a tf.train.Example each ({error})") from error
    missing = sorted(set(names) - set(features))
    if missing:
        raise InputError(
            f"{path}: expected the features {', '.join(names)}; {', '.join(missing)} missing, found "
            f"{', '.join(sorted(features)) or 'none'}"
        )
    return features
