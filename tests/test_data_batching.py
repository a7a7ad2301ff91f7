"""`albert_tf.data.batching`: every example once, repeatable, little padding."""

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from albert_tf.data import batching
from albert_tf.data.batching import (
    Batches,
    num_batches,
    rounded_length,
    shuffled_batches,
    sorted_batches,
    token_batches,
)
from albert_tf.errors import InputError

LENGTHS = [int(n) for n in np.random.default_rng(0).lognormal(3, 0.7, 5000).clip(3, 128)]


def padding_share(batches: Iterable[Sequence[int]], lengths: Sequence[int]) -> float:
    """Share of the positions of padded batches that is padding."""
    positions = sum(len(batch) * max(lengths[i] for i in batch) for batch in batches)
    return 1 - sum(lengths) / positions


def random_batches(examples: int, batch_size: int) -> list[np.ndarray]:
    order = np.random.default_rng(1).permutation(examples)
    return [order[i : i + batch_size] for i in range(0, examples, batch_size)]


@pytest.mark.parametrize("examples", [0, 1, 31, 32, 33, 64 * 32, 64 * 32 + 1, 5000])
@pytest.mark.parametrize("batch_size", [1, 32])
def test_every_example_once_and_one_smaller_batch(examples: int, batch_size: int) -> None:
    batches = shuffled_batches(LENGTHS[:examples], batch_size, seed=1, epoch=0)
    assert sorted(i for batch in batches for i in batch) == list(range(examples))
    assert len(batches) == num_batches(examples, batch_size) == int(np.ceil(examples / batch_size))
    sizes = sorted(len(batch) for batch in batches)
    assert all(size == batch_size for size in sizes[1:]) and all(size <= batch_size for size in sizes)


def test_seed_and_epoch_decide() -> None:
    def flat(seed: int, epoch: int) -> list[list[int]]:
        return [batch.tolist() for batch in shuffled_batches(LENGTHS, 32, seed=seed, epoch=epoch)]

    assert flat(1, 2) == flat(1, 2)
    assert flat(1, 2) != flat(1, 3)
    assert flat(1, 2) != flat(2, 2)
    assert flat(1, 2) != flat(2, 1)
    np.random.default_rng(5)
    np.random.seed(9)  # the global generator does not matter
    assert flat(1, 2) == flat(1, 2)


def test_batches_stay_random() -> None:
    """Who is with whom changes from epoch to epoch, and short batches do not come first."""
    first, second = (shuffled_batches(LENGTHS, 32, seed=1, epoch=epoch) for epoch in (0, 1))
    together = {frozenset(batch.tolist()) for batch in first}
    assert not together & {frozenset(batch.tolist()) for batch in second}
    mate = {i: set(batch.tolist()) for batch in first for i in batch}
    kept = np.mean([len(mate[i] & set(batch.tolist())) - 1 for batch in second for i in batch])
    assert kept < 8  # of 31: measured 4.9, as few examples are as long as the longest
    longest = [max(LENGTHS[i] for i in batch) for batch in first]
    assert abs(np.corrcoef(np.arange(len(longest)), longest)[0, 1]) < 0.25


def test_padding_is_a_fraction_of_plain_random_batches() -> None:
    plain = padding_share(random_batches(len(LENGTHS), 32), LENGTHS)
    ours = padding_share(shuffled_batches(LENGTHS, 32, seed=1, epoch=0), LENGTHS)
    least = padding_share(sorted_batches(LENGTHS, 32), LENGTHS)
    assert plain > 0.6  # measured: 0.71 at random, 0.065 in windows, 0.014 sorted
    assert ours < 0.08
    assert least < ours


def test_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples are sorted within a window only: one batch is no window at all, four batches save some padding."""
    plain = padding_share(random_batches(len(LENGTHS), 32), LENGTHS)
    shares = []
    for window in (1, 4, 64):
        monkeypatch.setattr(batching, "MOST_WINDOW_BATCHES", window)
        monkeypatch.setattr(batching, "FEWEST_WINDOW_BATCHES", window)
        shares.append(padding_share(shuffled_batches(LENGTHS, 32, seed=1, epoch=0), LENGTHS))
    assert shares[0] == pytest.approx(plain, abs=0.02)
    assert shares[0] > shares[1] + 0.1 > shares[2] + 0.2


def test_a_small_set_is_still_mixed() -> None:
    """With a window as large as the set, 23 of an example's 31 companions would be the same in the next epoch."""
    first, second = (shuffled_batches(LENGTHS[:500], 32, seed=1, epoch=epoch) for epoch in (0, 1))
    mate = {i: set(batch.tolist()) for batch in first for i in batch}
    kept = np.mean([len(mate[i] & set(batch.tolist())) - 1 for batch in second for i in batch])
    assert kept < 14  # measured: 10


def test_sorted_batches() -> None:
    lengths = [3, 9, 5, 9, 1, 5]
    assert [batch.tolist() for batch in sorted_batches(lengths, 4)] == [[1, 3, 2, 5], [0, 4]]
    assert [batch.tolist() for batch in sorted_batches(lengths, 100)] == [[1, 3, 2, 5, 0, 4]]
    assert list(sorted_batches([], 4)) == []


# === Batches of so many tokens ===


def positions(batch: Sequence[int]) -> int:
    return len(batch) * max(LENGTHS[i] for i in batch)


def test_token_batches_hold_every_example_once_and_keep_the_limit() -> None:
    for tokens in (128, 1024, 10**6):
        batches = token_batches(LENGTHS, tokens, seed=1, epoch=0)
        assert sorted(i for batch in batches for i in batch) == list(range(len(LENGTHS)))
        assert max(map(positions, batches)) <= tokens and min(map(len, batches)) >= 1


def test_token_batches_are_nearly_equal_and_little_padded() -> None:
    batches = token_batches(LENGTHS, 1024, seed=1, epoch=0)
    sizes = [positions(batch) for batch in batches]
    assert np.mean(sizes) > 0.93 * 1024 and np.quantile(sizes, 0.05) > 0.85 * 1024  # measured: 0.97 and 0.92
    assert padding_share(batches, LENGTHS) < 0.08
    numbers = [len(batch) for batch in batches]
    assert max(numbers) > 4 * min(numbers)  # of examples: what a fixed size would make equal
    fixed = [positions(batch) for batch in shuffled_batches(LENGTHS, round(np.mean(numbers)), seed=1, epoch=0)]
    assert np.std(fixed) > 4 * np.std(sizes)


def test_token_batches_are_mixed_anew_each_epoch() -> None:
    def flat(seed: int, epoch: int) -> list[list[int]]:
        return [batch.tolist() for batch in token_batches(LENGTHS, 1024, seed=seed, epoch=epoch)]

    assert flat(1, 0) == flat(1, 0)
    assert flat(1, 0) != flat(1, 1) and flat(1, 0) != flat(2, 0)
    longest = [max(LENGTHS[i] for i in batch) for batch in flat(1, 0)]
    assert abs(np.corrcoef(np.arange(len(longest)), longest)[0, 1]) < 0.25


@pytest.mark.parametrize(
    ("lengths", "tokens", "fewest"), [([3, 3, 3, 3, 3], 9, 2), ([1, 2, 2, 7, 7], 14, 2), ([5], 5, 1)]
)
def test_a_window_is_cut_into_the_fewest_batches(lengths: list[int], tokens: int, fewest: int) -> None:
    """Against every way to cut."""
    cuts = batching._even_cuts(lengths, tokens)

    def largest(cuts: Sequence[int]) -> int:
        bounds = [0, *cuts, len(lengths)]
        return max((b - a) * lengths[b - 1] for a, b in itertools.pairwise(bounds))

    ways = [c for k in range(len(lengths)) for c in itertools.combinations(range(1, len(lengths)), k)]
    usable = [way for way in ways if largest(way) <= tokens]
    assert len(cuts) + 1 == min(map(len, usable)) + 1 == fewest
    assert largest(cuts) == min(largest(way) for way in usable if len(way) == len(cuts))


@pytest.mark.parametrize("arguments", [{"batch_size": 32}, {"batch_tokens": 600}], ids=str)
def test_steps_are_counted_as_they_come(arguments: dict[str, int]) -> None:
    batches = Batches(LENGTHS[:500], seed=3, **arguments)
    sizes = [len(batches.epoch(number)) for number in range(3)]
    assert [batches.count(epochs) for epochs in (1, 2, 3)] == np.cumsum(sizes).tolist()
    assert batches.count(1.5) == sizes[0] + math.ceil(sizes[1] / 2)
    assert batches.count(0.01) == math.ceil(0.01 * sizes[0])
    assert [batches.position(step) for step in (0, sizes[0] - 1, sizes[0], sizes[0] + sizes[1] + 2)] == [
        *((0, 0), (0, sizes[0] - 1), (1, 0), (2, 2))
    ]
    assert batches.mean_size == 500 / sizes[0]


def test_an_example_that_does_not_fit() -> None:
    with pytest.raises(InputError, match=r"--batch-tokens: expected at least .* the longest example, 128, got 100"):
        Batches([3, 128, 5], batch_tokens=100, seed=0)


def test_rounded_lengths() -> None:
    rounded = [rounded_length(length, 512) for length in range(1, 513)]
    assert sorted(set(rounded)) == [16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512]
    assert all(length <= r < max(1.5 * length + 1, 17) for length, r in enumerate(rounded, 1))
    assert rounded_length(33, 40) == 40 and rounded_length(30, 40) == 32
