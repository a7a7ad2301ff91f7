"""`albert_tf.evaluation.regression_metrics` against SciPy and plain formulas."""

import numpy as np
import pytest
from scipy import stats

from albert_tf.errors import InputError
from albert_tf.evaluation.regression_metrics import regression_metrics


def test_figures() -> None:
    random = np.random.default_rng(0)
    true = random.uniform(0, 5, 40).round(1)  # with ties
    predicted = true + random.normal(0, 1, 40)
    found = regression_metrics(true, predicted)
    assert found["pearson"] == pytest.approx(np.corrcoef(true, predicted)[0, 1], abs=1e-12)
    ranks = [stats.rankdata(values) for values in (true, predicted)]
    assert found["spearman"] == pytest.approx(np.corrcoef(*ranks)[0, 1], abs=1e-12)
    assert found["loss"] == found["mean_squared_error"] == pytest.approx(np.mean((true - predicted) ** 2))
    assert found["mean_absolute_error"] == pytest.approx(np.mean(np.abs(true - predicted)))
    assert found["examples"] == 40 and 0.3 < found["spearman"] < 1


def test_a_constant_has_no_correlation() -> None:
    assert regression_metrics([1.0, 2.0], [3.0, 3.0])["pearson"] == 0.0
    assert regression_metrics([1.0], [3.0])["spearman"] == 0.0


@pytest.mark.parametrize(
    ("true", "predicted", "expected"),
    [([], [], "at least one"), ([1.0], [1.0, 2.0], "as many predictions"), ([1.0], [float("nan")], "finite numbers")],
)
def test_what_cannot_be_compared(true: list[float], predicted: list[float], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        regression_metrics(true, predicted)
