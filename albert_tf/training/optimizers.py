"""Optimizers that are right where stock Keras 3.15 on TensorFlow is silently wrong.

Two faults, each with a test that shows stock Keras failing (tests/test_training_optimizers.py):

- The gradient of an embedding table arrives as slices, one for each looked-up id. Adam squares each slice by itself,
  so an id that occurs k times in a batch gets a second moment k times too small (every ALBERT has a segment table of
  two rows). Here slices are summed into a dense gradient first.
- Under tf.distribute, Keras clips each replica's gradient before the sum over replicas. Here the sum is clipped.

The overridden hooks are private to Keras, which is why setup.py pins its minor version.
"""

import re
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

# Layer norms and biases take no weight decay (google-research/albert optimization.py).
UNDECAYED = ("layer_norm", "bias")


class CorrectedGradients:
    """Mixin before a Keras optimizer class: dense embedding gradients, clipping after the sum over replicas."""

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> Any:
        grads = [tf.convert_to_tensor(g) if isinstance(g, tf.IndexedSlices) else g for g in grads]
        return super().apply(grads, trainable_variables)  # type: ignore[misc]

    def _clip_gradients(self, grads: list[Any]) -> list[Any]:
        return grads  # too early: see _all_reduce_sum_gradients

    def _all_reduce_sum_gradients(self, grads_and_vars: list[Any]) -> list[Any]:
        summed = super()._all_reduce_sum_gradients(grads_and_vars)  # type: ignore[misc]
        clipped = super()._clip_gradients([grad for grad, _ in summed])  # type: ignore[misc]
        return list(zip(clipped, [variable for _, variable in summed], strict=True))


@keras.saving.register_keras_serializable(package="albert_tf")
class AdamW(CorrectedGradients, keras.optimizers.AdamW):
    """AdamW (Loshchilov and Hutter, 2019) with ALBERT's exclusions from weight decay.

    Args:
        learning_rate: a number or a schedule.
        weight_decay: decoupled decay, applied as `variable -= learning_rate · weight_decay · variable`.
        undecayed: regular expressions; a variable whose path matches one has no decay. Saved with the optimizer
            (stock Keras forgets its exclusion list).
        epsilon: 1e-6 as in google-research/albert.
        **kwargs: as keras.optimizers.AdamW, such as `global_clipnorm`.
    """

    def __init__(
        self,
        learning_rate: Any = 1e-3,
        weight_decay: float = 0.01,
        *,
        undecayed: Sequence[str] = UNDECAYED,
        epsilon: float = 1e-6,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, weight_decay=weight_decay, epsilon=epsilon, **kwargs)
        self.undecayed = tuple(undecayed)

    def _use_weight_decay(self, variable: Any) -> bool:
        path = getattr(variable, "path", variable.name)
        return super()._use_weight_decay(variable) and not any(re.search(pattern, path) for pattern in self.undecayed)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"undecayed": list(self.undecayed)}
