"""A runner that does not run the same rows twice."""

from collections.abc import Sequence
from typing import Any

from albert_tf.inference.runner import Outputs, Runner
from albert_tf.tokenization.packing import Packed
from albert_tf.tokenization.tokenizer import AlbertTokenizer


class RememberingRunner:
    """Runs rows as `runner` does, and keeps the outputs for when the same list comes again; see `Runner`.

    Metrics and a page on a validation ask for the same answers. The settings are looked up anew: a threshold may have
    changed in between.
    """

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.task = runner.task
        self._rows: Sequence[Packed] | None = None
        self._outputs: list[Outputs] = []

    @property
    def task_settings(self) -> dict[str, Any]:
        return self.runner.task_settings

    @property
    def required_tokenizer(self) -> AlbertTokenizer:
        return self.runner.required_tokenizer

    def forget(self) -> None:
        """Makes the next rows be run, also if they are the same list."""
        self._rows = None

    def run_rows(self, rows: Sequence[Packed]) -> list[Outputs]:
        if rows is not self._rows:
            self._rows, self._outputs = rows, self.runner.run_rows(rows)
        return self._outputs
