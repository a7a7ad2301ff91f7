"""The part of our configs that Hugging Face and KerasHub have too, and the way there and back.

They share all weights within a group of layers and have no other mode of sharing, and they have a projection E → H also
where E = H.
"""

import dataclasses

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.conversion.checkpoint import Weights
from albert_tf.errors import InputError

KERNEL = "embeddings/projection/kernel"
BIAS = "embeddings/projection/bias"


def grouped_config(config: AlbertConfig, form: str) -> AlbertConfig:
    """The same encoder with sharing="all": layers that share nothing are groups of one. Weight names do not change.

    Raises:
        InputError: another mode of sharing, another factorization, or pruned heads.
    """
    if config.factorization != "embeddings":
        raise InputError(
            f'{form} has no form for factorization="{config.factorization}", the architecture of brightmart/albert_zh'
        )
    if config.attention_dim is not None:
        raise InputError(
            f"{form} has no form for attention_dim={config.attention_dim} beside hidden_dim={config.hidden_dim}, as a model "
            "has that lost attention heads by pruning"
        )
    if config.sharing == "none":
        return dataclasses.replace(config, sharing="all", num_groups=config.num_layers)
    if config.sharing != "all":
        raise InputError(
            f'{form} shares a whole layer or nothing; it has no form for sharing="{config.sharing}" of this model'
        )
    return config


def projection_shapes(config: AlbertConfig) -> dict[str, tuple[int, ...]]:
    """Name → shape of the projection that they always have."""
    return {KERNEL: (config.embedding_dim, config.hidden_dim), BIAS: (config.hidden_dim,)}


def with_projection(config: AlbertConfig, weights: Weights) -> Weights:
    """Adds the projection that changes nothing where ours has none."""
    if config.has_projection:
        return weights
    identity = np.eye(config.hidden_dim, dtype=np.float32)
    return weights | {KERNEL: identity, BIAS: np.zeros(config.hidden_dim, np.float32)}


def without_identity(config: AlbertConfig, weights: Weights, *, source: str) -> Weights:
    """Takes the projection away where ours has none.

    Raises:
        InputError: it is not the identity, so the encoder is another one.
    """
    if config.has_projection:
        return weights
    if np.any(weights[BIAS]) or not np.array_equal(weights[KERNEL], np.eye(config.hidden_dim, dtype=np.float32)):
        raise InputError(
            f"{source}: embeddings and encoder are both {config.hidden_dim} wide, with a trained projection between "
            "them; albert-tf has a projection only between different widths"
        )
    return {name: weight for name, weight in weights.items() if name not in (KERNEL, BIAS)}
