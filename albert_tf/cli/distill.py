"""albert-tf distill: a file and a teacher → the run folder of a smaller student."""

import argparse
from typing import Any

from albert_tf.cli import finetune
from albert_tf.cli.finetune import add_tasks, train
from albert_tf.training.distill_runs import DISTILL_RUNS

EXAMPLE = "example: albert-tf distill {task} --teacher runs/{task} --train {train} --layers 4 --out runs/{task}_small"
TRAIN_FILES = finetune.TRAIN_FILES | {"similarity": "texts.txt", "fill-mask": "texts.txt"}


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "distill",
        help="train a smaller student by a teacher's answers",
        description="Train a student on what a teacher answers, or on its inner states, and write a run folder like that of "
        "finetune. The student starts with the teacher's own weights: passes of a shared block can be left out. An "
        "interrupted run goes on when the same command is given again.",
        epilog=EXAMPLE.format(task="classification", train="train.tsv --valid dev.tsv"),
    )
    add_tasks(parser, DISTILL_RUNS, EXAMPLE, TRAIN_FILES, run)


def run(args: argparse.Namespace) -> int:
    config = args.run_class.from_flags(args)  # before the slow imports: wrong flags fail at once
    from albert_tf.training.distill import distill

    return train(config, args, distill)
