"""Classification metrics against their formulas, worked out here in NumPy."""

import json
import math
import warnings

import numpy as np
import pytest

from albert_tf.errors import InputError
from albert_tf.evaluation.classification_metrics import classification_metrics


def counted(true: np.ndarray, predicted: np.ndarray, labels: int) -> np.ndarray:
    matrix = np.zeros((labels, labels), dtype=int)
    for row, column in zip(true, predicted, strict=True):
        matrix[row, column] += 1
    return matrix


def f1_of(matrix: np.ndarray, label: int) -> float:
    """2·TP / (2·TP + FP + FN)."""
    hits = matrix[label, label]
    return 2 * hits / max(1, matrix[label].sum() + matrix[:, label].sum())


def multiclass_matthews(matrix: np.ndarray) -> float:
    """Gorodkin's R_K (2004): (c·s − Σ p·t) / sqrt((s² − Σ p²)(s² − Σ t²))."""
    s, c = matrix.sum(), np.trace(matrix)
    t, p = matrix.sum(axis=1), matrix.sum(axis=0)
    return (c * s - p @ t) / math.sqrt((s**2 - p @ p) * (s**2 - t @ t))


@pytest.mark.parametrize("labels", [2, 3, 7])
def test_against_formulas(labels: int) -> None:
    generator = np.random.default_rng(labels)
    true = generator.integers(0, labels, 200)
    logits = generator.normal(size=(200, labels)) + 1.5 * np.eye(labels)[true]
    probabilities = (np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)).astype(np.float32)
    predicted = probabilities.argmax(axis=1)
    names = [f"label {n}" for n in range(labels)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metrics = classification_metrics(true, predicted, names, probabilities)
    matrix = counted(true, predicted, labels)
    assert metrics["confusion_matrix"] == matrix.tolist()
    assert metrics["examples"] == 200
    assert metrics["support"] == {name: int((true == n).sum()) for n, name in enumerate(names)}
    assert metrics["accuracy"] == pytest.approx((true == predicted).mean())
    assert metrics["macro_f1"] == pytest.approx(np.mean([f1_of(matrix, n) for n in range(labels)]))
    assert metrics["matthews_correlation"] == pytest.approx(multiclass_matthews(matrix))
    assert metrics["loss"] == pytest.approx(-np.log(probabilities[np.arange(200), true]).mean(), rel=1e-6)
    if labels == 2:
        assert metrics["f1"] == pytest.approx(f1_of(matrix, 1))
    else:
        assert "f1" not in metrics
    json.dumps(metrics, allow_nan=False)


def test_a_small_case_by_hand() -> None:
    """TP 2, FN 1, FP 1, TN 1 for the second label: F1 2/3, Matthews (2·1 − 1·1) / sqrt(3·3·2·2) = 1/6."""
    metrics = classification_metrics([1, 1, 1, 0, 0], [1, 1, 0, 1, 0], ["no", "yes"], [[0.5, 0.5]] * 5)
    assert metrics["confusion_matrix"] == [[1, 1], [1, 2]]
    assert metrics["accuracy"] == pytest.approx(3 / 5)
    assert metrics["f1"] == pytest.approx(2 / 3)
    assert metrics["macro_f1"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert metrics["matthews_correlation"] == pytest.approx(1 / 6)
    assert metrics["loss"] == pytest.approx(math.log(2))
    assert metrics["support"] == {"no": 2, "yes": 3}
    assert "loss" not in classification_metrics([0, 1], [0, 1], ["no", "yes"])


def test_labels_that_do_not_occur() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metrics = classification_metrics([1, 1], [1, 2], ["a", "b", "c", "d"])
        single = classification_metrics([0, 0], [0, 0], ["a", "b"], [[1.0, 0.0], [0.5, 0.5]])
    assert metrics["macro_f1"] == pytest.approx((2 / 3 + 0) / 2)  # "a" and "d" have no say
    assert metrics["support"] == {"a": 0, "b": 2, "c": 0, "d": 0}
    assert len(metrics["confusion_matrix"]) == 4
    assert (single["accuracy"], single["f1"], single["macro_f1"], single["matthews_correlation"]) == (
        1.0,
        0.0,
        1.0,
        0.0,
    )
    assert single["loss"] == pytest.approx(math.log(2) / 2)


def test_a_probability_of_zero_gives_a_large_finite_loss() -> None:
    loss = classification_metrics([1], [0], ["a", "b"], [[1.0, 0.0]])["loss"]
    assert 30 < loss < 40


def test_eight_bit_probabilities_are_normalised() -> None:
    metrics = classification_metrics([0, 1], [0, 1], ["a", "b"], np.array([[128, 127], [64, 191]]) / 256)
    assert metrics["loss"] == pytest.approx(-(math.log(128 / 255) + math.log(191 / 255)) / 2)


@pytest.mark.parametrize(
    ("true", "predicted", "labels", "probabilities", "says"),
    [
        ([], [], ["a", "b"], None, "at least one"),
        ([0, 1], [0], ["a", "b"], None, "got 1 and 2"),
        ([0, 2], [0, 1], ["a", "b"], None, "ids from 0 to 1, got 0 to 2"),
        ([0, 1], [0, -1], ["a", "b"], None, "predicted_ids"),
        ([0.0, 1.0], [0, 1], ["a", "b"], None, "whole numbers"),
        ([[0], [1]], [0, 1], ["a", "b"], None, "one dimension"),
        ([0], [0], ["a"], None, "two or more different labels"),
        ([0], [0], ["a", "a"], None, "two or more different labels"),
        ([0, 1], [0, 1], ["a", "b"], [[0.5, 0.5]], r"shape \(2, 2\), got \(1, 2\)"),
        ([0, 1], [0, 1], ["a", "b"], [[0.5, 0.5], [3.0, -2.0]], "as row 1"),
        ([0, 1], [0, 1], ["a", "b"], [[0.5, 0.5], [3.0, 2.0]], "softmax"),
        ([0, 1], [0, 1], ["a", "b"], [[0.5, math.nan], [0.5, 0.5]], "as row 0"),
    ],
)
def test_faults(true, predicted, labels, probabilities, says) -> None:
    with pytest.raises(InputError, match=says):
        classification_metrics(true, predicted, labels, probabilities)
