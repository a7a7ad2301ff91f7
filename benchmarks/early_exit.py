"""Accuracy against mean latency of files that stop early: dynamic_int8, one thread, texts at their own lengths.

    python benchmarks/early_exit.py --data DATA --work FOLDER --json early_exit.json --picture early_exit.png

Of each data set three models are fine-tuned on the encoder: a plain one, one with an answer trained after every pass
(`--early-exit`), and one with a depth drawn for each step (`--random-depth`). The plain file makes all passes; the second's
stops by patience, confidence and entropy (numbers: by tolerance) at several settings, chosen at run time; the third's makes
1 to all passes. `--passes 12` makes a deeper encoder of the same shared block. Every setting runs each text before the next
text is taken, so that all of them see the same machine; latency is processor time from ids to answer, in the mean over the
texts. "same depth" is the share of texts for which the file makes as many passes as the Keras model. Figures are means over
the `--seeds`. The encoder is the bundled one, and for Chinese random weights of albert_tiny_zh.
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
from task_data import DATASETS

from albert_tf.bundled import BUNDLED, bundled_model

NAMES = ("SST-2", "MRPC", "STS-B", "ChnSentiCorp")
WARM_UP = 5
# The rules of a task's exits, each with what is chosen at run time.
PATIENCE, THRESHOLD = "patience", "threshold"
RULES: dict[str, dict[str, tuple[str, tuple[float, ...]]]] = {
    "classification": {
        "patience": (PATIENCE, (1, 2, 3)),
        "confidence": (THRESHOLD, (0.7, 0.8, 0.9, 0.95, 0.98)),
        "entropy": (THRESHOLD, (0.05, 0.1, 0.2, 0.4)),
    },
    "regression": {"tolerance": (THRESHOLD, (0.05, 0.1, 0.2, 0.4, 0.8))},
}


@dataclasses.dataclass
class Setting:
    """A file, and how deep it is to go.

    Attributes:
        name: of its row.
        kind: the rule it stops by, or what else it does; the settings of a kind are a line in the picture.
        file: the open file.
        choice: what is chosen.
        keras: the model that must make as many passes; None where there is nothing to compare.
    """

    name: str
    kind: str
    file: Any
    choice: Any
    keras: Any = None


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument(
        "--encoder",
        type=Path,
        default=bundled_model(BUNDLED[0]),
        help="a pretrained checkpoint, as finetune --from takes it (default: the bundled one)",
    )
    parser.add_argument("--tasks", default=";".join(NAMES), help=f"of {'; '.join(NAMES)} (default all)")
    parser.add_argument("--passes", type=int, help="layers of the encoder (default: its own); needs a shared block")
    parser.add_argument("--seeds", default="0,1,2", help="seeds of the training runs, with commas (default 0,1,2)")
    parser.add_argument("--learning-rate", type=float, default=1e-4, help="default 1e-4")
    parser.add_argument("--examples", type=int, help="texts of the validation file (default: all)")
    parser.add_argument("--work", type=Path, help="folder for the trained models; those that are there are used again")
    parser.add_argument("--picture", type=Path, help=".png to write")
    args = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    found: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        work = args.work or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        encoder = args.encoder if args.passes is None else with_passes(args.encoder, args.passes, work / "encoder")
        for name in (name.strip() for name in args.tasks.split(";")):
            by_seed = [measured(name, args, encoder, seed, work / name) for seed in map(int, args.seeds.split(","))]
            found[name] = [mean_of(rows) for rows in zip(*by_seed, strict=True)]
            common.show(f"{name}, seeds {args.seeds}", shown(found[name], DATASETS[name].metric), found, args.json)
    if args.picture is not None:
        draw(found, args.picture)


def shown(rows: list[dict[str, Any]], metric: str) -> list[dict[str, str]]:
    plain = rows[0]
    return [
        {
            "file": row["name"],
            metric: f"{row['figure']:.4f}",
            "lost": f"{100 * (plain['figure'] - row['figure']):+.2f}",
            "mean depth": f"{row['mean_depth']:.2f}",
            "latency": f"{row['latency_ms']:.2f} ms",
            "faster": f"{plain['latency_ms'] / row['latency_ms']:.2f} ×",
            "same depth": "" if row["same_depth"] is None else f"{row['same_depth']:.1%}",
        }
        for row in rows
    ]


def draw(found: dict[str, list[dict[str, Any]]], file: Path) -> None:
    """A chart for each data set: a line for each kind of setting, latency against the figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.4 * len(found), 4.0), layout="constrained")
    charts = figure.subplots(1, len(found), squeeze=False)[0]
    for chart, (name, rows) in zip(charts, found.items(), strict=True):
        for kind in dict.fromkeys(row["kind"] for row in rows):
            own = sorted((row["latency_ms"], row["figure"]) for row in rows if row["kind"] == kind)
            chart.plot(*zip(*own, strict=True), marker="o", label=kind, linestyle="" if len(own) == 1 else "-")
        chart.set(title=name, xlabel="mean latency, ms", ylabel=DATASETS[name].metric)
        chart.grid(alpha=0.3)
        chart.legend()
    figure.savefig(file, dpi=110)


def with_passes(encoder: Path, passes: int, folder: Path) -> Path:
    """A copy of a preset or run folder whose encoder makes so many passes through its shared block."""
    if not folder.exists():
        shutil.copytree(encoder, folder)
    config = json.loads((encoder / "config.json").read_text(encoding="utf-8"))
    if config.get("sharing", "all") != "all" or config.get("num_groups", 1) != 1:
        raise SystemExit(f"{encoder}: --passes needs one shared block")
    (folder / "config.json").write_text(json.dumps(config | {"num_layers": passes}), encoding="utf-8")
    return folder


def measured(name: str, args: Any, encoder: Path, seed: int, work: Path) -> list[dict[str, Any]]:
    """A row of figures for each setting."""
    from albert_tf.tasks.trained import load_task

    dataset = DATASETS[name]
    work.mkdir(exist_ok=True)
    train, valid = dataset.files(args.data, work)
    kinds: dict[str, tuple[Any, ...]] = {
        "plain": (),
        "exits": ("--early-exit", next(iter(RULES[dataset.command]))),  # training is the same for every rule
        "depths": ("--random-depth", 1),
    }
    start, rate = ("--from", encoder), args.learning_rate
    if name == "ChnSentiCorp":
        vocabulary = args.data / "albert_vocab_zh/vocab.txt"
        start, rate = ("--from-scratch", "albert_tiny_zh", "--tokenizer", vocabulary), 3 * rate
    tasks = {}
    for kind, words in kinds.items():
        run = work / f"{kind}-{seed}"
        if not run.exists():
            common.albert_tf(
                *("finetune", dataset.command, "--train", train, "--valid", valid, *start, *dataset.options),
                *("--seed", seed, "--max-length", 128, "--learning-rate", rate, "--precision", "mixed_bfloat16"),
                *("--out", run, *words),
            )
        tasks[kind] = load_task(run)
    settings = opened(tasks, RULES[dataset.command], work)
    return run_all(settings, dataset.examples(valid)[: args.examples], dataset.metric)


def opened(tasks: dict[str, Any], rules: dict[str, tuple[str, tuple[float, ...]]], work: Path) -> list[Setting]:
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
    settings = [Setting("all passes", "plain", file_of("plain", tasks["plain"]), DepthChoice())]
    for rule, (field, values) in rules.items():
        exits = ExitSettings(rule)
        file = file_of(rule, tasks["exits"], adaptive="exits", exits=exits)
        keras = in_float32(tasks["exits"], exits)
        if len(settings) == 1:
            settings.append(Setting("early exit, all passes", rule, file, DepthChoice(patience=layers + 1), keras))
        settings += [Setting(f"{rule} {value}", rule, file, DepthChoice(**{field: value}), keras) for value in values]
    file = file_of("depths", tasks["depths"], adaptive="passes")
    depths = range(1, layers + 1)
    return settings + [Setting(f"random depth, {n} passes", "random depth", file, DepthChoice(n)) for n in depths]


def run_all(settings: list[Setting], examples: list[Any], metric: str) -> list[dict[str, Any]]:
    """Every text through every setting, then the next text."""
    pipeline = settings[0].file.pipeline
    rows = pipeline.prepare(examples).rows
    layers = settings[0].file.settings["config"]["num_layers"]
    answers: list[list[Any]] = [[] for _ in settings]
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
            is_number = "value" in outputs
            answers[place].append(
                outputs["value"][0] if is_number else pipeline.labels[outputs["probabilities"].argmax()]
            )
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
                "kind": setting.kind,
                "figure": figure_of(metric, answers[place][WARM_UP:], [examples[index].label for index in order]),
                "mean_depth": statistics.fmean(own),
                "latency_ms": 1e3 * statistics.fmean(seconds[place][WARM_UP:]),
                "same_depth": same,
            }
        )
    return figures


def figure_of(metric: str, answers: list[Any], labels: list[Any]) -> float:
    if metric == "accuracy":
        return statistics.fmean(answer == label for answer, label in zip(answers, labels, strict=True))
    from scipy.stats import spearmanr

    return float(spearmanr(answers, [float(label) for label in labels]).statistic)


def mean_of(rows: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """The figures of several seeds, in the mean."""
    return {
        name: value if isinstance(value, str | None) else statistics.fmean(row[name] for row in rows)
        for name, value in rows[0].items()
    }


if __name__ == "__main__":
    main()
