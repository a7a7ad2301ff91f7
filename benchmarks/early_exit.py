"""Accuracy against mean latency of files that stop early, on SST-2: dynamic_int8, one thread, texts at their own lengths.

    python benchmarks/early_exit.py --data DATA --encoder RUN --json early_exit.json

Three models are fine-tuned on the encoder: a plain one, one with an answer trained after every pass (`--early-exit`), and
one with a depth drawn for each step (`--random-depth`). The plain file makes all passes; the second's stops by patience,
confidence and entropy at several settings, chosen at run time; the third's makes 1 to all passes. `--passes 12` makes a
deeper encoder of the same shared block. Every setting runs each text before the next text is taken, so that all of them
see the same machine; latency is processor time from ids to answer, in the mean over the texts. "same depth" is the share
of texts for which the file makes as many passes as the Keras model. Several `--seeds` give means.
"""

import dataclasses
import json
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import common

SST2, TRAIN, DEV = Path("glue_canonical/SST-2"), "train_first20000.tsv", "dev.tsv"
WARM_UP = 5
PATIENCES, CONFIDENCES, ENTROPIES = (1, 2, 3), (0.7, 0.8, 0.9, 0.95, 0.98), (0.05, 0.1, 0.2, 0.4)


@dataclasses.dataclass
class Setting:
    """A file, and how deep it is to go.

    Attributes:
        name: of its row.
        file: the open file.
        choice: what is chosen.
        keras: the model that must make as many passes; None where there is nothing to compare.
    """

    name: str
    file: Any
    choice: Any
    keras: Any = None


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument(
        "--encoder", type=Path, required=True, help="a pretrained checkpoint, as finetune --from takes it"
    )
    parser.add_argument("--passes", type=int, help="layers of the encoder (default: its own); needs a shared block")
    parser.add_argument("--seeds", default="0", help="seeds of the training runs, with commas (default 0)")
    parser.add_argument("--steps", type=int, help="updates of each training (default: as --epochs has)")
    parser.add_argument("--epochs", type=float, default=3.0, help="default 3")
    parser.add_argument("--learning-rate", type=float, default=5e-5, help="default 5e-5")
    parser.add_argument("--examples", type=int, help="texts of the validation file (default: all)")
    parser.add_argument("--work", type=Path, help="folder for the trained models; those that are there are used again")
    args = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with tempfile.TemporaryDirectory() as folder:
        work = args.work or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        encoder = args.encoder if args.passes is None else with_passes(args.encoder, args.passes, work / "encoder")
        by_seed = [measured(args, encoder, seed, work) for seed in map(int, args.seeds.split(","))]
    figures = [mean_of(rows) for rows in zip(*by_seed, strict=True)]
    plain = figures[0]
    table = [
        {
            "file": row["name"],
            "accuracy": f"{row['accuracy']:.4f}",
            "lost": f"{100 * (plain['accuracy'] - row['accuracy']):+.2f}",
            "mean depth": f"{row['mean_depth']:.2f}",
            "latency": f"{row['latency_ms']:.2f} ms",
            "faster": f"{plain['latency_ms'] / row['latency_ms']:.2f} ×",
            "same depth": "" if row["same_depth"] is None else f"{row['same_depth']:.1%}",
        }
        for row in figures
    ]
    common.show(f"{args.encoder}, SST-2, seeds {args.seeds}", table, by_seed, args.json)


def with_passes(encoder: Path, passes: int, folder: Path) -> Path:
    """A copy of a preset or run folder whose encoder makes so many passes through its shared block."""
    if not folder.exists():
        shutil.copytree(encoder, folder)
    config = json.loads((encoder / "config.json").read_text(encoding="utf-8"))
    if config.get("sharing", "all") != "all" or config.get("num_groups", 1) != 1:
        raise SystemExit(f"{encoder}: --passes needs one shared block")
    (folder / "config.json").write_text(json.dumps(config | {"num_layers": passes}), encoding="utf-8")
    return folder


def measured(args: Any, encoder: Path, seed: int, work: Path) -> list[dict[str, Any]]:
    """A row of figures for each setting."""
    from albert_tf.data.glue import read_labelled
    from albert_tf.tasks.trained import load_task

    kinds: dict[str, tuple[Any, ...]] = {
        "plain": (),
        "exits": ("--early-exit", "confidence"),
        "depths": ("--random-depth", 1),
    }
    runs = {name: work / f"{name}-{seed}" for name in kinds}
    for name, words in kinds.items():
        if not runs[name].exists():
            long = ("--epochs", args.epochs) if args.steps is None else ("--steps", args.steps)
            common.albert_tf(
                *("finetune", "classification", "--train", args.data / SST2 / TRAIN, "--from", encoder, "--seed", seed),
                *(
                    "--glue",
                    "SST-2",
                    "--max-length",
                    128,
                    "--learning-rate",
                    args.learning_rate,
                    "--out",
                    runs[name],
                    *long,
                    *words,
                ),
            )
    tasks = {name: load_task(run) for name, run in runs.items()}
    settings = opened(tasks, work)
    examples = read_labelled(str(args.data / SST2 / DEV), print, glue="SST-2")[: args.examples]
    return run_all(settings, examples)


def opened(tasks: dict[str, Any], work: Path) -> list[Setting]:
    """Every file, with every setting that it is run with."""
    from albert_tf.inference.depth import DepthChoice, ExitSettings
    from export.runtime import TFLiteRunner
    from export.tflite import export_tflite, in_float32

    def file_of(name: str, task: Any, **options: Any) -> Any:
        path = work / f"{name}.tflite"
        report = export_tflite(task, path, overwrite=True, force=True, measure=False, **options)
        print(f"{name}: {report.size_bytes:,} bytes, {report.model_bytes:,} of them the model", flush=True)
        return TFLiteRunner(path)

    layers = tasks["plain"].backbone.config.num_layers
    settings = [Setting("plain, all passes", file_of("plain", tasks["plain"]), DepthChoice())]
    for rule, field, values in (
        ("patience", "patience", PATIENCES),
        ("confidence", "threshold", CONFIDENCES),
        ("entropy", "threshold", ENTROPIES),
    ):
        exits = ExitSettings(rule)
        file = file_of(rule, tasks["exits"], adaptive="exits", exits=exits)
        keras = in_float32(tasks["exits"], exits)
        if rule == "patience":
            settings.append(Setting("early exit, all passes", file, DepthChoice(patience=layers + 1), keras))
        settings += [Setting(f"{rule} {value}", file, DepthChoice(**{field: value}), keras) for value in values]
    file = file_of("depths", tasks["depths"], adaptive="passes")
    return settings + [Setting(f"random depth, {n} passes", file, DepthChoice(n)) for n in range(1, layers + 1)]


def run_all(settings: list[Setting], examples: list[Any]) -> list[dict[str, Any]]:
    """Every text through every setting, then the next text."""
    pipeline = settings[0].file.pipeline
    rows = pipeline.prepare(examples).rows
    layers = settings[0].file.settings["config"]["num_layers"]
    right: list[list[bool]] = [[] for _ in settings]
    depths: list[list[int]] = [[] for _ in settings]
    seconds: list[list[float]] = [[] for _ in settings]
    # Shortest first, as a runner takes them: the runtime allocates anew for a new length.
    order = sorted(range(len(rows)), key=lambda i: len(rows[i][0]))
    for index in [*order[:WARM_UP], *order]:
        for place, setting in enumerate(settings):
            setting.file.choose_depth(setting.choice)
            started = time.process_time()
            outputs = setting.file.run(*rows[index])
            seconds[place].append(time.process_time() - started)
            label = pipeline.labels[outputs["probabilities"].argmax()]
            right[place].append(label == examples[index].label)
            depths[place].append(int(outputs.get("depth", setting.choice.num_passes or layers)))
    figures = []
    for place, setting in enumerate(settings):
        own, same = depths[place][WARM_UP:], None
        if setting.keras is not None:
            setting.keras.choose_depth(setting.choice)
            found = setting.keras.run_rows(rows)
            same = statistics.fmean(int(found[i]["depth"]) == own[n] for n, i in enumerate(order))
        figures.append(
            {
                "name": setting.name,
                "accuracy": statistics.fmean(right[place][WARM_UP:]),
                "mean_depth": statistics.fmean(own),
                "latency_ms": 1e3 * statistics.fmean(seconds[place][WARM_UP:]),
                "same_depth": same,
            }
        )
    return figures


def mean_of(rows: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """The figures of several seeds, in the mean."""
    return {
        name: value if name == "name" or value is None else statistics.fmean(row[name] for row in rows)
        for name, value in rows[0].items()
    }


if __name__ == "__main__":
    main()
