"""The callback that runs a training in rounds: progress shown, figures to TensorBoard, the loss checked."""

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from albert_tf.errors import InputError


class DivergedError(InputError):
    """The loss or a weight is no longer a finite number."""


class Rounds(keras.callbacks.Callback):
    """A Keras epoch of `fit` is one round: some steps, then a validation.

    Args:
        after_round: gets the round's training figures, validates and saves, and returns all figures.
        round_steps: steps in a round; the last has what is left.
        steps: steps in the run.
        batch_size: examples of a step, in the mean, for examples per second.
        shown: the figures of a round's line.
        log_folder: where TensorBoard's files go; None for none.
        report: receives one line a round.

    Raises:
        DivergedError: from `fit`, when the loss or a weight is no longer a finite number.
    """

    def __init__(
        self,
        after_round: Callable[[dict[str, float]], dict[str, float]],
        round_steps: int,
        steps: int,
        batch_size: float,
        log_folder: Path | None,
        report: Callable[[str], None],
        shown: Sequence[str] = ("loss", "valid_loss", "valid_accuracy"),
    ) -> None:
        super().__init__()
        self.after_round = after_round
        self.shown = shown
        self.round_steps, self.steps, self.batch_size = round_steps, steps, batch_size
        self.num_rounds = math.ceil(steps / round_steps)
        self.report = report
        self.seconds: list[float] = []  # of each round, validation included
        summary = tf.summary
        self.writer = summary.create_file_writer(str(log_folder)) if log_folder else summary.create_noop_writer()
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[figures]}"),
        )

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self.bar.start()
        self.task = self.bar.add_task("training", total=self.steps, figures="")

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self.bar.update(self.task, completed=epoch * self.round_steps)
        self.epoch = epoch
        self.started = time.perf_counter()

    def step_of_run(self, step: int) -> int:
        """The number, among all steps of the run, of a step of this round."""
        return self.epoch * self.round_steps + step

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        loss = float((logs or {})["loss"])
        if not math.isfinite(loss):
            raise self.diverged(f"the loss became {loss}")
        if self.step_of_run(batch + 1) == self.steps:
            self.model.stop_training = True  # Keras's epochs are of one length
        speed = (batch + 1) * self.batch_size / (time.perf_counter() - self.started)
        self.bar.update(self.task, advance=1, figures=f"loss {loss:.4f} · {speed:,.0f} examples/s")

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        # The loss is that before the last step's update.
        for variable in self.model.trainable_weights:
            if not np.isfinite(np.asarray(variable)).all():
                raise self.diverged(f"{variable.path} became NaN or infinite")
        figures = {name: float(value) for name, value in (logs or {}).items()}
        done = min(self.step_of_run(self.round_steps), self.steps)
        figures["step"] = float(done)
        figures["learning_rate"] = float(self.model.optimizer.learning_rate)
        figures["seconds"] = time.perf_counter() - self.started
        figures["examples_per_second"] = (done - epoch * self.round_steps) * self.batch_size / figures["seconds"]
        figures = self.after_round(figures)
        with self.writer.as_default(step=int(figures["step"])):
            for name, value in figures.items():
                tf.summary.scalar(name, value)
        shown = {name: figures[name] for name in self.shown if name in figures}
        parts = [f"{name.replace('_', ' ')} {_number(value)}" for name, value in shown.items()]
        parts.append(f"{_number(figures['examples_per_second'])} examples/s")
        self.seconds.append(time.perf_counter() - self.started)
        if left := (self.num_rounds - epoch - 1) * sum(self.seconds) / len(self.seconds):
            parts.append(f"{_duration(left)} left")
        self.report(f"round {epoch + 1}/{self.num_rounds}: {' · '.join(parts)}")

    def diverged(self, what: str) -> DivergedError:
        """The error to raise, of what is no finite number any more."""
        return DivergedError(
            f"{what} at step {int(self.model.optimizer.iterations)}: start again (--overwrite) with a lower "
            "--learning-rate or a longer --warmup; the state after the last whole round is kept until then"
        )

    def fit(self, model: keras.Model, dataset: Any, done: int) -> None:
        """Trains from round `done` to the last, and closes."""
        try:
            if done < self.num_rounds:
                model.fit(
                    dataset,
                    initial_epoch=done,
                    epochs=self.num_rounds,
                    steps_per_epoch=self.round_steps,
                    shuffle=False,
                    verbose=0,
                    callbacks=[self],
                )
        finally:
            self.close()

    def close(self) -> None:
        """Stops the bar and flushes TensorBoard's file; to be called also after an error."""
        self.bar.stop()
        self.writer.close()


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.4f}"


def _duration(seconds: float) -> str:
    """To two units: "45 s", "3 min 20 s", "2 h 5 min"."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
