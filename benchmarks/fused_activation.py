"""Training steps in mixed_bfloat16 on a CPU, with the activation fused by XLA and with TensorFlow's operators.

    python benchmarks/fused_activation.py --json fused_activation.json

Steps of a classifier with AdamW on random weights and ids. Both ways take turns in one process, step by step, so that other
work on the machine slows both; the median of each counts. The gain depends on how fast the CPU multiplies bfloat16 matrices:
the faster (AMX), the larger the activation's share of what is left.
"""

import argparse
import os
import statistics
import time
from pathlib import Path
from typing import Any

import common

SHAPES = {"albert_tiny_en": (64, 64), "albert_small_en": (64, 64), "albert_base_v2": (16, 128)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=9, help="steps to time of each (default 9)")
    parser.add_argument("--json", type=Path, help="file for the figures")
    args = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    figures = {name: measured(name, *size, args.steps) for name, size in SHAPES.items()}
    rows = [
        {
            "model": name,
            "texts × tokens": "{} × {}".format(*SHAPES[name]),
            "operators ms": f"{found['operators']:.0f}",
            "fused ms": f"{found['fused']:.0f}",
            "time": f"÷ {found['operators'] / found['fused']:.2f}",
        }
        for name, found in figures.items()
    ]
    common.show("a training step in mixed_bfloat16", rows, figures, args.json)


def measured(name: str, batch: int, length: int, steps: int) -> dict[str, float]:
    """The median time of a step in ms, by way."""
    ways = {"operators": trainer(name, fuse=False), "fused": trainer(name, fuse=True)}
    data = batch_of(batch, length)
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(2 + steps):
        for way, train in ways.items():
            started = time.perf_counter()
            train(*data)
            if number >= 2:  # the first trace and compile
                seconds[way].append(time.perf_counter() - started)
    return {way: 1e3 * statistics.median(taken) for way, taken in seconds.items()}


def trainer(name: str, *, fuse: bool) -> Any:
    from albert_tf import AlbertBackbone, AlbertConfig, AlbertTextClassifier
    from albert_tf.training.compiling import compile_model, fuse_activations
    from albert_tf.training.optimizers import AdamW

    backbone = AlbertBackbone(AlbertConfig.from_name(name), dtype="mixed_bfloat16")
    model = AlbertTextClassifier(backbone, labels=["a", "b"])
    compile_model(model, AdamW(1e-5), precision="mixed_bfloat16", accumulate=1, jit=False)
    if fuse and not fuse_activations(backbone.encoder, precision="mixed_bfloat16", jit=False):
        raise SystemExit("this machine has an accelerator; the activation is fused on CPUs only")
    return model.train_on_batch


def batch_of(batch: int, length: int) -> tuple[Any, Any]:
    import numpy as np

    ids = np.random.default_rng(0).integers(5, 8000, (batch, length)).astype(np.int32)
    inputs = {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": np.ones_like(ids)}
    return inputs, {"label": np.arange(batch) % 2, "scale": np.full(batch, 1 / batch, np.float32)}


if __name__ == "__main__":
    main()
