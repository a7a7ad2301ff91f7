"""How the models of all runs are compiled for `fit`: precision, gradient accumulation, XLA, fused activations."""

import keras
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.layers.encoder import AlbertEncoder
from albert_tf.layers.fused import fused
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


def fuse_activations(encoder: AlbertEncoder, *, precision: str, jit: bool) -> bool:
    """On CPUs, makes an encoder that is trained in bfloat16 compute its activations in one go (layers/fused.py).

    In float32 nothing is won; and what XLA compiles, or a GPU computes, is fused already, or fast enough.

    Args:
        encoder: of a model that was just made; its activations stay so, in this process.
        precision, jit: as for `compile_model`.

    Returns:
        Whether it was done.
    """
    has_accelerator = any(device.device_type != "CPU" for device in tf.config.list_logical_devices())
    if precision != "mixed_bfloat16" or jit or has_accelerator or keras.backend.backend() != "tensorflow":
        return False
    for block in encoder.feed_forward_blocks:
        block.activation = fused(block.activation)
    return True
