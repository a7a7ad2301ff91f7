"""Training steps on two replicas, run by test_training_optimizers.py in a process of its own.

Logical devices must be configured before TensorFlow starts, and one strategy is all a process can have. Prints JSON.
"""

import json
import sys

import keras
import numpy as np
import tensorflow as tf

from albert_tf.training.optimizers import AdamW, CorrectedGradients, LossScaleOptimizer


class CorrectedSGD(CorrectedGradients, keras.optimizers.SGD):
    """An update that is the clipped gradient itself."""


def clipped_sum(optimizer_class: type, **clip: float) -> list[float]:
    """Replica 0 has the gradient [30, 0], replica 1 [0, 40]; the update, as the optimizer clips and sums them."""
    strategy = tf.distribute.get_strategy()
    variable = keras.Variable(np.zeros(2), dtype="float32", name="v")
    optimizer = optimizer_class(1.0, **clip)
    optimizer.build([variable])

    @tf.function
    def step() -> None:
        def replica() -> None:
            first = tf.distribute.get_replica_context().replica_id_in_sync_group == 0
            optimizer.apply([tf.where(first, [30.0, 0.0], [0.0, 40.0])], [variable])

        strategy.run(replica)

    step()
    return (-np.asarray(variable)).tolist()


def overflow(optimizer_class: type, second: float) -> list[float]:
    """One step of float16 training on a weight of 1: the first replica's gradient is 0, the second's is given."""
    strategy = tf.distribute.get_strategy()
    variable = keras.Variable(np.ones(1), dtype="float32", name="v")
    optimizer = optimizer_class(CorrectedSGD(1.0))
    optimizer.build([variable])

    @tf.function
    def step() -> None:
        def replica() -> None:
            first = tf.distribute.get_replica_context().replica_id_in_sync_group == 0
            gradient = tf.where(first, [0.0], [second])
            optimizer.apply([gradient * optimizer.dynamic_scale], [variable])

        strategy.run(replica)

    step()
    return [
        float(np.ravel(value)[0])
        for value in map(np.asarray, (variable, optimizer.dynamic_scale, optimizer.iterations))
    ]


def losses(examples: int = 32) -> list[float]:
    """The losses of 6 clipped steps of `fit` on a model with a table of two rows."""
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input((4,), dtype="int32"),
            keras.layers.Embedding(2, 3, name="table"),
            keras.layers.Flatten(),
            keras.layers.Dense(1, name="out"),
        ]
    )
    model.compile(AdamW(0.1, weight_decay=0.1, global_clipnorm=0.05), loss="mse")
    random = np.random.default_rng(0)
    x, y = random.integers(0, 2, (examples, 4)), random.standard_normal((examples, 1)) * 5
    return model.fit(x, y, batch_size=examples, epochs=6, verbose=0).history["loss"]


def main() -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    results: dict[str, object] = {"losses on one device": losses()}
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        for name, optimizer_class in (("ours", CorrectedSGD), ("stock", keras.optimizers.SGD)):
            for kind, clip in (("global_clipnorm", 1.0), ("clipnorm", 1.0), ("clipvalue", 35.0)):
                results[f"{name} {kind}"] = clipped_sum(optimizer_class, **{kind: clip})
        for name, scaling in (("ours", LossScaleOptimizer), ("stock", keras.optimizers.LossScaleOptimizer)):
            results[f"{name} overflow"] = overflow(scaling, float("inf"))
            results[f"{name} no overflow"] = overflow(scaling, 0.25)
        results["losses on two replicas"] = losses()
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
