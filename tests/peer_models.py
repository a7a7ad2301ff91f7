"""What comparisons with other systems' models share: shapes, weights that make all of them matter, batches, differences."""

import dataclasses
from typing import Any

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.parameters import backbone_weight_shapes, pretraining_head_weight_shapes

# Base in full; of the others fewer layers, which share their weights anyway.
SHAPES = {
    "base": AlbertConfig.from_name("albert_base_v2"),
    "large": dataclasses.replace(AlbertConfig.from_name("albert_large_v2"), num_layers=3),
    "xlarge": dataclasses.replace(AlbertConfig.from_name("albert_xlarge_v2"), num_layers=2),
    "xxlarge": dataclasses.replace(AlbertConfig.from_name("albert_xxlarge_v2"), num_layers=1),
}
GROUPED = AlbertConfig(60, 16, 24, 6, 2, embedding_dim=8, num_groups=3, num_inner_repetitions=2, max_sequence_length=40)
# Longest row of each batch, with rows of half and a third of that beside it.
LENGTHS = (1, 2, 33, 512)


def random_weights(config: AlbertConfig, *, heads: bool = False) -> dict[str, np.ndarray]:
    """Of the encoder, and with `heads` of both pretraining heads.

    Far from what an initialiser gives, and of a size that keeps the sums over a layer's width alike.
    """
    shapes = backbone_weight_shapes(config) | (pretraining_head_weight_shapes(config) if heads else {})
    random = np.random.default_rng(0)
    weights = {}
    for name, shape in shapes.items():
        noise = random.standard_normal(shape, np.float32)
        weights[name] = 1 + 0.1 * noise if name.endswith("gamma") else noise / np.float32(config.hidden_dim**0.5)
    return weights


def batch_of(config: AlbertConfig, length: int) -> dict[str, np.ndarray]:
    """Three rows with padding after the first."""
    random = np.random.default_rng(length)
    lengths = [length, -(-length // 2), -(-length // 3)]
    mask = (np.arange(length) < np.array(lengths)[:, None]).astype(np.int32)
    ids = random.integers(1, config.vocabulary_size, mask.shape, np.int32) * mask
    return {"token_ids": ids, "segment_ids": random.integers(0, 2, mask.shape, np.int32) * mask, "padding_mask": mask}


def largest_difference(ours: Any, theirs: Any) -> float:
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    return float(np.abs(ours - theirs).max())


def assert_same_weights(ours: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """Bit for bit."""
    assert ours.keys() == expected.keys()
    for name, weight in expected.items():
        np.testing.assert_array_equal(ours[name].view(np.uint32), weight.view(np.uint32), name)
