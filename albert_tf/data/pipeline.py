"""From token ids in memory to a `tf.data.Dataset` of padded batches."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.data.batching import num_batches, shuffled_batches
from albert_tf.data.schema import TOKEN_IDS
from albert_tf.tokenization.packing import pad_batch

Encoded = Sequence[tuple[Sequence[int], Sequence[int]]]
# What `training_dataset` makes of "weight": the share of a row in the mean over its batch.
WEIGHT, SCALE = "weight", "scale"
_NOWHERE = -1  # pads targets that go with tokens


def training_dataset(
    encoded: Encoded,
    targets: Sequence[Any] | Mapping[str, Sequence[Any]],
    *,
    batch_size: int,
    pad_id: int,
    seed: int,
    start_step: int = 0,
    length: int | None = None,
    rows_per_example: int = 1,
) -> tf.data.Dataset:
    """Endless batches, epoch after epoch, each padded to its longest example.

    Args:
        encoded: (token ids, segment ids) of each example.
        targets: for each example a label id (int) or value (float), or a list of one for each of its tokens, or an array
            of (examples, values); or several such by name. Those by name are joined by `scale`, float32 (B,): each
            example's share in the mean over its batch, 1 / B, or in proportion to the target called `weight` if there is
            one.
        batch_size: examples in a batch; the last batch of an epoch may be smaller.
        pad_id: the padding token.
        seed: with the epoch's number it decides the order; see `shuffled_batches`.
        start_step: batches to leave out at the start: resuming gives the batches that would have followed.
        length: pad every batch to this length instead.
        rows_per_example: `encoded` has so many rows for each example, one after the other.

    Returns:
        Elements ({token_ids, segment_ids, padding_mask: int32 (B · rows_per_example, S)}, targets (B,) or, where they go
        with tokens, (B, S), padded with -1).
    """
    group = rows_per_example
    lengths = [max(len(ids) for ids, _ in encoded[i : i + group]) for i in range(0, len(encoded), group)]
    columns = dict(targets) if isinstance(targets, Mapping) else {"": targets}
    arrays = {name: _column(values) for name, values in columns.items()}
    epoch_steps = num_batches(len(lengths), batch_size)

    def batch(indices: np.ndarray) -> tuple[dict[str, np.ndarray], Any]:
        rows = [encoded[i * group + k] for i in indices for k in range(group)]
        inputs = pad_batch(rows, pad_id, length=length)
        wanted = {name: _padded(array[indices], inputs[TOKEN_IDS].shape[1]) for name, array in arrays.items()}
        return inputs, _with_scale(wanted, len(indices)) if isinstance(targets, Mapping) else wanted[""]

    def batches() -> Iterator[tuple[dict[str, np.ndarray], Any]]:
        epoch, skip = divmod(start_step, epoch_steps)
        while True:
            for indices in shuffled_batches(lengths, batch_size, seed=seed, epoch=epoch)[skip:]:
                yield batch(indices)
            epoch, skip = epoch + 1, 0

    signature = tf.nest.map_structure(_open_spec, batch(np.zeros(1, np.int64)))
    return tf.data.Dataset.from_generator(batches, output_signature=signature).prefetch(8)


def _column(values: Sequence[Any]) -> np.ndarray:
    """Numbers and arrays as they are; lists of numbers as objects, as they may differ in length."""
    if isinstance(values, np.ndarray) or not isinstance(values[0], (list, tuple, np.ndarray)):
        array = np.asarray(values)
        return array.astype(np.float32) if array.dtype.kind == "f" else array
    column = np.empty(len(values), object)
    column[:] = [np.asarray(value) for value in values]
    return column


def _padded(values: np.ndarray, length: int) -> np.ndarray:
    if values.dtype != object:
        return values
    padded = np.full((len(values), length), _NOWHERE, np.int32)
    for row, value in enumerate(values):
        padded[row, : len(value)] = value
    return padded


def _with_scale(wanted: dict[str, np.ndarray], size: int) -> dict[str, np.ndarray]:
    weights = wanted.pop(WEIGHT, np.ones(size))
    return wanted | {SCALE: (weights / max(weights.sum(), 1e-9)).astype(np.float32)}


def _open_spec(array: np.ndarray) -> tf.TensorSpec:
    return tf.TensorSpec([None] * array.ndim, tf.as_dtype(array.dtype))


def array_dataset(
    batches: Callable[[], Iterable[dict[str, np.ndarray]]], inputs: Sequence[str], targets: Sequence[str]
) -> tf.data.Dataset:
    """Batches of NumPy arrays as elements ({input: array}, {target: array}) of any sizes.

    Args:
        batches: begins a pass over them; each has the same names, types and ranks. The first batch is made at once.
        inputs, targets: names in each batch; the others are left out.
    """

    def split(batch: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        return {name: batch[name] for name in inputs}, {name: batch[name] for name in targets}

    begun = iter(batches())
    first = next(begun)
    # The pass that the first batch was taken from is the first one to be gone through.
    passes = itertools.chain([itertools.chain([first], begun)], (batches() for _ in itertools.count()))
    signature = tf.nest.map_structure(_open_spec, split(first))
    return tf.data.Dataset.from_generator(lambda: map(split, next(passes)), output_signature=signature).prefetch(8)
