"""`albert_tf.training.rounds`: what a training in rounds reports, logs and refuses to go on with."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from albert_tf.errors import InputError
from albert_tf.training.rounds import Rounds, _duration


def model(learning_rate: Any = 0.1) -> keras.Model:
    inputs = keras.Input((2,))
    result = keras.Model(inputs, keras.layers.Dense(1, kernel_initializer="ones", name="dense")(inputs))
    result.compile(keras.optimizers.SGD(learning_rate), "mse", run_eagerly=True)
    return result


def dataset(targets: list[float]) -> tf.data.Dataset:
    """A batch of two for each target."""
    inputs = np.ones((len(targets), 2, 2), np.float32)
    return tf.data.Dataset.from_tensor_slices((inputs, np.repeat(np.float32(targets)[:, None, None], 2, axis=1)))


def fitted(
    trained: keras.Model,
    targets: list[float],
    folder: Path,
    after_round: Callable[[dict[str, float]], Any] | None = None,
    steps: int = 6,
) -> list[str]:
    """Two rounds of three steps, or as many as there are; the lines reported."""
    lines: list[str] = []
    rounds = Rounds(after_round or (lambda figures: figures), 3, steps, 2, folder, lines.append)
    try:
        trained.fit(
            dataset(targets).repeat(), epochs=2, steps_per_epoch=3, shuffle=False, verbose=0, callbacks=[rounds]
        )
    finally:
        rounds.close()
    return lines


def test_a_line_a_round_and_the_figures_in_tensorboard(tmp_path: Path) -> None:
    seen = []

    def after_round(figures: dict[str, float]) -> dict[str, float]:
        seen.append(dict(figures))
        return figures | {"valid_accuracy": 0.25 * len(seen), "valid_loss": 1.0}

    schedule = keras.optimizers.schedules.PolynomialDecay(0.1, 6, 0.0)
    lines = fitted(model(schedule), [2.0, 2.0, 3.0], tmp_path, after_round)
    assert [figures["step"] for figures in seen] == [3, 6]
    assert [figures["learning_rate"] for figures in seen] == pytest.approx([0.05, 0.0])
    assert all(figures["examples_per_second"] > 0 and math.isfinite(figures["loss"]) for figures in seen)
    figures = [f"loss {figures['loss']:.4f} · valid loss 1.0000 · valid accuracy" for figures in seen]
    assert re.fullmatch(rf"round 1/2: {figures[0]} 0.2500 · [0-9.,]+ examples/s · \d+ s left", lines[0])
    assert re.fullmatch(rf"round 2/2: {figures[1]} 0.5000 · [0-9.,]+ examples/s", lines[1]) and len(lines) == 2
    events = EventAccumulator(str(tmp_path)).Reload()
    for name, values in (("valid_accuracy", [0.25, 0.5]), ("loss", [figures["loss"] for figures in seen])):
        logged = [(event.step, float(tf.make_ndarray(event.tensor_proto))) for event in events.Tensors(name)]
        assert logged == [(3, pytest.approx(values[0])), (6, pytest.approx(values[1]))]


def test_the_last_round_has_the_steps_that_are_left(tmp_path: Path) -> None:
    seen: list[dict[str, float]] = []
    trained = model()
    lines = fitted(trained, [2.0] * 6, tmp_path, lambda figures: seen.append(figures) or figures, steps=5)
    assert [figures["step"] for figures in seen] == [3, 5]
    assert int(trained.optimizer.iterations) == 5 and len(lines) == 2
    for figures, steps in zip(seen, (3, 2), strict=True):
        assert figures["examples_per_second"] * figures["seconds"] == pytest.approx(2 * steps)


@pytest.mark.parametrize(("bad", "shown"), [(math.nan, "nan"), (math.inf, "inf")])
def test_a_loss_that_is_no_number_ends_the_training(bad: float, shown: str, tmp_path: Path) -> None:
    done = []
    with pytest.raises(InputError, match=f"the loss became {shown} at step 5: start again .*--learning-rate"):
        fitted(model(), [2.0, 2.0, 2.0, 2.0, bad, 2.0], tmp_path, lambda figures: done.append(1) or figures)
    assert len(done) == 1  # the first round was kept


def test_a_last_step_that_ruins_the_weights_is_noticed(tmp_path: Path) -> None:
    """Its loss is that before the update, and still a number."""
    trained, done = model(), []
    trained.optimizer.learning_rate = 1e38
    with pytest.raises(InputError, match="dense/kernel became NaN or infinite at step 3"):
        fitted(trained, [2.0, 2.0, 40.0], tmp_path, lambda figures: done.append(1) or figures)
    assert done == []


def test_the_bar_ends_with_the_training(tmp_path: Path) -> None:
    rounds = Rounds(lambda figures: figures, 1, 1, 1, tmp_path, print)
    rounds.on_train_begin()
    assert rounds.bar.live.is_started
    rounds.close()
    assert not rounds.bar.live.is_started


def test_durations() -> None:
    assert [_duration(seconds) for seconds in (0.4, 59.4, 60, 3599, 7500)] == [
        *("0 s", "59 s", "1 min 0 s", "59 min 59 s", "2 h 5 min")
    ]
