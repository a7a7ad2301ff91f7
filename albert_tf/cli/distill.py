"""albert-tf distill: a file and a teacher → the run folder of a smaller student."""

import argparse
from typing import Any

from albert_tf.cli.finetune import SHORT_NAMES, add_run_options, train
from albert_tf.training.distill_runs import DISTILL_RUNS

EXAMPLE = "example: albert-tf distill {task} --teacher runs/{task} --train {train} --layers 4 --out runs/{task}_small"
# What others take is a table.
TRAIN_FILES = {
    "tagging": "train.conll",
    "multiple-choice": "RACE/train",
    "question-answering": "train-v2.0.json --valid dev-v2.0.json",
    "similarity": "texts.txt",
    "fill-mask": "texts.txt",
}


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "distill",
        help="train a smaller student by a teacher's answers",
        description="Train a student on what a teacher answers, or on its inner states, and write a run folder like that of "
        "finetune. The student starts with the teacher's own weights: passes of a shared block can be left out. An "
        "interrupted run goes on when the same command is given again.",
        epilog=EXAMPLE.format(task="classification", train="train.tsv --valid dev.tsv"),
    )
    tasks = parser.add_subparsers(dest="task", metavar="TASK", required=True)
    for run_class, help_text in DISTILL_RUNS:
        example = EXAMPLE.format(
            task=run_class.task, train=TRAIN_FILES.get(run_class.task, "train.tsv --valid dev.tsv")
        )
        short = SHORT_NAMES.get(run_class.task, ())
        task = tasks.add_parser(run_class.task, aliases=short, help=help_text, description=help_text, epilog=example)
        add_run_options(task, run_class)
        task.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    config = args.run_class.from_flags(args)  # before the slow imports: wrong flags fail at once
    from albert_tf.training.distill import distill

    return train(config, args, distill)
