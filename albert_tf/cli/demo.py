"""albert-tf demo: the main job, end to end and offline: fine-tune → int8 TFLite → run it → report."""

import argparse
import dataclasses
import functools
from importlib import resources
from pathlib import Path
from typing import Any

SETS = ("commands", "spam")
ENCODER = "albert_tiny_en"
TRAINING: dict[str, Any] = {"epochs": 6.0, "batch_size": 16, "learning_rate": 3e-4, "max_length": 64}
EXAMPLES = {
    "commands": (
        "could you make it a bit warmer in here",
        "wake me at half past six tomorrow",
        "play something by Miles Davis",
        "turn the hallway lights on, please",
        "do I need an umbrella this afternoon?",
    ),
    "spam": (
        "Congratulations! You have won a free phone, click here to claim it",
        "running late, be there in ten minutes",
        "URGENT: your account will be closed, verify now at example.com",
        "your parcel is waiting, pay the delivery fee here",
        "can you pick up milk on the way home?",
    ),
}


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "demo",
        help="the main job end to end, offline: fine-tune, export int8 TFLite, run it, report",
        description=f"Fine-tune the bundled encoder {ENCODER} on bundled texts, export it as an int8 TFLite file, run the "
        "file and report: accuracy before and after, size, memory, latency, examples. Needs no network and a few minutes.",
        epilog="example: albert-tf demo --set commands --out runs/demo",
    )
    parser.add_argument("--set", choices=sorted(SETS), action="append", help="texts to use (default: all, in turn)")
    parser.add_argument("--out", type=Path, default=Path("runs/demo"), help="folder to write (default runs/demo)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    parser.add_argument("--overwrite", action="store_true", help="replace the outputs")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from albert_tf.evaluation.report import write_json
    from albert_tf.files import refuse_existing

    refuse_existing(args.out, overwrite=args.overwrite)
    if args.json is not None:
        refuse_existing(args.json, overwrite=args.overwrite, file=True)
    console = Console()
    figures = {}
    for name in args.set or SETS:
        console.rule(f"demo: {name}")
        figures[name], answers = _demo(name, args.out / name, console, overwrite=args.overwrite)
        console.print(_report(name, figures[name], answers))
    console.print(f"written to {args.out}: a run folder and a .tflite file for each set", markup=False, highlight=False)
    if args.json is not None:
        write_json(args.json, figures, overwrite=args.overwrite)
    return 0


def _demo(name: str, folder: Path, console: Any, *, overwrite: bool) -> tuple[dict[str, Any], list[Any]]:
    from albert_tf.data.tables import read_examples
    from albert_tf.evaluation.evaluate import evaluate
    from albert_tf.tasks.classification import AlbertTextClassifier
    from albert_tf.training.finetune import finetune
    from albert_tf.training.task_runs import ClassificationRun
    from export.measurement import measure
    from export.runtime import TFLiteRunner
    from export.tflite import export_tflite

    data = Path(str(resources.files("albert_tf") / "assets" / "demo"))
    train, dev = str(data / f"{name}_train.tsv"), str(data / f"{name}_dev.tsv")
    config = ClassificationRun(train=train, valid=dev, out=str(folder), source=ENCODER, **TRAINING)
    say = functools.partial(console.print, markup=False, highlight=False, soft_wrap=True)
    finetune(config, overwrite=overwrite, report=say)
    task = AlbertTextClassifier.from_pretrained(folder)
    file = folder.with_suffix(".tflite")
    export_report = export_tflite(task, file, recipe="dynamic_int8", measure=False, overwrite=overwrite)

    examples = read_examples(dev)
    runner = TFLiteRunner(file)
    measured = measure(file, [example.text for example in examples])
    figures = {
        "accuracy_float32": evaluate(task, examples, source=dev)["accuracy"],
        "accuracy_int8": evaluate(runner, examples, source=dev)["accuracy"],
        "parameters": task.count_params(),
        "file_bytes": export_report.size_bytes,
        "model_bytes": export_report.model_bytes,
        "device": dataclasses.asdict(measured),
    }
    return figures, list(zip(EXAMPLES[name], runner(EXAMPLES[name]), strict=True))


def _report(name: str, figures: dict[str, Any], answers: list[Any]) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    measured = figures["device"]
    table = Table(title=f"{name}: what came out", show_header=False)
    for row in (
        ("accuracy on the dev texts, Keras float32", f"{figures['accuracy_float32']:.1%}"),
        ("accuracy on the dev texts, int8 file on LiteRT", f"{figures['accuracy_int8']:.1%}"),
        ("parameters", f"{figures['parameters']:,}"),
        ("model", f"{figures['model_bytes'] / 1e3:,.0f} kB"),
        ("file, with tokenizer, labels and settings", f"{figures['file_bytes'] / 1e3:,.0f} kB"),
        ("memory growth after load and run", f"{measured['memory_growth_bytes'] / 1e6:.1f} MB"),
        ("load", f"{measured['load_ms']:.1f} ms"),
        (f"latency, {measured['mean_tokens']:.0f} tokens, 1 thread", f"{measured['median_latency_ms']:.2f} ms"),
    ):
        table.add_row(*row)
    examples = Table(title=f"{name}: what the file says", show_lines=False)
    for column in ("text", "label", "probability"):
        examples.add_column(column)
    for text, answer in answers:
        examples.add_row(Text(text), answer.label, f"{answer.score:.2f}")
    return Group(table, examples)
