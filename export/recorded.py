"""Outputs that were recorded, in the place of the model that gave them: decoding alone."""

from collections.abc import Sequence
from typing import Any

from albert_tf.inference.runner import Outputs, Runner
from albert_tf.tokenization.packing import Packed
from albert_tf.tokenization.tokenizer import AlbertTokenizer


class Recorded:
    """A runner that puts out what was recorded; see `Runner`.

    Args:
        runner: of the same model.
        outputs: of each row that will be asked for.
    """

    def __init__(self, runner: Runner, outputs: Sequence[Outputs]) -> None:
        self.task = runner.task
        self._runner, self._outputs = runner, outputs

    @property
    def task_settings(self) -> dict[str, Any]:
        return self._runner.task_settings

    @property
    def required_tokenizer(self) -> AlbertTokenizer:
        return self._runner.required_tokenizer

    def run_rows(self, rows: Sequence[Packed]) -> list[Outputs]:
        return list(self._outputs)
