"""The two pretraining heads; task heads are one dense layer and stand in their task."""

from typing import Any

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.layers.configured import ConfiguredLayer, activation_function


@keras.saving.register_keras_serializable(package="albert_tf")
class MaskedLMHead(ConfiguredLayer):
    """Predicts the words at the masked positions (run_pretraining.py, get_masked_lm_output).

    gather → dense H → E → activation → layer norm → · word tableᵀ + bias (google-research/albert); with
    factorization="words": gather → dense H → H → activation → layer norm → · projectionᵀ · word tableᵀ + bias
    (brightmart/albert_zh). Word table and projection are the embedding layer's own: they are passed to each call, so
    the tie cannot be lost in saving.
    """

    def __init__(self, config: AlbertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.transform = self.dense(config.summed_dim, "transform")
        self.norm = self.layer_norm(config.masked_lm_layer_norm_epsilon)
        self.activation = activation_function(config.activation)

    def build(self, input_shape: Any = None) -> None:
        self.transform.build((None, self.config.hidden_dim))
        self.norm.build((None, self.config.summed_dim))
        self.output_bias = self.add_weight(
            name="output_bias", shape=(self.config.vocabulary_size,), initializer="zeros", dtype=self.variable_dtype
        )
        self.built = True

    def call(self, sequence_output: Any, positions: Any, word_table: Any, projection: Any = None) -> Any:
        """(B, S, H), int positions (B, P), the table (V, E) and, where words are projected, the kernel (E, H) → float32
        logits (B, P, V); of all positions, (B, S, V), where `positions` is None."""
        if positions is not None:
            positions = ops.cast(positions, "int32")[:, :, None]
            sequence_output = ops.take_along_axis(sequence_output, positions, axis=1)
        x = self.norm(self.activation(self.transform(sequence_output)))
        if projection is not None:
            x = ops.matmul(x, ops.transpose(ops.cast(projection, x.dtype)))
        logits = ops.matmul(x, ops.transpose(ops.cast(word_table, x.dtype)))
        return ops.cast(logits, "float32") + ops.cast(self.output_bias, "float32")
