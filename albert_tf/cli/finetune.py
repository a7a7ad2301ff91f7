"""albert-tf finetune: a labelled file → a run folder."""

import argparse
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from albert_tf.training.run_config import RunConfig
from albert_tf.training.task_runs import RUNS

EXAMPLE = "example: albert-tf finetune {task} --train {train} --from albert_base_v2.tar.gz --out runs/{task}"
# What others take is a table.
TRAIN_FILES = {
    "tagging": "train.conll",
    "multiple-choice": "RACE/train",
    "question-answering": "train-v2.0.json --valid dev-v2.0.json",
}

SHORT_NAMES = {"question-answering": ("qa",)}


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "finetune",
        help="train a task on a labelled file",
        description="Train a task on a labelled file and write a run folder: model, tokenizer, labels, metrics, curves. "
        "An interrupted run goes on when the same command is given again.",
        epilog=EXAMPLE.format(task="classification", train="train.tsv --valid dev.tsv"),
    )
    add_tasks(parser, RUNS, EXAMPLE, TRAIN_FILES, run)


def add_tasks(
    parser: argparse.ArgumentParser,
    runs: Sequence[tuple[type[RunConfig], str]],
    example: str,
    train_files: Mapping[str, str],
    action: Callable[[argparse.Namespace], int],
) -> None:
    """A command for each task, with the options of its run.

    Args:
        parser: of the command that they are part of.
        runs: each task's settings and what it is.
        example: with places for "task" and "train".
        train_files: task → training file of its example, where it is no table.
        action: what is done.
    """
    tasks = parser.add_subparsers(dest="task", metavar="TASK", required=True)
    for run_class, help_text in runs:
        shown = example.format(task=run_class.task, train=train_files.get(run_class.task, "train.tsv --valid dev.tsv"))
        short = SHORT_NAMES.get(run_class.task, ())
        task = tasks.add_parser(run_class.task, aliases=short, help=help_text, description=help_text, epilog=shown)
        add_run_options(task, run_class)
        task.set_defaults(run=action)


def add_run_options(task: argparse.ArgumentParser, run_class: type[RunConfig]) -> None:
    """The options of a command that makes a run of this class, or several."""
    run_class.add_flags(task)
    several = task.add_argument_group("several runs", "OUT becomes a folder of run folders, with a summary")
    several.add_argument("--seeds", metavar="N,N,…", help="a run for each seed; mean and standard deviation of metrics")
    several.add_argument(
        "--sweep",
        metavar="FIELD=VALUE,VALUE",
        nargs="+",
        default=[],
        help="a run for each combination: learning_rate=1e-5,2e-5 batch_size=16,32",
    )
    task.add_argument("--overwrite", action="store_true", help="replace OUT; forget an interrupted run")
    task.add_argument("--json", type=Path, metavar="FILE", help="write the final figures here too")
    task.set_defaults(run_class=run_class)


def run(args: argparse.Namespace) -> int:
    config = args.run_class.from_flags(args)  # before the slow imports: wrong flags fail at once
    from albert_tf.training.finetune import finetune

    return train(config, args, finetune)


def train(config: RunConfig, args: argparse.Namespace, make: Callable[..., dict[str, Any]]) -> int:
    """Makes the run, or the runs, that the options ask for, and prints the figures.

    Args:
        config: the settings.
        args: with the options of `add_run_options`.
        make: makes one run of settings.
    """
    from rich.console import Console

    from albert_tf.evaluation.report import metrics_table, write_json
    from albert_tf.files import refuse_existing

    if args.json is not None:
        refuse_existing(args.json, overwrite=args.overwrite, file=True)
    console = Console()
    # Labels and paths may hold what rich would take for markup.
    say = functools.partial(console.print, markup=False, highlight=False, soft_wrap=True)
    if args.seeds is not None or args.sweep:
        return _run_several(config, args, make, console, say)
    summary = make(config, overwrite=args.overwrite, report=say)
    if not summary:  # a worker that is not the chief
        return 0
    if summary["valid"]:
        console.print(metrics_table(summary["valid"], f"{config.valid}, weights of round {summary['best_round']}"))
    if summary.get("teacher"):
        console.print(metrics_table(summary["teacher"], f"{config.valid}, the teacher"))
    say(f"written: {config.out}")
    if args.json is not None:
        write_json(args.json, summary, overwrite=args.overwrite)
    return 0


def _run_several(
    config: RunConfig,
    args: argparse.Namespace,
    make: Callable[..., dict[str, Any]],
    console: Any,
    say: Callable[[str], None],
) -> int:
    from albert_tf.evaluation.report import write_json
    from albert_tf.training.sweep import parse_sweep, run_sweep, summary_table

    sweep = parse_sweep(config, args.seeds, args.sweep)
    summary = run_sweep(config, sweep, overwrite=args.overwrite, report=say, train=make)
    console.print(summary_table(summary, f"{config.valid}, best {summary['metric']} first"))
    say(f"best run: {Path(config.out) / summary['best']}")
    if args.json is not None:
        write_json(args.json, summary, overwrite=args.overwrite)
    return 0
