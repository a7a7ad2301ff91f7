"""`albert_tf.data.pretraining_examples`: what stands where in a batch, and what its random numbers depend on."""

import numpy as np
import pytest
from pretraining_texts import numbered_text
from scipy.stats import chisquare, kstest
from small_vocabularies import sentencepiece_vocabulary

from albert_tf.data.masking import DRAWS, MaskingRules, MaskingVocabulary
from albert_tf.data.pretraining_examples import example_draws, masked_batch
from albert_tf.data.sentence_order import NO_LABEL, Pairs

VOCABULARY = MaskingVocabulary(sentencepiece_vocabulary())
LENGTH, PREDICTIONS = 40, 6
RULES = MaskingRules()


def some_pairs(count: int, seed: int = 0, label: int = NO_LABEL) -> Pairs:
    """Texts of ordinary tokens, of 1 to 18 tokens each."""
    random = np.random.default_rng(seed)
    text = numbered_text([[18, 18]] * count)
    ids = random.choice(VOCABULARY.ordinary_ids, size=len(text.token_ids)).astype(np.int32)
    lengths = random.integers(1, 19, size=(count, 2))
    begins = np.arange(count)[:, None] * 36 + [0, 18]
    return Pairs(ids, text.word_starts, begins, lengths, np.full(count, label, np.int8))


def batch_of(
    pairs: Pairs, numbers: np.ndarray | None = None, length: int = LENGTH, rules: MaskingRules = RULES
) -> dict:
    numbers = np.arange(len(pairs)) if numbers is None else numbers
    return masked_batch(pairs, rules, VOCABULARY, example_draws(1, 0, numbers, length), length, PREDICTIONS)


def test_layout() -> None:
    pairs = some_pairs(200)
    batch = batch_of(pairs)
    assert {name: (array.dtype.name, array.shape) for name, array in batch.items()} == {
        "token_ids": ("int32", (200, LENGTH)),
        "segment_ids": ("int32", (200, LENGTH)),
        "padding_mask": ("int32", (200, LENGTH)),
        "masked_positions": ("int32", (200, PREDICTIONS)),
        "masked_ids": ("int32", (200, PREDICTIONS)),
        "masked_weights": ("float32", (200, PREDICTIONS)),
        "sentence_order_labels": ("int32", (200,)),
    }
    for row in range(200):
        texts = [
            pairs.token_ids[begin : begin + length].tolist()
            for begin, length in zip(pairs.begins[row], pairs.lengths[row], strict=True)
        ]
        if batch["sentence_order_labels"][row]:
            texts.reverse()
        plain = [VOCABULARY.cls_id, *texts[0], VOCABULARY.sep_id, *texts[1], VOCABULARY.sep_id]
        count = int(batch["masked_weights"][row].sum())
        positions = batch["masked_positions"][row, :count]
        assert count <= RULES.num_predictions(len(plain))
        assert count or len(plain) < 10, "a word of two tokens may be too much for the shortest"
        restored = batch["token_ids"][row].copy()
        restored[positions] = batch["masked_ids"][row, :count]
        padding = LENGTH - len(plain)
        assert restored.tolist() == plain + [VOCABULARY.pad_id] * padding
        assert batch["padding_mask"][row].tolist() == [1] * len(plain) + [0] * padding
        first = len(texts[0]) + 2
        assert batch["segment_ids"][row].tolist() == [0] * first + [1] * (len(plain) - first) + [0] * padding
        assert sorted(set(positions.tolist())) == positions.tolist()
        for name in ("masked_positions", "masked_ids", "masked_weights"):
            assert not batch[name][row, count:].any()
        assert (batch["masked_weights"][row, :count] == 1).all()


def test_half_of_the_texts_are_swapped() -> None:
    labels = batch_of(some_pairs(20000))["sentence_order_labels"]
    assert chisquare(np.bincount(labels)).pvalue > 1e-3


@pytest.mark.parametrize("label", [0, 1])
def test_texts_with_a_label_stay_in_order(label: int) -> None:
    pairs = some_pairs(100, label=label)
    batch = batch_of(pairs)
    assert (batch["sentence_order_labels"] == label).all()
    assert (batch["segment_ids"].sum(axis=1) == pairs.lengths[:, 1] + 1).all()


def test_an_example_depends_on_its_number_alone() -> None:
    pairs = some_pairs(50)
    batch = batch_of(pairs)
    chosen = np.array([31, 4, 17])
    part = batch_of(pairs.chosen(chosen), chosen, length=LENGTH + 9)
    for name in ("token_ids", "segment_ids", "padding_mask"):
        assert (part[name][:, :LENGTH] == batch[name][chosen]).all()
    for name in ("masked_positions", "masked_ids", "masked_weights", "sentence_order_labels"):
        assert (part[name] == batch[name][chosen]).all()


def test_draws() -> None:
    numbers = np.array([0, 1, 2**40])
    order, masks = example_draws(3, 4, numbers, 10)
    assert (order.dtype, order.shape) == (np.float32, (3,))
    assert (masks.dtype, masks.shape) == (np.float32, (3, 10, DRAWS))
    longer_order, longer = example_draws(3, 4, numbers[::-1], 15)
    assert (longer_order == order[::-1]).all() and (longer[:, :10] == masks[::-1]).all()
    for other in ((5, 4, numbers), (3, 5, numbers), (3, 4, numbers + 1), (3, 4, numbers, 10, 1)):
        arguments = other if len(other) > 3 else (*other, 10)
        assert not (example_draws(*arguments)[1] == masks).any()


def test_draws_are_uniform_and_independent() -> None:
    order, masks = example_draws(0, 0, np.arange(3000), 8)
    assert kstest(order, "uniform").pvalue > 1e-3
    assert kstest(masks.reshape(-1)[::7], "uniform").pvalue > 1e-3
    flat = masks.reshape(3000, -1)
    assert np.abs(np.corrcoef(flat[:-1, 0], flat[1:, 0])[0, 1]) < 0.07  # of neighbouring examples
    assert np.abs(np.corrcoef(flat, rowvar=False) - np.eye(flat.shape[1])).max() < 0.09


def test_other_epochs_have_other_masks_and_swaps() -> None:
    pairs = some_pairs(64)
    epochs = [
        masked_batch(pairs, RULES, VOCABULARY, example_draws(1, epoch, np.arange(64), LENGTH), LENGTH, PREDICTIONS)
        for epoch in (0, 1)
    ]
    same = [name for name in epochs[0] if (epochs[0][name] == epochs[1][name]).all()]
    assert same == ["padding_mask"]
