"""In which order the examples of many shards are visited: a window of some shards at a time, mixed."""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

Array = np.ndarray

WINDOW_SHARDS = 8  # that are in memory and mixed at a time
_SHARD_ORDER, _FIRST_WINDOW = 1, 2  # generators of an epoch


@dataclasses.dataclass(frozen=True)
class Window:
    """Examples that are in memory together.

    Attributes:
        epoch: the pass over the data, from 0.
        index: counts the windows of all epochs.
        numbers: the examples, by their numbers in the order of the shards, int; a multiple of the batch size.
        skipped: batches of it to leave out, of a run that resumes in the middle.
        carried: examples that wait for the next window, to fill a batch there.
    """

    epoch: int
    index: int
    numbers: Array
    skipped: int
    carried: Array


def ordered_windows(counts: Sequence[int], batch_size: int, seed: int, start_step: int = 0) -> Iterator[Window]:
    """Endless windows, epoch after epoch, each in an order that (seed, epoch) decides.

    An epoch has `sum(counts) // batch_size` batches, each of different examples. What fills no batch in a window goes
    into the next; those that are left at the end of an epoch come in another one.

    Args:
        counts: examples of each shard.
        batch_size: at most `sum(counts)`.
        start_step: batches to leave out at the start.
    """
    epoch, skip = divmod(start_step, sum(counts) // batch_size)
    windows_an_epoch = -(-len(counts) // WINDOW_SHARDS)
    begins = np.cumsum([0, *counts])
    while True:
        shards = np.random.default_rng((seed, epoch, _SHARD_ORDER)).permutation(len(counts))
        carried = np.zeros(0, np.int64)
        for place in range(windows_an_epoch):
            chosen = shards[place * WINDOW_SHARDS : (place + 1) * WINDOW_SHARDS].tolist()
            numbers = np.concatenate([carried, *(np.arange(begins[s], begins[s + 1]) for s in chosen)])
            numbers = np.random.default_rng((seed, epoch, _FIRST_WINDOW + place)).permutation(numbers)
            batches = len(numbers) // batch_size
            numbers, carried = numbers[: batches * batch_size], numbers[batches * batch_size :]
            skipped = min(skip, batches)
            skip -= skipped
            if batches > skipped:
                yield Window(epoch, epoch * windows_an_epoch + place, numbers, skipped, carried)
        epoch += 1
