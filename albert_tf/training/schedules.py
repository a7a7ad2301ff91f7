"""Learning-rate schedules."""

from typing import Any

import keras
from keras import ops

from albert_tf.errors import InputError


@keras.saving.register_keras_serializable(package="albert_tf")
class LinearWarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear from 0 to `peak` over `warmup_steps`, then linear to 0 at `total_steps` (albert optimization.py).

    As there, the decay is that of the whole run: right after warm-up the rate is peak · (1 − warmup_steps/total_steps).
    """

    def __init__(self, peak: float, warmup_steps: int, total_steps: int) -> None:
        if total_steps < 1 or not 0 <= warmup_steps <= total_steps:
            raise InputError(
                f"expected at least one training step, warm-up included; got {warmup_steps} warm-up steps of {total_steps}"
            )
        self.peak, self.warmup_steps, self.total_steps = peak, warmup_steps, total_steps

    def __call__(self, step: Any) -> Any:
        step = ops.cast(step, "float32")
        decayed = self.peak * (1.0 - ops.minimum(step, self.total_steps) / self.total_steps)
        warming = self.peak * step / max(self.warmup_steps, 1)
        return ops.where(step < self.warmup_steps, warming, decayed)

    def get_config(self) -> dict[str, Any]:
        return {"peak": self.peak, "warmup_steps": self.warmup_steps, "total_steps": self.total_steps}
