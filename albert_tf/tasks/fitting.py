"""`FitModel`: a Keras model whose `fit` is right under `tf.distribute`.

Stock Keras 3.15 averages the replicas' batches to build the model, which fails where the parts differ in size and in
every run of several workers; there it also reduces the figures of a step along an axis that they do not have.
"""

from typing import Any

import keras
import tensorflow as tf
from keras import ops


class FitModel(keras.Model):
    """Base of `AlbertTask` and `AlbertPretrainer`."""

    def _maybe_symbolic_build(self, iterator: Any = None, data_batch: Any = None) -> None:
        """Keras hook, of its TensorFlow trainer: builds from the first replica's own part of a batch."""
        strategy = self._distribute_strategy
        if strategy is None:
            return
        if iterator is not None:
            _, _, batches = next(iter(iterator))
            data_batch = keras.tree.map_structure(
                lambda value: strategy.experimental_local_results(value)[0], next(batches)
            )
        with strategy.scope():
            self._symbolic_build(data_batch=data_batch)

    def get_metrics_result(self) -> dict[str, Any]:
        """Keras hook: in a step of one of several workers each figure is given an axis to be reduced along."""
        results = super().get_metrics_result()
        strategy = tf.distribute.get_strategy()
        if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy) and strategy.num_replicas_in_sync > 1:
            return {name: ops.reshape(value, (1,)) for name, value in results.items()}
        return results
