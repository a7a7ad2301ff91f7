"""The head of SQuAD 2.0 in float64 NumPy, one row at a time and one start at a time, from run_squad_v2 of
google-research/albert (squad_utils.py, create_v2_model and v2_model_fn_builder)."""

from typing import Any

import numpy as np

Weights = dict[str, np.ndarray]


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max()
    return shifted - np.log(np.exp(shifted).sum())


def start_log_probs(weights: Weights, tokens: np.ndarray, excluded: np.ndarray) -> np.ndarray:
    """(S,) of the tokens (S, H); `excluded` is 1 where no answer can be."""
    logits = (tokens @ weights["start/kernel"] + weights["start/bias"])[:, 0]
    return log_softmax(logits * (1 - excluded) - 1e30 * excluded)


def end_log_probs(weights: Weights, tokens: np.ndarray, excluded: np.ndarray, start: int) -> np.ndarray:
    """(S,), given the position of the start."""
    pairs = np.concatenate([tokens, np.repeat(tokens[start][None], len(tokens), 0)], axis=1)
    hidden = np.tanh(pairs @ weights["end_hidden/kernel"] + weights["end_hidden/bias"])
    centred = hidden - hidden.mean(-1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
    normal = normal * weights["end_layer_norm/gamma"] + weights["end_layer_norm/beta"]
    logits = (normal @ weights["end/kernel"] + weights["end/bias"])[:, 0]
    return log_softmax(logits * (1 - excluded) - 1e30 * excluded)


def no_answer_logit(weights: Weights, tokens: np.ndarray, excluded: np.ndarray) -> float:
    mean_start = np.exp(start_log_probs(weights, tokens, excluded)) @ tokens
    both = np.concatenate([mean_start, tokens[0]])
    hidden = np.tanh(both @ weights["no_answer_hidden/kernel"] + weights["no_answer_hidden/bias"])
    return float(hidden @ weights["no_answer/kernel"][:, 0])


def loss(weights: Weights, tokens: np.ndarray, excluded: np.ndarray, target: tuple[int, int, Any]) -> float:
    """`target`: start, end, and 1 where there is no answer."""
    start, end, unanswerable = target
    spans = start_log_probs(weights, tokens, excluded)[start] + end_log_probs(weights, tokens, excluded, start)[end]
    logit = no_answer_logit(weights, tokens, excluded)
    of_class = np.log1p(np.exp(logit)) - unanswerable * logit
    return float(-0.5 * spans + 0.5 * of_class)
