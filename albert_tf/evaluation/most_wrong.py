"""The examples on which a trained task is furthest off, worst first: what to read before anything is tuned."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from albert_tf.data.choices import LETTERS
from albert_tf.data.conll import entities
from albert_tf.data.multi_label import encode_label_sets
from albert_tf.data.similarity import scores_of
from albert_tf.data.tables import encode_labels, encode_values
from albert_tf.evaluation.similarity_metrics import retrieval_ranks
from albert_tf.evaluation.squad_metrics import best_scores
from albert_tf.inference.runner import Prepared
from albert_tf.inference.similarity import text_numbers

MOST_EXAMPLES = 20
_LEAST = 1e-30  # a probability of 0 has no logarithm
_BESIDE = 120  # characters of a passage on each side of an answer
_MOST_LABELS = 5  # with their probabilities
_WORDS_BESIDE = 20  # words of a text before the first wrong one


@dataclasses.dataclass(frozen=True)
class WrongExample:
    """One example.

    Attributes:
        number: its place in the file, from 1.
        texts: what the model was given, or the part of it that matters: what it is → text.
        true: the right answer.
        predicted: the model's.
        score: how sure the model was of it, a probability or the like; None for tasks without.
        error: how wrong it is, by the measure that `MostWrong` names.
    """

    number: int
    texts: dict[str, str]
    true: str
    predicted: str
    score: float | None
    error: float


@dataclasses.dataclass(frozen=True)
class MostWrong:
    """The worst examples.

    Attributes:
        measure: what the errors are, in words.
        examples: the highest error first; those with the same in their order.
    """

    measure: str
    examples: list[WrongExample]


_Shown = tuple[dict[str, str], str, str, float | None]  # of `WrongExample` texts, true, predicted and score


@dataclasses.dataclass(frozen=True)
class _Judged:
    """An error for each example, and what one of them is, by its index; of equal errors the surest are the worst."""

    measure: str
    errors: Sequence[float] | np.ndarray
    show: Callable[[int], _Shown]
    sureness: Sequence[float] | None = None


def most_wrong(
    pipeline: Any, examples: Sequence[Any], prepared: Prepared, answers: Sequence[Any], source: str
) -> MostWrong:
    """The examples with the highest errors, at most `MOST_EXAMPLES`; those without error are left out.

    Args:
        pipeline: of a task among the keys of `albert_tf.evaluation.evaluate.EVALUATIONS`.
        examples: with their answers.
        prepared: the examples as the pipeline prepares them.
        answers: the pipeline's.
        source: the examples' file, for error messages.
    """
    judged = _JUDGES[pipeline.runner.task](pipeline, examples, prepared, answers, source)
    errors = np.asarray(judged.errors, np.float64)
    errors[np.isnan(errors)] = np.inf
    sureness = np.zeros(len(errors)) if judged.sureness is None else np.asarray(judged.sureness)
    order = np.lexsort((-sureness, -errors))  # stable, the last key first
    worst = [int(index) for index in order[:MOST_EXAMPLES] if errors[index] > 0]
    return MostWrong(
        judged.measure, [WrongExample(index + 1, *judged.show(index), float(errors[index])) for index in worst]
    )


def _classification(
    pipeline: Any, examples: Sequence[Any], prepared: Prepared, answers: Sequence[Any], source: str
) -> _Judged:
    encode_labels(examples, pipeline.labels, source)
    errors = [_loss(answer.probabilities[example.label]) for example, answer in zip(examples, answers, strict=True)]
    return _Judged(
        "loss: the negative logarithm of the right label's probability",
        errors,
        lambda i: (_texts(examples[i]), examples[i].label, answers[i].label, answers[i].score),
    )


def _multi_label(
    pipeline: Any, examples: Sequence[Any], prepared: Prepared, answers: Sequence[Any], source: str
) -> _Judged:
    true = encode_label_sets(examples, pipeline.labels, source) > 0.5
    rows = np.array([list(answer.probabilities.values()) for answer in answers], np.float64)
    given = np.clip(np.where(true, rows, 1.0 - rows), 1e-12, None)
    errors = -np.log(given).mean(axis=1)

    def show(i: int) -> _Shown:
        sure = sorted(answers[i].probabilities.items(), key=lambda item: -item[1])[:_MOST_LABELS]
        told = {"most probable": ", ".join(f"{label} {probability:.2f}" for label, probability in sure)}
        sides = (set(examples[i].labels), set(answers[i].labels))
        true, given = (", ".join(label for label in pipeline.labels if label in side) or "(none)" for side in sides)
        return _texts(examples[i]) | told, true, given, None

    return _Judged("loss: the mean cross-entropy of its labels", errors, show)


def _regression(
    pipeline: Any, examples: Sequence[Any], prepared: Prepared, answers: Sequence[Any], source: str
) -> _Judged:
    true = np.asarray(encode_values(examples, source), np.float64)
    return _Judged(
        "absolute error",
        np.abs(true - np.asarray(answers, np.float64)),
        lambda i: (_texts(examples[i]), f"{true[i]:g}", f"{answers[i]:.4f}", None),
    )


def _multiple_choice(
    pipeline: Any, examples: Sequence[Any], prepared: Prepared, answers: Sequence[Any], source: str
) -> _Judged:
    errors = [_loss(c.probabilities[example.answer]) for c, example in zip(answers, examples, strict=True)]

    def show(i: int) -> _Shown:
        example, option = examples[i], answers[i].option
        options = {f"option {LETTERS[n]}": text for n, text in enumerate(example.options)}
        passage = {"passage": example.context} if example.context else {}
        named = [f"{LETTERS[n]}: {example.options[n]}" for n in (example.answer, option)]
        return {"question": example.question} | options | passage, *named, answers[i].probabilities[option]

    return _Judged("loss: the negative logarithm of the right option's probability", errors, show)


def _tagging(
    pipeline: Any, examples: Sequence[Any], prepared: Prepared, answers: Sequence[Any], source: str
) -> _Judged:
    wrong = [
        [n for n, (ours, theirs) in enumerate(zip(answer.labels, example.labels, strict=True)) if ours != theirs]
        for answer, example in zip(answers, examples, strict=True)
    ]
    errors = [sum(answer.scores[n] for n in own) for answer, own in zip(answers, wrong, strict=True)]

    def show(i: int) -> _Shown:
        words, first = examples[i].words, wrong[i][0]
        begin = max(0, first - _WORDS_BESIDE)
        text = ("… " if begin else "") + _joined(words[begin:])
        true, predicted = (entities(labels) for labels in (examples[i].labels, answers[i].labels))
        # What both have is no help in finding what is wrong.
        sides = [[e for e in true if e not in predicted], [e for e in predicted if e not in true]]
        named = [
            ", ".join(f"{kind} {_joined(words[start:end])}" for kind, start, end in side) or "(none)" for side in sides
        ]
        return {"text": text, "wrong words": str(len(wrong[i]))}, *named, answers[i].scores[first]

    return _Judged(
        "sum of the probabilities of its wrong labels; the entities shown are those that the other side has not",
        errors,
        show,
    )


def _question_answering(
    pipeline: Any, examples: Sequence[Any], prepared: Prepared, answers: Sequence[Any], source: str
) -> _Judged:
    errors = [
        1.0 - best_scores(answer.text, [right.text for right in example.answers], pipeline.settings.language)[1]
        for answer, example in zip(answers, examples, strict=True)
    ]

    def show(i: int) -> _Shown:
        example = examples[i]
        start = example.answers[0].start if example.answers else answers[i].start or 0
        begin = max(0, start - _BESIDE)
        passage = ("…" if begin else "") + example.context[begin:]
        right = " | ".join(dict.fromkeys(answer.text for answer in example.answers))
        texts = {"question": example.question, "passage": passage}
        return texts, right or "(no answer)", answers[i].text or "(no answer)", answers[i].score

    sureness = [answer.score for answer in answers]
    return _Judged("1 - F1; of the same F1 the surest answers first", errors, show, sureness)


def _similarity(
    pipeline: Any, examples: Sequence[Any], prepared: Prepared, answers: Sequence[Any], source: str
) -> _Judged:
    scores = scores_of(examples, source)
    if scores is None:
        return _retrieval(pipeline, examples, prepared)
    from scipy import stats

    places = [stats.rankdata(side) for side in (scores, answers)]
    return _Judged(
        "distance of the pair's place among all pairs by cosine from its place by score, as a share of all pairs",
        np.abs(places[0] - places[1]) / len(examples),
        lambda i: (_texts(examples[i]), f"score {scores[i]:g}", f"cosine {answers[i]:.4f}", None),
    )


def _retrieval(pipeline: Any, examples: Sequence[Any], prepared: Prepared) -> _Judged:
    """A query's worst right text, and the text that was found before all others."""
    errors = np.zeros(len(examples))
    found: dict[int, tuple[int, int, int]] = {}
    numbers = text_numbers(prepared)
    for query in retrieval_ranks(np.stack(pipeline.embeddings(prepared)), numbers):
        errors[query.row] = query.ranks.min() - 1
        found[query.row] = (int(query.ranks.min()), *query.first)

    def show(i: int) -> _Shown:
        rank, row, column = found[i]
        others = examples[row].pair, examples[row].negative
        return (
            {"query": examples[i].text, "belongs to it": examples[i].pair},
            f"rank {rank:,}",
            others[column - 1],
            None,
        )

    return _Judged("texts found before the first right one; the answer is the text found first", errors, show)


_JUDGES: dict[str, Callable[[Any, Sequence[Any], Prepared, Sequence[Any], str], _Judged]] = {
    "classification": _classification,
    "multi-label": _multi_label,
    "regression": _regression,
    "multiple-choice": _multiple_choice,
    "tagging": _tagging,
    "question-answering": _question_answering,
    "similarity": _similarity,
}


def _loss(probability: float) -> float:
    return -math.log(max(probability, _LEAST))


def _texts(example: Any) -> dict[str, str]:
    named = {"text": example.text, "second text": example.pair}
    return {name: text for name, text in named.items() if text is not None}


def _joined(words: Sequence[str]) -> str:
    """Words with spaces between, but not between two that are one character of a script that has none."""
    text = ""
    for word in words:
        together = text and len(word) == 1 and ord(word) > 0x2E7F and ord(text[-1]) > 0x2E7F
        text += word if together or not text else f" {word}"
    return text
