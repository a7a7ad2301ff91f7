"""Dropout whose randomness is drawn outside the code that uses it, so that the code can be run twice.

`keras.remat` runs a block again in the backward pass. A Dropout layer inside it would draw a new mask there and the
gradients would be those of another network. Here a block draws its seeds before the recomputed region and passes
them in.
"""

from typing import Any

import keras
from keras import ops


class DrawnSeed(keras.random.SeedGenerator):
    """A seed already drawn, in the form that keras.random functions accept: every use gives the same numbers."""

    def __init__(self, value: Any) -> None:  # the parent would create a variable that counts draws
        self.value = value

    def next(self, ordered: bool = True) -> Any:
        return self.value


def draw_seeds(
    generator: keras.random.SeedGenerator, rates: tuple[float, ...], training: bool | None
) -> tuple[Any, ...]:
    """One seed tensor for each rate, or an empty tuple where no dropout will happen."""
    if not training or not any(rates):
        return ()
    return tuple(ops.convert_to_tensor(generator.next()) for _ in rates)


def dropout(x: Any, rate: float, seeds: tuple[Any, ...], index: int) -> Any:
    """Zeroes elements of `x` with probability `rate` and scales the rest by 1 / (1 − rate); see `draw_seeds`."""
    if not seeds or rate == 0.0:
        return x
    return keras.random.dropout(x, rate, seed=DrawnSeed(seeds[index]))
