"""The head of SQuAD 2.0: where an answer starts, where it ends given its start, and whether there is one."""

from typing import Any

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.layers.configured import ConfiguredLayer

_EXCLUDED = -1e9


@keras.saving.register_keras_serializable(package="albert_tf")
class AnswerHead(ConfiguredLayer):
    """start: dense. end: [token, start token] → dense H, tanh → layer norm → dense. No answer: [mean start token, first
    token] → dense H, tanh → dropout → dense without bias (google-research/albert squad_utils.py, create_v2_model).

    An answer may start and end in the second text; the first position stands for "none".

    Args:
        config: the encoder's.
        dropout: rate before the last layer of "no answer".

    Attributes:
        excluded: the logit of a position where no answer can be.
    """

    def __init__(self, config: AlbertConfig, dropout: float = 0.1, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.dropout_rate = dropout
        self.excluded = _EXCLUDED
        self.start = self._logit("start")
        self.end_hidden = self.dense(config.hidden_dim, "end_hidden")
        self.end_layer_norm = keras.layers.LayerNormalization(
            epsilon=config.layer_norm_epsilon, dtype=self.dtype_policy, name="end_layer_norm"
        )
        self.end = self._logit("end")
        self.no_answer_hidden = self.dense(config.hidden_dim, "no_answer_hidden")
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.no_answer = self._logit("no_answer", use_bias=False)

    def _logit(self, name: str, *, use_bias: bool = True) -> keras.layers.Dense:
        """One number from a vector. In float32 also under mixed precision: the loss is taken on it."""
        return keras.layers.Dense(
            1, use_bias=use_bias, kernel_initializer=self.initializer(), dtype="float32", name=name
        )

    def build(self, *shapes: Any, **named_shapes: Any) -> None:
        width = self.config.hidden_dim
        for layer in (self.start, self.end_layer_norm, self.end, self.no_answer):
            layer.build((None, width))
        for layer in (self.end_hidden, self.no_answer_hidden):
            layer.build((None, 2 * width))
        self.built = True

    def call(self, sequence_output: Any, segment_ids: Any, padding_mask: Any, training: bool | None = None) -> Any:
        """(B, S, H) and two times (B, S) → `start_logits` float32 (B, S), very low where no answer can start; `allowed`
        float32 (B, S), 1 where one can; `no_answer_logit` float32 (B, 1)."""
        allowed = answer_positions(segment_ids, padding_mask)
        start_logits = self._masked(ops.squeeze(self.start(sequence_output), -1), allowed)
        weights = ops.cast(ops.softmax(start_logits, axis=-1), sequence_output.dtype)
        mean_start = ops.sum(ops.expand_dims(weights, -1) * sequence_output, axis=1)
        hidden = self.no_answer_hidden(ops.concatenate([mean_start, sequence_output[:, 0]], axis=-1))
        no_answer = self.no_answer(self.dropout(ops.tanh(hidden), training=training))
        return {"start_logits": start_logits, "allowed": allowed, "no_answer_logit": no_answer}

    def end_logits(self, sequence_output: Any, starts: Any, allowed: Any) -> Any:
        """The logits of the end for each of several starts.

        Args:
            sequence_output: (B, S, H).
            starts: positions (B, K).
            allowed: of `call`.

        Returns:
            float32 (B, K, S), very low where no answer can end.
        """
        x = ops.cast(sequence_output, self.compute_dtype)
        start_tokens = ops.take_along_axis(x, ops.expand_dims(ops.cast(starts, "int32"), -1), axis=1)
        # The product with [token, start token] in two, so that no pair of them is written down.
        kernel = ops.cast(self.end_hidden.kernel, self.compute_dtype)
        width = self.config.hidden_dim
        hidden = ops.expand_dims(ops.matmul(x, kernel[:width]), 1)
        hidden += ops.expand_dims(ops.matmul(start_tokens, kernel[width:]), 2)
        hidden = ops.tanh(hidden + ops.cast(self.end_hidden.bias, self.compute_dtype))
        return self._masked(ops.squeeze(self.end(self.end_layer_norm(hidden)), -1), ops.expand_dims(allowed, 1))

    def best_ends(self, sequence_output: Any, start_logits: Any, allowed: Any, beams: int) -> Any:
        """Log-probabilities of the end, float32 (B, S, K), for each of the K most probable starts, the best one first."""
        # Of a row that is shorter than K, positions behind its end come last, and their starts are very improbable.
        behind = ops.full_like(start_logits[:, :1], 2 * self.excluded)
        padded = ops.concatenate([start_logits, ops.repeat(behind, beams, axis=1)], axis=1)
        _, starts = ops.top_k(padded, beams)
        starts = ops.minimum(starts, ops.shape(start_logits)[1] - 1)
        ends = ops.log_softmax(self.end_logits(sequence_output, starts, allowed), axis=-1)
        return ops.transpose(ends, (0, 2, 1))

    def _masked(self, logits: Any, allowed: Any) -> Any:
        return logits * allowed + self.excluded * (1.0 - allowed)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"dropout": self.dropout_rate}


def answer_positions(segment_ids: Any, padding_mask: Any) -> Any:
    """1 for the tokens of the second text but its [SEP], and for the first position; float32 (B, S)."""
    mask = ops.cast(padding_mask, "float32")
    with_token_behind = ops.concatenate([mask[:, 1:], ops.zeros_like(mask[:, :1])], axis=1)
    text = ops.cast(ops.equal(segment_ids, 1), "float32") * with_token_behind
    return ops.concatenate([ops.ones_like(text[:, :1]), text[:, 1:]], axis=1)
