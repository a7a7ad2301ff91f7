"""`albert_tf.layers.attention`: both half layers against NumPy, with every dropout mask in its place."""

import dataclasses
from typing import Any

import keras
import numpy as np
import pytest
from references import numpy_albert
from tiny_models import TINY, randomize

from albert_tf.config import ACTIVATIONS, AlbertConfig
from albert_tf.layers.attention import AttentionBlock, FeedForwardBlock
from albert_tf.layers.dropout import dropout
from albert_tf.layers.encoder import attention_bias

# float32 against float64: measured at most 5e-7.
TOLERANCE = 3e-6

RANDOM = np.random.default_rng(3)
X = RANDOM.standard_normal((2, 5, TINY.hidden_dim)).astype(np.float32)
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


def built(layer_class: Any, config: AlbertConfig, name: str, **kwargs: Any) -> tuple[Any, dict[str, np.ndarray]]:
    """A block with random weights, and those weights under the name that the reference looks for."""
    block = layer_class(config, name=name, **kwargs)
    block.build((None, None, config.hidden_dim))
    random = np.random.default_rng(5)
    weights = {}
    for variable in block.weights:
        mean = 1.0 if variable.name == "gamma" else 0.0
        value = (mean + 0.3 * random.standard_normal(variable.shape)).astype(np.float32)
        variable.assign(value)
        weights[variable.path] = value
    return block, weights


@pytest.mark.parametrize(("num_heads", "attention_dim"), [(1, None), (2, None), (16, None), (3, 12), (5, 20)])
def test_attention_block(num_heads: int, attention_dim: int | None) -> None:
    config = dataclasses.replace(TINY, num_heads=num_heads, attention_dim=attention_dim)
    block, weights = built(AttentionBlock, config, "attention")
    expected = np.stack(
        [numpy_albert.attention(weights, config, "attention", *pair) for pair in zip(X, MASK, strict=True)]
    )
    np.testing.assert_allclose(np.asarray(block(X, attention_bias(MASK))), expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_feed_forward_block(activation: str) -> None:
    config = dataclasses.replace(TINY, activation=activation)
    block, weights = built(FeedForwardBlock, config, "feed_forward")
    expected = numpy_albert.feed_forward(weights, config, "feed_forward", X)
    np.testing.assert_allclose(np.asarray(block(X)), expected, rtol=0, atol=TOLERANCE)


def test_head_mask() -> None:
    """Each example's own factor on what each head gives; the reference has it on the head's probabilities."""
    block, weights = built(AttentionBlock, TINY, "attention")
    mask = np.array([[1.0, 0.0], [0.5, 2.0]], np.float32)
    expected = np.stack(
        [
            numpy_albert.attention(weights, TINY, "attention", *pair, probability_factors=factors[:, None, None])
            for *pair, factors in zip(X, MASK, mask, strict=True)
        ]
    )
    np.testing.assert_allclose(np.asarray(block(X, attention_bias(MASK), mask)), expected, rtol=0, atol=TOLERANCE)


def test_column_mask() -> None:
    """Each example's own factor on each column; the reference has it on the columns' rows of the second matrix."""
    block, weights = built(FeedForwardBlock, TINY, "feed_forward")
    mask = np.random.default_rng(1).choice([0.0, 0.5, 1.0], (2, TINY.intermediate_dim)).astype(np.float32)
    kernel = weights["feed_forward/output/kernel"]
    expected = [
        numpy_albert.feed_forward(
            weights | {"feed_forward/output/kernel": factors[:, None] * kernel}, TINY, "feed_forward", x
        )
        for x, factors in zip(X, mask, strict=True)
    ]
    np.testing.assert_allclose(np.asarray(block(X, mask)), np.stack(expected), rtol=0, atol=TOLERANCE)


def test_where_dropout_acts_in_attention() -> None:
    """On the probabilities and on the output before the residual sum, with two different masks."""
    config = dataclasses.replace(TINY, attention_dropout=0.4, hidden_dropout=0.3)
    block, weights = built(AttentionBlock, config, "attention")
    seeds = block.seeds(training=True)
    # A mask follows from the seed and the shape, so that of ones is that of the values.
    probabilities = np.asarray(dropout(np.ones((2, 2, 5, 5), np.float32), 0.4, seeds, 0))
    outputs = np.asarray(dropout(np.ones((10, config.hidden_dim), np.float32), 0.3, seeds, 1)).reshape(2, 5, -1)
    expected = [
        numpy_albert.attention(
            weights, config, "attention", X[i], MASK[i], probability_factors=probabilities[i], output_factors=outputs[i]
        )
        for i in range(2)
    ]
    ours = np.asarray(block.forward(X, attention_bias(MASK), *seeds))
    np.testing.assert_allclose(ours, expected, rtol=0, atol=TOLERANCE)


def test_where_dropout_acts_in_feed_forward() -> None:
    """After the second dense layer: the original has it there (transformers' AlbertLayer has not)."""
    config = dataclasses.replace(TINY, attention_dropout=0.4, hidden_dropout=0.3)
    block, weights = built(FeedForwardBlock, config, "feed_forward")
    seeds = block.seeds(training=True)
    factors = np.asarray(dropout(np.ones((10, config.hidden_dim), np.float32), 0.3, seeds, 0)).reshape(2, 5, -1)
    assert (factors == 0).any()
    expected = numpy_albert.feed_forward(weights, config, "feed_forward", X, output_factors=factors)
    np.testing.assert_allclose(np.asarray(block.forward(X, *seeds)), expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("layer_class", "fields", "drops"),
    [
        (AttentionBlock, {"attention_dropout": 0.4}, True),
        (AttentionBlock, {"hidden_dropout": 0.4}, True),
        (AttentionBlock, {}, False),
        (FeedForwardBlock, {"attention_dropout": 0.4}, False),
        (FeedForwardBlock, {"hidden_dropout": 0.4}, True),
        (FeedForwardBlock, {}, False),
    ],
)
def test_each_rate_acts_in_training_only(layer_class: Any, fields: dict[str, float], drops: bool) -> None:
    block, _ = built(layer_class, dataclasses.replace(TINY, **fields), "block")
    arguments = (X, attention_bias(MASK)) if layer_class is AttentionBlock else (X,)
    plain = np.asarray(block(*arguments))
    np.testing.assert_array_equal(np.asarray(block(*arguments, training=False)), plain)
    trained = np.asarray(block(*arguments, training=True))
    assert np.array_equal(trained, plain) != drops
    assert np.array_equal(np.asarray(block(*arguments, training=True)), trained) != drops  # a new mask every time


def test_call_is_forward_with_fresh_seeds() -> None:
    config = dataclasses.replace(TINY, attention_dropout=0.4, hidden_dropout=0.3)
    block, _ = built(AttentionBlock, config, "attention")
    block.seed_generator.state.assign(np.array([5, 0]))
    seeds = block.seeds(training=True)
    block.seed_generator.state.assign(np.array([5, 0]))
    called = block(X, attention_bias(MASK), training=True)
    np.testing.assert_array_equal(np.asarray(called), np.asarray(block.forward(X, attention_bias(MASK), *seeds)))


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_attention_is_uniform_over_equal_keys_in_half_precision(dtype: str) -> None:
    """300 equal scores: softmax sums and divides in float32, so each probability is 1/300 to the last bit kept."""
    config = dataclasses.replace(TINY, num_heads=1)
    block = AttentionBlock(config, dtype=dtype, name="attention")
    block.build()
    block.value.kernel.assign(np.eye(16))
    block.output_dense.kernel.assign(np.eye(16))
    for kernel in (block.query.kernel, block.key.kernel):
        kernel.assign(np.zeros((16, 16)))
    x = np.tile(np.arange(16, dtype=np.float32), (1, 300, 1))
    ours = np.asarray(keras.ops.cast(block(x, attention_bias(np.ones((1, 300)))), "float32"))
    centred = np.arange(16) - 7.5
    # attention over equal rows gives the row back: LN(x + x) = LN(x)
    np.testing.assert_allclose(ours[0, 0], centred / centred.std(), rtol=0, atol=0.02)


def test_randomize_reaches_every_weight_of_a_block() -> None:
    block = AttentionBlock(TINY, name="attention")
    block.build()
    before = [np.asarray(variable).copy() for variable in block.weights]
    randomize(block)
    assert not any(np.array_equal(old, np.asarray(new)) for old, new in zip(before, block.weights, strict=True))
