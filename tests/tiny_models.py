"""A model small enough for every test, weights that make all of it matter, and inputs with padding."""

import dataclasses
from typing import Any

import numpy as np

from albert_tf.config import AlbertConfig

TINY = AlbertConfig(
    vocabulary_size=60,
    hidden_dim=16,
    intermediate_dim=24,
    num_layers=3,
    num_heads=2,
    embedding_dim=8,
    max_sequence_length=12,
)
DROPPING = dataclasses.replace(TINY, hidden_dropout=0.3, attention_dropout=0.2)


def example_inputs(batch: int = 3, length: int = 7, seed: int = 0) -> dict[str, np.ndarray]:
    """Random ids; the first row is full, each later one two tokens shorter."""
    random = np.random.default_rng(seed)
    lengths = np.maximum(length - 2 * np.arange(batch), 1)
    return {
        "token_ids": random.integers(0, TINY.vocabulary_size, (batch, length)).astype(np.int32),
        "segment_ids": random.integers(0, 2, (batch, length)).astype(np.int32),
        "padding_mask": (np.arange(length) < lengths[:, None]).astype(np.int32),
    }


def randomize(model: Any, seed: int = 0, scale: float = 0.3) -> dict[str, np.ndarray]:
    """Gives every weight its own random value, far larger than the initialiser's, and returns them by name.

    With the initialiser's 0.02, biases of 0 and gains of 1, attention is nearly uniform and a wrong order of
    operations hardly shows.
    """
    random = np.random.default_rng(seed)
    weights = {}
    for variable in model.weights:
        mean = 1.0 if variable.path.endswith("gamma") else 0.0
        weights[variable.path] = (mean + scale * random.standard_normal(variable.shape)).astype(np.float32)
        variable.assign(weights[variable.path])
    return weights


def set_seeds(model: Any, first: int = 7) -> None:
    """Puts every dropout generator of the model into a known state, the same for models of the same structure."""
    states = [variable for variable in model.variables if variable.path.endswith("seed_generator_state")]
    assert states, "the model has no dropout"
    for index, state in enumerate(states):
        state.assign(np.array([first + index, 0]))


def random_backbone(config: AlbertConfig = TINY, **kwargs: Any) -> Any:
    """A backbone with the weights of `randomize`."""
    from albert_tf.backbone import AlbertBackbone

    backbone = AlbertBackbone(config, **kwargs)
    randomize(backbone)
    return backbone


def with_dense_head(backbone: Any) -> Any:
    """A Keras model that turns all of the backbone's output into one number for each example."""
    import keras

    outputs = backbone(backbone.input)
    pooled = keras.ops.mean(outputs["sequence_output"], axis=1) + outputs["pooled_output"]
    return keras.Model(backbone.input, keras.layers.Dense(1, name="head")(pooled))


def named_weights(model: Any) -> dict[str, np.ndarray]:
    """Copies of a model's weights by name."""
    return {variable.path: np.asarray(variable).copy() for variable in model.weights}
