"""`albert_tf.layers.configured`: activations, initialisation, and every layer's config."""

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from references import numpy_albert
from tiny_models import TINY

from albert_tf.config import ACTIVATIONS
from albert_tf.layers.attention import AttentionBlock, FeedForwardBlock
from albert_tf.layers.configured import activation_function, initial_matrices, matrix_initializer
from albert_tf.layers.embeddings import AlbertEmbeddings
from albert_tf.layers.encoder import AlbertEncoder
from albert_tf.layers.heads import MaskedLMHead

# float32 against float64 on [-6, 6]: measured at most 8e-7. The two forms of gelu are 4.7e-4 apart.
TOLERANCE = 3e-6


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_functions(name: str) -> None:
    x = np.linspace(-6, 6, 997)
    ours = np.asarray(activation_function(name)(x.astype(np.float32)))
    np.testing.assert_allclose(ours, numpy_albert.ACTIVATIONS[name](x), rtol=0, atol=TOLERANCE)


def test_the_two_gelus_differ_by_more_than_the_tolerance() -> None:
    x = np.linspace(-6, 6, 997)
    difference = numpy_albert.ACTIVATIONS["gelu_tanh"](x) - numpy_albert.ACTIVATIONS["gelu_erf"](x)
    assert np.abs(difference).max() > 10 * TOLERANCE


@pytest.mark.parametrize(
    "layer_class", [AlbertEmbeddings, AlbertEncoder, AttentionBlock, FeedForwardBlock, MaskedLMHead]
)
def test_layers_are_restored_from_their_config(layer_class: Any) -> None:
    config = dataclasses.replace(TINY, sharing="ffn", activation="relu", hidden_dropout=0.1)
    layer = layer_class(config, dtype="mixed_bfloat16", name="layer", trainable=False)
    fields = json.loads(json.dumps(layer.get_config()))  # a .keras file holds it as JSON
    restored = layer_class.from_config(fields)
    assert restored.config == config
    assert (restored.name, restored.trainable, restored.dtype_policy.name) == ("layer", False, "mixed_bfloat16")
    assert restored.get_config() == layer.get_config()


def test_encoder_remembers_that_it_rematerializes() -> None:
    assert AlbertEncoder.from_config(AlbertEncoder(TINY, rematerialize=True).get_config()).rematerialize
    assert not AlbertEncoder.from_config(AlbertEncoder(TINY).get_config()).rematerialize


def test_other_initial_values_of_matrices_in_a_block() -> None:
    with initial_matrices(lambda shape, dtype: np.full(shape, 7.0, dtype)):
        block = AttentionBlock(TINY)
        block.build()
    for variable in block.weights:
        assert (np.asarray(variable) == 7.0).all() == (len(variable.shape) == 2), variable.path
    with pytest.raises(ValueError, match="inside"), initial_matrices(lambda shape, dtype: np.zeros(shape, dtype)):
        raise ValueError("inside")
    assert matrix_initializer(TINY).stddev == TINY.initializer_range


def test_initial_values() -> None:
    """Truncated normal for matrices and tables, 0 for biases and shifts, 1 for gains (modeling.py)."""
    config = dataclasses.replace(TINY, vocabulary_size=4000, initializer_range=0.05)
    embeddings = AlbertEmbeddings(config)
    embeddings.build()
    block = AttentionBlock(dataclasses.replace(config, hidden_dim=64))
    block.build()
    for variable in (*embeddings.weights, *block.weights):
        value = np.asarray(variable)
        if variable.name in ("bias", "beta"):
            assert not value.any()
        elif variable.name == "gamma":
            assert (value == 1).all()
        else:
            assert np.abs(value).max() <= 2 * 0.05 + 1e-6  # cut at two standard deviations
    table = np.asarray(embeddings.word_embedding.embeddings)
    assert table.std() == pytest.approx(0.05 * 0.8796, rel=0.02)  # of a normal cut there
    assert abs(table.mean()) < 0.002


def test_layers_of_one_model_start_differently() -> None:
    encoder = AlbertEncoder(dataclasses.replace(TINY, sharing="none"))
    encoder.build()
    kernels = [np.asarray(block.query.kernel) for block in encoder.attention_blocks]
    assert not np.array_equal(kernels[0], kernels[1])
    assert not np.array_equal(kernels[0], np.asarray(encoder.attention_blocks[0].key.kernel))
