"""albert-tf export saved-model: a run folder → a SavedModel for TensorFlow Serving."""

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from albert_tf.cli.depth_options import add_adaptive_options, exported_exits


def add_parser(kinds: Any) -> None:
    parser = kinds.add_parser(
        "saved-model",
        help="a SavedModel that takes strings, for TensorFlow Serving",
        description="Write FOLDER/1, or FOLDER with its next number: a SavedModel with its tokenizer in the graph, that "
        "runs without albert-tf. It is compared with the Keras model first; one that differs is not written (exit code 1).",
        epilog="example: albert-tf export saved-model runs/sst2 --out served/sst2",
    )
    parser.add_argument("run_folder", type=Path, metavar="RUN", help="run folder of albert-tf finetune or pretrain")
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="the model's folder, with a folder for each version in it",
    )
    parser.add_argument(
        "--version", type=int, metavar="NUMBER", help="default: 1, or one more than the highest version there is"
    )
    parser.add_argument(
        "--text-file", type=Path, help="texts, one a line, to compare the two models on; odd ones are added"
    )
    add_adaptive_options(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace the version, without --version the highest one; other versions stay",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from albert_tf.cli.export import read_check_texts
    from albert_tf.errors import InputError
    from albert_tf.evaluation.report import metrics_table, write_json
    from albert_tf.files import refuse_existing, resolved
    from albert_tf.tasks.trained import load_task
    from export.saved_model import export_saved_model

    if args.json is not None:
        if resolved(args.json).is_relative_to(resolved(args.out)):
            raise InputError("--json: expected a file outside the folder of --out, which holds versions alone")
        refuse_existing(args.json, overwrite=args.overwrite, file=True)
    texts = read_check_texts(args.text_file)
    task = load_task(args.run_folder)
    report = export_saved_model(
        task,
        args.out,
        version=args.version,
        texts=texts,
        adaptive=args.adaptive,
        exits=exported_exits(args, task),
        overwrite=args.overwrite,
    )
    figures = dataclasses.asdict(report)
    path = args.out / str(report.version)
    Console().print(metrics_table(figures, f"{path} against the Keras model"))
    if args.json is not None:
        write_json(args.json, figures, overwrite=args.overwrite)
    return 0
