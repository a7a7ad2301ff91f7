"""Encoder and head as integers can compute them: the same function, in another order of operations.

Trained ALBERTs have a few channels that are tens of times larger than the others, so one scale for a whole tensor leaves
the others nothing of 8 bits. Here only the dense layers compute in 8 bits. The residual stream, layer norms and softmax
are left to 16, and around a dense layer stand factors for each channel:

- its inputs are divided by them, its weights multiplied (SmoothQuant, Xiao et al., 2022);
- its weights are divided by the outputs' largest values, its outputs multiplied: in 8 bits all channels are as large.

Every pass through a shared block has operators of its own, so it gets ranges of its own.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.layers.answer_head import AnswerHead
from albert_tf.layers.channel_factors import channel_factors
from albert_tf.layers.configured import activation_function
from albert_tf.layers.dense import Dense
from albert_tf.tasks.base import AlbertTask
from albert_tf.tokenization.packing import Packed

# Added to the scores of padding, and the logit of what can be no answer. -10000 would be the range of 16 bits, with nothing
# left for the scores of tokens.
PADDING_BIAS = -50.0

Weights = dict[str, np.ndarray]
Record = Callable[[str, Any, Any], None]


def integer_weights(task: AlbertTask, rows: Sequence[Packed]) -> Weights:
    """The weights with factors around dense layers, from how large channels become on `rows`."""
    config = task.backbone.config
    weights = {path: np.asarray(w, np.float32) for path, w in task.named_weights().items()}
    for path in {f"encoder/attention_{attention}/query" for attention, _ in config.block_schedule}:
        for name in (f"{path}/kernel", f"{path}/bias"):
            weights[name] = weights[name] * np.float32(config.head_dim**-0.5)
    largest: dict[str, list[np.ndarray]] = {}

    def record(path: str, inputs: Any, outputs: Any) -> None:
        found = [np.abs(np.asarray(values)).max(0) for values in (inputs, outputs)]
        known = largest.get(path, found)
        largest[path] = [np.maximum(a, b) for a, b in zip(known, found, strict=True)]

    encode = IntegerEncoder(config, weights, record)
    with head_computed_by(encode, task):
        for token_ids, segment_ids in rows:
            arrays = [tf.constant([values], tf.int32) for values in (token_ids, segment_ids, [1] * len(token_ids))]
            task.row_outputs(encode(*arrays), *arrays[1:])
    for path, (inputs, outputs) in largest.items():
        weights |= _with_factors(path, weights, inputs, outputs)
    return weights


def _with_factors(path: str, weights: Weights, inputs: np.ndarray, outputs: np.ndarray) -> Weights:
    kernel, bias = weights[f"{path}/kernel"], weights.get(f"{path}/bias")
    smooth, size = channel_factors(kernel, inputs, outputs)
    changed = {f"{path}/kernel": kernel * smooth[:, None] / size, f"{path}/in": 1 / smooth, f"{path}/out": size}
    if bias is not None:
        changed[f"{path}/bias"] = bias / size
    return {name: np.asarray(value, np.float32) for name, value in changed.items()}


@contextlib.contextmanager
def narrow_logits(task: AlbertTask) -> Iterator[None]:
    """Within it the task's head excludes positions by a logit that leaves the others their bits."""
    heads = [layer for layer in task.layers if isinstance(layer, AnswerHead)]
    before = [head.excluded for head in heads]
    for head in heads:
        head.excluded = PADDING_BIAS
    try:
        yield
    finally:
        for head, excluded in zip(heads, before, strict=True):
            head.excluded = excluded


@contextlib.contextmanager
def head_computed_by(encode: "IntegerEncoder", task: AlbertTask) -> Iterator[None]:
    """Within it the dense layers of the task's head are computed as those of the encoder."""
    for layer in task.head_layers:
        layer.computation = encode.compute
    try:
        yield
    finally:
        for layer in task.head_layers:
            layer.computation = None


class IntegerEncoder:
    """(1, S) token ids, segment ids and mask → (1, S, H), with `weights` as constants.

    Args:
        config: of the backbone.
        weights: by path; a dense layer may have factors "in" and "out".
        record: is given the path, the inputs and the outputs of every dense layer that has no factors.
    """

    def __init__(self, config: AlbertConfig, weights: Weights, record: Record | None = None) -> None:
        self.config, self.weights, self.record = config, weights, record
        self.activation = activation_function(config.activation)
        self._constants: dict[str, Any] = {}  # each is one for all passes
        self._one: Any = None

    def __call__(self, token_ids: Any, segment_ids: Any, padding_mask: Any) -> Any:
        config, length = self.config, int(token_ids.shape[1])
        self._constants = {}  # of this graph
        mask = tf.cast(padding_mask, tf.float32)
        # Always 1, as the first token is never padding. The converter does not know that, or it would multiply the
        # factors into the weights again.
        self._one = mask[0, :1]
        x = self._embed(token_ids, segment_ids, length)
        bias = ((1.0 - mask) * PADDING_BIAS)[:, None, :]
        for attention, feed_forward in config.block_schedule:
            block = f"encoder/attention_{attention}"
            attended = self._dense(f"{block}/output", self._attend(block, x, bias, length))
            x = self._norm(x + attended, f"{block}/layer_norm")
            block = f"encoder/feed_forward_{feed_forward}"
            expanded = self.activation(self._dense(f"{block}/intermediate", x))
            x = self._norm(x + self._dense(f"{block}/output", expanded), f"{block}/layer_norm")
        return x[None]

    def compute(self, layer: Dense, inputs: Any, step: int, training: bool) -> Any:
        """What a dense layer behind the encoder puts out before its activation; see `albert_tf.layers.dense`."""
        outputs = self._dense(layer.path, tf.reshape(inputs, (-1, inputs.shape[-1])))
        return tf.reshape(outputs, (*inputs.shape[:-1], layer.units))

    def _embed(self, token_ids: Any, segment_ids: Any, length: int) -> Any:
        config, path = self.config, "embeddings"
        tables = [self._constant(f"{path}/{name}_embedding/embeddings") for name in ("word", "segment")]
        words, segments = (
            tf.gather(table, tf.reshape(ids, (-1,)))
            for table, ids in zip(tables, (token_ids, segment_ids), strict=True)
        )
        words_first = config.factorization == "words" and config.has_projection
        if words_first:
            words = self._dense(f"{path}/projection", words)
        positions = tf.constant(self.weights[f"{path}/position_embedding/embeddings"][:length])
        x = self._norm(words + segments + positions, f"{path}/layer_norm")
        return self._dense(f"{path}/projection", x) if config.has_projection and not words_first else x

    def _attend(self, block: str, x: Any, bias: Any, length: int) -> Any:
        config = self.config

        def heads(name: str) -> Any:  # (S, H) → (N, S, D)
            projected = self._dense(f"{block}/{name}", x)
            return tf.transpose(tf.reshape(projected, (length, config.num_heads, config.head_dim)), (1, 0, 2))

        scores = tf.matmul(heads("query"), tf.transpose(heads("key"), (0, 2, 1))) + bias
        context = tf.matmul(tf.nn.softmax(scores), heads("value"))
        return tf.reshape(tf.transpose(context, (1, 0, 2)), (length, config.heads_dim))

    def _norm(self, x: Any, path: str) -> Any:
        """Layer norm with the sum of squares as a product, whose terms are not rounded; epsilon is below any rounding."""
        x = x - tf.reduce_mean(x, axis=-1, keepdims=True)
        squares = tf.matmul(x[:, None, :], x[:, :, None])[:, 0]
        width = int(x.shape[-1])
        gamma = self._constant(f"{path}/gamma", width**0.5)
        return x * tf.math.rsqrt(squares + width * self.config.layer_norm_epsilon) * gamma + self._constant(
            f"{path}/beta"
        )

    def _dense(self, path: str, x: Any) -> Any:
        has_factors = f"{path}/in" in self.weights
        inputs = x * self._factor(f"{path}/in") if has_factors else x
        outputs = tf.matmul(inputs, self._constant(f"{path}/kernel"))
        if f"{path}/bias" in self.weights:
            outputs = outputs + self._constant(f"{path}/bias")
        if self.record is not None and not has_factors:
            self.record(path, inputs, outputs)
        return outputs * self._factor(f"{path}/out") if has_factors else outputs

    def _constant(self, path: str, factor: float = 1.0) -> Any:
        if path not in self._constants:
            self._constants[path] = tf.constant(self.weights[path] * np.float32(factor))
        return self._constants[path]

    def _factor(self, path: str) -> Any:
        if path + "*" not in self._constants:
            self._constants[path + "*"] = self._constant(path) * self._one
        return self._constants[path + "*"]
