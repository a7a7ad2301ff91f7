"""`albert_tf.layers.passes`: a loop cut at depth d is the encoder with d layers."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tiny_models import TINY, randomize

from albert_tf.layers.encoder import AlbertEncoder
from albert_tf.layers.passes import run_passes

X = np.random.default_rng(3).standard_normal((2, 6, TINY.hidden_dim)).astype(np.float32)
MASK = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]], np.int32)


@pytest.mark.parametrize(
    "fields", [{}, {"sharing": "none"}, {"num_layers": 4, "num_groups": 2, "num_inner_repetitions": 2}]
)
def test_every_depth_is_that_of_the_plain_loop(fields: Any) -> None:
    config = dataclasses.replace(TINY, **fields)
    encoder = AlbertEncoder(config)
    encoder.build()
    randomize(encoder)
    plain = encoder(X, MASK, training=False)[config.num_inner_repetitions - 1 :: config.num_inner_repetitions]
    looped = tf.function(lambda passes: run_passes(encoder, tf.constant(X), MASK, passes)[0])
    for depth, expected in enumerate(plain, start=1):
        np.testing.assert_allclose(looped(tf.constant(depth)), expected, rtol=1e-5, atol=1e-5)


def test_state_is_carried_and_ends_the_loop() -> None:
    encoder = AlbertEncoder(TINY)
    encoder.build()

    def after_pass(index: Any, before: Any, after: Any, state: list[Any]) -> Any:
        return after, [state[0] + 10 * (index + 1)]

    def run(passes: int, limit: int) -> tuple[Any, list[Any]]:
        return run_passes(
            encoder,
            tf.constant(X),
            MASK,
            tf.constant(passes),
            state=[tf.constant(0)],
            after_pass=after_pass,
            goes_on=lambda state: state[0] < limit,
        )

    assert [int(run(passes, 1000)[1][0]) for passes in (1, 2, 3)] == [10, 30, 60]
    assert int(run(3, 30)[1][0]) == 30
    x, _ = run(3, 0)
    np.testing.assert_array_equal(x, X)
