"""Texts → numbers."""

from collections.abc import Sequence
from typing import Any

from albert_tf.data.schema import TextExample
from albert_tf.inference.classification import texts_and_pairs
from albert_tf.inference.runner import Outputs, Prepared, Runner, finite_outputs

VALUE = "value"


class RegressionPipeline:
    """A number for a text or a pair of texts."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    def __call__(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[float]:
        """The value of each text, or of each pair of texts.

        Raises:
            InputError: not a list of strings, or `pairs` of another length.
        """
        return self.answer(Prepared(self.runner.required_tokenizer.encode_batch(texts, pairs)))

    def outputs(self, config: dict[str, Any]) -> dict[str, tuple[int | None, ...]]:
        return {VALUE: (1,)}

    def prepare(self, examples: Sequence[TextExample]) -> Prepared:
        return Prepared(self.runner.required_tokenizer.encode_batch(*texts_and_pairs(examples)))

    def answer(self, prepared: Prepared) -> list[float]:
        return [float(outputs[VALUE][0]) for outputs in finite_outputs(self.runner, prepared.rows)]

    def decision(self, outputs: Outputs) -> tuple[None, float]:
        """A number decides nothing; how far it is off is what the differences say."""
        return None, 0.0
