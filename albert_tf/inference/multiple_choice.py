"""Questions with options → the option chosen."""

import dataclasses
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from albert_tf.data.choices import LETTERS, ChoiceExample
from albert_tf.inference.runner import Outputs, Prepared, Runner, finite_outputs

SCORE = "score"


@dataclasses.dataclass(frozen=True)
class Choice:
    """The answer to one question.

    Attributes:
        option: the index of the chosen option.
        probabilities: of each option, in order; they sum to 1.
    """

    option: int
    probabilities: tuple[float, ...]

    @property
    def letter(self) -> str:
        """The option as exams have it: A, B, C."""
        return LETTERS[self.option]


class MultipleChoicePipeline:
    """The most probable option of each question; questions may have different numbers of options."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    def __call__(
        self, questions: Sequence[str], options: Sequence[Sequence[str]], contexts: Sequence[str] | None = None
    ) -> list[Choice]:
        """The option chosen for each question.

        Args:
            questions: one text each; "_" in it stands for the answer.
            options: a list of texts for each question.
            contexts: the text that each question is about.
        """
        given = contexts or [""] * len(questions)
        examples = [ChoiceExample(c, q, tuple(o)) for q, o, c in zip(questions, options, given, strict=True)]
        return self.answer(self.prepare(examples))

    def outputs(self, config: dict[str, Any]) -> dict[str, tuple[int | None, ...]]:
        return {SCORE: (1,)}

    def prepare(self, examples: Sequence[ChoiceExample]) -> Prepared:
        """A row for each option of each example: passage and statement, or the statement alone."""
        tokenizer = self.runner.required_tokenizer
        rows = []
        for example in examples:
            statements = example.statements()
            if example.context:
                rows += tokenizer.encode_batch([example.context] * len(statements), statements)
            else:
                rows += tokenizer.encode_batch(statements)
        return Prepared(rows, [len(example.options) for example in examples])

    def answer(self, prepared: Prepared) -> list[Choice]:
        return self.choices(finite_outputs(self.runner, prepared.rows), prepared.context)

    def choices(self, outputs: Sequence[Outputs], sizes: Sequence[int]) -> list[Choice]:
        """The answers to questions, from the outputs of all their options and how many options each of them has."""
        scores = np.array([float(row[SCORE][0]) for row in outputs])
        return [_choice(scores[start:end]) for start, end in pairwise(accumulate(sizes, initial=0))]

    def decision(self, outputs: Outputs) -> tuple[None, float]:
        """One option's score decides nothing by itself."""
        return None, 0.0


def _choice(scores: np.ndarray) -> Choice:
    exponentials = np.exp(scores - scores.max())
    probabilities = exponentials / exponentials.sum()
    return Choice(int(probabilities.argmax()), tuple(probabilities.tolist()))
