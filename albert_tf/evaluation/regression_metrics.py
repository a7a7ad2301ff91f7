"""Pearson and Spearman correlation and errors of predicted numbers, as SciPy computes them."""

from collections.abc import Sequence

import numpy as np

from albert_tf.errors import InputError


def regression_metrics(true: Sequence[float] | np.ndarray, predicted: Sequence[float] | np.ndarray) -> dict[str, float]:
    """Compares predictions with the truth.

    Returns:
        `pearson` and `spearman` (GLUE's figures for STS-B; 0 where one side is constant); `mean_squared_error`, also as
        `loss`; `mean_absolute_error`; `examples`.

    Raises:
        InputError: no examples, as many of the one as not of the other, or values that are not finite.
    """
    from scipy import stats

    truth, guesses = np.asarray(true, np.float64), np.asarray(predicted, np.float64)
    if truth.ndim != 1 or truth.shape != guesses.shape or not len(truth):
        raise InputError(
            f"expected as many predictions as true values and at least one, got {guesses.shape}, {truth.shape}"
        )
    if not (np.isfinite(truth).all() and np.isfinite(guesses).all()):
        raise InputError("expected finite numbers, got NaN or infinities")
    # Of a constant no correlation is defined; SciPy gives NaN with a warning about its own call.
    defined = min(np.ptp(truth), np.ptp(guesses)) > 0
    squared = float(np.mean((truth - guesses) ** 2))
    return {
        "spearman": float(stats.spearmanr(truth, guesses).statistic) if defined else 0.0,
        "pearson": float(stats.pearsonr(truth, guesses).statistic) if defined else 0.0,
        "loss": squared,
        "mean_squared_error": squared,
        "mean_absolute_error": float(np.mean(np.abs(truth - guesses))),
        "examples": len(truth),
    }
