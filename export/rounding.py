"""Weights in few bits: integers around zero, and the scales that make numbers of them again."""

import dataclasses

import numpy as np

# The widest block that a dense layer's inputs are cut into is the recipe's; 32 is the least that XNNPACK takes.
_LEAST_BLOCK = 32
_LARGEST = {8: 127, 4: 7}


@dataclasses.dataclass(frozen=True)
class Quantized:
    """Integers with their scales: one for each row, or (rows, blocks)."""

    values: np.ndarray
    scales: np.ndarray
    bits: int
    block: int = 0

    def stored(self) -> np.ndarray:
        """The bytes in the file; two values of 4 bits share one, the first in its lower half."""
        flat = self.values.ravel()
        if self.bits == 8:
            return flat.view(np.uint8)
        flat = np.append(flat, np.zeros(flat.size % 2, np.int8))
        return (flat[0::2] & 15 | (flat[1::2] & 15) << 4).view(np.uint8)


def quantized(weights: np.ndarray, bits: int, block: int = 0, *, half_scales: bool = False) -> Quantized:
    """Rounds (rows, columns) to integers of `bits` around zero.

    Args:
        weights: float32.
        bits: 8 or 4.
        block: columns that share a scale, a divisor of their number; 0 for a whole row.
        half_scales: choose scales that are float16 numbers, unless one is beyond them.
    """
    rows, columns = weights.shape
    parts = weights.reshape(rows, -1, block or columns).astype(np.float64)
    largest = _LARGEST[bits]
    scales = np.abs(parts).max(-1, keepdims=True) / largest
    if bits == 4:
        scales = _best_scales(parts, scales, largest)
    if block:  # the kernels read these scales as bfloat16, in float16
        scales = _as_bfloat16(scales)
    if half_scales and scales.max() < np.finfo(np.float16).max:
        scales = _up_to_half(scales)
    scales = np.where(scales > 0, scales, 1.0).astype(np.float32)
    values = np.clip(np.rint(parts / scales), -largest, largest).astype(np.int8)
    return Quantized(values.reshape(rows, columns), scales[..., 0] if block else scales[:, 0, 0], bits, block)


def _best_scales(parts: np.ndarray, widest: np.ndarray, largest: int) -> np.ndarray:
    """Of several scales up to the widest, for each part that with the least squared error: 4 bits leave few values."""
    best, least = widest, np.full(widest.shape, np.inf)
    for share in np.linspace(0.6, 1.0, 9):
        scales = np.where(widest > 0, widest * share, 1.0)
        rounded = np.clip(np.rint(parts / scales), -largest, largest) * scales
        errors = np.square(rounded - parts).sum(-1, keepdims=True)
        best, least = np.where(errors < least, scales, best), np.minimum(errors, least)
    return best


def _up_to_half(scales: np.ndarray) -> np.ndarray:
    """The next float16 numbers that are no smaller: with a smaller scale the largest value would not fit."""
    halves = scales.astype(np.float16)
    return np.where(halves < scales, np.nextafter(halves, np.float16(np.inf)), halves).astype(np.float64)


def _as_bfloat16(scales: np.ndarray) -> np.ndarray:
    bits = np.maximum(scales, 2.0**-14).astype(np.float32).view(np.uint32)  # below, float16 loses precision
    return ((bits + 0x8000) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(np.float64)


def block_size(columns: int, widest: int) -> int:
    """The largest power of two up to `widest` that divides `columns`; 0, a scale for each row, where none of use does."""
    size = widest
    while size >= _LEAST_BLOCK and columns % size:
        size //= 2
    return size if size >= _LEAST_BLOCK else 0
