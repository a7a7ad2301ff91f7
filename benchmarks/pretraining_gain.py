"""What pretraining brings: tasks of GLUE fine-tuned from a checkpoint, and from random weights of the same shape.

    python benchmarks/pretraining_gain.py --data DATA --work FOLDER --json pretraining_gain.json

The checkpoint is the bundled encoder, or a folder that is named. Each row is trained with the product's own command,
`albert-tf finetune … --seeds 0,1,2`, in mixed_bfloat16, on the same examples for as many epochs; from random weights also
with higher learning rates, of which the best counts. Figures are means over the seeds of the best round's figure on the dev
file: both sides choose on what they are judged by. Of MRPC every eighth pair is held back, as the dev file of the original
download is not in DATA.

FOLDER keeps the runs: an interrupted call goes on. `--tasks 'NAME;NAME'` runs some, `--seeds` others.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any

import common
from task_data import DATASETS, Dataset

from albert_tf.bundled import BUNDLED, bundled_model

RATES, SCRATCH_RATES = (1e-4, 3e-4), (3e-4, 1e-3)
NAMES = ("SST-2", "CoLA", "RTE", "MRPC", "STS-B", "STS-B, embeddings")


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument(
        "checkpoint", type=Path, nargs="?", default=bundled_model(BUNDLED[0]), help="a preset folder, or a run folder"
    )
    parser.add_argument("--work", type=Path, default=Path("runs/pretraining_gain"), help="folder for the runs")
    parser.add_argument("--tasks", default=None, help=f"rows, separated by ';', of {'; '.join(NAMES)} (default all)")
    parser.add_argument("--seeds", default="0,1,2", help="(default 0,1,2)")
    args = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    args.work.mkdir(parents=True, exist_ok=True)
    names = list(NAMES) if args.tasks is None else [name.strip() for name in args.tasks.split(";")]
    figures = []
    for name in names:
        found = {"name": name, "metric": DATASETS[name].metric}
        for start in ("scratch", "checkpoint"):
            found[start] = measured(DATASETS[name], start, args)
        figures.append(found)
        print(found, flush=True)
    common.show(f"fine-tuned from {args.checkpoint.name}", [shown(found) for found in figures], figures, args.json)


def measured(dataset: Dataset, start: str, args: argparse.Namespace) -> dict[str, Any]:
    """The best combination of one side: its learning rate, mean and standard deviation over the seeds."""
    out = args.work / f"{Path(dataset.folder).name}-{dataset.command}-{start}"
    train, valid = dataset.files(args.data, args.work)
    if start == "checkpoint":
        begin, rates = ["--from", args.checkpoint], RATES
    else:
        config = args.checkpoint / "config.json"
        begin, rates = ["--from-scratch", config, "--tokenizer", args.checkpoint], SCRATCH_RATES
    summary = out / "summary.json"
    if not summary.exists():
        common.albert_tf(
            *("finetune", dataset.command, "--train", train, "--valid", valid, *begin, "--out", out),
            *(*dataset.options, "--max-length", 128, "--precision", "mixed_bfloat16", "--seeds", args.seeds),
            *("--sweep", f"learning_rate={','.join(map(str, rates))}"),
        )
    best = json.loads(summary.read_text(encoding="utf-8"))["rows"][0]
    return {
        "learning_rate": best["settings"]["learning_rate"],
        "mean": best["mean"][dataset.metric],
        "deviation": best["deviation"].get(dataset.metric, 0.0),
    }


def shown(found: dict[str, Any]) -> dict[str, str]:
    sides = {side: found[side] for side in ("scratch", "checkpoint")}
    return {
        "task": found["name"],
        "figure": found["metric"].replace("_", " "),
        **{name: f"{side['mean']:.3f} ± {side['deviation']:.3f}" for name, side in sides.items()},
        "gain": f"{found['checkpoint']['mean'] - found['scratch']['mean']:+.3f}",
    }


if __name__ == "__main__":
    main()
