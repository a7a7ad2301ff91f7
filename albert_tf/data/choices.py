"""Questions with several answers to choose from: RACE's JSON and ARC's tables."""

import csv
import dataclasses
import io
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from albert_tf.data.rows import json_object, split_lines, start_of, text_in
from albert_tf.errors import InputError
from albert_tf.files import read_json, read_text

FEWEST_OPTIONS = 2
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_Question = tuple[Any, Any, Any, Any, str]  # context, question, options, answer as they stand in the file; where
_PASSAGES = ("passage", "article", "context")
_ANSWER_COLUMNS = ("answer", "answerkey", "answer_key", "label", "correct")  # of a header, where a table has one
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
      list of options and a letter as its answer; or an object whose "data" is a list of such; or a list of such. Also a
      list of [sentences, [{"question", "choice", "answer"}], id], as C3 has.
    - `.jsonl`: an object a line with "question", "options" and "answer", and "passage" where there is one; or as ARC has,
      with "choices" that have a text and a label each, and "answerKey".
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


def choice_of(record: Mapping[str, Any]) -> ChoiceExample:
    """The question in a JSON object, as a line of a `.jsonl` file has it: "question", a list of "options", and maybe the
    "passage" it is about (also called "article" or "context"); an answer in it is not looked at.

    Raises:
        InputError: the object has no such question.
    """
    context, question, options, _ = _question_in(record)
    return _example(context, question, options, None, "the object")


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(
        file
        for file in path.rglob("*")
        if file.suffix.lower() in (".json", ".jsonl", ".txt", ".csv") and file.is_file()
    )
    if not files:
        raise InputError(f"{path}: expected .json, .jsonl, .txt or .csv files with questions in the folder, found none")
    return files


def _read_file(path: Path) -> Iterable[_Question]:
    return {".csv": _from_table, ".jsonl": _from_lines}.get(path.suffix.lower(), _from_json)(path)


def _from_json(path: Path) -> Iterator[_Question]:
    content = read_json(path)
    if isinstance(content, dict) and "data" in content:
        content = content["data"]
    for number, passage in enumerate(content if isinstance(content, list) else [content], start=1):
        where = f"{path}, passage {number}"
        if isinstance(passage, list):
            yield from _from_c3(passage, where)
            continue
        fields = {name: passage.get(name) for name in ("questions", "options")} if isinstance(passage, dict) else {}
        questions, options = fields.get("questions"), fields.get("options")
        if not (isinstance(questions, list) and isinstance(options, list) and len(questions) == len(options)):
            raise InputError(
                f'{where}: expected an object with "questions" and as many lists in "options", as RACE has'
            )
        answers = passage.get("answers", [None] * len(questions))
        if not isinstance(answers, list) or len(answers) != len(questions):
            raise InputError(f'{where}: expected as many "answers" as questions')
        context = next((passage[name] for name in _PASSAGES if name in passage), "")
        for index, (question, choices, answer) in enumerate(zip(questions, options, answers, strict=True), start=1):
            yield context, question, choices, answer, f"{where}, question {index}"


def _from_c3(passage: list[Any], where: str) -> Iterator[_Question]:
    if len(passage) < 2 or not all(isinstance(part, list) for part in passage[:2]):
        raise InputError(f"{where}: expected a list of sentences and one of questions, as C3 has")
    sentences, questions = passage[:2]
    context = "\n".join(text_in(sentence, "sentence", where) for sentence in sentences)
    for index, item in enumerate(questions, start=1):
        fields: dict[str, Any] = item if isinstance(item, dict) else {}
        options, answer = fields.get("choice"), fields.get("answer")
        # The answer stands there as a text.
        known = options if isinstance(options, list) else []
        yield context, fields.get("question"), options, _letter(answer, known), f"{where}, question {index}"


def _from_lines(path: Path) -> Iterator[_Question]:
    for number, line in enumerate(split_lines(read_text(path).rstrip()), start=1):
        where = f"{path}, line {number}"
        context, question, options, answer = _question_in(json_object(line, where))
        yield context, question, options, answer, where


def _question_in(item: Mapping[str, Any]) -> tuple[Any, Any, Any, Any]:
    """Context, question, options and answer of a JSON object."""
    context = next((item[name] for name in _PASSAGES if name in item), "")
    asked = item.get("question")
    question, choices = (asked.get("stem"), asked) if isinstance(asked, dict) else (asked, item)
    options, labels = _labelled_options(choices.get("options", choices.get("choices")))
    return context, question, options, _letter(item.get("answer", item.get("answerKey")), labels)


def _letter(answer: Any, known: list[Any]) -> Any:
    """The letter of the option that `known` has this answer for; where it has it for none, the answer as it is."""
    place = known.index(answer) if answer in known else len(LETTERS)
    return LETTERS[place] if place < len(LETTERS) else answer


def _labelled_options(options: Any) -> tuple[Any, list[Any]]:
    """Texts and labels, where options have both: a list of {"text", "label"}, or a {"text": [...], "label": [...]}."""
    if isinstance(options, dict):
        labels = options.get("label")
        return options.get("text"), labels if isinstance(labels, list) else []
    if isinstance(options, list) and options and all(isinstance(option, dict) for option in options):
        return [option.get("text") for option in options], [option.get("label") for option in options]
    return options, []


def _from_table(path: Path) -> Iterator[_Question]:
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        for row in reader:
            if row:
                where = f"{path}, line {reader.line_num}"
                if reader.line_num == 1 and row[-1].strip().casefold() in _ANSWER_COLUMNS:
                    continue
                yield "", row[0], _options(row[1:-1]), row[-1].strip(), where
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: not CSV ({error})") from error


def _options(cells: list[str]) -> list[str | None]:
    """A row has as many cells as the one with most options: those at its end that are blank are none. One before others
    is None: without it the letters would be those of other options."""
    options = [cell if cell.strip() else None for cell in cells]
    while options and options[-1] is None:
        options.pop()
    return options


def _example(context: Any, question: Any, options: Any, answer: Any, where: str) -> ChoiceExample:
    context, question = text_in(context, "passage", where), text_in(question, "question", where)
    named = f"{where} ({start_of(question)})"
    if isinstance(options, list) and None in options:
        raise InputError(f"{named}: option {LETTERS[options.index(None)]} is blank, though others follow")
    if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
        raise InputError(f"{named}: expected a list of strings as options")
    for option in options:
        text_in(option, "option", named)
    if not FEWEST_OPTIONS <= len(options) <= len(LETTERS):
        raise InputError(f"{named}: expected {FEWEST_OPTIONS} to {len(LETTERS)} options, found {len(options)}")
    return ChoiceExample(context, question, tuple(options), None if answer is None else _index(answer, options, named))


def _index(answer: Any, options: list[str], where: str) -> int:
    """The option that a letter, or a number counted from 1 as in ARC, stands for."""
    # Letters and digits as Chinese files have them, full-width, are the same.
    text = unicodedata.normalize("NFKC", str(answer)).strip().upper()
    number = int(text) - 1 if text.isdecimal() and len(text) < 5 else -1
    index = LETTERS.find(text) if len(text) == 1 and text in LETTERS else number
    if not 0 <= index < len(options):
        raise InputError(f"{where}: expected an answer from A to {LETTERS[len(options) - 1]}, got {answer!r}")
    return index
