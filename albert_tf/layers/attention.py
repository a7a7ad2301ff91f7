"""The two halves of an encoder layer, each with its residual connection and layer norm (post-LN)."""

from typing import Any

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.layers.configured import ConfiguredLayer, activation_function
from albert_tf.layers.dropout import draw_seeds, dropout
from albert_tf.layers.rows import unflattened


@keras.saving.register_keras_serializable(package="albert_tf")
class AttentionBlock(ConfiguredLayer):
    """Self-attention: LN(x + dropout(dense(softmax(q·kᵀ/√D + bias)·v))).

    google-research/albert modeling.py, attention_ffn_block: the first half.
    """

    def __init__(self, config: AlbertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.query = self.dense(config.heads_dim, "query")
        self.key = self.dense(config.heads_dim, "key")
        self.value = self.dense(config.heads_dim, "value")
        self.output_dense = self.dense(config.hidden_dim, "output")
        self.norm = self.layer_norm()
        self.seed_generator = keras.random.SeedGenerator()

    def build(self, input_shape: Any = None) -> None:
        for layer in (self.query, self.key, self.value, self.norm):
            layer.build((None, self.config.hidden_dim))
        self.output_dense.build((None, self.config.heads_dim))
        self.built = True

    def seeds(self, training: bool | None) -> tuple[Any, ...]:
        """Draws what one `forward` needs: a seed for the probabilities and one for the output."""
        return draw_seeds(self.seed_generator, (self.config.attention_dropout, self.config.hidden_dropout), training)

    def call(
        self, x: Any, attention_bias: Any, head_mask: Any = None, training: bool | None = None, step: int = 0
    ) -> Any:
        """(B, T, H) and the additive bias (B, 1, 1, S) → (B, T, H), in a step of the schedule.

        With `head_mask` (B, N), what each head gives is multiplied by its value: 1 leaves it, 0 removes it.
        """
        return self.forward(x, attention_bias, *self.seeds(training), head_mask=head_mask, step=step)

    def forward(self, x: Any, attention_bias: Any, *seeds: Any, head_mask: Any = None, step: int = 0) -> Any:
        """`call` with the randomness given; the same arguments always give the same result."""
        rows = self.summed(x, attention_bias, *seeds, head_mask=head_mask, step=step)
        return unflattened(self.norm(rows), x, self.config.hidden_dim)

    def summed(self, x: Any, attention_bias: Any, *seeds: Any, head_mask: Any = None, step: int = 0) -> Any:
        """`forward` before the layer norm, as (B·T, H)."""
        config = self.config
        # One matrix multiplication of (B·T, H) a projection, with no per-example loop.
        rows = ops.reshape(x, (-1, config.hidden_dim))
        scores = self._scores(rows, x, step)
        # Softmax in float32 also under mixed precision: 8 bits of mantissa are too few for a sum over S.
        # Keras has cast the bias, as every float input of a layer, to the compute dtype.
        scores_with_bias = ops.cast(scores, "float32") + ops.cast(attention_bias, "float32")
        probabilities = ops.softmax(scores_with_bias, axis=-1)
        probabilities = dropout(ops.cast(probabilities, scores.dtype), config.attention_dropout, seeds, 0)
        context = ops.matmul(probabilities, self._heads(self.value(rows, step=step), x))  # (B, N, T, D)
        if head_mask is not None:
            context = context * ops.cast(head_mask, context.dtype)[:, :, None, None]
        context = ops.reshape(ops.transpose(context, (0, 2, 1, 3)), (-1, config.heads_dim))
        return rows + dropout(self.output_dense(context, step=step), config.hidden_dropout, seeds, 1)

    def scores(self, x: Any) -> Any:
        """q·kᵀ/√D of (B, T, H), before bias and softmax: (B, N, T, S)."""
        return self._scores(ops.reshape(x, (-1, self.config.hidden_dim)), x)

    def _scores(self, rows: Any, x: Any, step: int = 0) -> Any:
        query = self._heads(self.query(rows, step=step) * self.config.head_dim**-0.5, x)
        return ops.matmul(query, ops.transpose(self._heads(self.key(rows, step=step), x), (0, 1, 3, 2)))

    def _heads(self, projected: Any, x: Any) -> Any:
        """(B·T, H) → (B, N, T, D)."""
        shape = (self.config.num_heads, self.config.head_dim)
        return ops.transpose(unflattened(projected, x, *shape), (0, 2, 1, 3))

    def compute_output_shape(self, x_shape: Any, attention_bias_shape: Any) -> Any:
        return x_shape


@keras.saving.register_keras_serializable(package="albert_tf")
class FeedForwardBlock(ConfiguredLayer):
    """LN(x + dropout(dense(activation(dense(x))))): the second half of an encoder layer.

    Dropout after the second dense layer is in the original code (transformers' AlbertLayer leaves it out).
    """

    def __init__(self, config: AlbertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.intermediate = self.dense(config.intermediate_dim, "intermediate")
        self.output_dense = self.dense(config.hidden_dim, "output")
        self.norm = self.layer_norm()
        self.activation = activation_function(config.activation)
        self.seed_generator = keras.random.SeedGenerator()

    def build(self, input_shape: Any = None) -> None:
        self.intermediate.build((None, self.config.hidden_dim))
        self.output_dense.build((None, self.config.intermediate_dim))
        self.norm.build((None, self.config.hidden_dim))
        self.built = True

    def seeds(self, training: bool | None) -> tuple[Any, ...]:
        """Draws what one `forward` needs: a seed for the output."""
        return draw_seeds(self.seed_generator, (self.config.hidden_dropout,), training)

    def call(self, x: Any, column_mask: Any = None, training: bool | None = None, step: int = 0) -> Any:
        """(B, T, H) → (B, T, H), in a step of the schedule.

        With `column_mask` (B, I), each column between the two dense layers is multiplied by its value: 1 leaves it, 0
        removes it.
        """
        return self.forward(x, *self.seeds(training), column_mask=column_mask, step=step)

    def forward(self, x: Any, *seeds: Any, column_mask: Any = None, step: int = 0) -> Any:
        """`call` with the randomness given; the same arguments always give the same result."""
        rows = self.summed(x, *seeds, column_mask=column_mask, step=step)
        return unflattened(self.norm(rows), x, self.config.hidden_dim)

    def summed(self, x: Any, *seeds: Any, column_mask: Any = None, step: int = 0) -> Any:
        """`forward` before the layer norm, as (B·T, H)."""
        rows = ops.reshape(x, (-1, self.config.hidden_dim))
        expanded = self.activation(self.intermediate(rows, step=step))
        if column_mask is not None:
            columns = unflattened(expanded, x, self.config.intermediate_dim)
            columns = columns * ops.cast(column_mask, expanded.dtype)[:, None]
            expanded = ops.reshape(columns, (-1, self.config.intermediate_dim))
        return rows + dropout(self.output_dense(expanded, step=step), self.config.hidden_dropout, seeds, 0)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape
