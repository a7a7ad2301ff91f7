"""A dense layer that computes in floats what a full-integer file computes in 8 bits (Jacob et al., 2018, section 3).

Weights are rounded to 8 bits, symmetrically, with a scale for each output channel. They are one set for all steps of the
encoder that use them; inputs and outputs have a range for each step, as the file has operators for each. In training a
range grows with the values of a batch at once and shrinks slowly, so it holds what recent batches hold, as the file's
holds all its calibration texts. Gradients pass the rounding as if it were not there (straight-through); what is cut off
at the end of a range has none.
"""

from typing import Any

import keras
import numpy as np
from keras import ops

from albert_tf.layers.channel_factors import HEADROOM, channel_factors
from albert_tf.layers.dense import Dense

# Share of the old range in the new one, where a batch has a smaller one.
MOMENTUM = 0.99
# 8 bits with a sign, without the -128 that has no opposite.
_LARGEST_WEIGHT = 127.0


class ChannelRanges:
    """A computation of a dense layer as it is, which notes how far each channel goes; runs eagerly only.

    Attributes:
        found: by step of the encoder: the smallest and largest inputs (2, in), and outputs (2, out).
    """

    def __init__(self) -> None:
        self.found: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def __call__(self, layer: Dense, inputs: Any, step: int, training: bool) -> Any:
        outputs = _with_bias(layer, ops.matmul(inputs, layer.kernel))
        seen = tuple(_channel_range(np.asarray(values)) for values in (inputs, outputs))
        known = self.found.get(step, seen)
        first, second = (
            np.stack([np.minimum(a[0], b[0]), np.maximum(a[1], b[1])]) for a, b in zip(known, seen, strict=True)
        )
        self.found[step] = first, second
        return outputs


class FakeQuantization:
    """A computation of a dense layer in values that 8 bits can have.

    Its variables are not the layer's: they are no weights of a model, and end with the training.

    Args:
        layer: the layer.
        channels: how far its channels go in floats.

    Attributes:
        smooth, size: what input and output channels are divided by; see `albert_tf.layers.channel_factors`.
        ranges: by step of the encoder, [[smallest, largest] of inputs, the same of outputs], without headroom.
    """

    def __init__(self, layer: Dense, channels: ChannelRanges) -> None:
        kernel = np.asarray(layer.kernel)
        inputs, outputs = (
            np.max([np.abs(pair[side]).max(0) for pair in channels.found.values()], axis=0) for side in (0, 1)
        )
        smooth, size = channel_factors(kernel, inputs, outputs)
        self.smooth = _state(smooth, "smooth")
        self.size = _state(size, "size")
        self.ranges = {
            step: _state(np.stack([_whole_range(inputs / smooth), _whole_range(outputs / size)]), f"range_{step}")
            for step, (inputs, outputs) in channels.found.items()
        }

    def __call__(self, layer: Dense, inputs: Any, step: int, training: bool) -> Any:
        smooth, size = (ops.convert_to_tensor(variable) for variable in (self.smooth, self.size))
        known = ops.convert_to_tensor(self.ranges[step])
        inputs, input_range = _in_range(inputs / smooth, known[0], training)
        outputs = ops.matmul(inputs, rounded_weights(layer.kernel * smooth[:, None]))
        outputs, output_range = _in_range(_with_bias(layer, outputs) / size, known[1], training)
        if training:
            self.ranges[step].assign(ops.stack([input_range, output_range]))
        return outputs * size

    @property
    def variables(self) -> dict[str, Any]:
        """All that training changes or must find again, by name."""
        ranges = {f"range_{step}": variable for step, variable in self.ranges.items()}
        return {"smooth": self.smooth, "size": self.size} | ranges


def rounded_weights(kernel: Any) -> Any:
    """(in, out) in multiples of a 127th of each column's largest; its gradient is the kernel's."""
    scale = ops.maximum(ops.max(ops.abs(kernel), axis=0, keepdims=True) / _LARGEST_WEIGHT, 1e-12)
    return kernel + ops.stop_gradient(ops.round(kernel / scale) * scale - kernel)


def rounded_values(values: Any, value_range: Any) -> Any:
    """Values in the 256 steps from `value_range[0]` to `value_range[1]`, one of which is 0."""
    low, high = ops.minimum(value_range[0], 0.0), ops.maximum(value_range[1], 0.0)
    return keras.quantizers.fake_quant_with_min_max_vars(values, low, high, num_bits=8)


def _in_range(values: Any, known: Any, training: bool) -> tuple[Any, Any]:
    """The rounded values, and their range, which training moves."""
    if training:
        seen = ops.stop_gradient(ops.stack([ops.min(values), ops.max(values)]))
        average = MOMENTUM * known + (1.0 - MOMENTUM) * seen
        known = ops.stack([ops.minimum(average[0], seen[0]), ops.maximum(average[1], seen[1])])
    return rounded_values(values, known * HEADROOM), known


def _with_bias(layer: Dense, outputs: Any) -> Any:
    return outputs if layer.bias is None else outputs + layer.bias


def _channel_range(values: np.ndarray) -> np.ndarray:
    """(…, channels) → (2, channels)."""
    rows = values.reshape(-1, values.shape[-1])
    return np.stack([rows.min(0), rows.max(0)])


def _whole_range(channels: np.ndarray) -> np.ndarray:
    """(2, channels) → (2,)."""
    return np.stack([channels[0].min(), channels[1].max()])


def _state(value: np.ndarray, name: str) -> keras.Variable:
    return keras.Variable(np.asarray(value, np.float32), trainable=False, dtype="float32", name=name)
