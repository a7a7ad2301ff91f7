"""What runs a trained task, and what a pipeline on it answers."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from albert_tf.errors import InputError
from albert_tf.tokenization.packing import Packed
from albert_tf.tokenization.tokenizer import AlbertTokenizer

Outputs = dict[str, np.ndarray]  # what the model puts out for one row, by name, without the batch axis


class Runner(Protocol):
    """A Keras task or a TFLite file.

    Attributes:
        task: the task's name, a key of `albert_tf.inference.pipelines.PIPELINES`.
        task_settings: the head's settings, as in task.json.
    """

    task: str

    @property
    def task_settings(self) -> dict[str, Any]: ...

    @property
    def required_tokenizer(self) -> AlbertTokenizer: ...

    def run_rows(self, rows: Sequence[Packed]) -> list[Outputs]:
        """What the model puts out for each row of token ids and segment ids, in order; outputs for each token are as
        long as the row."""


class RunnerAround:
    """A runner on another one: what the other says of itself, looked up anew, as a threshold may have changed since."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.task = runner.task

    @property
    def task_settings(self) -> dict[str, Any]:
        return self.runner.task_settings

    @property
    def required_tokenizer(self) -> AlbertTokenizer:
        return self.runner.required_tokenizer


class NotFiniteError(InputError):
    """A model that puts out what is no finite number."""


def finite_outputs(runner: Runner, rows: Sequence[Packed]) -> list[Outputs]:
    """What the runner's model puts out for each row: numbers, so that no answer is made of what is none.

    Raises:
        NotFiniteError: one of them is NaN or infinite.
    """
    found = runner.run_rows(rows)
    for number, outputs in enumerate(found, start=1):
        for name, values in outputs.items():
            if not np.isfinite(values).all():
                raise NotFiniteError(
                    f"the model's {name} for row {number} of {len(rows)} are NaN or infinite: its weights are damaged, or "
                    "its training diverged"
                )
    return found


@dataclasses.dataclass(frozen=True)
class Prepared:
    """Examples as rows for the model.

    Attributes:
        rows: token ids and segment ids; one example may have several.
        context: what the pipeline needs to make answers of the outputs.
    """

    rows: list[Packed]
    context: Any = None


def labels_of(runner: Runner, kind: str) -> tuple[str, ...]:
    """The labels among the runner's settings, in the order of the model's outputs.

    Raises:
        InputError: there are none; `kind` is what was expected, in words.
    """
    labels = runner.task_settings.get("labels")
    if not isinstance(labels, (list, tuple)) or not labels:
        raise InputError(f"expected a {kind} with labels, found {labels!r}")
    return tuple(map(str, labels))


class Pipeline(Protocol):
    """Examples → answers, one for each example."""

    def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Answers to plain texts; each pipeline says which it takes."""

    def outputs(self, config: dict[str, Any]) -> dict[str, tuple[int | None, ...]]:
        """What the model must put out for a row: name → shape; None stands for the row's length.

        Args:
            config: the fields of the model's `AlbertConfig`.
        """

    def prepare(self, examples: Sequence[Any]) -> Prepared:
        """The rows of the examples.

        Raises:
            InputError: an example cannot be put before this model.
        """

    def answer(self, prepared: Prepared) -> list[Any]:
        """Runs the rows and makes an answer for each example."""

    def decision(self, outputs: Outputs) -> tuple[Any, float]:
        """What the outputs of one row amount to, comparable by ==, and by how much it is preferred to the next best."""
