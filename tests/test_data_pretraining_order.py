"""`albert_tf.data.pretraining_order`: every example once an epoch, and the same order wherever one begins."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from albert_tf.data.pretraining_order import WINDOW_SHARDS, ordered_windows

COUNTS = [int(n) for n in np.random.default_rng(0).integers(1, 90, size=3 * WINDOW_SHARDS + 2)]
BATCH = 7


def batches(start_step: int = 0, *, counts: list[int] = COUNTS, seed: int = 1, size: int = BATCH) -> Iterator[list]:
    """(epoch, numbers) of each batch, in the order within the window."""
    for window in ordered_windows(counts, size, seed, start_step):
        rows = window.numbers.reshape(-1, size)[window.skipped :]
        yield from ([window.epoch, *row] for row in rows.tolist())


def epochs(count: int, **options) -> list[list[list[int]]]:
    steps = sum(options.get("counts", COUNTS)) // options.get("size", BATCH)
    flat = list(itertools.islice(batches(**options), count * steps))
    return [[row[1:] for row in flat[i * steps : (i + 1) * steps]] for i in range(count)]


def test_every_example_at_most_once_an_epoch() -> None:
    left_out = []
    for epoch, rows in enumerate(epochs(5)):
        numbers = [number for row in rows for number in row]
        assert len(set(numbers)) == len(numbers) == sum(COUNTS) // BATCH * BATCH, epoch
        left_out.append(frozenset(range(sum(COUNTS))) - set(numbers))
    assert all(len(rest) == sum(COUNTS) % BATCH for rest in left_out)
    assert len(set(left_out)) > 1, "other examples are left out in another epoch"


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    first, second = epochs(2)
    assert first != second
    assert epochs(1)[0] == first
    assert epochs(1, seed=2)[0] != first


def test_starting_anywhere_gives_what_would_have_followed() -> None:
    steps = sum(COUNTS) // BATCH
    whole = list(itertools.islice(batches(), 3 * steps))
    for start in range(0, 2 * steps, 11):
        assert list(itertools.islice(batches(start), 20)) == whole[start : start + 20], start


def test_a_window_mixes_some_shards() -> None:
    counts = [100] * 40
    begins = np.arange(41) * 100
    window = next(ordered_windows(counts, 10, 0))
    shards = np.unique(np.searchsorted(begins, window.numbers, side="right"))
    assert len(shards) == WINDOW_SHARDS and shards.max() > 2 * WINDOW_SHARDS, "not the first ones"
    within = np.searchsorted(begins, window.numbers[:80], side="right")
    assert len(np.unique(within)) == WINDOW_SHARDS


def test_carried_examples_begin_the_next_window() -> None:
    windows = list(itertools.islice(ordered_windows([10] * 20, 64, 0), 6))
    for window, following in itertools.pairwise(windows):
        if window.epoch == following.epoch:
            assert set(window.carried.tolist()) <= {*following.numbers.tolist(), *following.carried.tolist()}
    assert [window.index for window in windows] == sorted({window.index for window in windows})


@pytest.mark.parametrize(("counts", "size"), [([1], 1), ([5], 5), ([1] * 20, 20), ([3, 1], 4), ([0, 2, 0], 2)])
def test_small_data(counts: list[int], size: int) -> None:
    for rows in epochs(3, counts=counts, size=size):
        assert sorted(number for row in rows for number in row) == list(range(sum(counts)))
