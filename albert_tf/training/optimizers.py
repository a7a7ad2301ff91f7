"""Optimizers that are right where stock Keras 3.15 on TensorFlow is silently wrong.

Three faults, each with a test that shows stock Keras failing (tests/test_training_optimizers.py):

- The gradient of an embedding table arrives as slices, one for each looked-up id. Adam squares each slice by itself,
  so an id that occurs k times in a batch gets a second moment k times too small (every ALBERT has a segment table of
  two rows). Here slices are summed into a dense gradient first.
- Under tf.distribute, Keras clips each replica's gradient before the sum over replicas. Here the sum is clipped.
- Under tf.distribute, Keras's loss scaling asks the first replica alone whether gradients are finite. Here all are asked.

The overridden hooks are private to Keras, which is why setup.py pins its minor version.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf
from keras import ops

# Layer norms and biases take no weight decay (google-research/albert optimization.py), and under LAMB no layer-wise
# adaptation (lamb_optimizer.py).
UNDECAYED = ("layer_norm", "bias")


class CorrectedGradients:
    """Mixin before a Keras optimizer class: dense embedding gradients, clipping after the sum over replicas."""

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> Any:
        grads = [tf.convert_to_tensor(g) if isinstance(g, tf.IndexedSlices) else g for g in grads]
        return super().apply(grads, trainable_variables)  # type: ignore[misc]

    def _clip_gradients(self, grads: list[Any]) -> list[Any]:
        if keras.backend.backend() == "tensorflow":
            return grads  # too early: see _all_reduce_sum_gradients
        return super()._clip_gradients(grads)  # type: ignore[misc]

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
        rate_factors: the start of a variable's path → what its learning rate, and with it its decay, is multiplied by; of
            several that fit the longest counts. Others have 1.
        epsilon: 1e-6 as in google-research/albert.
        **kwargs: as keras.optimizers.AdamW, such as `global_clipnorm`.
    """

    def __init__(
        self,
        learning_rate: Any = 1e-3,
        weight_decay: float = 0.01,
        *,
        undecayed: Sequence[str] = UNDECAYED,
        rate_factors: Mapping[str, float] | None = None,
        epsilon: float = 1e-6,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, weight_decay=weight_decay, epsilon=epsilon, **kwargs)
        self.undecayed = tuple(undecayed)
        self.rate_factors = dict(rate_factors or {})

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        learning_rate = ops.cast(learning_rate, variable.dtype) * self._factor(variable)
        if self._use_weight_decay(variable):
            self.assign_sub(variable, variable * self.weight_decay * learning_rate)
        super().update_step(gradient, variable, learning_rate)

    def _apply_weight_decay(self, variables: Sequence[Any]) -> None:
        """Nothing here, where Keras knows one learning rate for all: see `update_step`."""

    def _use_weight_decay(self, variable: Any) -> bool:
        return super()._use_weight_decay(variable) and not _matches(variable, self.undecayed)

    def _factor(self, variable: Any) -> float:
        fitting = [start for start in self.rate_factors if _path(variable).startswith(start)]
        return self.rate_factors[max(fitting, key=len)] if fitting else 1.0

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"undecayed": list(self.undecayed), "rate_factors": self.rate_factors}


@keras.saving.register_keras_serializable(package="albert_tf")
class LossScaleOptimizer(keras.optimizers.LossScaleOptimizer):
    """float16 training: the loss is scaled up so that small gradients do not vanish; a step with a gradient that is not
    finite, on any replica, is left out and the scale halved."""

    def check_finite(self, grads: Sequence[Any]) -> Any:
        finite = super().check_finite(grads)
        context = tf.distribute.get_replica_context() if keras.backend.backend() == "tensorflow" else None
        if context is None or context.num_replicas_in_sync == 1:
            return finite
        agreeing = context.all_reduce(tf.distribute.ReduceOp.SUM, tf.cast(finite, tf.float32))
        return agreeing > context.num_replicas_in_sync - 0.5


@keras.saving.register_keras_serializable(package="albert_tf")
class Lamb(CorrectedGradients, keras.optimizers.Optimizer):
    """LAMB as ALBERT was pretrained with (google-research/albert lamb_optimizer.py; You et al., 2020, algorithm 2).

    The decay is part of the update whose norm the trust ratio ‖variable‖ / ‖update‖ divides by. There is no bias
    correction. `keras.optimizers.Lamb` differs in all three: decay outside the ratio, bias correction, and no
    exclusions.

    Args:
        learning_rate: a number or a schedule; the published recipe peaks at 0.00176 for batches of 4,096.
        weight_decay: added to the update as weight_decay · variable.
        beta_1: decay of the mean of gradients.
        beta_2: decay of the mean of their squares.
        epsilon: added to the root of the latter.
        excluded: regular expressions; a variable whose path matches one has neither decay nor trust ratio.
        **kwargs: as keras.optimizers.Optimizer, such as `global_clipnorm`.
    """

    def __init__(
        self,
        learning_rate: Any = 0.00176,
        weight_decay: float = 0.01,
        *,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        excluded: Sequence[str] = UNDECAYED,
        name: str = "lamb",
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, name=name, **kwargs)
        # Not the `weight_decay` of Keras, which it applies itself after the update.
        self.decay = weight_decay
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self.excluded = tuple(excluded)

    def build(self, variables: Sequence[Any]) -> None:
        if self.built:
            return
        super().build(variables)
        self._momentums = self.add_optimizer_variables(variables, "momentum")
        self._velocities = self.add_optimizer_variables(variables, "velocity")

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        index = self._get_variable_index(variable)
        momentum, velocity = self._momentums[index], self._velocities[index]
        learning_rate = ops.cast(learning_rate, variable.dtype)
        gradient = ops.cast(gradient, variable.dtype)
        self.assign_add(momentum, (gradient - momentum) * (1.0 - self.beta_1))
        self.assign_add(velocity, (ops.square(gradient) - velocity) * (1.0 - self.beta_2))
        update = momentum / (ops.sqrt(velocity) + self.epsilon)
        if not _matches(variable, self.excluded):
            update = update + self.decay * variable
            learning_rate = learning_rate * _trust_ratio(variable, update)
        self.assign_sub(variable, learning_rate * update)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config() | {"weight_decay": self.decay, "excluded": list(self.excluded)}
        return config | {"beta_1": self.beta_1, "beta_2": self.beta_2, "epsilon": self.epsilon}


def _trust_ratio(variable: Any, update: Any) -> Any:
    """‖variable‖ / ‖update‖, or 1 where one of them is 0."""
    variable_norm, update_norm = ops.norm(variable), ops.norm(update)
    both = ops.logical_and(variable_norm > 0.0, update_norm > 0.0)
    return ops.where(both, variable_norm / ops.where(both, update_norm, 1.0), 1.0)


def _matches(variable: Any, patterns: Sequence[str]) -> bool:
    return any(re.search(pattern, _path(variable)) for pattern in patterns)


def _path(variable: Any) -> str:
    """A variable's path, be it Keras's or TensorFlow's."""
    return str(getattr(variable, "path", variable.name))
