"""How fast a training is, against what the machine can do."""

import time

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.parameters import multiply_adds

_MATRIX = 1024
_PASSES = 5


def training_flops(config: AlbertConfig, tokens: float, length: float, predictions: float) -> float:
    """Floating-point operations of forward and backward pass, by the matrix multiplications alone.

    A multiplication-addition counts as two, the backward pass as two forward passes (Kaplan et al., 2020, section
    2.1). Recomputed activations do not count: this is the model's work, as in "model FLOP utilisation" (Chowdhery et
    al., 2022, appendix B).

    Args:
        config: the shape. Shared blocks count each time they run.
        tokens: tokens gone through, padding left out.
        length: the mean length of their texts, for the attention.
        predictions: masked words predicted.
    """
    head = config.hidden_dim * config.summed_dim + config.vocabulary_size * config.embedding_dim
    return 6.0 * (tokens * multiply_adds(config, length) + predictions * head)


def peak_flops(precision: str) -> float:
    """Floating-point operations a second of a large matrix multiplication on this machine, best of a few."""
    dtype = {"mixed_bfloat16": tf.bfloat16, "mixed_float16": tf.float16}.get(precision, tf.float32)
    matrix = tf.cast(tf.random.stateless_uniform((_MATRIX, _MATRIX), seed=(0, 0)), dtype)
    multiply = tf.function(lambda: tf.reduce_sum(matrix @ matrix))
    multiply().numpy()
    best = float("inf")
    for _ in range(_PASSES):
        started = time.perf_counter()
        multiply().numpy()
        best = min(best, time.perf_counter() - started)
    return 2.0 * _MATRIX**3 / best
