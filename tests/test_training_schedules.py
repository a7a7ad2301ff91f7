"""`albert_tf.training.schedules` against the formula."""

import json

import keras
import numpy as np
import pytest

from albert_tf.errors import InputError
from albert_tf.training.schedules import LinearWarmupDecay


def formula(step: int, peak: float, warmup: int, total: int) -> float:
    """google-research/albert optimization.py: polynomial_decay of power 1 to 0, and a linear rise before it."""
    if step < warmup:
        return peak * step / warmup
    return peak * (1 - min(step, total) / total)


@pytest.mark.parametrize(("peak", "warmup", "total"), [(1e-3, 10, 100), (3e-5, 0, 7), (1.0, 1, 2), (0.5, 100, 100)])
def test_against_the_formula(peak: float, warmup: int, total: int) -> None:
    schedule = LinearWarmupDecay(peak, warmup, total)
    for step in range(total + 3):
        assert float(schedule(step)) == pytest.approx(formula(step, peak, warmup, total), rel=1e-5, abs=1e-9)


def test_written_out() -> None:
    schedule = LinearWarmupDecay(1.0, 4, 10)
    rates = [float(schedule(np.int64(step))) for step in range(12)]
    np.testing.assert_allclose(rates, [0, 0.25, 0.5, 0.75, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0, 0], atol=1e-6)


def test_in_an_optimizer() -> None:
    optimizer = keras.optimizers.SGD(LinearWarmupDecay(1.0, 2, 4))
    variable = keras.Variable(np.zeros(1))
    positions = []
    for _ in range(5):
        optimizer.apply([np.ones(1, np.float32)], [variable])
        positions.append(float(variable[0]))
    np.testing.assert_allclose(positions, [0, -0.5, -1, -1.25, -1.25], atol=1e-6)


def test_config() -> None:
    schedule = LinearWarmupDecay(0.1, 3, 9)
    fields = json.loads(json.dumps(keras.saving.serialize_keras_object(schedule)))
    restored = keras.saving.deserialize_keras_object(fields)
    assert isinstance(restored, LinearWarmupDecay) and restored.get_config() == schedule.get_config()
    assert float(restored(2)) == pytest.approx(0.2 / 3)


@pytest.mark.parametrize(("warmup", "total"), [(0, 0), (-1, 5), (6, 5), (0, -3)])
def test_unusable_steps(warmup: int, total: int) -> None:
    with pytest.raises(InputError, match=f"got {warmup} warm-up steps of {total}"):
        LinearWarmupDecay(0.1, warmup, total)
