"""`albert_tf.layers.fake_quantization`, against rounding written with NumPy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf.layers.channel_factors import HEADROOM, channel_factors
from albert_tf.layers.dense import Dense
from albert_tf.layers.fake_quantization import (
    MOMENTUM,
    ChannelRanges,
    FakeQuantization,
    rounded_values,
    rounded_weights,
)

# Of unlike sizes, as the channels of trained models.
CHANNELS = np.array([1.0, 30.0, 0.2, 4.0, 1.5], np.float32)


def in_8_bits(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Values as an int8 tensor with these ends has them: scale and zero point, rounded, cut off, and back."""
    scale = (high - low) / 255
    zero = np.round(-128 - low / scale)
    return (np.clip(np.round(values / scale) + zero, -128, 127) - zero) * scale


def new_layer() -> tuple[Dense, np.ndarray]:
    """A layer, and inputs (batch, sequence, in) of unlike channels."""
    random = np.random.default_rng(0)
    layer = Dense(3, activation="tanh", name="layer")
    layer.build((None, 5))
    layer.kernel.assign(random.normal(size=(5, 3)))
    layer.bias.assign(random.normal(size=3))
    return layer, (CHANNELS * random.normal(size=(4, 6, 5))).astype(np.float32)


def quantized(layer: Dense, *inputs: np.ndarray) -> FakeQuantization:
    """The layer's computation from now on: of as many steps as there are inputs."""
    channels = ChannelRanges()
    layer.computation = channels
    for step, values in enumerate(inputs):
        layer(values, step=step)
    layer.computation = FakeQuantization(layer, channels)
    return layer.computation


def test_a_layer_without_another_computation_is_keras() -> None:
    layer, inputs = new_layer()
    same = keras.layers.Dense(3, activation="tanh")
    same.build((None, 5))
    same.set_weights(layer.get_weights())
    np.testing.assert_array_equal(layer(inputs, step=3), same(inputs))


def test_what_is_computed_is_what_integers_compute() -> None:
    layer, inputs = new_layer()
    kernel, bias = layer.kernel.numpy(), layer.bias.numpy()
    plain = inputs @ kernel + bias
    first, second = inputs, 0.5 * inputs + 0.1
    computation = quantized(layer, first, second)
    largest = [np.abs(np.concatenate([first, second])).reshape(-1, 5).max(0)]
    largest += [np.abs(np.concatenate([first, second]) @ kernel + bias).reshape(-1, 3).max(0)]
    smooth, size = channel_factors(kernel, *largest)
    weights = kernel * smooth[:, None] / size
    scales = np.abs(weights).max(0) / 127
    weights = np.round(weights / scales) * scales
    for step, values in enumerate((first, second)):
        exact = (values @ kernel + bias) / size
        x = in_8_bits(values / smooth, HEADROOM * (values / smooth).min(), HEADROOM * (values / smooth).max())
        y = in_8_bits(x @ weights + bias / size, HEADROOM * exact.min(), HEADROOM * exact.max()) * size
        found = layer(values, step=step)
        # Sums in another order may be on the other side of the middle between two steps, but for few.
        apart = np.abs(found - np.tanh(y))
        assert np.mean(apart > 1e-5) < 0.05 and apart.max() < 0.05
    assert set(computation.ranges) == {0, 1}
    # The rounding is far smaller than without factors, of which this is the check that they are used.
    rough = in_8_bits(inputs, HEADROOM * inputs.min(), HEADROOM * inputs.max()) @ kernel + bias
    assert np.abs(layer(inputs) - np.tanh(plain)).mean() < 0.5 * np.abs(np.tanh(rough) - np.tanh(plain)).mean()


def test_weights_have_127_steps_either_side_in_each_column_and_keep_their_gradient() -> None:
    kernel = tf.Variable(np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32) * [1.0, 100.0, 0.01])
    with tf.GradientTape() as tape:
        rounded = rounded_weights(kernel)
        total = tf.reduce_sum(rounded * [1.0, 2.0, 3.0])
    steps = rounded / (np.abs(kernel.numpy()).max(0) / 127)
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-4)
    assert np.abs(steps).max(0) == pytest.approx([127, 127, 127], rel=1e-5)
    np.testing.assert_array_equal(tape.gradient(total, kernel), np.full((40, 3), [1.0, 2.0, 3.0]))
    assert not np.isnan(rounded_weights(tf.zeros((4, 2)))).any()


def test_the_gradient_passes_inside_the_range_and_not_outside() -> None:
    values = tf.constant([-3.0, -0.9, 0.0, 0.31, 1.9, 2.5])
    with tf.GradientTape() as tape:
        tape.watch(values)
        rounded = rounded_values(values, tf.constant([-1.0, 2.0]))
    np.testing.assert_array_equal(tape.gradient(rounded, values), [0, 1, 1, 1, 1, 0])
    assert float(rounded[2]) == 0.0
    np.testing.assert_allclose(rounded, in_8_bits(values.numpy(), -1.0, 2.0), atol=3 / 255 / 2)
    assert float(rounded[-1]) == pytest.approx(2.0, abs=3 / 255)


def test_training_moves_the_range_of_its_step_alone_at_once_up_and_slowly_down() -> None:
    layer, inputs = new_layer()
    computation = quantized(layer, inputs, inputs)
    before = [computation.ranges[step].numpy() for step in (0, 1)]
    layer(3 * inputs, step=1)
    np.testing.assert_array_equal(computation.ranges[1], before[1])  # evaluation moves nothing
    with tf.GradientTape() as tape:
        x = tf.constant(3 * inputs)
        tape.watch(x)
        outputs = layer(x, step=1, training=True)
    larger = computation.ranges[1].numpy()
    np.testing.assert_allclose(larger[0], 3 * before[1][0], rtol=1e-5)
    assert tape.gradient(outputs, x) is not None
    layer(0 * inputs, step=1, training=True)
    np.testing.assert_allclose(computation.ranges[1].numpy()[0], MOMENTUM * larger[0], rtol=1e-5)
    np.testing.assert_array_equal(computation.ranges[0], before[0])
    assert computation.variables.keys() == {"smooth", "size", "range_0", "range_1"}
