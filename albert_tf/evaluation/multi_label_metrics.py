"""F1 and accuracy where a text has several labels, as scikit-learn computes them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf.errors import InputError


def multi_label_metrics(
    true: np.ndarray, predicted: np.ndarray, labels: Sequence[str], probabilities: np.ndarray | None = None
) -> dict[str, Any]:
    """Compares sets of labels.

    Args:
        true, predicted: (examples, labels), 1 for a label that an example has.
        labels: the label of each column.
        probabilities: (examples, labels), each by itself.

    Returns:
        `micro_f1`, over all pairs of example and label; `macro_f1`, the plain mean over the labels; `precision` and
        `recall` as micro F1 counts; `subset_accuracy`, the share of examples whose labels are all right; `hamming_loss`,
        the share of wrong pairs; with `probabilities` `loss`, the mean cross-entropy of a pair in nats; `examples`;
        `support`, label → true examples; `f1_by_label`. A figure without anything to count is 0.

    Raises:
        InputError: no examples, or arrays of different shapes.
    """
    from sklearn import metrics

    truth, guesses = np.asarray(true) > 0.5, np.asarray(predicted) > 0.5
    if truth.ndim != 2 or truth.shape != guesses.shape or truth.shape[1] != len(labels) or not len(truth):
        raise InputError(
            f"expected true and predicted labels of the shape (examples, {len(labels)}), got {truth.shape} and "
            f"{guesses.shape}"
        )
    micro = {"average": "micro", "zero_division": 0.0}
    result: dict[str, Any] = {
        "micro_f1": float(metrics.f1_score(truth, guesses, **micro)),
        "macro_f1": float(metrics.f1_score(truth, guesses, average="macro", zero_division=0.0)),
        "precision": float(metrics.precision_score(truth, guesses, **micro)),
        "recall": float(metrics.recall_score(truth, guesses, **micro)),
        "subset_accuracy": float(metrics.accuracy_score(truth, guesses)),
        "hamming_loss": float(metrics.hamming_loss(truth, guesses)),
    }
    if probabilities is not None:
        rows = np.clip(np.asarray(probabilities, np.float64), 1e-12, 1.0 - 1e-12)
        if rows.shape != truth.shape:
            raise InputError(f"probabilities: expected the shape {truth.shape}, got {rows.shape}")
        result["loss"] = float(-np.mean(np.where(truth, np.log(rows), np.log1p(-rows))))
    by_label = metrics.f1_score(truth, guesses, average=None, zero_division=0.0)
    return result | {
        "examples": len(truth),
        "support": {label: int(count) for label, count in zip(labels, truth.sum(axis=0), strict=True)},
        "f1_by_label": {label: float(value) for label, value in zip(labels, by_label, strict=True)},
    }
