"""Texts → any number of labels each."""

import dataclasses
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from albert_tf.data.multi_label import MultiLabelExample
from albert_tf.errors import InputError
from albert_tf.inference.runner import Outputs, Prepared, Runner, finite_outputs, labels_of

# Not called as those of a softmax: nothing that expects one label can take them for such.
SIGMOID_PROBABILITIES = "sigmoid_probabilities"
THRESHOLD = 0.5


@dataclasses.dataclass(frozen=True)
class LabelSet:
    """The answer to one text.

    Attributes:
        labels: those above the threshold, in the order of the model's labels; maybe none.
        probabilities: every label's probability, each by itself: they do not sum to 1.
    """

    labels: tuple[str, ...]
    probabilities: dict[str, float]


class MultiLabelPipeline:
    """The labels of a text or a pair of texts.

    Attributes:
        labels: all labels, in the order of the probabilities.

    Raises:
        InputError: the runner's settings hold no labels.
    """

    _threshold: float

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.labels = labels_of(runner, "multi-label classifier")
        self.threshold = runner.task_settings.get("threshold", THRESHOLD)

    @property
    def threshold(self) -> float:
        """A label is given where its probability is above this."""
        return self._threshold

    @threshold.setter
    def threshold(self, value: float) -> None:
        if not isinstance(value, Real) or not 0.0 < value < 1.0:
            raise InputError(f"threshold: expected a probability above 0 and below 1, got {value!r}")
        self._threshold = float(value)

    def __call__(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[LabelSet]:
        """The labels of each text, or of each pair of texts.

        Raises:
            InputError: not a list of strings, or `pairs` of another length.
        """
        return self.answer(Prepared(self.runner.required_tokenizer.encode_batch(texts, pairs)))

    def outputs(self, config: dict[str, Any]) -> dict[str, tuple[int | None, ...]]:
        return {SIGMOID_PROBABILITIES: (len(self.labels),)}

    def prepare(self, examples: Sequence[MultiLabelExample]) -> Prepared:
        texts = [example.text for example in examples]
        alone = all(example.pair is None for example in examples)
        pairs = None if alone else [example.pair or "" for example in examples]
        return Prepared(self.runner.required_tokenizer.encode_batch(texts, pairs))

    def answer(self, prepared: Prepared) -> list[LabelSet]:
        rows = [outputs[SIGMOID_PROBABILITIES] for outputs in finite_outputs(self.runner, prepared.rows)]
        return [self._answer(row) for row in rows]

    def decision(self, outputs: Outputs) -> tuple[tuple[bool, ...], float]:
        row = outputs[SIGMOID_PROBABILITIES]
        return tuple((row > self.threshold).tolist()), float(np.abs(row - self.threshold).min())

    def _answer(self, row: np.ndarray) -> LabelSet:
        probabilities = {label: float(value) for label, value in zip(self.labels, row, strict=True)}
        return LabelSet(tuple(label for label, p in probabilities.items() if p > self.threshold), probabilities)
