"""Which examples go into which batch.

Padding is the largest waste of training, so batches hold texts of like length.
"""

import bisect
import functools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from albert_tf.errors import InputError

# Batches are cut from windows of so many batches, sorted by length: enough to make a batch's lengths nearly equal, few
# enough that an example meets others in the next epoch.
MOST_WINDOW_BATCHES = 64
FEWEST_WINDOW_BATCHES = 8
FEWEST_WINDOWS = 4
_SHORTEST_BUCKET = 16

Lengths = Sequence[int] | np.ndarray


class Batches:
    """The batches of every epoch, in order: of `batch_size` examples each, or of as many as fit into `batch_tokens`.

    They depend on the arguments alone, so a run can resume in the middle of an epoch.

    Args:
        lengths: tokens that each example takes.
        batch_size: examples in a batch, where batches are not cut by tokens.
        batch_tokens: most tokens in a batch, its padding included: batches of nearly equal work and memory. How many
            there are differs a little from epoch to epoch.
        seed: with the epoch's number it decides the order.

    Raises:
        InputError: an example does not fit into `batch_tokens`.
    """

    def __init__(
        self, lengths: Sequence[int], *, batch_size: int | None = None, batch_tokens: int | None = None, seed: int
    ) -> None:
        self.lengths = np.asarray(lengths)
        self.batch_size, self.batch_tokens, self.seed = batch_size, batch_tokens, seed
        self._sizes: dict[int, int] = {}
        longest = max(lengths, default=0)
        if batch_tokens is not None and longest > batch_tokens:
            raise InputError(
                f"--batch-tokens: expected at least the tokens of the longest example, {longest}, got {batch_tokens}; raise "
                "it, or cut the texts with --max-length"
            )

    def epoch(self, number: int) -> list[np.ndarray]:
        """Index arrays, each example once."""
        if self.batch_tokens is not None:
            return token_batches(self.lengths, self.batch_tokens, seed=self.seed, epoch=number)
        return shuffled_batches(self.lengths, int(self.batch_size or 1), seed=self.seed, epoch=number)

    def count(self, epochs: float) -> int:
        """Batches in so many epochs; a part of an epoch counts its share, rounded up."""
        whole = math.floor(epochs)
        part = math.ceil((epochs - whole) * self._size(whole)) if epochs > whole else 0
        return sum(self._size(number) for number in range(whole)) + part

    def position(self, step: int) -> tuple[int, int]:
        """The epoch of a step, and the batches of that epoch before it."""
        epoch = 0
        while step >= self._size(epoch):
            step -= self._size(epoch)
            epoch += 1
        return epoch, step

    @functools.cached_property
    def mean_size(self) -> float:
        """Examples in a batch of the first epoch, in the mean."""
        return len(self.lengths) / self._size(0)

    def _size(self, epoch: int) -> int:
        if self.batch_tokens is None:
            return num_batches(len(self.lengths), int(self.batch_size or 1))
        if epoch not in self._sizes:
            self._sizes[epoch] = len(self.epoch(epoch))
        return self._sizes[epoch]


def shuffled_batches(lengths: Lengths, batch_size: int, *, seed: int, epoch: int) -> list[np.ndarray]:
    """One epoch of index arrays, each example once, examples of like length together, in random order.

    The result depends on (lengths, batch_size, seed, epoch) alone, so a run can resume in the middle of an epoch.
    The last batch of the last window may be smaller; there are `num_batches(len(lengths), batch_size)` batches.
    """
    random = np.random.default_rng((seed, epoch))
    batches: list[np.ndarray] = []
    for indices in _sorted_windows(lengths, batch_size, random):
        batches += [indices[i : i + batch_size] for i in range(0, len(indices), batch_size)]
    return [batches[i] for i in random.permutation(len(batches))]


def token_batches(lengths: Lengths, tokens: int, *, seed: int, epoch: int) -> list[np.ndarray]:
    """As `shuffled_batches`, each batch with at most `tokens` positions when padded to its longest example.

    In a window of examples the batches are nearly equal in positions.
    """
    random = np.random.default_rng((seed, epoch))
    lengths_array = np.asarray(lengths)
    typical = max(1, int(tokens // max(lengths_array.mean(), 1.0)))
    batches: list[np.ndarray] = []
    for indices in _sorted_windows(lengths, typical, random):
        batches += np.split(indices, _even_cuts(lengths_array[indices].tolist(), tokens))
    return [batches[i] for i in random.permutation(len(batches))]


def _sorted_windows(lengths: Lengths, batch_size: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    """Parts of a random order, each sorted by length."""
    order = random.permutation(len(lengths))
    lengths_array = np.asarray(lengths)
    wanted = num_batches(len(order), batch_size) // FEWEST_WINDOWS
    window = batch_size * min(MOST_WINDOW_BATCHES, max(FEWEST_WINDOW_BATCHES, wanted))
    for start in range(0, len(order), window):
        indices = order[start : start + window]
        yield indices[np.argsort(lengths_array[indices], kind="stable")]


def _even_cuts(lengths: list[int], tokens: int) -> list[int]:
    """Where to cut rising lengths into the fewest batches of at most `tokens`, the largest as small as can be."""
    cuts = _cuts(lengths, tokens)
    low, high = lengths[-1], tokens
    while low < high:  # the smallest limit that needs no more batches
        limit = (low + high) // 2
        if len(tried := _cuts(lengths, limit)) <= len(cuts):
            high, cuts = limit, tried
        else:
            low = limit + 1
    return cuts


def _cuts(lengths: list[int], tokens: int) -> list[int]:
    """Where batches begin, the first left out, when each takes all that fit."""
    cuts: list[int] = []
    start = 0

    def positions(end: int) -> int:  # of a batch from `start`; as lengths rise, it rises
        return (end - start) * lengths[end - 1]

    while True:
        start = bisect.bisect_right(range(start + 1, len(lengths) + 1), tokens, key=positions) + start
        if start >= len(lengths):
            return cuts
        cuts.append(start)


def num_batches(examples: int, batch_size: int) -> int:
    """Batches in an epoch of `shuffled_batches`."""
    return -(-examples // batch_size)


def sorted_batches(lengths: Sequence[int], batch_size: int) -> Iterator[np.ndarray]:
    """Index arrays from the longest example to the shortest, for inference: least padding, largest memory first."""
    order = np.argsort(-np.asarray(lengths), kind="stable")
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]


def rounded_length(length: int, most: int) -> int:
    """`length` rounded up to one of few, 16, 24, 32, 48, 64, 96, …, and at most `most`: XLA compiles each one there is."""
    bucket = _SHORTEST_BUCKET
    while bucket < length:
        bucket += bucket // 2 if bucket & (bucket - 1) == 0 else bucket // 3
    return max(length, min(bucket, most))
