"""Questions with several answers to choose from: RACE's JSON and ARC's tables."""

import csv
import dataclasses
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from albert_tf.data.rows import start_of
from albert_tf.errors import InputError
from albert_tf.files import read_json, read_text

FEWEST_OPTIONS = 2
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_Question = tuple[Any, Any, Any, Any, str]  # context, question, options, answer as they stand in the file; where
_BLANK = "_"  # in a question: where the option goes (RACE)


@dataclasses.dataclass(frozen=True)
class ChoiceExample:
    """A question to choose an answer to.

    Attributes:
        context: the text that the question is about, "" where there is none.
        question: the question; "_" in it stands for the answer.
        options: the answers to choose from, two or more.
        answer: the index of the right one, or None where it is not known.
    """

    context: str
    question: str
    options: tuple[str, ...]
    answer: int | None = None

    def statements(self) -> list[str]:
        """Question and option as one text, for each option (google-research/albert race_utils.py): in place of the
        blank, or after the question."""
        if _BLANK in self.question:
            return [self.question.replace(_BLANK, option) for option in self.options]
        return [f"{self.question} {option}" for option in self.options]


def read_choices(path: str | Path, *, left_out: list[str] | None = None) -> list[ChoiceExample]:
    """Reads questions from a file, or from every file of a folder and the folders in it, in the order of their names.

    - `.json` and `.txt`: an object {"article", "questions", "options", "answers"} as RACE has, each question with its
      list of options and a letter as its answer; or an object whose "data" is a list of such; or a list of such.
    - `.csv`: as ARC is spread, without header: question, options, letter of the answer. A row may have fewer options
      than others: their cells are blank.

    Args:
        path: the file or folder.
        left_out: leave out questions that cannot be used, and append here why; None makes the first one an error.

    Raises:
        InputError: nothing to read, or a question without two options, or with an answer that is none of them. The
            message names file and question.
    """
    path = Path(path)
    files = _files(path)
    examples = []
    for question in (question for file in files for question in _read_file(file)):
        try:
            examples.append(_example(*question))
        except InputError as error:
            if left_out is None:
                raise
            left_out.append(str(error))
    if not examples:
        raise InputError(f"{path}: expected questions with options, found none")
    return examples


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.suffix in (".json", ".txt", ".csv") and file.is_file())
    if not files:
        raise InputError(f"{path}: expected .json, .txt or .csv files with questions in the folder, found none")
    return files


def _read_file(path: Path) -> Iterable[_Question]:
    return _from_table(path) if path.suffix.lower() == ".csv" else _from_json(path)


def _from_json(path: Path) -> Iterator[_Question]:
    content = read_json(path)
    if isinstance(content, dict) and "data" in content:
        content = content["data"]
    for number, passage in enumerate(content if isinstance(content, list) else [content], start=1):
        where = f"{path}, passage {number}"
        fields = {name: passage.get(name) for name in ("questions", "options")} if isinstance(passage, dict) else {}
        questions, options = fields.get("questions"), fields.get("options")
        if not (isinstance(questions, list) and isinstance(options, list) and len(questions) == len(options)):
            raise InputError(
                f'{where}: expected an object with "questions" and as many lists in "options", as RACE has'
            )
        answers = passage.get("answers", [None] * len(questions))
        if not isinstance(answers, list) or len(answers) != len(questions):
            raise InputError(f'{where}: expected as many "answers" as questions')
        context = passage.get("article", passage.get("context", ""))
        for index, (question, choices, answer) in enumerate(zip(questions, options, answers, strict=True), start=1):
            yield context, question, choices, answer, f"{where}, question {index}"


def _from_table(path: Path) -> Iterator[_Question]:
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        for row in reader:
            if row:
                options = [cell for cell in row[1:-1] if cell.strip()]
                yield "", row[0], options, row[-1].strip(), f"{path}, line {reader.line_num}"
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: not CSV ({error})") from error


def _example(context: Any, question: Any, options: Any, answer: Any, where: str) -> ChoiceExample:
    for name, text in (("the passage", context), ("the question", question)):
        if not isinstance(text, str):
            raise InputError(f"{where}: expected a string as {name}, got {type(text).__name__}")
    named = f"{where} ({start_of(question)})"
    if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
        raise InputError(f"{named}: expected a list of strings as options")
    if not FEWEST_OPTIONS <= len(options) <= len(_LETTERS):
        raise InputError(f"{named}: expected {FEWEST_OPTIONS} to {len(_LETTERS)} options, found {len(options)}")
    return ChoiceExample(context, question, tuple(options), None if answer is None else _index(answer, options, named))


def _index(answer: Any, options: list[str], where: str) -> int:
    """The option that a letter, or a number counted from 1 as in ARC, stands for."""
    text = str(answer).strip().upper()
    index = _LETTERS.find(text) if len(text) == 1 and text in _LETTERS else int(text) - 1 if text.isdecimal() else -1
    if not 0 <= index < len(options):
        raise InputError(f"{where}: expected an answer from A to {_LETTERS[len(options) - 1]}, got {answer!r}")
    return index
