"""What `predict` reads and prints, task by task."""

import dataclasses
import functools
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert_tf.data.choices import ChoiceExample, choice_of
from albert_tf.data.conll import TaggedExample, entities, words_in
from albert_tf.data.multi_label import MultiLabelExample
from albert_tf.data.schema import Prediction, TextExample
from albert_tf.data.squad import QuestionExample
from albert_tf.data.tables import example_of
from albert_tf.errors import InputError
from albert_tf.files import read_text
from albert_tf.inference.fill_mask import MASK, FilledText, no_mask
from albert_tf.inference.multi_label import LabelSet
from albert_tf.inference.multiple_choice import Choice
from albert_tf.inference.question_answering import FoundAnswer
from albert_tf.inference.tagging import Tagged, entities_in, word_places

if TYPE_CHECKING:
    from rich.text import Text

Record = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class PredictTask:
    """What `predict` has to know of a task.

    Attributes:
        plain: the fields of a record that a plain line or --text, and --pair, fill; none where a line is not enough.
        expected: what the task takes, for a message.
        example: a record, and the options in `TEXT_OPTIONS` that were given → an example for the task's pipeline.
        fields: record, example and answer → what a JSON line has beside the record.
        lines: record, example and answer → the lines printed otherwise.
        colored: the same for a terminal; None: as `lines`.
        plain_with: the option without which a plain line is not enough.
    """

    plain: tuple[str, ...]
    expected: str
    example: Callable[..., Any]
    fields: Callable[[Record, Any, Any], dict[str, Any]]
    lines: Callable[[Record, Any, Any], Iterator[str]]
    colored: "Callable[[Record, Any, Any], Text] | None" = None
    plain_with: str | None = None


def columns(*cells: str | float) -> str:
    """Cells with tabs between; numbers with four decimals, texts with the spaces of one line."""
    return "\t".join(f"{cell:.4f}" if isinstance(cell, float) else " ".join(cell.split()) for cell in cells)


# === classification and regression ===


def _without_labels(record: Record, **options: Any) -> MultiLabelExample:
    example = example_of(record, **options)
    return MultiLabelExample(example.text, example.pair)


def _label_fields(record: Record, example: TextExample, answer: Prediction) -> dict[str, Any]:
    return {"label": answer.label, "probabilities": answer.probabilities}


def _label_lines(record: Record, example: TextExample, answer: Prediction) -> Iterator[str]:
    yield columns(answer.label, answer.score, example.text)


def _label_set_fields(record: Record, example: MultiLabelExample, answer: LabelSet) -> dict[str, Any]:
    return {"labels": list(answer.labels), "probabilities": answer.probabilities}


def _label_set_lines(record: Record, example: MultiLabelExample, answer: LabelSet) -> Iterator[str]:
    yield columns(", ".join(answer.labels), example.text)


def _value_lines(record: Record, example: TextExample, answer: float) -> Iterator[str]:
    yield columns(answer, example.text)


# === multiple choice ===


def _choice_fields(record: Record, example: ChoiceExample, answer: Choice) -> dict[str, Any]:
    return {
        "answer": answer.letter,
        "option": example.options[answer.option],
        "probabilities": list(answer.probabilities),
    }


def _choice_lines(record: Record, example: ChoiceExample, answer: Choice) -> Iterator[str]:
    score = answer.probabilities[answer.option]
    yield columns(answer.letter, score, example.options[answer.option], example.question)


# === tagging ===

_COLORS = ("cyan", "green", "yellow", "magenta", "blue", "red")


def _words(record: Record) -> TaggedExample:
    words = words_in(record)
    if words is None:
        text = record["text"]
        words = tuple(text[start:end] for start, end in word_places(text))
    return TaggedExample(words)


def _tag_fields(record: Record, example: TaggedExample, answer: Tagged) -> dict[str, Any]:
    """Of a text, entities have places in characters; of a list of words, in words."""
    own = {"labels": list(answer.labels), "scores": list(answer.scores)}
    if words_in(record) is None:
        text = record["text"]
        found = entities_in(text, word_places(text), answer)
        listed = [{"type": e.kind, "text": e.text, "start": e.start, "end": e.end, "score": e.score} for e in found]
        return {"tokens": list(example.words), **own, "entities": listed}
    listed = [
        {"type": kind, "first_word": start, "last_word": end - 1, "score": min(answer.scores[start:end])}
        for kind, start, end in entities(answer.labels)
    ]
    return own | {"entities": listed}


def _tag_lines(record: Record, example: TaggedExample, answer: Tagged) -> Iterator[str]:
    """Columns as CoNLL has them: a word and its label, a blank line after each text."""
    for word, label in zip(example.words, answer.labels, strict=True):
        yield columns(word, label)
    yield ""


def _tagged_text(record: Record, example: TaggedExample, answer: Tagged) -> "Text":
    """The text with a color behind each entity, and its type after it."""
    from rich.text import Text

    if words_in(record) is None:
        text, places = record["text"], word_places(record["text"])
    else:
        text, places, end = " ".join(example.words), [], 0
        for word in example.words:
            places.append((end, end + len(word)))
            end += len(word) + 1
    result, end = Text(), 0
    for entity in entities_in(text, places, answer):
        color = _COLORS[zlib.crc32(entity.kind.encode()) % len(_COLORS)]
        result.append(text[end : entity.start]).append(entity.text, f"black on {color}")
        result.append(f" {entity.kind}", f"bold {color}")
        end = entity.end
    return result.append(text[end:])


# === question answering ===

_BESIDE = 60  # characters of the passage shown beside an answer


def _question(record: Record, context_file: Path | None = None) -> QuestionExample:
    """The question of a record, about its own passage or that of the file."""
    if context_file is not None and "context" in record:
        raise InputError('a question with a "context" of its own, while --context-file says another')
    texts = record if context_file is None else record | {"context": _passage(context_file)}
    for name in ("question", "context"):
        if not isinstance(texts.get(name), str):
            raise InputError(
                'expected an object with a "question" and a "context", strings; or questions and --context-file: '
                f"{name!r} is {'missing' if name not in texts else type(texts[name]).__name__}"
            )
    if not texts["question"].strip():
        raise InputError("expected a question, found a blank one")
    return QuestionExample("", texts["context"], texts["question"])


@functools.cache
def _passage(path: Path) -> str:
    return read_text(path)


def _answer_fields(record: Record, example: QuestionExample, answer: FoundAnswer) -> dict[str, Any]:
    places = {"answer": answer.text, "start": answer.start, "end": answer.end}
    return places | {"score": answer.score, "no_answer_score": answer.no_answer_score}


def _answer_lines(record: Record, example: QuestionExample, answer: FoundAnswer) -> Iterator[str]:
    yield columns(answer.text, answer.score, example.question)


def _shown_answer(record: Record, example: QuestionExample, answer: FoundAnswer) -> "Text":
    """The question, and the answer with what stands beside it."""
    from rich.text import Text

    result = Text(f"{' '.join(example.question.split())}\n")
    if answer.start is None or answer.end is None:
        return result.append("  no answer in the passage", "dim")
    before, after = max(0, answer.start - _BESIDE), answer.end + _BESIDE
    parts = example.context[before : answer.start], answer.text, example.context[answer.end : after]
    left, middle, right = ("".join(" " if c.isspace() else c for c in part) for part in parts)
    result.append("  …" if before else "  ").append(left).append(middle, "black on green").append(right)
    return result.append("…" if after < len(example.context) else "").append(f"  {answer.score:.2f}", "bold")


# === similarity and fill-mask ===


def _similarity_fields(record: Record, example: TextExample, answer: Any) -> dict[str, Any]:
    if example.pair is not None:
        return {"cosine": answer}
    return {"embedding": [float(str(value)) for value in answer]}  # the fewest digits that say each float32


def _similarity_lines(record: Record, example: TextExample, answer: Any) -> Iterator[str]:
    """A pair's cosine; of a text alone a JSON object, as its embedding is too long for columns."""
    if example.pair is not None:
        yield columns(answer, example.text, example.pair)
    else:
        yield json.dumps({"text": example.text} | _similarity_fields(record, example, answer), ensure_ascii=False)


def _masked(record: Record) -> str:
    text = example_of(record).text
    if MASK not in text:
        raise InputError(no_mask())
    return text


def _filled_fields(record: Record, example: str, answer: FilledText) -> dict[str, Any]:
    return {
        "filled": answer.text,
        "masks": [
            [{"piece": c.piece, "token_id": c.token_id, "probability": c.probability, "text": c.text} for c in mask]
            for mask in answer.masks
        ],
    }


def _filled_lines(record: Record, example: str, answer: FilledText) -> Iterator[str]:
    """The number of the mask, a piece, its probability, the text with it; a blank line after each text."""
    for number, mask in enumerate(answer.masks, start=1):
        for candidate in mask:
            yield columns(str(number), candidate.piece, candidate.probability, candidate.text)
    yield ""


PREDICT_TASKS: dict[str, PredictTask] = {
    "classification": PredictTask(
        ("text", "pair"), 'texts, or JSON objects with a "text"', example_of, _label_fields, _label_lines
    ),
    "multi-label": PredictTask(
        ("text", "pair"),
        'texts, or JSON objects with a "text"',
        _without_labels,
        _label_set_fields,
        _label_set_lines,
    ),
    "regression": PredictTask(
        ("text", "pair"),
        'texts, or JSON objects with a "text"',
        example_of,
        lambda record, example, answer: {"value": answer},
        _value_lines,
    ),
    "multiple-choice": PredictTask(
        (),
        'JSON objects: {"passage": "…", "question": "…", "options": ["…", "…"]}',
        choice_of,
        _choice_fields,
        _choice_lines,
    ),
    "tagging": PredictTask(
        ("text",), 'texts, or JSON objects with a "text" or "tokens"', _words, _tag_fields, _tag_lines, _tagged_text
    ),
    "question-answering": PredictTask(
        ("question",),
        'questions with --context-file, or JSON objects with a "question" and a "context"',
        _question,
        _answer_fields,
        _answer_lines,
        _shown_answer,
        plain_with="context_file",
    ),
    "similarity": PredictTask(
        ("text", "pair"),
        'texts, or JSON objects with a "text"',
        example_of,
        _similarity_fields,
        _similarity_lines,
    ),
    "fill-mask": PredictTask(
        ("text",),
        f'texts with {MASK}, or JSON objects with such a "text"',
        _masked,
        _filled_fields,
        _filled_lines,
    ),
}
