"""Accuracy, F1, Matthews correlation and confusion matrix of a classifier, as scikit-learn computes them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf.errors import InputError


def classification_metrics(
    true_ids: Sequence[int] | np.ndarray,
    predicted_ids: Sequence[int] | np.ndarray,
    labels: Sequence[str],
    probabilities: Sequence[Sequence[float]] | np.ndarray | None = None,
) -> dict[str, Any]:
    """Compares predictions with the truth. The values are plain Python numbers, ready for JSON.

    Args:
        true_ids, predicted_ids: (examples,), positions in `labels`.
        labels: the label of each id, two or more.
        probabilities: (examples, labels); each row is divided by its sum, which an 8-bit softmax can leave off 1.

    Returns:
        `accuracy`; with two labels `f1`, that of the second one (GLUE's figure for MRPC and QQP); `macro_f1`, the plain
        mean over the labels that occur in the truth or the predictions; `matthews_correlation` (GLUE's figure for
        CoLA; 0 when all are one label); with `probabilities` `loss`, the mean cross-entropy in nats; `examples`;
        `support`, label → true examples; `confusion_matrix`, rows the truth, columns the prediction.

    Raises:
        InputError: fewer than two labels, no examples, arrays of different length, ids outside the labels, or rows that
            are no probabilities.
    """
    from sklearn import metrics

    if len(set(labels)) < max(2, len(labels)):
        raise InputError(f"labels: expected two or more different labels, got {list(labels)}")
    true, predicted = _ids(true_ids, "true_ids", labels), _ids(predicted_ids, "predicted_ids", labels)
    if len(true) != len(predicted) or not len(true):
        raise InputError(
            f"expected as many predictions as true ids and at least one, got {len(predicted)} and {len(true)}"
        )
    ids = list(range(len(labels)))
    occurring = np.union1d(true, predicted)
    result: dict[str, Any] = {"accuracy": float(metrics.accuracy_score(true, predicted))}
    if len(labels) == 2:
        result["f1"] = float(metrics.f1_score(true, predicted, pos_label=1, zero_division=0.0))
    result["macro_f1"] = float(metrics.f1_score(true, predicted, average="macro", zero_division=0.0))
    # scikit-learn gives 0 for a single label too, with a warning about its own call.
    result["matthews_correlation"] = float(metrics.matthews_corrcoef(true, predicted)) if len(occurring) > 1 else 0.0
    if probabilities is not None:
        result["loss"] = float(metrics.log_loss(true, _distributions(probabilities, len(true), len(ids)), labels=ids))
    matrix = metrics.confusion_matrix(true, predicted, labels=ids)
    return result | {
        "examples": len(true),
        "support": {label: int(count) for label, count in zip(labels, matrix.sum(axis=1), strict=True)},
        "confusion_matrix": matrix.tolist(),
    }


def _ids(values: Sequence[int] | np.ndarray, name: str, labels: Sequence[str]) -> np.ndarray:
    ids = np.asarray(values)
    if ids.ndim != 1 or (ids.size and not np.issubdtype(ids.dtype, np.integer)):
        raise InputError(f"{name}: expected whole numbers in one dimension, got {ids.dtype} of shape {ids.shape}")
    if ids.size and not (ids.min() >= 0 and ids.max() < len(labels)):
        raise InputError(f"{name}: expected ids from 0 to {len(labels) - 1}, got {ids.min()} to {ids.max()}")
    return ids


def _distributions(probabilities: Sequence[Sequence[float]] | np.ndarray, examples: int, labels: int) -> np.ndarray:
    """The rows as float64 distributions (examples, labels)."""
    rows = np.asarray(probabilities, dtype=np.float64)
    if rows.shape != (examples, labels):
        raise InputError(f"probabilities: expected the shape {(examples, labels)}, got {rows.shape}")
    sums = rows.sum(axis=1, keepdims=True)
    # An 8-bit softmax rounds each value to 1/256; with many labels the sum is off by several hundredths.
    wrong = np.flatnonzero(~((rows >= 0).all(axis=1) & (np.abs(sums[:, 0] - 1) < 0.25)))
    if wrong.size:
        row = rows[wrong[0]].tolist()[:5]
        raise InputError(
            f"probabilities: expected rows from 0 to 1 that sum to 1, got {row} as row {wrong[0]}; "
            "pass logits through a softmax first"
        )
    return rows / sums
