"""What every layer here is: a Keras layer that an `AlbertConfig` describes completely."""

from typing import Any

import keras

from albert_tf.config import AlbertConfig


class ConfiguredLayer(keras.layers.Layer):
    """A layer whose only constructor argument, beside Keras's own, is the config; saved and restored with it."""

    def __init__(self, config: AlbertConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config

    def dense(self, units: int, name: str) -> keras.layers.Dense:
        """A dense layer with the published initialiser and this layer's precision."""
        return keras.layers.Dense(units, kernel_initializer=self.initializer(), dtype=self.dtype_policy, name=name)

    def layer_norm(self) -> keras.layers.LayerNormalization:
        return keras.layers.LayerNormalization(
            epsilon=self.config.layer_norm_epsilon, dtype=self.dtype_policy, name="layer_norm"
        )

    def initializer(self) -> keras.initializers.Initializer:
        return keras.initializers.TruncatedNormal(stddev=self.config.initializer_range)

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
