"""albert-tf pretrain: the folder of pretrain-data → a checkpoint."""

import argparse
import functools
from pathlib import Path
from typing import Any

from albert_tf.training.pretrain_config import PretrainConfig

EXAMPLE = (
    "example: albert-tf pretrain --data data/wiki --from-scratch albert_tiny_en --steps 20000 --batch-size 64 "
    "--optimizer adamw --learning-rate 1e-3 --out runs/wiki"
)


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "pretrain",
        help="train on plain text: masked words and sentence order",
        description="Train an encoder on masked words and sentence order (paper section 3.1) and write a checkpoint with "
        "both heads, to fine-tune from. An interrupted run goes on when the same command is given again.",
        epilog=EXAMPLE,
    )
    PretrainConfig.add_flags(parser)
    parser.add_argument("--overwrite", action="store_true", help="replace OUT; forget an interrupted run")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the final figures here too")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    config = PretrainConfig.from_flags(args)  # before the slow imports: wrong flags fail at once
    from rich.console import Console

    from albert_tf.evaluation.report import metrics_table, write_json
    from albert_tf.files import refuse_existing
    from albert_tf.training.pretrain import pretrain

    if args.json is not None:
        refuse_existing(args.json, overwrite=args.overwrite, file=True)
    console = Console()
    # Paths may hold what rich would take for markup.
    say = functools.partial(console.print, markup=False, highlight=False, soft_wrap=True)
    summary = pretrain(config, overwrite=args.overwrite, report=say)
    console.print(metrics_table(summary, "last round; valid: held-out texts"))
    say(f"written: {config.out}")
    if args.json is not None:
        write_json(args.json, summary, overwrite=args.overwrite)
    return 0
