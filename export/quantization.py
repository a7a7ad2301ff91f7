"""How the weights of a TFLite file are stored, and what it computes with: named recipes."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from albert_tf.errors import InputError

# Smaller arrays stay float32.
SMALLEST_INT8 = 1024
# Float32 scale and int64 zero point, which the runtime wants for every output of a dense layer.
_SCALE_BYTES = 12
_BLOCK_SCALE_BYTES = 2


@dataclasses.dataclass(frozen=True)
class Recipe:
    """One way to store weights, with the limits that a file made by it must keep.

    Attributes:
        name: as on the command line and in the file's settings.
        trade_off: what it costs and gives, in a line.
        weight_bytes: bytes of one stored weight; the least, where there are several kinds.
        max_mean_difference: largest distance of outputs from the Keras model's, over the check's texts
            (`export.validation.distance`).
        clear_margin: where the Keras model prefers its decision by this much, the file must make the same one.
        table_bytes: bytes of a weight of the word table, where it is another number.
        block: inputs of a dense layer that share a scale; 0 for one scale for each output.
        computes_in_float: dense layers turn their weights into floats.
        activation_bits: of what dense layers compute with, where ranges are measured before; None where values are
            float32, or rounded while the model runs.
        scales_apart: for runtimes of old operators: see `export.integer_weights.WeightBits`; without its compact tables.
    """

    name: str
    trade_off: str
    weight_bytes: float
    max_mean_difference: float
    clear_margin: float = 0.2
    table_bytes: float | None = None
    block: int = 0
    computes_in_float: bool = False
    activation_bits: int | None = None
    scales_apart: bool = False

    @property
    def rewrites_weights(self) -> bool:
        """Whether `export.integer_weights` makes the file out of a float32 one."""
        return self.weight_bytes <= 1 and self.activation_bits is None

    def configure(self, converter: Any) -> None:
        """Sets up a tf.lite.TFLiteConverter."""
        import tensorflow as tf

        if self.weight_bytes == 2:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
            converter.target_spec.supported_types = [tf.float16]

    def stored_bytes(self, path: str, shape: Sequence[int]) -> float:
        """Bytes that the weight called `path` takes, at most."""
        values = math.prod(shape)
        if self.weight_bytes >= 2:
            return values * self.weight_bytes
        if len(shape) < 2 or values < SMALLEST_INT8:
            return values * 4
        if "/position_embedding/" in path:  # added, not looked up
            held = 4 if self.scales_apart else 1
            return values * held + _SCALE_BYTES * shape[0]
        if "_embedding/" in path:
            return values * (self.table_bytes or self.weight_bytes) + _SCALE_BYTES * shape[0]
        scales = _BLOCK_SCALE_BYTES * values / self.block if self.block else 0
        return values * self.weight_bytes + scales + _SCALE_BYTES * shape[-1]


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("float32", "exact; four bytes a weight", 4, 1e-5),
        Recipe("float16", "half the size, nearly exact; as fast as float32, in more memory", 2, 2e-3),
        Recipe("dynamic_int8", "a quarter of the size and about three times as fast; answers move a little", 1, 2e-2),
        Recipe(
            "weight_only_int8",
            "a quarter of the size, answers move less than with dynamic_int8; slower than float32, in more memory",
            1,
            1e-2,
            computes_in_float=True,
        ),
        Recipe("int4", "a seventh of the size, as fast as dynamic_int8; answers move", 0.5, 0.15, 0.6, block=32),
        Recipe(
            "int4_int8_table",
            "a sixth of the size; words exact as in dynamic_int8, dense layers coarser than in int4",
            0.5,
            0.15,
            0.6,
            table_bytes=1,
            block=128,
        ),
        Recipe(
            "int8",
            "for processors of integers: dense layers in 8 bits, all else in 16; fixed length, ranges from your texts",
            1,
            4e-2,
            table_bytes=2,
            activation_bits=8,
        ),
        Recipe(
            "int16x8",
            "for processors of integers: nearly exact; on a CPU many times slower than float32",
            1,
            1e-2,
            table_bytes=2,
            activation_bits=16,
        ),
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
