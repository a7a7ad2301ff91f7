"""Calibration error and temperature against SciPy's minimiser and plain loops."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from albert_tf.errors import InputError
from albert_tf.evaluation.calibration import calibration_metrics, fit_temperature, with_temperature


def overconfident(examples: int, labels: int, factor: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels drawn from a softmax, and its logits times `factor`."""
    random = np.random.default_rng(seed)
    logits = random.normal(size=(examples, labels)) * 1.5
    true = np.array([random.choice(labels, p=row) for row in softmax(logits, axis=1)])
    return true, logits * factor


@pytest.mark.parametrize("labels", [2, 5])
@pytest.mark.parametrize("factor", [0.4, 1.0, 3.0])
def test_temperature_is_that_of_scipy(labels: int, factor: float) -> None:
    true, logits = overconfident(800, labels, factor)

    def loss(log_temperature: np.ndarray) -> float:
        return float(-log_softmax(logits / np.exp(log_temperature[0]), axis=1)[np.arange(len(true)), true].mean())

    best = float(np.exp(minimize(loss, [0.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12}).x[0]))
    found = fit_temperature(true, softmax(logits, axis=1))
    assert found == pytest.approx(best, rel=1e-4)
    assert found == pytest.approx(factor, rel=0.2)
    np.testing.assert_allclose(
        with_temperature(softmax(logits, axis=1), found), softmax(logits / found, axis=1), atol=1e-9
    )


@pytest.mark.parametrize("bins", [10, 15])
def test_calibration_error_bin_by_bin(bins: int) -> None:
    true, logits = overconfident(500, 3, 2.5)
    rows = softmax(logits, axis=1)
    edges = np.linspace(0.0, 1.0, bins + 1)
    error, sizes = 0.0, []
    for low, high in itertools.pairwise(edges):
        own = [n for n in range(len(true)) if low < rows[n].max() <= high]
        if own:
            accuracy = np.mean([rows[n].argmax() == true[n] for n in own])
            error += len(own) / len(true) * abs(accuracy - np.mean([rows[n].max() for n in own]))
            sizes.append(len(own))
    metrics = calibration_metrics(true, rows, bins=bins)
    assert metrics["expected_calibration_error"] == pytest.approx(error)
    assert [found["examples"] for found in metrics["calibration_bins"]] == sizes
    assert metrics["mean_confidence"] == pytest.approx(rows.max(axis=1).mean())
    better = calibration_metrics(true, with_temperature(rows, fit_temperature(true, rows)), bins=bins)
    assert better["expected_calibration_error"] < error / 2


def test_small_cases() -> None:
    sure = calibration_metrics([0, 0], np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert sure["expected_calibration_error"] == pytest.approx(0.5)
    assert sure["calibration_bins"][0]["high"] == 1.0
    with pytest.raises(InputError, match="no temperature from"):
        fit_temperature([0, 1], np.array([[0.9, 0.1], [0.2, 0.8]]))
    with pytest.raises(InputError, match="no temperature from"):
        fit_temperature([1, 0], np.array([[0.9, 0.1], [0.2, 0.8]]))
    with pytest.raises(InputError, match="expected a row of probabilities for each true id"):
        calibration_metrics([0], np.zeros((2, 2)))
    with pytest.raises(InputError, match="expected ids from 0 to 1, got 0 to 2"):
        fit_temperature([0, 2], np.full((2, 2), 0.5))
