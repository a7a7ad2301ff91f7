"""From token ids in memory to a `tf.data.Dataset` of padded batches."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.data.batching import Batches, rounded_length
from albert_tf.data.parts import replica_parts
from albert_tf.data.schema import TOKEN_IDS
from albert_tf.tokenization.packing import pad_batch

Encoded = Sequence[tuple[Sequence[int], Sequence[int]]]
Arrays = dict[str, np.ndarray]
# (epoch, numbers of the examples, inputs, targets) → inputs and targets, of the same names, types and ranks.
Remade = Callable[[int, np.ndarray, Arrays, Arrays], tuple[Arrays, Arrays]]
# What `training_dataset` makes of "weight": the share of a row in the mean over its batch.
WEIGHT, SCALE = "weight", "scale"
_NOWHERE = -1  # pads targets that go with tokens


def training_dataset(
    encoded: Encoded,
    targets: Sequence[Any] | Mapping[str, Sequence[Any]],
    *,
    batch_size: int | None = None,
    batch_tokens: int | None = None,
    pad_id: int,
    seed: int,
    start_step: int = 0,
    length: int | None = None,
    round_up_to: int | None = None,
    rows_per_example: int = 1,
    own_replicas: range = range(1),
    replicas: int = 1,
    remade: Remade | None = None,
) -> tf.data.Dataset:
    """Endless batches, epoch after epoch, each padded to its longest example.

    Args:
        encoded: (token ids, segment ids) of each example.
        targets: for each example a label id (int) or value (float), or a list of one for each of its tokens, or an array
            of (examples, values); or several such by name. Those by name are joined by `scale`, float32 (B,): each
            example's share in the mean over its batch, 1 / B, or in proportion to the target called `weight` if there is
            one. Where batches differ in size, B is that of a batch in the mean: every example weighs the same.
        batch_size: examples in a batch; the last batch of an epoch may be smaller.
        batch_tokens: instead, the most tokens in a batch, padding included.
        pad_id: the padding token.
        seed: with the epoch's number it decides the order; see `shuffled_batches`.
        start_step: batches to leave out at the start: resuming gives the batches that would have followed.
        length: pad every batch to this length instead.
        round_up_to: round lengths up to one of few, and at most to this.
        rows_per_example: `encoded` has so many rows for each example, one after the other.
        own_replicas: with targets by name, instead of each batch the parts of these replicas, one after the other; see
            `albert_tf.data.parts`.
        replicas: how many share a batch.
        remade: with targets by name, makes of each batch what is trained on in its epoch.

    Returns:
        Elements ({token_ids, segment_ids, padding_mask: int32 (B · rows_per_example, S)}, targets (B,) or, where they go
        with tokens, (B, S), padded with -1).
    """
    group = rows_per_example
    columns = dict(targets) if isinstance(targets, Mapping) else {"": targets}
    arrays = {name: _column(values) for name, values in columns.items()}
    plan = Batches(example_tokens(encoded, group, length), batch_size=batch_size, batch_tokens=batch_tokens, seed=seed)
    weight_in_batch = None if batch_tokens is None else plan.mean_size * float(np.mean(arrays.get(WEIGHT, 1.0)))

    def batch(epoch: int, indices: np.ndarray) -> tuple[Arrays, Any]:
        rows = [encoded[i * group + k] for i in indices for k in range(group)]
        padded_to = length
        if length is None and round_up_to is not None:
            padded_to = rounded_length(max(len(token_ids) for token_ids, _ in rows), round_up_to)
        inputs = pad_batch(rows, pad_id, length=padded_to)
        wanted = {name: _padded(array[indices], inputs[TOKEN_IDS].shape[1]) for name, array in arrays.items()}
        if not isinstance(targets, Mapping):
            return inputs, wanted[""]
        wanted = _with_scale(wanted, len(indices), weight_in_batch)
        return (inputs, wanted) if remade is None else remade(epoch, indices, inputs, wanted)

    def batches() -> Iterator[tuple[Arrays, Any]]:
        epoch, skip = plan.position(start_step)
        while True:
            for indices in plan.epoch(epoch)[skip:]:
                inputs, wanted = batch(epoch, indices)
                if replicas == 1:
                    yield inputs, wanted
                else:
                    yield from replica_parts(inputs, wanted, (SCALE,), own_replicas, replicas)
            epoch, skip = epoch + 1, 0

    signature = tf.nest.map_structure(_open_spec, batch(0, np.zeros(1, np.int64)))
    return tf.data.Dataset.from_generator(batches, output_signature=signature).prefetch(8)


def example_tokens(encoded: Encoded, rows_per_example: int = 1, length: int | None = None) -> list[int]:
    """How many tokens each example of `training_dataset` takes in a batch: its rows as long as the longest of them."""
    group = rows_per_example
    return [
        group * (length or max(len(ids) for ids, _ in encoded[i : i + group])) for i in range(0, len(encoded), group)
    ]


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


def _with_scale(wanted: dict[str, np.ndarray], size: int, whole: float | None) -> dict[str, np.ndarray]:
    """The targets with each example's share of `whole`, the weight of a batch: by default of the sum in this one."""
    weights = wanted.pop(WEIGHT, np.ones(size))
    return wanted | {SCALE: (weights / max(weights.sum() if whole is None else whole, 1e-9)).astype(np.float32)}


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
