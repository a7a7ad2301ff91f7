"""Questions about passages, as SQuAD 1.1, SQuAD 2.0 and CMRC 2018 have them."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from albert_tf.data.rows import start_of
from albert_tf.errors import InputError
from albert_tf.files import read_json


@dataclasses.dataclass(frozen=True)
class Answer:
    """A span of the passage.

    Attributes:
        text: its characters.
        start: the index of the first one in the passage.
    """

    text: str
    start: int


@dataclasses.dataclass(frozen=True)
class QuestionExample:
    """A question about a passage.

    Attributes:
        identifier: unique in its file.
        context: the passage.
        question: the question.
        answers: the right answers, any of which will do; none where the passage does not say (SQuAD 2.0), or where the
            file has no answers.
    """

    identifier: str
    context: str
    question: str
    answers: tuple[Answer, ...] = ()


def read_questions(
    path: str | Path, *, left_out: list[str] | None = None, moved: list[str] | None = None
) -> list[QuestionExample]:
    """Reads the questions of a SQuAD file, or of a CMRC file in either of its layouts.

    An answer that does not stand where the file says is looked for: the nearest place with its characters counts, or,
    where there is none, with these but for spaces around them. 200 answers of CMRC's training set need it.

    Args:
        path: a `.json` file: an object with "data", a list of {"paragraphs": [{"context", "qas": [{"id", "question",
            "answers": [{"text", "answer_start"}], "is_impossible"}]}]}, or (CMRC) a list of {"context_text", "qas":
            [{"query_id", "query_text", "answers": [text]}]}.
        left_out: leave out questions that cannot be used, and append here why; None makes the first one an error.
        moved: receives a line for each answer that was found elsewhere than the file says.

    Raises:
        InputError: not such a file, an answer that is not in its passage, or an id that comes twice. The message names
            file and question.
    """
    examples: list[QuestionExample] = []
    seen: set[str] = set()
    for context, identifier, question, answers, where in _questions(read_json(path), Path(path)):
        try:
            example = _example(context, identifier, question, answers, where, [] if moved is None else moved)
            if example.identifier in seen:
                raise InputError(f"{where}: the id {example.identifier!r} comes twice")
        except InputError as error:
            if left_out is None:
                raise
            left_out.append(str(error))
            continue
        seen.add(example.identifier)
        examples.append(example)
    if not examples:
        raise InputError(f"{path}: expected questions, found none")
    return examples


def read_and_report(
    path: str | Path, report: Callable[[str], None], *, leave_out_unusable: bool = False
) -> list[QuestionExample]:
    """`read_questions`, with a line for `report` on what was put right in the file and one on what was left out.

    Args:
        path: the file.
        report: receives the lines.
        leave_out_unusable: leave out questions that cannot be used; False makes the first one an error.
    """
    left_out: list[str] = []
    moved: list[str] = []
    examples = read_questions(path, left_out=left_out if leave_out_unusable else None, moved=moved)
    for lines, what in ((moved, "answers stand elsewhere than the file says"), (left_out, "questions left out")):
        if lines:
            report(f"{path}: {len(lines)} {what}, the first: {lines[0]}")
    return examples


_Question = tuple[Any, Any, Any, Any, str]  # passage, id, question, answers as they stand in the file; where


def _questions(content: Any, path: Path) -> Iterator[_Question]:
    articles = content.get("data") if isinstance(content, dict) else content
    if not isinstance(articles, list):
        raise InputError(f'{path}: expected an object with "data", a list, as SQuAD has; or a list, as CMRC has')
    for number, article in enumerate(articles, start=1):
        where = f"{path}, article {number}"
        if not isinstance(article, dict):
            raise InputError(f"{where}: expected an object, got {type(article).__name__}")
        paragraphs = article.get("paragraphs", [article])
        for place, paragraph in enumerate(_objects(paragraphs, '"paragraphs"', where), start=1):
            context = paragraph.get("context", paragraph.get("context_text"))
            inside = f"{where}, paragraph {place}"
            for row, question in enumerate(_objects(paragraph.get("qas"), '"qas"', inside), start=1):
                yield (
                    context,
                    question.get("id", question.get("query_id")),
                    question.get("question", question.get("query_text")),
                    [] if question.get("is_impossible") else question.get("answers", []),
                    f"{inside}, question {row}",
                )


def _objects(value: Any, name: str, where: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise InputError(f"{where}: expected {name}, a list of objects")
    return value


def _example(
    context: Any, identifier: Any, question: Any, answers: Any, where: str, moved: list[str]
) -> QuestionExample:
    for name, text in (("passage", context), ("question", question)):
        if not isinstance(text, str):
            raise InputError(f"{where}: expected a string as the {name}, got {type(text).__name__}")
    if not isinstance(identifier, (str, int)):
        raise InputError(f"{where}: expected an id, got {identifier!r}")
    if not isinstance(answers, list):
        raise InputError(f"{where}: expected a list of answers, got {type(answers).__name__}")
    named = f"{where} ({start_of(question)})"
    found = tuple(_answer(answer, context, named, moved) for answer in answers)
    return QuestionExample(str(identifier), context, question, found)


def _answer(answer: Any, context: str, where: str, moved: list[str]) -> Answer:
    text, start = (answer.get("text"), answer.get("answer_start")) if isinstance(answer, dict) else (answer, None)
    if not isinstance(text, str) or not isinstance(start, (int, type(None))):
        raise InputError(f'{where}: expected an answer with "text", a string, and "answer_start", a number')
    if start is not None and start >= 0 and text.strip() and context.startswith(text, start):
        return Answer(text, start)
    for wanted in (text, text.strip()):
        if wanted.strip() and (places := _places(wanted, context)):
            place = min(places, key=lambda place: abs(place - (start or 0)))
            if start is not None:
                moved.append(f"{where}: the answer {start_of(text)} is not at {start}, but at {place}")
            return Answer(wanted, place)
    raise InputError(f"{where}: the answer {start_of(text)} is not in the passage")


def _places(text: str, context: str) -> list[int]:
    places, start = [], context.find(text)
    while start >= 0:
        places.append(start)
        start = context.find(text, start + 1)
    return places
