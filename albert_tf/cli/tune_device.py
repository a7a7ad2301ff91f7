"""albert-tf tune-device: a run folder and a labelled file → the device file that keeps bounds of size, latency, accuracy."""

import argparse
import functools
import math
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert_tf.cli.evaluate_tasks import READERS
from albert_tf.cli.outputs import refuse_clashes
from albert_tf.cli.prune import shares
from albert_tf.cli.task_options import DATA_OPTIONS, add_options, given_options
from albert_tf.errors import InputError
from albert_tf.inference.depth import RULES

if TYPE_CHECKING:
    from albert_tf.conversion.checkpoint import Checkpoint
    from export.tuning import TuneRequest

_UNITS = {"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_EXAMPLES = 1000


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "tune-device",
        help="find the recipe, depth and early exit that keep bounds of size, latency and accuracy",
        description="Export a run in several recipes, with fewer passes, early exits and fewer heads and columns, measure "
        "each on a labelled file, and write the file that keeps the bounds, with its report and charts beside it. "
        "Everything is compared with the plain dynamic_int8 file, all passes, which is a candidate too. Nothing is trained. "
        "Where no file keeps the bounds, none is written (exit code 1).",
        epilog="example: albert-tf tune-device runs/sst2 --valid dev.tsv --max-size 6MB --max-latency-ratio 0.5 "
        "--max-drop 1.0 --out sst2.tflite",
    )
    parser.add_argument("run_folder", metavar="RUN", help="run folder of albert-tf finetune or distill")
    parser.add_argument(
        "--valid", required=True, metavar="FILE", help="labelled file, as evaluate takes it for the task"
    )
    parser.add_argument("--out", type=Path, required=True, help="file to write, .tflite")
    _add_bounds(parser)
    _add_candidates(parser)
    add_options(parser, DATA_OPTIONS)
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="where the report goes (default: OUT with .json for .tflite)"
    )
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="where the charts go, .png, .svg or .pdf (default: OUT with .png)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the output files")
    parser.set_defaults(run=run)


def _add_bounds(parser: argparse.ArgumentParser) -> None:
    """What the file must keep, and what decides among those that do."""
    parser.add_argument(
        "--max-size",
        type=size_in_bytes,
        metavar="SIZE",
        help="of the whole file: 6MB, 500kB (powers of 1,000), 1.5MiB (of 1,024) or bytes",
    )
    parser.add_argument(
        "--max-latency-ratio",
        type=_ratio,
        metavar="X",
        help="of the file's latency to that of dynamic_int8 with all passes: 0.5 is twice as fast. Latency is the "
        "processor time of an example of --valid at its own length, one thread, all candidates taking turns",
    )
    parser.add_argument(
        "--max-drop",
        type=_points,
        default=1.0,
        metavar="P",
        help="how much lower than that of dynamic_int8 with all passes the metric may be, in percentage points: 1.0 is "
        "from 0.93 to 0.92; of questions, whose figures are in percent, from 93 to 92 (default 1.0)",
    )
    parser.add_argument(
        "--prefer",
        choices=("latency", "accuracy", "size"),
        default="latency",
        help="which of the files that keep the bounds is written: the fastest (default), the most accurate, the smallest",
    )
    parser.add_argument(
        "--metric",
        help="the figure that counts: one of those of finetune --best-metric of which more is better (default: the task's "
        "own)",
    )


def _add_candidates(parser: argparse.ArgumentParser) -> None:
    """What is tried."""
    parser.add_argument(
        "--recipes",
        type=_words,
        metavar="R,R,…",
        help="how weights are stored (default: all that need no calibration: float32, float16, dynamic_int8, "
        "weight_only_int8, int4, int4_int8_table)",
    )
    parser.add_argument(
        "--passes", type=_numbers, metavar="N,N,…", help="numbers of passes (default: every one from 1 to all)"
    )
    parser.add_argument(
        "--exit-rules",
        type=_words,
        metavar="RULE,…",
        help=f"of a run trained with --early-exit: rules to try, each at several settings: {', '.join(RULES)} (default: "
        "its own)",
    )
    parser.add_argument(
        "--keep-shares",
        type=shares,
        metavar="S,S,…",
        help="also try every combination of these shares of heads and of feed-forward columns, as 1,0.75; needs --train",
    )
    parser.add_argument("--train", metavar="FILE", help="labelled file that says which heads and columns matter most")
    parser.add_argument(
        "--examples",
        type=int,
        default=_EXAMPLES,
        metavar="N",
        help=f"most examples of --valid, and of --train, evenly taken (default {_EXAMPLES})",
    )


def run(args: argparse.Namespace) -> int:
    _check(args)
    from rich.console import Console

    from albert_tf.cli.export_report import report_tables
    from albert_tf.evaluation.report import check_figure_path, write_json
    from albert_tf.files import refuse_existing, written_whole
    from albert_tf.presets import load_checkpoint
    from export.tuning import make_chosen, try_candidates
    from export.tuning_report import plot_tried, tried_table, tuning_record

    for path in (args.out, args.json):
        refuse_existing(path, overwrite=args.overwrite, file=True)
    check_figure_path(args.plot, overwrite=args.overwrite)
    console = Console()
    # Paths may hold what rich would take for markup.
    say = functools.partial(console.print, markup=False, highlight=False, soft_wrap=True)
    checkpoint = load_checkpoint(args.run_folder)
    request, train = _request(args, checkpoint, say)
    variants = _variants(args, checkpoint, train, say)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tried = try_candidates(variants, request, folder, report=say)
        console.print(tried_table(tried, request))
        for reason in dict.fromkeys(tried.left_out.values()):
            names = (name for name, why in tried.left_out.items() if why == reason)
            say(f"not tried: {'; '.join(names)}: {reason}")
        chosen = make_chosen(variants, request, tried, folder, report=say)
        for one in report_tables(chosen.report, str(args.out)):
            console.print(one)
        write_json(args.json, tuning_record(tried, request, chosen), overwrite=args.overwrite)
        plot_tried(tried, chosen, args.plot, overwrite=args.overwrite)
        with written_whole(args.out, overwrite=args.overwrite) as temporary:
            temporary.write_bytes(chosen.path.read_bytes())
    found = chosen.figures
    say(
        f"written: {args.out}: {found.candidate.name}; {found.size_bytes:,} bytes, {1 / found.latency_ratio:.2f} times as "
        f"fast as the reference, {found.points_lost:+.2f} points lost; report {args.json}, charts {args.plot}"
    )
    return 0


def size_in_bytes(text: str) -> int:
    """Bytes, from "6MB", "500kB", "1.5MiB" or a plain number; upper and lower case are the same."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*([a-z]*)\s*", text.lower())
    unit = None if found is None else _UNITS.get(found[2])
    size = 0 if found is None or unit is None else int(float(found[1]) * unit) if len(found[1]) < 20 else 0
    if size < 1:
        raise argparse.ArgumentTypeError(
            f"expected a size such as 6MB, 500kB, 1.5MiB or a number of bytes; got {text!r}"
        )
    return size


def _check(args: argparse.Namespace) -> None:
    """Refuses what does not go together, and says where the outputs go, before anything is loaded."""
    if args.out.suffix.lower() != ".tflite":
        raise InputError(f"--out: expected the name of a .tflite file, got {args.out}")
    if (args.keep_shares is None) != (args.train is None):
        raise InputError(
            "--keep-shares and --train go together: which heads and columns are kept is decided on the labelled file"
        )
    if args.examples < 1:
        raise InputError(f"--examples: expected at least 1, got {args.examples}")
    args.json = args.json or args.out.with_suffix(".json")
    args.plot = args.plot or args.out.with_suffix(".png")
    refuse_clashes(args)


def _request(
    args: argparse.Namespace, checkpoint: "Checkpoint", say: Callable[[str], None]
) -> tuple["TuneRequest", tuple[list[Any], str] | None]:
    """What is asked for, and the labelled examples of --train."""
    from albert_tf.data.glue import glue_task
    from albert_tf.evaluation.html_charts import spread
    from export.tuning import TuneRequest, tuned_metrics
    from export.tuning_candidates import TUNED_RECIPES
    from export.tuning_choice import Bounds

    task = None if checkpoint.task is None else checkpoint.task["task"]
    if task not in READERS:
        held = "no fine-tuned model" if task is None else f"a model for {task}"
        raise InputError(f"{args.run_folder}: holds {held}; expected one for {', '.join(READERS)}")
    options = given_options(args, DATA_OPTIONS, task)
    metric = args.metric
    if metric is None and args.glue is not None:
        metric = next((name for name in glue_task(args.glue).metrics if name in tuned_metrics(task)), None)
    read = {path: READERS[task](path, say, **options) for path in (args.valid, args.train) if path is not None}
    examples = read[args.valid]
    request = TuneRequest(
        [examples[place] for place in spread(len(examples), args.examples)],
        args.valid,
        bounds=Bounds(args.max_size, args.max_latency_ratio, args.max_drop),
        prefer=args.prefer,
        metric=metric,
        recipes=args.recipes or TUNED_RECIPES,
        passes=args.passes,
        exit_rules=args.exit_rules,
    )
    return request, None if args.train is None else (read[args.train], args.train)


def _variants(
    args: argparse.Namespace,
    checkpoint: "Checkpoint",
    train: tuple[list[Any], str] | None,
    say: Callable[[str], None],
) -> dict[tuple[int, int], Any]:
    """The model as it is, and narrower ones where they are asked for, by heads and columns."""
    from albert_tf.training.pruning import model_of, pruned_shapes
    from export.tuning_candidates import shape_of

    variants = {shape_of(checkpoint.config): model_of(checkpoint)}
    if train is not None:
        shapes = pruned_shapes(checkpoint, args.keep_shares, train, most_examples=args.examples, report=say)
        variants |= {shape: model_of(narrower) for shape, narrower in shapes}
    return variants


def _ratio(text: str) -> float:
    return _number(text, "a number above 0, such as 0.5", above=0.0)


def _points(text: str) -> float:
    return _number(text, "a number of points from 0 on, such as 1.0")


def _number(text: str, expected: str, above: float | None = None) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0 and (above is None or value > above)):
        raise argparse.ArgumentTypeError(f"expected {expected}; got {text!r}")
    return value


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(",")))


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected whole numbers with commas between, got {text!r}") from error
