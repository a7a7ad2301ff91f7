"""Peak memory and time of a training step, with the encoder's activations kept and computed anew.

    python benchmarks/rematerialization.py --json rematerialization.json

One step of albert-base with AdamW on random weights and ids, texts of 512 tokens, for each number of texts and each way
in a process of its own: memory that a step took is not given back to the system. Time is processor time, over all
threads, which other work on the machine changes little; the time on the clock is in the JSON file. Keeping the
activations of 32 texts takes about 25 GB; with `--memory GB` a step that is foreseen to take more, from the steps before
it, is left out, and said so. Linux only.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import common

LENGTH = 512


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="albert_base_v2", help="model size (default albert_base_v2)")
    parser.add_argument("--batches", default="2,4,8,32", help="texts in a batch (default 2,4,8,32)")
    parser.add_argument("--precision", default="float32", help="float32 (default) or mixed_bfloat16")
    parser.add_argument("--memory", type=float, default=12.0, help="GB that a step may take (default 12)")
    parser.add_argument("--steps", type=int, default=2, help="steps to time; the quickest counts (default 2)")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--measure", nargs=2, metavar=("BATCH", "WAY"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measured(args, int(args.measure[0]), args.measure[1] == "recomputed")))
        return
    figures: dict[str, dict[int, Any]] = {"kept": {}, "recomputed": {}}
    for batch in map(int, args.batches.split(",")):
        for way, known in figures.items():
            foreseen = max((f["step_bytes"] * batch / known_batch for known_batch, f in known.items()), default=0)
            if foreseen > args.memory * 1e9:
                print(f"{batch} texts, {way}: left out, foreseen to take {foreseen / 1e9:.0f} GB")
                continue
            figures[way][batch] = in_fresh_process(args, batch, way)
    rows = [row(batch, figures) for batch in sorted(figures["recomputed"])]
    common.show(f"a step of {args.config}, {LENGTH} tokens, {args.precision}", rows, figures, args.json)


def row(batch: int, figures: dict[str, dict[int, Any]]) -> dict[str, str]:
    kept, recomputed = (figures[way].get(batch) for way in ("kept", "recomputed"))
    both = kept is not None and recomputed is not None
    cells = {"texts": str(batch)}
    for way, found in (("kept", kept), ("recomputed", recomputed)):
        cells[f"{way} GB"] = f"{found['step_bytes'] / 1e9:.2f}" if found else "-"
        cells[f"{way} CPU s"] = f"{found['cpu_seconds']:.1f}" if found else "-"
    cells["memory"] = f"÷ {kept['step_bytes'] / recomputed['step_bytes']:.2f}" if both else "-"
    cells["time"] = f"× {recomputed['cpu_seconds'] / kept['cpu_seconds']:.2f}" if both else "-"
    return cells


def in_fresh_process(args: argparse.Namespace, batch: int, way: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--measure", str(batch), way, "--config", args.config]
    command += ["--precision", args.precision, "--steps", str(args.steps)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def measured(args: argparse.Namespace, batch: int, recompute: bool) -> dict[str, Any]:
    """Memory beyond the built model and its optimizer, at its peak, and the quickest step after the first."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import numpy as np

    from albert_tf import AlbertBackbone, AlbertConfig, AlbertTextClassifier
    from albert_tf.training.compiling import compile_model
    from albert_tf.training.optimizers import AdamW

    backbone = AlbertBackbone(AlbertConfig.from_name(args.config), rematerialize=recompute, dtype=args.precision)
    model = AlbertTextClassifier(backbone, labels=["a", "b"])
    compile_model(model, AdamW(1e-5), precision=args.precision, accumulate=1, jit=False)
    random = np.random.default_rng(0)
    ids = random.integers(5, backbone.config.vocabulary_size, (batch, LENGTH)).astype(np.int32)
    inputs = {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": np.ones_like(ids)}
    targets = {"label": np.arange(batch) % 2, "scale": np.full(batch, 1 / batch, np.float32)}
    start = common.resident("VmRSS")
    seconds, cpu_seconds = [], []
    for _ in range(1 + args.steps):  # the first traces
        started, cpu_started = time.perf_counter(), time.process_time()
        loss = model.train_on_batch(inputs, targets)
        seconds.append(time.perf_counter() - started)
        cpu_seconds.append(time.process_time() - cpu_started)
    return {
        "loss": float(np.ravel(loss)[0]),
        "seconds": min(seconds[1:]),
        "cpu_seconds": min(cpu_seconds[1:]),
        "start_bytes": start,
        "step_bytes": common.resident("VmHWM") - start,
    }


if __name__ == "__main__":
    main()
