"""`albert_tf.layers.encoder`: the loop over shared blocks, padding, and recomputation in the backward pass."""

import dataclasses
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny_models import DROPPING, TINY, randomize, set_seeds

from albert_tf.config import SHARING_MODES
from albert_tf.layers.attention import AttentionBlock, FeedForwardBlock
from albert_tf.layers.encoder import AlbertEncoder, attention_bias

X = np.random.default_rng(3).standard_normal((2, 6, TINY.hidden_dim)).astype(np.float32)
MASK = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]], np.int32)

# A tf.function fuses the two forms differently, so float32 sums are rounded differently: outputs were measured at most
# 1.4e-6 apart, gradients 1.2e-6 of the largest. Eagerly both are equal to the last bit.
GRAPH_TOLERANCE = 1e-5


def test_attention_bias() -> None:
    for mask in (np.array([[1, 1, 0]]), np.array([[True, True, False]]), np.array([[1.0, 1.0, 0.0]], np.float32)):
        bias = np.asarray(attention_bias(mask))
        assert bias.dtype == np.float32 and bias.shape == (1, 1, 1, 3)
        np.testing.assert_array_equal(bias[0, 0, 0], [0, 0, -10000])
    np.testing.assert_array_equal(np.asarray(attention_bias(np.array([[0]]), value=-50.0)), [[[[-50]]]])


@pytest.mark.parametrize(
    ("fields", "attention_blocks", "feed_forward_blocks"),
    [
        ({"sharing": "all"}, 1, 1),
        ({"sharing": "attention"}, 1, 3),
        ({"sharing": "ffn"}, 3, 1),
        ({"sharing": "none"}, 3, 3),
        ({"sharing": "all", "num_groups": 2, "num_inner_repetitions": 2}, 4, 4),
        ({"sharing": "ffn", "num_groups": 2, "num_inner_repetitions": 2}, 6, 4),
    ],
)
def test_number_of_blocks_and_of_outputs(fields: Any, attention_blocks: int, feed_forward_blocks: int) -> None:
    config = dataclasses.replace(TINY, **fields)
    encoder = AlbertEncoder(config)
    assert (len(encoder.attention_blocks), len(encoder.feed_forward_blocks)) == (attention_blocks, feed_forward_blocks)
    outputs = encoder(X, MASK)
    assert len(outputs) == config.num_layers * config.num_inner_repetitions
    assert all(output.shape == X.shape for output in outputs)
    symbolic = encoder(keras.KerasTensor((None, None, 16)), keras.KerasTensor((None, None), "int32"))
    assert [output.shape for output in symbolic] == [(None, None, 16)] * len(outputs)


@pytest.mark.parametrize("sharing", SHARING_MODES)
def test_a_shared_block_is_one_block(sharing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks that run are those of the schedule, in its order."""
    ran: list[str] = []
    for layer_class in (AttentionBlock, FeedForwardBlock):

        def call(self, *args, _original=layer_class.call, **kwargs):
            ran.append(self.name)
            return _original(self, *args, **kwargs)

        monkeypatch.setattr(layer_class, "call", call)
    config = dataclasses.replace(TINY, sharing=sharing)
    AlbertEncoder(config)(X, MASK)
    assert ran == [
        f"{kind}_{i}"
        for step in config.block_schedule
        for kind, i in zip(("attention", "feed_forward"), step, strict=True)
    ]


# === Recomputation ===


def gradients(
    encoder: AlbertEncoder, *, compiled: bool, first_seed: int = 7
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Output and gradients of a training step whose dropout seeds are known."""
    direction = tf.constant(np.random.default_rng(9).standard_normal(X.shape), tf.float32)

    def step():
        with tf.GradientTape() as tape:
            output = tf.cast(encoder(X, MASK, training=True)[-1], tf.float32)
            loss = tf.reduce_sum(output * direction)
        return output, tape.gradient(loss, [variable.value for variable in encoder.trainable_variables])

    set_seeds(encoder, first_seed)
    output, values = (tf.function(step) if compiled else step)()
    names = [variable.path for variable in encoder.trainable_variables]
    return np.asarray(output), dict(zip(names, map(np.asarray, values), strict=True))


def pair(fields: dict[str, Any], **kwargs: Any) -> tuple[AlbertEncoder, AlbertEncoder]:
    """The same encoder without and with recomputation."""
    config = dataclasses.replace(DROPPING, **fields)
    encoders = [AlbertEncoder(config, rematerialize=again, name="encoder", **kwargs) for again in (False, True)]
    for encoder in encoders:
        encoder.build()
        randomize(encoder)
    return encoders[0], encoders[1]


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("fields", [{}, {"sharing": "none"}], ids=str)
def test_recomputation_changes_neither_outputs_nor_gradients(fields: dict[str, Any], dtype: str) -> None:
    plain, recomputing = pair(fields, dtype=dtype)
    expected_output, expected = gradients(plain, compiled=False)
    output, ours = gradients(recomputing, compiled=False)
    np.testing.assert_array_equal(output, expected_output)
    for name, gradient in expected.items():
        np.testing.assert_array_equal(ours[name], gradient, err_msg=name)


def test_recomputation_in_a_graph() -> None:
    plain, recomputing = pair({})
    expected_output, expected = gradients(plain, compiled=True)
    output, ours = gradients(recomputing, compiled=True)
    np.testing.assert_allclose(output, expected_output, rtol=0, atol=GRAPH_TOLERANCE)
    for name, gradient in expected.items():
        largest = max(np.abs(gradient).max(), 1.0)  # a key bias has none: see test_backbone
        np.testing.assert_allclose(ours[name], gradient, rtol=0, atol=GRAPH_TOLERANCE * largest, err_msg=name)


def test_gradients_depend_on_the_dropout_mask() -> None:
    """So the comparisons above would notice a mask drawn anew in the backward pass."""
    plain, _ = pair({})
    _, expected = gradients(plain, compiled=False)
    _, other = gradients(plain, compiled=False, first_seed=8)
    name = "encoder/feed_forward_0/output/kernel"
    assert np.abs(other[name] - expected[name]).max() > 0.1 * np.abs(expected[name]).max()


def test_blocks_run_twice_in_training_and_once_in_inference(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    original = AttentionBlock.summed
    monkeypatch.setattr(AttentionBlock, "summed", lambda *args, **kwargs: ran.append(0) or original(*args, **kwargs))
    plain, recomputing = pair({})
    for encoder, expected in ((plain, 3), (recomputing, 6)):
        ran.clear()
        gradients(encoder, compiled=False)
        assert len(ran) == expected
        ran.clear()
        encoder(X, MASK)
        assert len(ran) == 3


def test_recomputation_does_not_warn(caplog: pytest.LogCaptureFixture) -> None:
    _, recomputing = pair({})
    gradients(recomputing, compiled=True)
    # (TensorFlow also warns when a test run has traced many functions.)
    assert not [record for record in caplog.records if "watched tensor" in record.getMessage()]


def test_recomputation_in_fit() -> None:
    """Three steps of Keras's own training loop end in the same weights."""
    ended = []
    for encoder in pair({}):
        inputs = keras.Input((6, 16)), keras.Input((6,), dtype="int32")
        model = keras.Model(inputs, encoder(*inputs)[-1])
        randomize(model)
        set_seeds(model)
        model.compile(keras.optimizers.SGD(0.05), loss="mse")
        model.fit((X, MASK), np.zeros_like(X), batch_size=2, epochs=3, shuffle=False, verbose=0)
        ended.append([np.asarray(variable) for variable in model.weights])
    for plain, recomputed in zip(*ended, strict=True):
        np.testing.assert_allclose(recomputed, plain, rtol=0, atol=GRAPH_TOLERANCE)
    start = randomize(encoder)
    assert any(np.abs(new - old).max() > 0.01 for new, old in zip(ended[0], start.values(), strict=True))
