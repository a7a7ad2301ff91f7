"""Factors around a dense layer that is to compute in 8 bits: without them a few large channels leave the others nothing.

Written with NumPy: exports and training have the same.
"""

import numpy as np

# Other texts go beyond the ranges of those seen, and should not be cut off.
HEADROOM = 1.15
# How much of an input channel's size the weights take over.
SMOOTHING = 0.65
# Channels smaller than this share of the largest are not enlarged further.
_LEAST_CHANNEL = 0.01


def channel_factors(kernel: np.ndarray, inputs: np.ndarray, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What each input channel is divided by (and the kernel's rows multiplied), and each output channel.

    The first is SmoothQuant's (Xiao et al., 2022, equation 4), with a geometric mean of 1.

    Args:
        kernel: (in, out).
        inputs, outputs: largest absolute value of each channel, (in,) and (out,).
    """
    rows = np.maximum(np.abs(kernel).max(1), 1e-5)
    smooth = np.maximum(inputs, 1e-5) ** SMOOTHING / rows ** (1 - SMOOTHING)
    smooth /= np.exp(np.log(smooth).mean())
    size = np.maximum(outputs, max(_LEAST_CHANNEL * outputs.max(), 1e-6))
    return smooth, size
