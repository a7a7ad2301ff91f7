"""How the models of all runs are compiled for `fit`: precision, gradient accumulation, XLA."""

import keras
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.tasks.accumulation import AccumulatingModel
from albert_tf.training.optimizers import LossScaleOptimizer


def compile_model(
    model: AccumulatingModel, optimizer: keras.optimizers.Optimizer, *, precision: str, accumulate: int, jit: bool
) -> None:
    """Compiles a model with its own loss, in the scope of the strategy that it was made in.

    Args:
        model: the model.
        optimizer: its optimizer; for "mixed_float16" the loss is scaled around it.
        precision: of `albert_tf.training.settings.PRECISIONS`.
        accumulate: parts of a batch.
        jit: whether XLA compiles the step, once for each shape of a batch.

    Raises:
        InputError: XLA on several devices of TensorFlow, or parts on another backend.
    """
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if jit and replicas > 1:
        raise InputError(
            f"--jit: expected one device, got {replicas}; a step that XLA compiles cannot reach another device's weights "
            "(TensorFlow fails with it or waits without end): leave --jit or --strategy out"
        )
    if accumulate > 1 and keras.backend.backend() != "tensorflow":
        raise InputError("--accumulate goes with Keras's TensorFlow backend; leave it out, or unset KERAS_BACKEND")
    if precision == "mixed_float16":
        optimizer = LossScaleOptimizer(optimizer)
    model.accumulated_parts = accumulate
    model.compile(optimizer, jit_compile=jit)
    optimizer.build(model.trainable_variables)
