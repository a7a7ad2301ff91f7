"""albert-tf evaluate: metrics of a run folder or a `.tflite` file on a labelled file."""

import argparse
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "evaluate",
        help="metrics of a run folder or a .tflite file on a labelled file",
        description="Metrics of a model on a labelled file: the same options for a run folder and for a .tflite file.",
        epilog="example: albert-tf evaluate sst2.tflite --data dev.tsv",
    )
    parser.add_argument("model", type=Path, help="run folder or .tflite file")
    parser.add_argument(
        "--data",
        required=True,
        help="labelled file: .tsv, .csv, .jsonl; for multiple choice and tagging as in finetune",
    )
    parser.add_argument(
        "--text-column", help="column of the text: a name, or a number from 0 for a file without header"
    )
    parser.add_argument("--pair-column", help="column of the second text")
    parser.add_argument("--label-column", help="column of the label")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads for a .tflite file (default 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    parser.add_argument("--overwrite", action="store_true", help="replace the --json file")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from albert_tf.cli.models import open_runner
    from albert_tf.evaluation.evaluate import evaluate
    from albert_tf.evaluation.report import metrics_table, write_json
    from albert_tf.files import refuse_existing

    if args.json is not None:
        refuse_existing(args.json, overwrite=args.overwrite, file=True)
    model = open_runner(args.model, threads=args.threads)
    examples = _read(args, model.task)
    metrics = evaluate(model, examples, source=args.data)
    Console().print(metrics_table(metrics, f"{args.model} on {args.data}, {len(examples)} examples"))
    if args.json is not None:
        write_json(args.json, metrics, overwrite=args.overwrite)
    return 0


def _read(args: argparse.Namespace, task: str) -> list[Any]:
    """The examples in the file, as the task has them."""
    if task == "multiple-choice":
        from albert_tf.data.choices import read_choices

        return read_choices(args.data)
    if task == "tagging":
        from albert_tf.data.conll import read_tagged

        return read_tagged(args.data)
    from albert_tf.data.tables import read_examples

    return read_examples(
        args.data, text_column=args.text_column, pair_column=args.pair_column, label_column=args.label_column
    )
