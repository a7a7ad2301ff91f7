"""`albert-tf predict --glue`: the test of a task of GLUE as it is handed in, an index and a prediction a line."""

import argparse
import sys
from typing import Any

from albert_tf.cli.predict_input import CHUNK
from albert_tf.data.glue import SCORES, GlueTask, glue_file, glue_task, read_glue_test
from albert_tf.errors import InputError


def print_predictions(args: argparse.Namespace, pipeline: Any) -> int:
    """Prints the file that is handed in for the test in `args.file`, a file or the folder of the task.

    Raises:
        InputError: no such file, a model with other labels, or options that do not go with it.
    """
    if args.file is None or args.jsonl or args.input is not None or args.pair is not None:
        raise InputError("--glue goes with --file, the file for the test or the folder of the task, and prints columns")
    task = glue_task(args.glue)
    labels = tuple(getattr(pipeline, "labels", ()))
    if set(labels) != set(task.labels):
        raise InputError(
            f"{args.model}: the model's labels are {_named(labels)}, those of {task.name} {_named(task.labels)}"
        )
    index, examples = read_glue_test(glue_file(args.file, task, "test"), task)
    print("index", "prediction", sep="\t")
    for start in range(0, len(examples), CHUNK):
        answers = pipeline.answer(pipeline.prepare(examples[start : start + CHUNK]))
        for name, answer in zip(index[start : start + CHUNK], answers, strict=True):
            print(name, _prediction(task, answer), sep="\t")
    print(f"GLUE takes these predictions as {task.handed_in}", file=sys.stderr)
    return 0


def _prediction(task: GlueTask, answer: Any) -> str:
    if task.labels:
        return str(answer.label)
    lowest, highest = SCORES
    return f"{min(max(answer, lowest), highest):.3f}"


def _named(labels: tuple[str, ...]) -> str:
    return ", ".join(labels) or "numbers"
