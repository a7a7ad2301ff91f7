"""albert-tf predict: examples → answers, from a run folder or a `.tflite` file."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from albert_tf.cli.depth_options import add_depth_options, choose_depth
from albert_tf.cli.glue_predictions import print_predictions
from albert_tf.cli.predict_input import check_texts, chunks, example_at
from albert_tf.cli.predict_tasks import PREDICT_TASKS, PredictTask, Record
from albert_tf.cli.task_options import (
    EXAMPLE_OPTIONS,
    GLUE_TEST_OPTION,
    PIPELINE_OPTIONS,
    add_options,
    given_options,
    set_pipeline_options,
)
from albert_tf.errors import InputError
from albert_tf.inference.depth import DepthCounter


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "predict",
        help="answers of a run folder or a .tflite file",
        description="Answers of a model, a line each with tabs between: label, probability, text; a regressor's value in "
        "place of the first two. A tagger prints each word with its label, or in a terminal the text with colors. Multiple "
        "choice takes JSON objects only. Question answering prints the answer, empty where the passage does not say.",
        epilog='example: albert-tf predict sst2.tflite --text "a gripping, beautifully shot film"',
    )
    parser.add_argument(
        "model", type=Path, help="run folder, .keras file, checkpoint with a trained head, or .tflite file"
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--text", action="append", help="a text (may be repeated)")
    source.add_argument(
        "--question",
        action="append",
        dest="text",
        help="a question about the passage in --context-file (may be repeated)",
    )
    source.add_argument(
        "--file", type=Path, help="file with one text a line, or .jsonl with an object a line; default: standard input"
    )
    parser.add_argument("--pair", action="append", help="the second text of each --text, for models of text pairs")
    parser.add_argument(
        "--input",
        choices=("lines", "jsonl"),
        help="what a line of the input is: a text, or a JSON object (default: a text, but for files called .jsonl and "
        "tasks that need more than a text)",
    )
    parser.add_argument(
        "--jsonl", action="store_true", help="print JSON lines: the input's own fields, and all of the answer"
    )
    parser.add_argument("--threads", type=int, default=1, help="CPU threads for a .tflite file (default 1)")
    add_depth_options(parser)
    add_options(parser, (*EXAMPLE_OPTIONS, *PIPELINE_OPTIONS, GLUE_TEST_OPTION))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from albert_tf.cli.models import open_runner
    from albert_tf.inference.pipelines import pipeline_of

    check_texts(args)
    runner = open_runner(args.model, threads=args.threads)
    if runner.task not in PREDICT_TASKS:
        raise InputError(
            f"{args.model}: predict takes models of the tasks {', '.join(PREDICT_TASKS)}, this one is for {runner.task}; "
            "use it from Python"
        )
    choose_depth(args, runner)
    counter = DepthCounter(runner)
    task, pipeline = PREDICT_TASKS[runner.task], pipeline_of(counter)
    set_pipeline_options(pipeline, args, runner.task)
    options = given_options(args, EXAMPLE_OPTIONS, runner.task)
    if given_options(args, (GLUE_TEST_OPTION,), runner.task):
        return print_predictions(args, pipeline)
    answered = False
    for places in chunks(args, task):
        answered = True
        examples = [example_at(task, place, options) for place in places]
        answers = pipeline.answer(pipeline.prepare(examples))
        for (where, record), example, answer in zip(places, examples, answers, strict=True):
            if args.jsonl:
                print(_json(_merged(record, task.fields(record, example, answer), where)))
            else:
                _print(task, record, example, answer)
        sys.stdout.flush()
    if not answered:
        raise InputError(f"{args.file or 'standard input'}: expected texts, one a line; found none")
    if counter.mean_depth is not None:
        print(f"albert-tf: {counter.mean_depth:.2f} passes in the mean", file=sys.stderr)
    return 0


def _print(task: PredictTask, record: Record, example: Any, answer: Any) -> None:
    if task.colored is not None and sys.stdout.isatty():
        from rich.console import Console

        Console().print(task.colored(record, example, answer), soft_wrap=True)
        return
    for line in task.lines(record, example, answer):
        print(line)


def _merged(record: Record, fields: dict[str, Any], where: str) -> dict[str, Any]:
    """The record with the answer; a field of the record that is called like one of the answer's becomes "input_…"."""
    own = {f"input_{name}" if name in fields else name: value for name, value in record.items()}
    if len(own) < len(record):
        names = [name for name in record if name in fields and f"input_{name}" in record]
        raise InputError(f"{where}: has {names[0]!r} and 'input_{names[0]}' too; rename one of the two")
    return own | fields


def _json(fields: dict[str, Any]) -> str:
    """Readable where the output's encoding has every character, else with escapes: never with characters lost."""
    line = json.dumps(fields, ensure_ascii=False)
    try:
        line.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return json.dumps(fields)
    return line
