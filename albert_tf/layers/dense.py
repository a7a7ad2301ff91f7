"""The dense layer of every model here: Keras's, which can be computed in another way for a while."""

from collections.abc import Callable
from typing import Any

import keras


@keras.saving.register_keras_serializable(package="albert_tf")
class Dense(keras.layers.Dense):
    """`keras.layers.Dense`.

    Attributes:
        computation: (layer, inputs, step, training) → outputs before the activation, in place of Keras's computation: see
            `albert_tf.layers.fake_quantization`. None: Keras's.
    """

    computation: Callable[["Dense", Any, int, bool], Any] | None = None

    def call(self, inputs: Any, training: bool | None = None, step: int = 0) -> Any:
        """(…, in) → (…, out), in a step of the encoder's schedule."""
        if self.computation is None:
            return super().call(inputs, training=training)
        outputs = self.computation(self, inputs, step, bool(training))
        return outputs if self.activation is None else self.activation(outputs)
