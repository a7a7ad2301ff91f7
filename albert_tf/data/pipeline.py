"""From token ids in memory to a `tf.data.Dataset` of padded batches."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.data.batching import num_batches, shuffled_batches
from albert_tf.data.schema import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from albert_tf.tokenization.packing import pad_batch

Encoded = Sequence[tuple[Sequence[int], Sequence[int]]]


def training_dataset(
    encoded: Encoded,
    targets: Sequence[Any],
    *,
    batch_size: int,
    pad_id: int,
    seed: int,
    start_step: int = 0,
    length: int | None = None,
) -> tf.data.Dataset:
    """Endless batches, epoch after epoch, each padded to its longest example.

    Args:
        encoded: (token ids, segment ids) of each example.
        targets: one label id (int) or value (float) for each example.
        batch_size: examples in a batch; the last batch of an epoch may be smaller.
        pad_id: the padding token.
        seed: with the epoch's number it decides the order; see `shuffled_batches`.
        start_step: batches to leave out at the start: resuming gives the batches that would have followed.
        length: pad every batch to this length instead.

    Returns:
        Elements ({token_ids, segment_ids, padding_mask: int32 (B, S)}, targets (B,)).
    """
    target_array = np.asarray(targets)
    lengths = [len(token_ids) for token_ids, _ in encoded]
    epoch_steps = num_batches(len(encoded), batch_size)

    def batches() -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
        epoch, skip = divmod(start_step, epoch_steps)
        while True:
            for indices in shuffled_batches(lengths, batch_size, seed=seed, epoch=epoch)[skip:]:
                yield pad_batch([encoded[i] for i in indices], pad_id, length=length), target_array[indices]
            epoch, skip = epoch + 1, 0

    inputs = {name: tf.TensorSpec((None, length), tf.int32) for name in (TOKEN_IDS, SEGMENT_IDS, PADDING_MASK)}
    signature = (inputs, tf.TensorSpec((None,), tf.as_dtype(target_array.dtype)))
    return tf.data.Dataset.from_generator(batches, output_signature=signature).prefetch(8)
