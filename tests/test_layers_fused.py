"""`albert_tf.layers.fused`: the values and gradients of the activation itself, whatever the sizes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.layers.configured import activation_function
from albert_tf.layers.encoder import AlbertEncoder
from albert_tf.layers.fused import ROWS, fused
from albert_tf.training.compiling import fuse_activations

SHAPE = AlbertConfig(vocabulary_size=50, hidden_dim=16, intermediate_dim=24, num_layers=3, num_heads=2, embedding_dim=8)


def with_gradient(function: Callable[[Any], Any], x: Any, upstream: Any) -> tuple[np.ndarray, np.ndarray]:
    @tf.function(input_signature=[tf.TensorSpec([None, None], x.dtype)] * 2)
    def run(x: Any, upstream: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return y, tape.gradient(y, x, output_gradients=upstream)

    return tuple(np.asarray(tf.cast(value, tf.float32)) for value in run(x, upstream))


@pytest.mark.parametrize("rows", [1, 7, ROWS, ROWS + 1])
@pytest.mark.parametrize("name", ["gelu_tanh", "gelu_erf", "relu", "linear"])
def test_values_and_gradients_are_those_of_the_activation(name: str, rows: int) -> None:
    random = np.random.default_rng(rows)
    x, upstream = (tf.constant(3.0 * random.standard_normal((rows, 5)), tf.float32) for _ in range(2))
    plain = activation_function(name)
    exact = with_gradient(plain, tf.cast(x, tf.float64), tf.cast(upstream, tf.float64))
    for found, wanted in zip(with_gradient(fused(plain), x, upstream), exact, strict=True):
        np.testing.assert_allclose(found, wanted, atol=3e-5)  # measured: 1.8e-5; TensorFlow's operators 3e-5


def test_in_bfloat16_it_is_nearer_than_operators_one_by_one() -> None:
    random = np.random.default_rng(0)
    x, upstream = (tf.cast(3.0 * random.standard_normal((600, 32)), tf.bfloat16) for _ in range(2))
    plain = activation_function("gelu_tanh")
    wanted = with_gradient(plain, tf.cast(x, tf.float32), tf.cast(upstream, tf.float32))
    found, stepwise = with_gradient(fused(plain), x, upstream), with_gradient(plain, x, upstream)
    for own, other, exact in zip(found, stepwise, wanted, strict=True):
        assert np.abs(own - exact).max() <= 2.0**-8 * np.abs(exact).max()  # one rounding to 8 bits
        assert np.abs(own - exact).mean() < np.abs(other - exact).mean()


def gradients(encoder: AlbertEncoder, x: Any) -> list[np.ndarray]:
    @tf.function
    def run(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(
                tf.cast(encoder(x, tf.ones(x.shape[:2], tf.int32), training=True)[-1], tf.float32) ** 3
            )
        return tape.gradient(loss, [weight.value for weight in encoder.trainable_weights])

    return [np.asarray(value) for value in run(x)]


@pytest.mark.parametrize("rematerialize", [False, True])
def test_an_encoder_has_the_same_gradients(rematerialize: bool) -> None:
    encoder = AlbertEncoder(SHAPE, rematerialize=rematerialize, dtype="mixed_bfloat16")
    encoder.build()
    x = tf.constant(np.random.default_rng(1).standard_normal((3, 9, 16)), tf.bfloat16)
    before = gradients(encoder, x)
    assert fuse_activations(encoder, precision="mixed_bfloat16", jit=False)
    own, other = (np.concatenate([value.ravel() for value in values]) for values in (gradients(encoder, x), before))
    assert 0 < np.linalg.norm(own - other) < 0.02 * np.linalg.norm(other)


def test_it_is_left_where_nothing_is_won() -> None:
    encoder = AlbertEncoder(SHAPE)
    activation = encoder.feed_forward_blocks[0].activation
    assert not fuse_activations(encoder, precision="float32", jit=False)
    assert not fuse_activations(encoder, precision="mixed_bfloat16", jit=True)
    assert encoder.feed_forward_blocks[0].activation is activation
