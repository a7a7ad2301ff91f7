"""`albert_tf.training.throughput`: the count of operations against TensorFlow's own, and a plausible peak."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from tiny_models import TINY

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import AlbertConfig
from albert_tf.tasks.pretraining import AlbertPretrainer
from albert_tf.training.throughput import peak_flops, training_flops


@pytest.mark.parametrize("fields", [{}, {"sharing": "none"}, {"embedding_dim": 16}], ids=str)
def test_operations_are_those_of_the_graph(fields: dict[str, object]) -> None:
    """TensorFlow's profiler counts the forward pass, element-wise work included: a few percent more."""
    config = dataclasses.replace(
        TINY, vocabulary_size=500, hidden_dim=64, intermediate_dim=256, num_heads=4, max_sequence_length=16
    )
    config = dataclasses.replace(config, **{k: 64 if k == "embedding_dim" else v for k, v in fields.items()})
    batch, length, predictions = 4, 16, 3
    model = AlbertPretrainer(AlbertBackbone(config))
    shapes = {"token_ids": length, "segment_ids": length, "padding_mask": length, "masked_positions": predictions}
    inputs = {name: tf.TensorSpec((batch, size), tf.int32) for name, size in shapes.items()}
    graph = tf.function(lambda x: model(x, training=False)).get_concrete_function(inputs).graph
    options = tf.compat.v1.profiler.ProfileOptionBuilder.float_operation()
    options["output"] = "none"
    counted = tf.compat.v1.profiler.profile(graph, options=options).total_float_ops
    ours = training_flops(config, batch * length, length, batch * predictions) / 3
    assert ours == pytest.approx(counted, rel=0.2)


def test_depth_counts_sharing_does_not() -> None:
    config = AlbertConfig.from_name("albert_tiny_en")
    flat = training_flops(config, 1000, 100, 150)
    assert training_flops(dataclasses.replace(config, sharing="none"), 1000, 100, 150) == flat
    deeper = training_flops(dataclasses.replace(config, num_layers=config.num_layers + 4), 1000, 100, 150)
    blocks = 6 * 1000 * 4 * (4 * 312**2 + 2 * 312 * 1248 + 2 * 100 * 312)
    assert deeper - flat == pytest.approx(blocks)


@pytest.mark.parametrize("precision", ["float32", "mixed_bfloat16"])
def test_peak(precision: str) -> None:
    assert 1e8 < peak_flops(precision) < 1e16 and np.isfinite(peak_flops(precision))
