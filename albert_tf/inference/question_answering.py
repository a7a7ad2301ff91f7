"""Questions about passages → the part of the passage that answers, or none."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from albert_tf.data.squad import QuestionExample
from albert_tf.errors import InputError
from albert_tf.inference.answer_spans import Room, TokenSpan, beam_spans, independent_spans
from albert_tf.inference.runner import Outputs, Prepared, Runner, finite_outputs
from albert_tf.tokenization.alignment import Span
from albert_tf.tokenization.tokenizer import check_texts
from albert_tf.tokenization.windows import max_context, window_bounds, windows

# Outputs of the head "span": logits of each token.
START_LOGITS, END_LOGITS = "start_logits", "end_logits"
# Outputs of the head "squad2": log-probabilities of each token, of the end one for each start; and a logit.
START_LOG_PROBS, END_LOG_PROBS, NO_ANSWER_LOGIT = "start_log_probs", "end_log_probs", "no_answer_logit"
HEADS = ("span", "squad2")
LANGUAGES = ("english", "chinese")
_SPECIAL_TOKENS = 3


@dataclasses.dataclass(frozen=True)
class AnswerSettings:
    """What belongs to a question answering model beside its weights.

    Attributes:
        head: "span", start and end apart from each other; or "squad2", ends that depend on the start, and a class for
            "no answer".
        doc_stride: tokens from the start of one part of a long passage to the start of the next.
        max_question_length: tokens of a question that are kept.
        max_answer_length: the most tokens of an answer.
        n_best: spans that are kept, and of the head "span" starts and ends that are looked at.
        start_beams, end_beams: of the head "squad2", starts that are looked at, and ends for each of them.
        no_answer_threshold: the no-answer score above which there is no answer; None: there is always one.
        language: whose rules compare answers, "english" (SQuAD) or "chinese" (CMRC).

    Raises:
        InputError: a value that cannot be used.
    """

    head: str = "span"
    doc_stride: int = 128
    max_question_length: int = 64
    max_answer_length: int = 30
    n_best: int = 20
    start_beams: int = 5
    end_beams: int = 5
    no_answer_threshold: float | None = None
    language: str = "english"

    def __post_init__(self) -> None:
        for name, choices in (("head", HEADS), ("language", LANGUAGES)):
            if getattr(self, name) not in choices:
                raise InputError(f"{name}: expected one of {', '.join(choices)}; got {getattr(self, name)!r}")
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type is int and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise InputError(f"{field.name}: expected a whole number of at least 1, got {value!r}")
        threshold = self.no_answer_threshold
        numeric = isinstance(threshold, (int, float)) and not isinstance(threshold, bool)
        if threshold is not None and not (numeric and math.isfinite(threshold)):
            raise InputError(f"no_answer_threshold: expected a number or none, got {threshold!r}")

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "AnswerSettings":
        """Those among a task's settings."""
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{name: settings[name] for name in names if name in settings})


@dataclasses.dataclass(frozen=True)
class AnswerSpan:
    """A part of a passage.

    Attributes:
        text: its characters.
        start, end: their place in the passage: `passage[start:end]`.
        score: its share among the spans that were kept, from 0 to 1.
    """

    text: str
    start: int
    end: int
    score: float


@dataclasses.dataclass(frozen=True)
class FoundAnswer:
    """The answer to one question.

    Attributes:
        text: its characters; "" where the passage does not say.
        start, end: their place in the passage; None where it does not say.
        score: the share of the best span among the spans that were kept; 0 where there is none.
        no_answer_score: how much speaks against an answer; above the model's threshold there is none.
        spans: the best spans, best first, whether or not they are an answer.
    """

    text: str
    start: int | None
    end: int | None
    score: float
    no_answer_score: float
    spans: tuple[AnswerSpan, ...]


@dataclasses.dataclass(frozen=True)
class Asked:
    """A question and its rows.

    Attributes:
        passage: the text that the question is about.
        spans: the characters of each of its tokens.
        bounds: for each row the tokens that it holds, start and end.
        before: tokens in each row before those of the passage.
    """

    passage: str
    spans: Sequence[Span]
    bounds: list[tuple[int, int]]
    before: int

    def place(self, first: int, last: int) -> Span:
        """The characters from the first to the last of these tokens of the passage, without spaces around them.

        A token that is a mark for a space alone stands behind the space.
        """
        start, end = self.spans[first][0], self.spans[last][1]
        text = self.passage[start:end]
        start += len(text) - len(text.lstrip())
        return start, start + len(text.strip())


class QuestionAnsweringPipeline:
    """An answer to each question; a long passage is read in parts that overlap.

    Attributes:
        settings: those of the model.

    Raises:
        InputError: the runner's settings cannot be used.
    """

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.settings = AnswerSettings.of(runner.task_settings)

    @property
    def no_answer_threshold(self) -> float | None:
        """The no-answer score above which there is no answer; None: there is always one."""
        return self.settings.no_answer_threshold

    @no_answer_threshold.setter
    def no_answer_threshold(self, threshold: float | None) -> None:
        self.settings = dataclasses.replace(self.settings, no_answer_threshold=threshold)

    def __call__(self, questions: Sequence[str], passages: Sequence[str]) -> list[FoundAnswer]:
        """The answer to each question in its passage.

        Raises:
            InputError: not lists of strings of one length, or a question without a character.
        """
        for texts, name in ((questions, "questions"), (passages, "passages")):
            check_texts(texts, name)
        if len(questions) != len(passages):
            raise InputError(f"passages: expected one for each of {len(questions)} questions, got {len(passages)}")
        if blank := [number for number, question in enumerate(questions, start=1) if not question.strip()]:
            raise InputError(f"questions: expected a question, number {blank[0]} is blank")
        examples = [QuestionExample("", p, q) for q, p in zip(questions, passages, strict=True)]
        return self.answer(self.prepare(examples))

    def outputs(self, config: dict[str, Any]) -> dict[str, tuple[int | None, ...]]:
        if self.settings.head == "span":
            return {START_LOGITS: (None,), END_LOGITS: (None,)}
        return {START_LOG_PROBS: (None,), END_LOG_PROBS: (None, self.settings.start_beams), NO_ANSWER_LOGIT: (1,)}

    def prepare(self, examples: Sequence[QuestionExample]) -> Prepared:
        """Rows of question and passage, as many as the passage needs; the context is a list of `Asked`."""
        tokenizer, settings = self.runner.required_tokenizer, self.settings
        vocabulary, length = tokenizer.vocabulary, tokenizer.max_length
        read: dict[str, tuple[list[int], list[Span]]] = {}  # many questions have the same passage
        rows, asked = [], []
        for example in examples:
            if example.context not in read:
                read[example.context] = vocabulary.encode_with_offsets(example.context)
            ids, spans = vocabulary.encode_with_offsets(example.question)
            kept = min(len(ids), settings.max_question_length)
            if kept + _SPECIAL_TOKENS >= length:
                raise InputError(
                    f"the model takes {length} tokens, which leaves no room for the passage beside a question of {kept} "
                    f"tokens and {_SPECIAL_TOKENS} special ones; give a longer max_length or a shorter max_question_length"
                )
            passage = read[example.context]
            question = ids[:kept], spans[:kept]
            for window in windows(question, passage, vocabulary, length, settings.doc_stride):
                rows.append((window.token_ids, window.segment_ids))
            bounds = window_bounds(len(passage[0]), length - kept - _SPECIAL_TOKENS, settings.doc_stride)
            asked.append(Asked(example.context, passage[1], bounds, kept + 2))
        return Prepared(rows, asked)

    def answer(self, prepared: Prepared) -> list[FoundAnswer]:
        outputs = iter(finite_outputs(self.runner, prepared.rows))
        return [self._answer(asked, [next(outputs) for _ in asked.bounds]) for asked in prepared.context]

    def decision(self, outputs: Outputs) -> tuple[tuple[int, int], float]:
        """The best span of the whole row, and by how much its start and its end are preferred, the lesser of the two."""
        if self.settings.head == "span":
            scores = outputs[START_LOGITS], outputs[END_LOGITS]
        else:
            scores = outputs[START_LOG_PROBS], outputs[END_LOG_PROBS][:, 0]
        margins = [float(np.subtract(*np.sort(row)[-1:-3:-1])) for row in scores]
        return (int(scores[0].argmax()), int(scores[1].argmax())), min(margins)

    def _answer(self, asked: Asked, outputs: list[Outputs]) -> FoundAnswer:
        found: list[tuple[int, int, float]] = []  # tokens of the passage
        for (start, end), best, row in zip(asked.bounds, max_context(asked.bounds), outputs, strict=True):
            here = np.zeros(asked.before + end - start + 1, bool)
            here[asked.before : -1] = best
            room = Room(here, asked.before + end - start, self.settings.max_answer_length)
            shift = start - asked.before
            found += [(span.first + shift, span.last + shift, span.score) for span in self._spans(row, room)]
        places = [(*asked.place(first, last), score) for first, last, score in found]
        places = sorted((place for place in places if place[0] < place[1]), key=lambda place: -place[2])
        spans = self._best(asked.passage, places)
        against = min(self._against(row) for row in outputs)
        if self.settings.head == "span" and places:
            against -= places[0][2]
        threshold = self.settings.no_answer_threshold
        if not spans or (threshold is not None and against > threshold):
            return FoundAnswer("", None, None, spans[0].score if spans else 0.0, against, spans)
        first = spans[0]
        return FoundAnswer(first.text, first.start, first.end, first.score, against, spans)

    def _spans(self, outputs: Outputs, room: Room) -> list[TokenSpan]:
        settings = self.settings
        if settings.head == "span":
            return independent_spans(outputs[START_LOGITS], outputs[END_LOGITS], room, settings.n_best)
        return beam_spans(
            outputs[START_LOG_PROBS], outputs[END_LOG_PROBS], room, settings.start_beams, settings.end_beams
        )

    def _against(self, outputs: Outputs) -> float:
        """What a row says for "no answer": the logit of that class, or those of the first token as start and end."""
        if self.settings.head == "squad2":
            return float(outputs[NO_ANSWER_LOGIT][0])
        return float(outputs[START_LOGITS][0]) + float(outputs[END_LOGITS][0])

    def _best(self, passage: str, places: list[tuple[int, int, float]]) -> tuple[AnswerSpan, ...]:
        """The first of these places with different texts."""
        kept: dict[str, tuple[int, int, float]] = {}
        for place in places:
            kept.setdefault(passage[place[0] : place[1]], place)
            if len(kept) == self.settings.n_best:
                break
        if not kept:
            return ()
        scores = np.array([score for _, _, score in kept.values()])
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        return tuple(
            AnswerSpan(text, start, end, share)
            for (text, (start, end, _)), share in zip(kept.items(), shares.tolist(), strict=True)
        )
