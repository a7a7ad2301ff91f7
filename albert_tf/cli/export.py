"""albert-tf export: a run folder → a file for devices, or a SavedModel for servers; run folders → a folder for apps."""

import argparse
import dataclasses
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from albert_tf.cli import export_android, export_saved_model
from albert_tf.cli.depth_options import add_adaptive_options, exported_exits
from albert_tf.cli.task_options import DATA_OPTIONS, add_options, given_options


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "export",
        help="write a run folder as a device file or a SavedModel, or several for an app",
        description="Write a file for devices, a folder for apps, or a SavedModel for servers.",
    )
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    export_android.add_parser(kinds)
    export_saved_model.add_parser(kinds)
    _add_tflite(kinds)


def _add_tflite(kinds: Any) -> None:
    tflite = kinds.add_parser(
        "tflite",
        help="a .tflite file with tokenizer and labels inside",
        description="Write a .tflite file that carries its tokenizer, labels and settings. The file is compared with the "
        "Keras model first; one that differs too much is not written (exit code 1).",
        epilog="example: albert-tf export tflite runs/sst2 --recipe dynamic_int8 --out sst2.tflite",
    )
    tflite.add_argument("run_folder", type=Path, metavar="RUN", help="run folder of albert-tf finetune")
    tflite.add_argument("--out", type=Path, required=True, help="file to write")
    tflite.add_argument(
        "--recipe",
        default="dynamic_int8",
        help="how weights are stored: float32, float16, dynamic_int8 (default), weight_only_int8, int4, int4_int8_table; "
        "int8 and int16x8 compute in integers alone and need --calibration and --length",
    )
    tflite.add_argument(
        "--calibration",
        type=Path,
        metavar="FILE",
        help="texts, one a line, that int8 and int16x8 take their ranges from; a pair's two texts, such as a question and "
        "its passage, with a tab between",
    )
    tflite.add_argument(
        "--runtime",
        default="litert",
        help="litert (default); mediapipe or task-library: opened as it is by a class of MediaPipe Tasks (TextClassifier, "
        "TextEmbedder) or of TFLite Task Library 0.4.4 (BertNLClassifier, BertQuestionAnswerer, TextEmbedder)",
    )
    tflite.add_argument(
        "--form",
        help="loop (default for litert): least memory; unrolled: one subgraph, for delegates and runtimes that take no "
        "loops",
    )
    tflite.add_argument(
        "--length",
        type=_lengths,
        metavar="TOKENS",
        help="fix the input at this many tokens; several, as in 16,32,64,128: a signature for each on the same weights; "
        "default: any length, paying only for real tokens",
    )
    tflite.add_argument(
        "--text-input",
        action="store_true",
        help="also write a signature that takes a string, for runtimes that link TensorFlow Text's operators",
    )
    add_adaptive_options(tflite)
    _add_check(tflite)
    tflite.add_argument("--overwrite", action="store_true", help="replace the output files")
    tflite.set_defaults(run=run)


def _add_check(tflite: argparse.ArgumentParser) -> None:
    """The options of the comparison with the Keras model."""
    tflite.add_argument("--text-file", type=Path, help="texts, one a line, to compare the file and the model on")
    tflite.add_argument(
        "--examples",
        metavar="FILE",
        help="labelled file, as evaluate takes it for the task, to compare the file and the model on; the report has the "
        "task's metrics of both, and a file that loses more than 0.02 (QA: 2) is not written",
    )
    add_options(tflite, DATA_OPTIONS)
    tflite.add_argument("--json", type=Path, metavar="FILE", help="write the report here too")
    tflite.add_argument(
        "--force", action="store_true", help="write the file also where its answers differ more than the recipe allows"
    )


def _lengths(text: str) -> int | list[int]:
    try:
        lengths = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected numbers of tokens with commas between, got {text!r}") from error
    return lengths[0] if len(lengths) == 1 else lengths


def run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from albert_tf.cli.export_report import report_tables
    from albert_tf.evaluation.report import write_json
    from albert_tf.files import refuse_existing
    from albert_tf.tasks.trained import load_task
    from export.tflite import export_tflite

    for path in filter(None, (args.out, args.json)):
        refuse_existing(path, overwrite=args.overwrite, file=True)
    texts = read_check_texts(args.text_file)
    calibration = _calibration(args.calibration)
    task = load_task(args.run_folder)
    console = Console()
    report = export_tflite(
        task,
        args.out,
        recipe=args.recipe,
        form=args.form,
        length=args.length,
        runtime=args.runtime,
        texts=texts,
        examples=_examples(args, task.task, functools.partial(console.print, markup=False, highlight=False)),
        source=args.examples or "examples",
        calibration=calibration,
        text_input=args.text_input,
        adaptive=args.adaptive,
        exits=exported_exits(args, task),
        force=args.force,
        overwrite=args.overwrite,
    )
    for table in report_tables(report, str(args.out)):
        console.print(table)
    if args.json is not None:
        write_json(args.json, dataclasses.asdict(report), overwrite=args.overwrite)
    if report.failed:
        print(f"albert-tf: written all the same (--force): {report.failed}", file=sys.stderr)
        return 1
    return 0


def _examples(args: argparse.Namespace, task: str, say: Callable[[str], None]) -> list[Any] | None:
    """The labelled examples of --examples; None where it is not given."""
    from albert_tf.cli.evaluate_tasks import READERS
    from albert_tf.errors import InputError

    options = given_options(args, DATA_OPTIONS, task)
    if args.examples is None:
        if options:
            raise InputError(
                f"--{next(iter(options)).replace('_', '-')}: says how --examples is read, which is not given"
            )
        return None
    if task not in READERS:
        raise InputError(f"--examples: expected a model for {', '.join(READERS)}; this one is for {task}")
    return READERS[task](args.examples, say, **options)


def _calibration(path: Path | None) -> list[str | tuple[str, str]] | None:
    """The texts of --calibration, and the pairs: lines with a tab."""
    from albert_tf.errors import InputError

    found: list[str | tuple[str, str]] = []
    for number, text in () if path is None else _numbered_texts(path):
        first, *others = text.split("\t")
        if len(others) > 1:
            raise InputError(
                f"{path}, line {number}: expected one text or two, with a tab between; got {len(others) + 1}"
            )
        found.append((first, others[0]) if others else first)
    return found or None


def read_check_texts(path: Path | None) -> list[str] | None:
    """The texts of a file, one a line, to compare an exported model on; None where no file is given.

    Raises:
        InputError: the file cannot be read or has none.
    """
    return None if path is None else [text for _, text in _numbered_texts(path)]


def _numbered_texts(path: Path) -> list[tuple[int, str]]:
    from albert_tf.data.rows import split_lines
    from albert_tf.errors import InputError
    from albert_tf.files import read_text

    texts = [(number, line) for number, line in enumerate(split_lines(read_text(path)), start=1) if line.strip()]
    if not texts:
        raise InputError(f"{path}: expected texts, one a line; the file has none")
    return texts
