"""albert-tf export android: run folders → a folder that an app copies into its assets; and the check of such a folder."""

import argparse
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from export.validation import ExportReport


def add_parser(kinds: Any) -> None:
    parser = kinds.add_parser(
        "android",
        help="a folder for apps: .tflite files with labels, tokenizer and golden answers, and a manifest",
        description="Write what an app needs of each run: a .tflite file (classification for MediaPipe Tasks; question "
        "answering and tagging for LiteRT), labels, tokenizer, golden answers to compare a device with, a licence note; and "
        "a manifest of all files. Each file is compared with the Keras model first, on the run's validation file where it "
        "is still there. Other things in OUT are kept. --check compares such a folder with its manifest and its golden "
        "answers (exit code 1 where they differ).",
        epilog="example: albert-tf export android runs/messages runs/questions --out android_demo_assets",
    )
    parser.add_argument(
        "runs",
        type=Path,
        nargs="*",
        metavar="RUN",
        help="run folders of albert-tf finetune classification, question-answering or tagging; a folder of OUT has the "
        "name of each",
    )
    parser.add_argument("--out", type=Path, help="folder to write the models and manifest.json to")
    parser.add_argument("--check", type=Path, metavar="FOLDER", help="check this folder instead of writing one")
    parser.add_argument(
        "--recipe",
        default="dynamic_int8",
        help="how weights are stored: float32, float16, dynamic_int8 (default), weight_only_int8, int4, int4_int8_table",
    )
    parser.add_argument("--licence", type=Path, metavar="FILE", help="text to add to the licence note of each model")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the models and the manifest that were written to OUT before"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from albert_tf.errors import InputError

    if args.check is not None:
        if args.runs or args.out is not None:
            raise InputError("--check: checks a folder that is there; expected neither run folders nor --out with it")
        return _check(args.check)
    if not args.runs or args.out is None:
        raise InputError("expected run folders and --out FOLDER, or --check FOLDER")
    return _write(args)


def _check(folder: Path) -> int:
    from export.android_manifest import folder_differences, read_manifest

    if lines := folder_differences(folder):
        for line in lines:
            print(f"albert-tf: {line}", file=sys.stderr)
        return 1
    models = read_manifest(folder)["models"]
    files = sum(len(model["files"]) for model in models)
    print(f"{folder}: models: {len(models)}, files: {files}; all as the manifest and the golden answers say")
    return 0


def _write(args: argparse.Namespace) -> int:
    from rich.console import Console

    from albert_tf.cli.export_report import report_tables
    from albert_tf.files import read_text
    from export.android import export_android

    console = Console()
    say = functools.partial(console.print, markup=False, highlight=False, soft_wrap=True)

    def report(name: str, found: "ExportReport") -> None:
        for table in report_tables(found, f"{name}.tflite"):
            console.print(table)

    manifest = export_android(
        args.runs,
        args.out,
        recipe=args.recipe,
        examples=functools.partial(_examples, say=say),
        licence="" if args.licence is None else read_text(args.licence),
        overwrite=args.overwrite,
        report=report,
    )
    names = ", ".join(model["name"] for model in manifest["models"])
    say(f"written to {args.out}: {names}; {manifest['total_bytes']:,} bytes with what belongs to them")
    return 0


def _examples(run: Path, task: str, say: Callable[[str], None]) -> list[Any] | None:
    """The examples of the run's validation file; None, and a line that says so, where there is none any more."""
    from albert_tf.cli.evaluate_tasks import READERS
    from albert_tf.files import read_json
    from albert_tf.training.run_folder import RUN_FILE

    settings = read_json(run / RUN_FILE) if (run / RUN_FILE).is_file() else {}
    path = settings.get("valid")
    if not path or not Path(path).exists():
        say(f"{run}: no validation file ({path}), so the file is compared on built-in sentences, without metrics")
        return None
    names = ("text_column", "pair_column", "label_column", "glue")
    return READERS[task](path, say, **{name: settings[name] for name in names if settings.get(name)})
