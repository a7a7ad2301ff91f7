"""Full-integer files (recipe int8) after training and after quantisation-aware training, on SST-2.

    python benchmarks/quantization_aware.py --data DATA --from RUN --json quantization_aware.json

RUN is fine-tuned on SST-2. It is exported as it is, and after some more training of two kinds: plain, and with
`--quantization-aware`; both see the same batches in the same order. Each file is compared with the float model that it
is made of, on the same texts; all files have their ranges from the same texts. Several `--seeds` give means.
"""

import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

import common
import numpy as np

SST2, TRAIN, DEV = Path("glue_canonical/SST-2"), "train_first20000.tsv", "dev.tsv"
KINDS: dict[str, tuple[str, ...]] = {"more training": (), "quantisation-aware": ("--quantization-aware",)}


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument(
        "--from", dest="run", type=Path, required=True, help="a classifier's run folder, fine-tuned on SST-2"
    )
    parser.add_argument("--seeds", default="0,1,2", help="seeds of the added training, with commas (default 0,1,2)")
    parser.add_argument("--steps", type=int, default=300, help="updates of the added training (default 300)")
    parser.add_argument("--learning-rate", type=float, default=2e-5, help="default 2e-5")
    parser.add_argument("--length", type=int, default=64, help="tokens of the files (default 64)")
    parser.add_argument("--calibration", type=int, default=200, help="texts that files have their ranges from")
    parser.add_argument("--examples", type=int, help="texts of the validation file (default: all)")
    parser.add_argument("--work", type=Path, help="folder for the trained models; those that are there are used again")
    args = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with tempfile.TemporaryDirectory() as folder:
        work = args.work or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        figures = [compared("as fine-tuned", [args.run], args, work)]
        for kind, words in KINDS.items():
            runs = [trained(kind, words, int(seed), args, work) for seed in args.seeds.split(",")]
            figures.append(compared(kind, runs, args, work))
    table = [
        {
            "training": row["training"],
            **{f"{name} accuracy": f"{row[name]['accuracy']:.4f}" for name in ("float", "int8")},
            "lost": f"{100 * (row['float']['accuracy'] - row['int8']['accuracy']):+.2f}",
            **{f"{name} loss": f"{row[name]['loss']:.4f}" for name in ("float", "int8")},
            "probabilities apart": f"{row['distance']:.4f}",
            "same label": f"{row['same_label']:.2%}",
        }
        for row in figures
    ]
    common.show(f"{args.run}, SST-2, {args.steps} steps, seeds {args.seeds}", table, figures, args.json)


def trained(kind: str, words: tuple[str, ...], seed: int, args: Any, work: Path) -> Path:
    """The run folder after more training."""
    run = work / f"{kind.replace(' ', '-')}-{seed}"
    if not run.exists():
        common.albert_tf(
            *("finetune", "classification", "--train", args.data / SST2 / TRAIN, "--glue", "SST-2", "--from", args.run),
            *("--steps", args.steps, "--learning-rate", args.learning_rate, "--max-length", args.length),
            *("--seed", seed, "--out", run, *words),
        )
    return run


def compared(training: str, runs: list[Path], args: Any, work: Path) -> dict[str, Any]:
    """Figures of the runs and of their files, in the mean."""
    by_run = [_compared(run, args, work / f"{training.replace(' ', '-')}-{n}.tflite") for n, run in enumerate(runs)]
    row: dict[str, Any] = {"training": training, "runs": by_run}
    for name in ("float", "int8"):
        row[name] = {figure: statistics.fmean(one[name][figure] for one in by_run) for figure in by_run[0][name]}
    return row | {name: statistics.fmean(one[name] for one in by_run) for name in ("distance", "same_label")}


def _compared(run: Path, args: Any, file: Path) -> dict[str, Any]:
    from albert_tf.data.glue import read_labelled
    from albert_tf.tasks.trained import load_task
    from export.runtime import TFLiteRunner
    from export.tflite import export_tflite, in_float32

    folder = args.data / SST2
    texts = [example.text for example in read_labelled(str(folder / TRAIN), print, glue="SST-2")[: args.calibration]]
    examples = read_labelled(str(folder / DEV), print, glue="SST-2")[: args.examples]
    task = in_float32(load_task(run))
    settings: dict[str, Any] = {"recipe": "int8", "length": args.length, "calibration": texts}
    export_tflite(task, file, **settings, overwrite=True, force=True, measure=False)
    runner = TFLiteRunner(file)
    rows = runner.pipeline.prepare(examples).rows
    wanted = np.array([task.labels.index(example.label) for example in examples])
    outputs = {"float": task.run_rows(rows), "int8": runner.run_rows(rows)}
    found = {name: np.array([one["probabilities"] for one in values]) for name, values in outputs.items()}
    labels = {name: probabilities.argmax(1) for name, probabilities in found.items()}
    figures: dict[str, Any] = {
        name: {
            "accuracy": float((labels[name] == wanted).mean()),
            "loss": float(-np.log(np.maximum(probabilities[range(len(wanted)), wanted], 1e-9)).mean()),
        }
        for name, probabilities in found.items()
    }
    figures["distance"] = float(np.abs(found["float"] - found["int8"]).mean())
    figures["same_label"] = float((labels["float"] == labels["int8"]).mean())
    return figures


if __name__ == "__main__":
    main()
