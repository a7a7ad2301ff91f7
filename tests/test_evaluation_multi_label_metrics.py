"""Metrics of sets of labels against scikit-learn's own, and small cases by hand."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, hamming_loss, log_loss, precision_score, recall_score

from albert_tf.errors import InputError
from albert_tf.evaluation.multi_label_metrics import multi_label_metrics


def test_scikit_learn() -> None:
    random = np.random.default_rng(0)
    true = (random.random((60, 4)) < [0.5, 0.2, 0.7, 0.0]).astype(np.float32)
    probabilities = random.random((60, 4))
    predicted = probabilities > 0.4
    metrics = multi_label_metrics(true, predicted, list("abcd"), probabilities)
    sides = (true.astype(int), predicted.astype(int))
    assert metrics["micro_f1"] == pytest.approx(f1_score(*sides, average="micro"))
    assert metrics["macro_f1"] == pytest.approx(f1_score(*sides, average="macro", zero_division=0))
    assert metrics["precision"] == pytest.approx(precision_score(*sides, average="micro"))
    assert metrics["recall"] == pytest.approx(recall_score(*sides, average="micro"))
    assert metrics["subset_accuracy"] == accuracy_score(*sides)
    assert metrics["hamming_loss"] == pytest.approx(hamming_loss(*sides))
    losses = [log_loss(true[:, n], probabilities[:, n], labels=[0, 1]) for n in range(4)]
    assert metrics["loss"] == pytest.approx(np.mean(losses))
    assert metrics["support"] == {label: int(count) for label, count in zip("abcd", true.sum(axis=0), strict=True)}
    assert metrics["f1_by_label"]["a"] == pytest.approx(f1_score(sides[0][:, 0], sides[1][:, 0]))
    assert metrics["examples"] == 60


def test_by_hand() -> None:
    metrics = multi_label_metrics(np.array([[1, 1], [0, 0]]), np.array([[1, 0], [0, 0]]), ["a", "b"])
    assert (metrics["micro_f1"], metrics["macro_f1"]) == (pytest.approx(2 / 3), 0.5)
    assert (metrics["subset_accuracy"], metrics["hamming_loss"]) == (0.5, 0.25)
    nothing = multi_label_metrics(np.zeros((2, 2)), np.zeros((2, 2)), ["a", "b"])
    assert (nothing["micro_f1"], nothing["subset_accuracy"]) == (0.0, 1.0)


def test_wrong_use() -> None:
    with pytest.raises(InputError, match="expected true and predicted labels of the shape"):
        multi_label_metrics(np.zeros((0, 2)), np.zeros((0, 2)), ["a", "b"])
    with pytest.raises(InputError, match="expected true and predicted labels of the shape"):
        multi_label_metrics(np.zeros((1, 2)), np.zeros((2, 2)), ["a", "b"])
    with pytest.raises(InputError, match="probabilities: expected the shape"):
        multi_label_metrics(np.zeros((1, 2)), np.zeros((1, 2)), ["a", "b"], np.zeros((1, 3)))
