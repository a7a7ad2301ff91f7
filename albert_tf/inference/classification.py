"""Texts → labels with probabilities."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf.data.schema import Prediction, TextExample
from albert_tf.inference.runner import Outputs, Prepared, Runner, finite_outputs, labels_of

PROBABILITIES = "probabilities"


class ClassificationPipeline:
    """One label for a text or a pair of texts.

    Attributes:
        labels: the labels, in the order of the probabilities.

    Raises:
        InputError: the runner's settings hold no labels.
    """

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.labels = labels_of(runner, "text classifier")

    def __call__(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[Prediction]:
        """The label of each text, or of each pair of texts.

        Raises:
            InputError: not a list of strings, or `pairs` of another length.
        """
        return [Prediction.from_probabilities(row, self.labels) for row in self.predict_probabilities(texts, pairs)]

    def predict_probabilities(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> np.ndarray:
        """float32 (texts, labels), each row summing to 1."""
        return self._run(Prepared(self.runner.required_tokenizer.encode_batch(texts, pairs)))

    def outputs(self, config: dict[str, Any]) -> dict[str, tuple[int | None, ...]]:
        return {PROBABILITIES: (len(self.labels),)}

    def prepare(self, examples: Sequence[TextExample]) -> Prepared:
        return Prepared(self.runner.required_tokenizer.encode_batch(*texts_and_pairs(examples)))

    def answer(self, prepared: Prepared) -> list[Prediction]:
        return [Prediction.from_probabilities(row, self.labels) for row in self._run(prepared)]

    def decision(self, outputs: Outputs) -> tuple[int, float]:
        second, best = np.sort(outputs[PROBABILITIES])[-2:]
        return int(outputs[PROBABILITIES].argmax()), float(best - second)

    def _run(self, prepared: Prepared) -> np.ndarray:
        rows = [outputs[PROBABILITIES] for outputs in finite_outputs(self.runner, prepared.rows)]
        return np.asarray(rows, np.float32).reshape(-1, len(self.labels))


def texts_and_pairs(examples: Sequence[TextExample]) -> tuple[list[str], list[str] | None]:
    """The two columns of texts; None for the second where no example has one."""
    texts = [example.text for example in examples]
    if all(example.pair is None for example in examples):
        return texts, None
    return texts, [example.pair or "" for example in examples]
