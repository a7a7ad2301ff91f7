"""`albert_tf.layers.heads`: the masked-word head against NumPy."""

import dataclasses

import keras
import numpy as np
import pytest
from references import numpy_albert
from tiny_models import TINY, randomize

from albert_tf.config import ACTIVATIONS
from albert_tf.layers.heads import MaskedLMHead

# float32 against float64, logits up to 10: measured at most 1.7e-6.
TOLERANCE = 1e-5

RANDOM = np.random.default_rng(4)
SEQUENCE = RANDOM.standard_normal((2, 5, TINY.hidden_dim)).astype(np.float32)
POSITIONS = np.array([[4, 0, 2], [1, 1, 0]], np.int32)
TABLE = RANDOM.standard_normal((TINY.vocabulary_size, TINY.embedding_dim)).astype(np.float32)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_against_numpy(activation: str) -> None:
    config = dataclasses.replace(TINY, activation=activation)
    head = MaskedLMHead(config, name="masked_lm")
    head.build()
    weights = randomize(head) | {"embeddings/word_embedding/embeddings": TABLE}
    expected = numpy_albert.masked_lm_logits(weights, config, SEQUENCE, POSITIONS)
    np.testing.assert_allclose(np.asarray(head(SEQUENCE, POSITIONS, TABLE)), expected, rtol=0, atol=TOLERANCE)


def test_an_epsilon_of_its_own() -> None:
    config = dataclasses.replace(TINY, masked_lm_layer_norm_epsilon=0.5)
    head = MaskedLMHead(config, name="masked_lm")
    head.build()
    weights = randomize(head) | {"embeddings/word_embedding/embeddings": TABLE}
    expected = numpy_albert.masked_lm_logits(weights, config, SEQUENCE, POSITIONS)
    np.testing.assert_allclose(np.asarray(head(SEQUENCE, POSITIONS, TABLE)), expected, rtol=0, atol=TOLERANCE)
    other = numpy_albert.masked_lm_logits(weights, TINY, SEQUENCE, POSITIONS)
    assert np.abs(expected - other).max() > 0.1


def test_all_positions() -> None:
    head = MaskedLMHead(TINY, name="masked_lm")
    head.build()
    randomize(head)
    every = np.tile(np.arange(5, dtype=np.int32), (2, 1))
    np.testing.assert_array_equal(head(SEQUENCE, None, TABLE), head(SEQUENCE, every, TABLE))


def test_factorized_words_against_numpy() -> None:
    config = dataclasses.replace(TINY, factorization="words")
    head = MaskedLMHead(config, name="masked_lm")
    head.build()
    kernel = RANDOM.standard_normal((TINY.embedding_dim, TINY.hidden_dim)).astype(np.float32)
    weights = randomize(head) | {"embeddings/word_embedding/embeddings": TABLE, "embeddings/projection/kernel": kernel}
    assert weights["masked_lm/transform/kernel"].shape == (16, 16)
    expected = numpy_albert.masked_lm_logits(weights, config, SEQUENCE, POSITIONS)
    ours = np.asarray(head(SEQUENCE, POSITIONS, TABLE, kernel))
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=TOLERANCE)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_logits_are_float32_in_the_graph_and_outside(dtype: str) -> None:
    head = MaskedLMHead(TINY, dtype=dtype)
    logits = head(SEQUENCE, POSITIONS, TABLE)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    symbolic = head(keras.KerasTensor((None, None, 16)), keras.KerasTensor((None, None), "int32"), TABLE)
    assert (symbolic.dtype, symbolic.shape) == ("float32", (None, None, TINY.vocabulary_size))


def test_table_is_not_a_weight_of_the_head() -> None:
    head = MaskedLMHead(TINY, name="masked_lm")
    head(SEQUENCE, POSITIONS, keras.Variable(TABLE))
    assert sorted(variable.path for variable in head.weights) == [
        "masked_lm/layer_norm/beta",
        "masked_lm/layer_norm/gamma",
        "masked_lm/output_bias",
        "masked_lm/transform/bias",
        "masked_lm/transform/kernel",
    ]
