"""What every layer here is: a Keras layer that an `AlbertConfig` describes completely."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Any

import keras

from albert_tf.config import AlbertConfig
from albert_tf.layers.dense import Dense

_initial_matrices: contextvars.ContextVar[Callable[..., Any] | None] = contextvars.ContextVar(
    "initial_matrices", default=None
)


@contextlib.contextmanager
def initial_matrices(initializer: Callable[..., Any]) -> Iterator[None]:
    """Matrices of an encoder made in this block start with what `initializer(shape, dtype)` gives, not with random
    values: for an encoder that is about to be loaded."""
    token = _initial_matrices.set(initializer)
    try:
        yield
    finally:
        _initial_matrices.reset(token)


def matrix_initializer(config: AlbertConfig) -> Callable[..., Any]:
    """The published initialiser, a truncated normal distribution; or that of the block, see `initial_matrices`."""
    return _initial_matrices.get() or keras.initializers.TruncatedNormal(stddev=config.initializer_range)


class ConfiguredLayer(keras.layers.Layer):
    """A layer whose only constructor argument, beside Keras's own, is the config; saved and restored with it."""

    def __init__(self, config: AlbertConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config

    def dense(self, units: int, name: str, *, use_bias: bool = True) -> Dense:
        """A dense layer with the published initialiser and this layer's precision."""
        return Dense(
            units, use_bias=use_bias, kernel_initializer=self.initializer(), dtype=self.dtype_policy, name=name
        )

    def layer_norm(self, epsilon: float | None = None) -> keras.layers.LayerNormalization:
        """A layer norm with this layer's precision, and the config's epsilon unless one is given."""
        return keras.layers.LayerNormalization(
            epsilon=epsilon or self.config.layer_norm_epsilon, dtype=self.dtype_policy, name="layer_norm"
        )

    def initializer(self) -> Callable[..., Any]:
        return matrix_initializer(self.config)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"config": self.config.to_dict()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "ConfiguredLayer":
        fields = dict(config)
        return cls(AlbertConfig.from_dict(fields.pop("config")), **fields)


def activation_function(name: str) -> Any:
    """The function behind `AlbertConfig.activation`."""
    functions = {
        "gelu_tanh": lambda x: keras.activations.gelu(x, approximate=True),
        "gelu_erf": lambda x: keras.activations.gelu(x, approximate=False),
        "relu": keras.activations.relu,
        "linear": keras.activations.linear,
    }
    return functions[name]
