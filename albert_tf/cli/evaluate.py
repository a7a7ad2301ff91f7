"""albert-tf evaluate: metrics of a run folder or a `.tflite` file on a file with answers."""

import argparse
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from albert_tf.cli.depth_options import add_depth_options, choose_depth
from albert_tf.cli.evaluate_tasks import READERS
from albert_tf.cli.task_options import (
    DATA_OPTIONS,
    METRIC_OPTIONS,
    PIPELINE_OPTIONS,
    add_options,
    given_options,
    set_pipeline_options,
)
from albert_tf.errors import InputError
from albert_tf.inference.depth import DepthCounter


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "evaluate",
        help="metrics of a run folder or a .tflite file on a labelled file",
        description="Metrics of a model on a labelled file: the same options for a run folder and for a .tflite file.",
        epilog="example: albert-tf evaluate sst2.tflite --data dev.tsv",
    )
    parser.add_argument(
        "model", type=Path, help="run folder, .keras file, checkpoint with a trained head, or .tflite file"
    )
    parser.add_argument("--data", required=True, help="labelled file, or folder, as finetune takes it for the task")
    add_options(parser, (*DATA_OPTIONS, *METRIC_OPTIONS, *PIPELINE_OPTIONS))
    add_depth_options(parser)
    parser.add_argument("--threads", type=int, default=1, help="CPU threads for a .tflite file (default 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the --json file, and a temperature that was fitted before"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from albert_tf.cli.models import open_runner
    from albert_tf.evaluation.report import metrics_table, write_json
    from albert_tf.files import refuse_existing
    from albert_tf.inference.pipelines import pipeline_of

    if args.json is not None:
        refuse_existing(args.json, overwrite=args.overwrite, file=True)
    model = open_runner(args.model, threads=args.threads)
    if model.task not in READERS:
        raise InputError(
            f"{args.model}: evaluate takes models of the tasks {', '.join(READERS)}, this one is for {model.task}"
        )
    options = given_options(args, DATA_OPTIONS, model.task)
    wanted = given_options(args, METRIC_OPTIONS, model.task)
    if "fit_temperature" in wanted:
        _check_temperature(args, model.task_settings)
    choose_depth(args, model)
    counter = DepthCounter(model)
    pipeline = pipeline_of(counter)
    set_pipeline_options(pipeline, args, model.task)
    console = Console()
    # Paths and texts may hold what rich would take for markup.
    say = functools.partial(console.print, markup=False, highlight=False, soft_wrap=True)
    examples = READERS[model.task](args.data, say, **options)
    metrics = _own_figures_first(_metrics(args, model, pipeline, examples, wanted, say), args.glue)
    if counter.mean_depth is not None:
        metrics["mean_depth"] = counter.mean_depth
    console.print(metrics_table(metrics, f"{args.model} on {args.data}, {len(examples)} examples"))
    if args.json is not None:
        write_json(args.json, metrics, overwrite=args.overwrite)
    return 0


def _metrics(
    args: argparse.Namespace,
    model: Any,
    pipeline: Any,
    examples: list[Any],
    wanted: dict[str, Any],
    say: Callable[[str], None],
) -> dict[str, Any]:
    from albert_tf.evaluation.evaluate import evaluate, true_and_predicted

    if not wanted:
        return evaluate(model, examples, source=args.data, pipeline=pipeline)
    from albert_tf.evaluation.calibration import calibration_metrics, fit_temperature, with_temperature
    from albert_tf.evaluation.classification_metrics import classification_metrics

    true, probabilities = true_and_predicted(pipeline, examples, pipeline.prepare(examples), args.data)
    more: dict[str, Any] = {}
    if "fit_temperature" in wanted:
        before = calibration_metrics(true, probabilities)["expected_calibration_error"]
        factor = fit_temperature(true, probabilities)
        probabilities = with_temperature(probabilities, factor)
        temperature = factor * float(model.task_settings.get("temperature", 1.0))
        more = {"temperature": temperature, "expected_calibration_error_before": before}
        _save_temperature(args.model, model.task, model.task_settings | {"temperature": temperature})
        say(f"temperature {temperature:.4f} fitted on {args.data}, written to {args.model / 'task.json'}")
    figures = classification_metrics(true, probabilities.argmax(axis=-1), pipeline.labels, probabilities)
    return figures | calibration_metrics(true, probabilities) | more


def _check_temperature(args: argparse.Namespace, settings: dict[str, Any]) -> None:
    """Refuses what --fit-temperature cannot be saved in, before the model runs."""
    if not (args.model / "task.json").is_file():
        raise InputError(
            f"--fit-temperature: expected the folder of a run, got {args.model}; fit the temperature there and export again"
        )
    if "temperature" in settings and not args.overwrite:
        raise InputError(
            f"{args.model}: has the temperature {settings['temperature']:.4f} already; pass --overwrite to replace it"
        )


def _save_temperature(folder: Path, task: str, settings: dict[str, Any]) -> None:
    from albert_tf.files import written_whole

    with written_whole(folder / "task.json", overwrite=True) as temporary:
        content = json.dumps({"task": task, "settings": settings}, indent=2, ensure_ascii=False) + "\n"
        temporary.write_text(content, encoding="utf-8")


def _own_figures_first(metrics: dict[str, Any], glue: str | None) -> dict[str, Any]:
    """The metrics, those of the task of GLUE before the others."""
    if glue is None:
        return metrics
    from albert_tf.data.glue import glue_task

    own = {name: metrics[name] for name in glue_task(glue).metrics}
    return own | metrics
