"""The training step of our models: a batch as one, or in parts one after the other, for less memory.

Keras's `gradient_accumulation_steps` fails in `fit` under `tf.distribute`, and its learning-rate schedule counts parts.
Here one step is one update: gradients of the parts are summed, and clipping, the optimizer and the schedule see the sum.
"""

from typing import Any

import keras
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.tasks.fitting import FitModel


class AccumulatingModel(FitModel):
    """Base of models whose `compute_loss` is a sum over the examples, each with its share in the whole batch.

    The gradient of the parts' sum is then that of the batch.

    Attributes:
        accumulated_parts: into how many parts `fit` divides a batch. What belongs to an example stays together; the batch's
            padding stays as it is.
    """

    accumulated_parts: int = 1

    # A subclass's to write; not abstract, as Keras makes an instance of every base class of a functional model.
    def loss_share(self, y: Any) -> Any:
        """The sum of the examples' shares: 1 for a whole batch, less for a replica's part of one."""
        raise NotImplementedError

    def training_outputs(self, x: Any, training: bool = True) -> Any:
        """What `compute_loss` is given for a batch; with `training` false, without dropout."""
        return self(x, training=training)

    def train_step(self, *args: Any) -> Any:
        """Keras hook: one update from one batch. Of other backends, whose steps take their state too, it is Keras's own."""
        if keras.backend.backend() != "tensorflow":
            return super().train_step(*args)
        (data,) = args
        if self.loss is not None:
            if self.accumulated_parts > 1:
                raise InputError("accumulated_parts: goes with the model's own loss; compile without a loss")
            return super().train_step(data)
        x, y, weights = keras.utils.unpack_x_y_sample_weight(data)
        refuse_weights(weights)
        parts = self.accumulated_parts
        loss, gradients = self._gradients(x, y) if parts == 1 else self._summed_gradients(x, y, parts)
        share = self.loss_share(y)
        self._loss_tracker.update_state(tf.math.divide_no_nan(loss, share), sample_weight=share)
        self.optimizer.apply(gradients, self.trainable_variables)
        return self.get_metrics_result()

    def _gradients(self, x: Any, y: Any) -> tuple[Any, list[Any]]:
        """The loss of some examples, and its gradients times the optimizer's loss scale: None for what has no part in it."""
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x, y, self.training_outputs(x))
            scaled = self.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, [variable.value for variable in self.trainable_variables])
        return loss, [None if gradient is None else tf.convert_to_tensor(gradient) for gradient in gradients]

    def _summed_gradients(self, x: Any, y: Any, most: int) -> tuple[Any, list[Any]]:
        """As `_gradients`, in a loop over parts, so that there are only one part's activations at a time."""
        examples = tf.shape(tf.nest.flatten(y)[0])[0]
        parts = tf.minimum(most, examples)
        with_gradient: list[bool] = []

        def part_of(value: Any, part: Any) -> Any:
            rows = tf.shape(value)[0] // examples  # of one example
            return value[rows * (part * examples // parts) : rows * ((part + 1) * examples // parts)]

        def add(part: Any, loss: Any, sums: list[Any]) -> tuple[Any, Any, list[Any]]:
            own_x, own_y = tf.nest.map_structure(lambda value: part_of(value, part), (x, y))
            own_loss, gradients = self._gradients(own_x, own_y)
            with_gradient[:] = [gradient is not None for gradient in gradients]
            sums = [total if own is None else total + own for total, own in zip(sums, gradients, strict=True)]
            return part + 1, loss + own_loss, sums

        zeros = [tf.zeros(variable.shape, variable.dtype) for variable in self.trainable_variables]
        _, loss, sums = tf.while_loop(lambda part, *_: part < parts, add, (0, 0.0, zeros), parallel_iterations=1)
        return loss, [total if given else None for total, given in zip(sums, with_gradient, strict=True)]


def refuse_weights(sample_weight: Any) -> None:
    """Raises InputError where `fit` or `evaluate` was given weights: a model's own loss takes none."""
    if sample_weight is not None:
        raise InputError("sample_weight and class_weight go with a loss of your own; this model is compiled without")
