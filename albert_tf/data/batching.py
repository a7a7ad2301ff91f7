"""Which examples go into which batch.

Padding is the largest waste of training, so batches hold texts of like length.
"""

from collections.abc import Iterator, Sequence

import numpy as np

# Batches are cut from windows of so many batches, sorted by length: enough to make a batch's lengths nearly equal, few
# enough that an example meets others in the next epoch.
MOST_WINDOW_BATCHES = 64
FEWEST_WINDOW_BATCHES = 8
FEWEST_WINDOWS = 4


def shuffled_batches(lengths: Sequence[int], batch_size: int, *, seed: int, epoch: int) -> list[np.ndarray]:
    """One epoch of index arrays, each example once, examples of like length together, in random order.

    The result depends on (lengths, batch_size, seed, epoch) alone, so a run can resume in the middle of an epoch.
    The last batch of the last window may be smaller; there are `num_batches(len(lengths), batch_size)` batches.
    """
    random = np.random.default_rng((seed, epoch))
    order = random.permutation(len(lengths))
    lengths_array = np.asarray(lengths)
    batches: list[np.ndarray] = []
    wanted = num_batches(len(order), batch_size) // FEWEST_WINDOWS
    window = batch_size * min(MOST_WINDOW_BATCHES, max(FEWEST_WINDOW_BATCHES, wanted))
    for start in range(0, len(order), window):
        indices = order[start : start + window]
        indices = indices[np.argsort(lengths_array[indices], kind="stable")]
        batches += [indices[i : i + batch_size] for i in range(0, len(indices), batch_size)]
    return [batches[i] for i in random.permutation(len(batches))]


def num_batches(examples: int, batch_size: int) -> int:
    """Batches in an epoch of `shuffled_batches`."""
    return -(-examples // batch_size)


def sorted_batches(lengths: Sequence[int], batch_size: int) -> Iterator[np.ndarray]:
    """Index arrays from the longest example to the shortest, for inference: least padding, largest memory first."""
    order = np.argsort(-np.asarray(lengths), kind="stable")
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]
