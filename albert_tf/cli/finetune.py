"""albert-tf finetune: a labelled file → a run folder."""

import argparse
import functools
from pathlib import Path
from typing import Any

from albert_tf.training.run_config import RUNS

EXAMPLE = "example: albert-tf finetune {task} --train {train} --from albert_base_v2.tar.gz --out runs/{task}"
TRAIN_FILES = {"tagging": "train.conll", "multiple-choice": "RACE/train"}  # what others take is a table


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "finetune",
        help="train a task on a labelled file",
        description="Train a task on a labelled file and write a run folder: model, tokenizer, labels, metrics, curves. "
        "An interrupted run goes on when the same command is given again.",
        epilog=EXAMPLE.format(task="classification", train="train.tsv --valid dev.tsv"),
    )
    tasks = parser.add_subparsers(dest="task", metavar="TASK", required=True)
    for run_class, help_text in RUNS:
        example = EXAMPLE.format(
            task=run_class.task, train=TRAIN_FILES.get(run_class.task, "train.tsv --valid dev.tsv")
        )
        task = tasks.add_parser(run_class.task, help=help_text, description=help_text, epilog=example)
        run_class.add_flags(task)
        task.add_argument("--overwrite", action="store_true", help="replace OUT; forget an interrupted run")
        task.add_argument("--json", type=Path, metavar="FILE", help="write the final figures here too")
        task.set_defaults(run=run, run_class=run_class)


def run(args: argparse.Namespace) -> int:
    config = args.run_class.from_flags(args)  # before the slow imports: wrong flags fail at once
    from rich.console import Console

    from albert_tf.evaluation.report import metrics_table, write_json
    from albert_tf.files import refuse_existing
    from albert_tf.training.finetune import finetune

    if args.json is not None:
        refuse_existing(args.json, overwrite=args.overwrite, file=True)
    console = Console()
    # Labels and paths may hold what rich would take for markup.
    say = functools.partial(console.print, markup=False, highlight=False, soft_wrap=True)
    summary = finetune(config, overwrite=args.overwrite, report=say)
    if summary["valid"]:
        console.print(metrics_table(summary["valid"], f"{config.valid}, weights of round {summary['best_round']}"))
    say(f"written: {config.out}")
    if args.json is not None:
        write_json(args.json, summary, overwrite=args.overwrite)
    return 0
