"""Training with a depth drawn for each step."""

from typing import Any

import keras
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.layers.encoder import AlbertEncoder


def draw_depths(encoder: AlbertEncoder, least: int, seed: int, optimizer: keras.optimizers.Optimizer) -> None:
    """Makes every training step run `least` to all of the encoder's layers, each number as often.

    The draw is made of the seed and the number of the step, so a run that goes on draws what it would have drawn, and all
    replicas and all parts of a batch draw the same.

    Raises:
        InputError: the encoder has fewer layers.
    """
    layers = encoder.config.num_layers
    if least > layers:
        raise InputError(f"--random-depth: expected 1 to {layers}, the layers of this model; got {least}")

    def drawn_depth() -> Any:
        step = tf.cast(tf.convert_to_tensor(optimizer.iterations), tf.int64)
        state = tf.stack([tf.constant(seed, tf.int64), step])
        return tf.random.stateless_uniform((), state, least, layers + 1, tf.int32)

    encoder.drawn_depth = drawn_depth
