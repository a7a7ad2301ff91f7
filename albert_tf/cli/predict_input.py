"""What `predict` reads: plain lines or JSON objects, from options, a file or standard input, as records.

A record is a dictionary with what the task needs to know of one example; a JSON object is one as it is.
"""

import argparse
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

from albert_tf.cli.predict_tasks import PredictTask, Record
from albert_tf.data.rows import json_object, split_lines
from albert_tf.errors import InputError
from albert_tf.files import read_text
from albert_tf.tokenization.rules import without_surrogates

CHUNK = 1024
Place = tuple[str, Record]  # where a record stands, and the record


def check_texts(args: argparse.Namespace) -> None:
    """What can be said about --text and --pair before the model is open.

    Raises:
        InputError: not as many of the one as of the other, or bytes that are no text.
    """
    if args.pair is not None and len(args.pair) != len(args.text or ()):
        raise InputError(f"expected one --pair for each --text, got {len(args.pair)} and {len(args.text or ())}")
    for option, texts in (("--text", args.text or ()), ("--pair", args.pair or ())):
        # The shell's bytes that are not UTF-8 arrive as lone surrogates.
        if any(without_surrogates(text) != text for text in texts):
            raise InputError(
                f"{option}: expected UTF-8 text; put it into a file and give --file to see where it is not"
            )


def chunks(args: argparse.Namespace, task: PredictTask) -> Iterator[list[Place]]:
    """The records, many at a time; of a terminal one at a time.

    Raises:
        InputError: no UTF-8, not JSON where JSON is asked for, or an input that the task cannot use.
    """
    if args.text is None and args.file is None and sys.stdin is None:
        raise InputError("expected --text, --file or texts on standard input, got none of them")
    typed = args.text is None and args.file is None and sys.stdin.isatty()
    places = _from_options(args, task) if args.text is not None else _from_lines(args, task, typed)
    while chunk := list(islice(places, 1 if typed else CHUNK)):
        yield chunk


def _from_lines(args: argparse.Namespace, task: PredictTask, typed: bool) -> Iterator[Place]:
    if args.file is not None:
        source, lines = str(args.file), iter(split_lines(read_text(args.file)))
    else:
        source, lines = "standard input", _standard_input()
    known = args.file is not None and args.file.suffix.lower() == ".jsonl"
    enough = task.plain and (task.plain_with is None or getattr(args, task.plain_with) is not None)
    objects = args.input == "jsonl" if args.input is not None else known or not enough
    if typed:
        print(f"reading {'JSON objects' if objects else 'texts'}, one a line; end with Ctrl-D", file=sys.stderr)
    return _objects(lines, source) if objects else _plain(lines, source, task)


def _from_options(args: argparse.Namespace, task: PredictTask) -> Iterator[Place]:
    given = [args.text] if args.pair is None else [args.text, args.pair]
    if len(given) > len(task.plain):
        option = "--pair" if task.plain else "--text"
        raise InputError(f"{option}: this model takes {task.expected}")
    for number, texts in enumerate(zip(*given, strict=True), start=1):
        yield f"--{task.plain[0]} number {number}", dict(zip(task.plain, texts, strict=False))


def _plain(lines: Iterator[str], source: str, task: PredictTask) -> Iterator[Place]:
    if not task.plain:
        raise InputError(f"--input lines: this model takes {task.expected}")
    for number, line in enumerate(lines, start=1):
        yield f"{source}, line {number}", {task.plain[0]: line}


def _objects(lines: Iterator[str], source: str) -> Iterator[Place]:
    blank = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            blank = blank or number  # not a line of the file, if nothing follows
            continue
        if blank:
            raise InputError(f"{source}, line {blank}: a blank line between JSON objects; remove it")
        where = f"{source}, line {number}"
        yield where, json_object(line, where)


def _standard_input() -> Iterator[str]:
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"standard input, line {number}: expected UTF-8 text, found byte 0x{raw[error.start]:02x}"
            ) from error
        yield line.removesuffix("\n").removesuffix("\r")


def example_at(task: PredictTask, place: Place, options: dict[str, Any]) -> Any:
    """The example for the task's pipeline that a record is.

    Raises:
        InputError: it is none; the message says where it stands.
    """
    where, record = place
    try:
        return task.example(record, **options)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
