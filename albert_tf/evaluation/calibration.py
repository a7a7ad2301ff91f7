"""Whether a classifier is as often right as its probabilities say, and the temperature with which it is.

Guo, Pleiss, Sun and Weinberger, On Calibration of Modern Neural Networks, 2017.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf.errors import InputError

BINS = 15
LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 0.02, 50.0
_LEAST = 1e-30  # a probability of 0 has no logarithm


def calibration_metrics(
    true_ids: Sequence[int] | np.ndarray, probabilities: np.ndarray, *, bins: int = BINS
) -> dict[str, Any]:
    """Compares how sure the predictions are with how often they are right.

    Args:
        true_ids: (examples,), positions in the rows of probabilities.
        probabilities: (examples, labels), rows that sum to 1.
        bins: parts of equal width, each without its lower and with its upper end, into which confidences are put.

    Returns:
        `expected_calibration_error`, the mean over all examples of the distance between accuracy and mean confidence in
        their bin; `mean_confidence`; `calibration_bins`, for each bin with examples `low`, `high`, `examples`, `accuracy`
        and `confidence`.

    Raises:
        InputError: no examples, or as many of the one as not of the other.
    """
    true, rows = _checked(true_ids, probabilities)
    confidence = rows.max(axis=1)
    right = rows.argmax(axis=1) == true
    numbers = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    found = []
    error = 0.0
    for number in np.unique(numbers):
        own = numbers == number
        accuracy, mean = float(right[own].mean()), float(confidence[own].mean())
        error += float(own.mean()) * abs(accuracy - mean)
        found.append(
            {
                "low": number / bins,
                "high": (number + 1) / bins,
                "examples": int(own.sum()),
                "accuracy": accuracy,
                "confidence": mean,
            }
        )
    return {
        "expected_calibration_error": error,
        "mean_confidence": float(confidence.mean()),
        "calibration_bins": found,
    }


def fit_temperature(true_ids: Sequence[int] | np.ndarray, probabilities: np.ndarray) -> float:
    """What logits are to be divided by so that the cross-entropy is least.

    With b for 1 / temperature, the cross-entropy of softmax(b · logits) is convex in b, and its slope is the mean logit
    under the probabilities less the logit of the true label; the root is found by bisection. Logarithms of probabilities
    do for logits: a softmax takes no notice of what is added to all of a row.

    Args:
        true_ids: (examples,), positions in the rows of probabilities.
        probabilities: (examples, labels), with temperature 1.

    Raises:
        InputError: see `calibration_metrics`; or no temperature is best, as where all predictions are right.
    """
    true, rows = _checked(true_ids, probabilities)
    logits = np.log(np.maximum(rows, _LEAST))
    wanted = logits[np.arange(len(true)), true]

    def slope(inverse: float) -> float:
        scaled = inverse * (logits - logits.max(axis=1, keepdims=True))
        weights = np.exp(scaled)
        return float(np.mean((weights * logits).sum(axis=1) / weights.sum(axis=1) - wanted))

    low, high = 1.0 / HIGHEST_TEMPERATURE, 1.0 / LOWEST_TEMPERATURE
    if not slope(low) < 0.0 < slope(high):
        raise InputError(
            f"no temperature from {LOWEST_TEMPERATURE} to {HIGHEST_TEMPERATURE} is best: expected examples of which the "
            "model has some right, more than by chance, and some wrong; take a larger validation file"
        )
    for _ in range(100):
        middle = (low + high) / 2.0
        low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
    return 2.0 / (low + high)


def with_temperature(probabilities: np.ndarray, temperature: float) -> np.ndarray:
    """The probabilities (examples, labels) with their logits divided by `temperature`."""
    logits = np.log(np.maximum(np.asarray(probabilities, np.float64), _LEAST)) / temperature
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    rows: np.ndarray = exponentials / exponentials.sum(axis=1, keepdims=True)
    return rows


def _checked(true_ids: Sequence[int] | np.ndarray, probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    true, rows = np.asarray(true_ids), np.asarray(probabilities, np.float64)
    if rows.ndim != 2 or true.shape != rows.shape[:1] or not len(true):
        raise InputError(
            f"expected a row of probabilities for each true id and at least one, got {rows.shape} and {true.shape}"
        )
    if not (true.min() >= 0 and true.max() < rows.shape[1]):
        raise InputError(f"true_ids: expected ids from 0 to {rows.shape[1] - 1}, got {true.min()} to {true.max()}")
    return true, rows / rows.sum(axis=1, keepdims=True)
