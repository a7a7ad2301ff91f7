"""How the weights of a TFLite file are stored: named recipes."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from albert_tf.errors import InputError

# Dynamic-range quantisation leaves smaller arrays as they are (tensorflow/lite quantization, min_elements_for_weights).
SMALLEST_INT8 = 1024


@dataclasses.dataclass(frozen=True)
class Recipe:
    """One way to store weights, with the limits that a file made by it must keep.

    Attributes:
        name: as on the command line and in the file's settings.
        trade_off: what it costs and gives, in a line.
        weight_bytes: bytes of one stored weight.
        max_mean_difference: largest mean absolute difference of probabilities from the Keras model, over the check's
            texts (`export.validation`).
    """

    name: str
    trade_off: str
    weight_bytes: int
    max_mean_difference: float

    def configure(self, converter: Any) -> None:
        """Sets up a tf.lite.TFLiteConverter."""
        import tensorflow as tf

        if self.weight_bytes < 4:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if self.weight_bytes == 2:
            converter.target_spec.supported_types = [tf.float16]

    def stored_bytes(self, path: str, shape: Sequence[int]) -> int:
        """Bytes that the weight called `path` takes."""
        values = math.prod(shape)
        # The position table is added, not looked up, and only operators that multiply or look up take int8 weights.
        stays_float = len(shape) < 2 or values < SMALLEST_INT8 or "/position_embedding/" in path
        return values * (4 if self.weight_bytes == 1 and stays_float else self.weight_bytes)


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("float32", "exact; four bytes a weight", 4, 1e-5),
        Recipe("float16", "half the size, nearly exact; as fast as float32, in more memory", 2, 2e-3),
        Recipe("dynamic_int8", "a quarter of the size and about three times as fast; answers move a little", 1, 2e-2),
    )
}


def recipe_by_name(name: str) -> Recipe:
    """The recipe called `name`.

    Raises:
        InputError: there is none; the message lists those there are.
    """
    if not isinstance(name, str) or name not in RECIPES:
        raise InputError(f"no recipe is called {name!r}; there are {', '.join(RECIPES)}")
    return RECIPES[name]
