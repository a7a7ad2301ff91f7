"""A runner that does not run the same rows twice."""

from collections.abc import Sequence

from albert_tf.inference.runner import Outputs, Runner, RunnerAround
from albert_tf.tokenization.packing import Packed


class RememberingRunner(RunnerAround):
    """Runs rows as `runner` does, and keeps the outputs for when the same list comes again; see `Runner`.

    Metrics and a page on a validation ask for the same answers.
    """

    def __init__(self, runner: Runner) -> None:
        super().__init__(runner)
        self._rows: Sequence[Packed] | None = None
        self._outputs: list[Outputs] = []

    def forget(self) -> None:
        """Makes the next rows be run, also if they are the same list."""
        self._rows = None

    def run_rows(self, rows: Sequence[Packed]) -> list[Outputs]:
        if rows is not self._rows:
            self._rows, self._outputs = rows, self.runner.run_rows(rows)
        return self._outputs
