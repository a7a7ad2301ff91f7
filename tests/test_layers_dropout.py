"""`albert_tf.layers.dropout`: right amounts, repeatable masks, and why it exists."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf.layers.dropout import draw_seeds, dropout

ONES = np.ones((100, 100), np.float32)


def mask(x) -> np.ndarray:
    return np.asarray(x) != 0


def test_seeds_are_drawn_only_where_needed() -> None:
    generator = keras.random.SeedGenerator(1)
    before = np.asarray(generator.state)
    assert draw_seeds(generator, (0.1, 0.2), training=False) == ()
    assert draw_seeds(generator, (0.1, 0.2), training=None) == ()
    assert draw_seeds(generator, (0.0, 0.0), training=True) == ()
    np.testing.assert_array_equal(np.asarray(generator.state), before)
    seeds = draw_seeds(generator, (0.0, 0.2), training=True) + draw_seeds(generator, (0.1,), training=True)
    assert len({tuple(np.asarray(seed)) for seed in seeds}) == 3


def test_share_of_dropped_elements_and_scale() -> None:
    seeds = draw_seeds(keras.random.SeedGenerator(1), (0.25, 0.25), training=True)
    dropped = np.asarray(dropout(ONES, 0.25, seeds, 0))
    assert (dropped == 0).mean() == pytest.approx(0.25, abs=0.02)  # standard deviation 0.0043
    np.testing.assert_allclose(dropped[dropped != 0], 1 / 0.75, rtol=1e-6)


def test_no_dropout_without_seeds_or_rate() -> None:
    seeds = draw_seeds(keras.random.SeedGenerator(1), (0.0, 0.25), training=True)
    assert dropout(ONES, 0.25, (), 0) is ONES
    assert dropout(ONES, 0.0, seeds, 0) is ONES


def test_a_drawn_seed_gives_the_same_mask_every_time() -> None:
    generator = keras.random.SeedGenerator(1)
    first, second = draw_seeds(generator, (0.5, 0.5), training=True)
    masks = [mask(dropout(ONES, 0.5, (first, second), index)) for index in (0, 0, 1)]
    np.testing.assert_array_equal(masks[0], masks[1])
    assert 0.4 < (masks[0] == masks[2]).mean() < 0.6  # another seed, another mask
    assert not np.array_equal(masks[0], mask(dropout(ONES, 0.5, draw_seeds(generator, (0.5,), True), 0)))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "tf.function"])
def test_forward_and_gradient_mask_under_rematerialisation(compiled: bool) -> None:
    """The gradient of sum(dropout(x)) is the mask itself. Where a region is run again, Keras's layer draws another one.

    The day the second half fails, Keras is fixed and this module can go.
    """

    def masks(drop) -> tuple[np.ndarray, np.ndarray]:
        def step(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = keras.remat(drop)(x)
                loss = tf.reduce_sum(y)
            return y, tape.gradient(loss, x)

        step = tf.function(step) if compiled else step
        forward, gradient = step(tf.constant(ONES))
        return mask(forward), mask(gradient)

    seeds = draw_seeds(keras.random.SeedGenerator(1), (0.5,), training=True)
    forward, gradient = masks(lambda x: dropout(x, 0.5, seeds, 0))
    np.testing.assert_array_equal(forward, gradient)
    assert 0.4 < forward.mean() < 0.6

    layer = keras.layers.Dropout(0.5, seed=1)
    forward, gradient = masks(lambda x: layer(x, training=True))
    assert (forward == gradient).mean() < 0.6
