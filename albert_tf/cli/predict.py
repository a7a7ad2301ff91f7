"""albert-tf predict: text → label, from a run folder or a `.tflite` file."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from albert_tf.data.rows import split_lines
from albert_tf.errors import InputError
from albert_tf.files import read_text
from albert_tf.tokenization.rules import without_surrogates

CHUNK = 1024
# Task → what is printed of an answer: the columns before the text, and the fields of a JSON line.
ANSWERS: dict[str, tuple[Callable[[Any], tuple[str, ...]], Callable[[Any], dict[str, Any]]]] = {
    "classification": (
        lambda answer: (answer.label, f"{answer.score:.4f}"),
        lambda answer: {"label": answer.label, "probabilities": answer.probabilities},
    ),
    "regression": (lambda answer: (f"{answer:.4f}",), lambda answer: {"value": answer}),
}


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "predict",
        help="label texts with a run folder or a .tflite file",
        description="Label texts. Prints one line a text: label, probability, text, with tabs between; a regressor's value "
        "in place of the first two.",
        epilog='example: albert-tf predict sst2.tflite --text "a gripping, beautifully shot film"',
    )
    parser.add_argument("model", type=Path, help="run folder or .tflite file")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--text", action="append", help="a text (may be repeated)")
    source.add_argument("--file", type=Path, help="file with one text a line; default: standard input")
    parser.add_argument("--pair", action="append", help="the second text of each --text, for models of text pairs")
    parser.add_argument("--jsonl", action="store_true", help="print JSON lines, with every label's probability")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads for a .tflite file (default 1)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from albert_tf.cli.models import open_runner
    from albert_tf.inference.pipelines import pipeline_of

    if args.pair is not None and len(args.pair) != len(args.text or ()):
        raise InputError(f"expected one --pair for each --text, got {len(args.pair)} and {len(args.text or ())}")
    lines, size = _texts(args)
    runner = open_runner(args.model, threads=args.threads)
    if runner.task not in ANSWERS:
        raise InputError(
            f"{args.model}: predict takes models of the tasks {' and '.join(ANSWERS)}, this one is for {runner.task}; use "
            "it from Python"
        )
    pipeline, (columns, fields) = pipeline_of(runner), ANSWERS[runner.task]
    answered = False
    while texts := list(islice(lines, size)):
        answered = True
        answers = pipeline(texts, args.pair)
        for text, pair, answer in zip(texts, args.pair or [None] * len(texts), answers, strict=True):
            if args.jsonl:
                given = {"text": text} if pair is None else {"text": text, "pair": pair}
                print(_json(given | fields(answer)), flush=size == 1)
            else:
                print(*columns(answer), " ".join(text.split()), sep="\t", flush=size == 1)
    if not answered:
        raise InputError(f"{args.file or 'standard input'}: expected texts, one a line; found none")
    return 0


def _json(fields: dict[str, Any]) -> str:
    """Readable where the output's encoding has every character, else with escapes: never with characters lost."""
    line = json.dumps(fields, ensure_ascii=False)
    try:
        line.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return json.dumps(fields)
    return line


def _texts(args: argparse.Namespace) -> tuple[Iterator[str], int]:
    """The texts, and how many of them to take at a time."""
    if args.text is not None:
        for option, texts in (("--text", args.text), ("--pair", args.pair or ())):
            # The shell's bytes that are not UTF-8 arrive as lone surrogates.
            if any(without_surrogates(text) != text for text in texts):
                raise InputError(
                    f"{option}: expected UTF-8 text; put it into a file and give --file to see where it is not"
                )
        return iter(args.text), len(args.text)
    if args.file is not None:
        return iter(split_lines(read_text(args.file))), CHUNK
    if sys.stdin is None:
        raise InputError("expected --text, --file or texts on standard input, got none of them")
    if sys.stdin.isatty():
        print("reading texts, one a line; end with Ctrl-D", file=sys.stderr)
        return _standard_input(), 1
    return _standard_input(), CHUNK


def _standard_input() -> Iterator[str]:
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"standard input, line {number}: expected UTF-8 text, found byte 0x{raw[error.start]:02x}"
            ) from error
        yield line.removesuffix("\n").removesuffix("\r")
