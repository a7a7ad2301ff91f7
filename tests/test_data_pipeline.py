"""`albert_tf.data.pipeline`: the batches of a training, in the order that batching.py gives."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.data.batching import Batches, num_batches, shuffled_batches
from albert_tf.data.pipeline import array_dataset, training_dataset

PAD = 9


def encoded(count: int = 61, seed: int = 0) -> list[tuple[list[int], list[int]]]:
    """Every example's first token is its number."""
    lengths = np.random.default_rng(seed).integers(2, 20, count)
    return [([100 + i] + [1] * (n - 1), [0] * (n // 2) + [1] * (n - n // 2)) for i, n in enumerate(map(int, lengths))]


def taken(count: int, **changes: Any) -> list[tuple[dict[str, np.ndarray], np.ndarray]]:
    arguments: dict[str, Any] = {"batch_size": 8, "pad_id": PAD, "seed": 3} | changes
    examples = arguments.pop("encoded", encoded())
    targets = arguments.pop("targets", list(range(len(examples))))
    batches: Iterator[Any] = training_dataset(examples, targets, **arguments).as_numpy_iterator()
    return list(islice(batches, count))


def test_each_batch_is_what_was_encoded() -> None:
    examples = encoded()
    for inputs, targets in taken(num_batches(61, 8)):
        longest = max(len(examples[i][0]) for i in targets)
        assert inputs["token_ids"].shape == (len(targets), longest)
        for row, example in enumerate(targets):
            token_ids, segment_ids = examples[example]
            n = len(token_ids)
            assert inputs["token_ids"][row].tolist() == token_ids + [PAD] * (longest - n)
            assert inputs["segment_ids"][row].tolist() == segment_ids + [0] * (longest - n)
            assert inputs["padding_mask"][row].tolist() == [1] * n + [0] * (longest - n)


def test_an_epoch_has_every_example_once_and_the_next_another_order() -> None:
    steps = num_batches(61, 8)
    batches = [targets.tolist() for _, targets in taken(3 * steps)]
    epochs = [batches[start : start + steps] for start in range(0, 3 * steps, steps)]
    for number, epoch in enumerate(epochs):
        assert sorted(i for batch in epoch for i in batch) == list(range(61))
        lengths = [len(token_ids) for token_ids, _ in encoded()]
        assert epoch == [b.tolist() for b in shuffled_batches(lengths, 8, seed=3, epoch=number)]
    assert epochs[0] != epochs[1] != epochs[2]


@pytest.mark.parametrize("start_step", [1, 7, 8, 9, 20])
def test_resuming_gives_the_batches_that_would_have_followed(start_step: int) -> None:
    whole = taken(start_step + 5)[start_step:]
    for (inputs, targets), (expected, expected_targets) in zip(taken(5, start_step=start_step), whole, strict=True):
        np.testing.assert_array_equal(targets, expected_targets)
        for name, value in expected.items():
            np.testing.assert_array_equal(inputs[name], value)


def test_seeds() -> None:
    assert [t.tolist() for _, t in taken(4)] == [t.tolist() for _, t in taken(4)]
    assert [t.tolist() for _, t in taken(4)] != [t.tolist() for _, t in taken(4, seed=4)]


def test_a_fixed_length() -> None:
    for inputs, _ in taken(10, length=24):
        assert inputs["token_ids"].shape[1] == inputs["padding_mask"].shape[1] == 24


def test_one_signature_for_all_batches() -> None:
    """So that a training step is traced once: lengths and the last batch's size are left open."""
    inputs, targets = training_dataset(encoded(), [0.5] * 61, batch_size=8, pad_id=PAD, seed=0).element_spec
    assert {name: (spec.shape.as_list(), spec.dtype) for name, spec in inputs.items()} == {
        name: ([None, None], tf.int32) for name in ("token_ids", "segment_ids", "padding_mask")
    }
    assert targets.shape.as_list() == [None] and targets.dtype.is_floating
    assert training_dataset(encoded(), [1] * 61, batch_size=8, pad_id=PAD, seed=0).element_spec[1].dtype.is_integer


def test_more_examples_in_a_batch_than_there_are() -> None:
    assert [len(targets) for _, targets in taken(3, encoded=encoded(5), batch_size=32)] == [5, 5, 5]


def test_arrays_of_several_passes() -> None:
    """The first batch is made at once, and no batch twice in a pass."""
    made = []

    def batches() -> Iterator[dict[str, np.ndarray]]:
        for size in (2, 3):
            made.append(size)
            yield {"x": np.full((size, size), size, np.int32), "y": np.ones(size, np.float32), "z": np.zeros(1)}

    dataset = array_dataset(batches, ["x"], ["y"])
    assert made == [2]
    for _ in range(2):
        elements = list(dataset.as_numpy_iterator())
        assert [inputs["x"].tolist() for inputs, _ in elements] == [[[2] * 2] * 2, [[3] * 3] * 3]
        assert [targets["y"].shape for _, targets in elements] == [(2,), (3,)]
    assert made == [2, 3] * 2


# === Batches of so many tokens, few lengths ===


def test_token_batches_resume_and_weigh_every_example_alike() -> None:
    lengths = [len(ids) for ids, _ in encoded()]
    plan = Batches(lengths, batch_tokens=60, seed=3)
    steps = len(plan.epoch(0))
    targets = {"label": list(range(61))}
    whole = taken(steps + 9, batch_size=None, batch_tokens=60, targets=targets)
    assert [sorted(y["label"].tolist()) for _, y in whole[:steps]] == [sorted(b.tolist()) for b in plan.epoch(0)]
    scales = np.concatenate([y["scale"] for _, y in whole])
    np.testing.assert_allclose(scales, steps / 61, rtol=1e-6)  # one over the mean number of examples
    assert len({len(y["label"]) for _, y in whole}) > 3 and max(x["token_ids"].size for x, _ in whole) <= 60
    for start in (1, steps, steps + 4):
        resumed = taken(5, batch_size=None, batch_tokens=60, targets=targets, start_step=start)
        assert [y["label"].tolist() for _, y in resumed] == [y["label"].tolist() for _, y in whole[start : start + 5]]


def test_given_weights_stay_in_proportion_in_token_batches() -> None:
    weights = [1.0 + i % 3 for i in range(61)]
    batches = taken(20, batch_size=None, batch_tokens=60, targets={"label": list(range(61)), "weight": weights})
    ratio = np.concatenate([y["scale"] / np.array(weights)[y["label"]] for _, y in batches])
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    steps = len(Batches([len(ids) for ids, _ in encoded()], batch_tokens=60, seed=3).epoch(0))
    assert sum(y["scale"].sum() for _, y in batches[:steps]) == pytest.approx(steps, rel=1e-5)


def test_rows_of_an_example_stay_together_in_token_batches() -> None:
    batches = taken(
        9,
        encoded=encoded(60),
        targets={"label": list(range(20))},
        batch_size=None,
        batch_tokens=120,
        rows_per_example=3,
    )
    for inputs, targets in batches:
        assert inputs["token_ids"].size <= 120
        assert (inputs["token_ids"][:, 0].reshape(-1, 3) == 100 + 3 * targets["label"][:, None] + np.arange(3)).all()


def test_lengths_rounded_up() -> None:
    lengths = {inputs["token_ids"].shape[1] for inputs, _ in taken(16, round_up_to=20)}
    assert lengths == {16, 20}
    rounded, plain = taken(8, round_up_to=512), taken(8)
    for (x, y), (expected, labels) in zip(rounded, plain, strict=True):
        assert y.tolist() == labels.tolist() and x["padding_mask"].sum() == expected["padding_mask"].sum()
        assert (x["token_ids"][:, : expected["token_ids"].shape[1]] == expected["token_ids"]).all()
