"""Batches of sequences as one matrix, and back."""

from typing import Any

from keras import ops


def unflattened(rows: Any, x: Any, *shape: int) -> Any:
    """(B·T, …) → (B, T, *shape), with B and T of `x`.

    With B known, as in a device file, the shape is a constant: behind a computed one the runtime keeps every tensor apart
    instead of in one shared area, and XNNPACK takes none of the operators.
    """
    batch, length = ops.shape(x)[:2]
    return ops.reshape(rows, (batch, -1, *shape) if isinstance(batch, int) else (-1, length, *shape))
