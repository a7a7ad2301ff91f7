"""ALBERT in float64 NumPy, written from the formulas: the answer that tests compare the Keras model with.

Source: Lan et al., ICLR 2020, section 3.1, and the order of operations of google-research/albert modeling.py and
run_pretraining.py; for factorization="words" those of brightmart/albert_zh. One example at a time and one head at a
time, so that nothing but the arithmetic is in common with the code under test. Weights are a dict of arrays under the
names of `albert_tf.parameters`; `config` is read for its numbers only.
"""

import math
from typing import Any

import numpy as np

Weights = dict[str, np.ndarray]

_erf = np.vectorize(math.erf, otypes=[np.float64])

ACTIVATIONS = {
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu_erf": lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2))),
    "relu": lambda x: np.where(x > 0, x, 0.0),
    "linear": lambda x: x,
}


def encode(
    weights: Weights, config: Any, token_ids: np.ndarray, segment_ids: np.ndarray, padding_mask: np.ndarray
) -> dict[str, Any]:
    """Every output of the encoder: arrays of (batch, sequence, width), `layer_outputs` a list of them."""
    weights = {name: np.asarray(value, np.float64) for name, value in weights.items()}
    rows = [_encode_one(weights, config, *row) for row in zip(token_ids, segment_ids, padding_mask, strict=True)]
    outputs: dict[str, Any] = {}
    for name in ("embedding_norm", "embedding_output"):
        outputs[name] = np.stack([row[name] for row in rows])
    outputs["layer_outputs"] = [np.stack(step) for step in zip(*(row["layer_outputs"] for row in rows), strict=True)]
    outputs["sequence_output"] = outputs["layer_outputs"][-1]
    if "pooler/kernel" in weights:
        outputs["pooled_output"] = np.tanh(dense(weights, "pooler", outputs["sequence_output"][:, 0]))
    return outputs


def masked_lm_logits(weights: Weights, config: Any, sequence_output: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """(batch, predictions, vocabulary)."""
    weights = {name: np.asarray(value, np.float64) for name, value in weights.items()}
    masked = np.stack([sequence[row] for sequence, row in zip(sequence_output, positions, strict=True)])
    x = ACTIVATIONS[config.activation](dense(weights, "masked_lm/transform", masked))
    epsilon = config.masked_lm_layer_norm_epsilon or config.layer_norm_epsilon
    x = layer_norm(weights, "masked_lm/layer_norm", x, epsilon)
    if config.factorization == "words":
        x = x @ weights["embeddings/projection/kernel"].T
    return x @ weights["embeddings/word_embedding/embeddings"].T + weights["masked_lm/output_bias"]


def sentence_order_logits(weights: Weights, pooled_output: np.ndarray) -> np.ndarray:
    """(batch, 2)."""
    return dense(
        {name: np.asarray(value, np.float64) for name, value in weights.items()}, "sentence_order", pooled_output
    )


def block_indices(config: Any) -> list[tuple[int, int]]:
    """The attention and feed-forward block of each step: every layer has its own, but for what its group shares."""
    indices = []
    for layer in range(config.num_layers):
        group = int(layer / config.num_layers * config.num_groups)  # as modeling.py has it
        for inner in range(config.num_inner_repetitions):
            shared, own = (n * config.num_inner_repetitions + inner for n in (group, layer))
            indices.append(
                {"all": (shared, shared), "attention": (shared, own), "ffn": (own, shared), "none": (own, own)}[
                    config.sharing
                ]
            )
    return indices


def dense(weights: Weights, name: str, x: np.ndarray) -> np.ndarray:
    return x @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]


def layer_norm(weights: Weights, name: str, x: np.ndarray, epsilon: float) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred**2).mean(-1, keepdims=True)
    return centred / np.sqrt(variance + epsilon) * weights[f"{name}/gamma"] + weights[f"{name}/beta"]


def attention(
    weights: Weights,
    config: Any,
    name: str,
    x: np.ndarray,
    mask: np.ndarray,
    *,
    probability_factors: np.ndarray | None = None,
    output_factors: Any = 1.0,
) -> np.ndarray:
    """One example: x (sequence, hidden), mask (sequence); the factors, 0 or 1 / (1 - rate), are a dropout mask."""
    query, key, value = (dense(weights, f"{name}/{part}", x) for part in ("query", "key", "value"))
    width = query.shape[-1] // config.num_heads
    contexts = []
    for head in range(config.num_heads):
        columns = slice(head * width, (head + 1) * width)
        scores = query[:, columns] @ key[:, columns].T / math.sqrt(width) + (1 - mask) * -10000.0
        exponentials = np.exp(scores - scores.max(-1, keepdims=True))
        probabilities = exponentials / exponentials.sum(-1, keepdims=True)
        if probability_factors is not None:
            probabilities = probabilities * probability_factors[head]
        contexts.append(probabilities @ value[:, columns])
    attended = dense(weights, f"{name}/output", np.concatenate(contexts, -1)) * output_factors
    return layer_norm(weights, f"{name}/layer_norm", x + attended, config.layer_norm_epsilon)


def feed_forward(weights: Weights, config: Any, name: str, x: np.ndarray, *, output_factors: Any = 1.0) -> np.ndarray:
    """One example: x (sequence, hidden)."""
    expanded = ACTIVATIONS[config.activation](dense(weights, f"{name}/intermediate", x))
    contracted = dense(weights, f"{name}/output", expanded) * output_factors
    return layer_norm(weights, f"{name}/layer_norm", x + contracted, config.layer_norm_epsilon)


def _encode_one(
    weights: Weights, config: Any, token_ids: np.ndarray, segment_ids: np.ndarray, padding_mask: np.ndarray
) -> dict[str, Any]:
    x = weights["embeddings/word_embedding/embeddings"][token_ids]
    if config.factorization == "words":
        x = x @ weights["embeddings/projection/kernel"]
    x = x + weights["embeddings/segment_embedding/embeddings"][segment_ids]
    x = x + weights["embeddings/position_embedding/embeddings"][: len(token_ids)]
    embedding_norm = x = layer_norm(weights, "embeddings/layer_norm", x, config.layer_norm_epsilon)
    if config.factorization == "embeddings" and "embeddings/projection/kernel" in weights:
        x = dense(weights, "embeddings/projection", x)
    embedding_output, layer_outputs = x, []
    for attention_index, feed_forward_index in block_indices(config):
        x = attention(weights, config, f"encoder/attention_{attention_index}", x, padding_mask)
        x = feed_forward(weights, config, f"encoder/feed_forward_{feed_forward_index}", x)
        layer_outputs.append(x)
    return {"embedding_norm": embedding_norm, "embedding_output": embedding_output, "layer_outputs": layer_outputs}
