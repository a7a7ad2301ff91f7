"""Time and peak memory of loading albert-xxlarge (223 million parameters) from a TF1 checkpoint and from a preset.

    python benchmarks/load_memory.py --json load_memory.json

The weights are random: time and memory do not depend on them. They are made in a temporary folder, which needs twice
their size (0.9 GB in float32). Each source is loaded with its pretraining heads in a process of its own; a third
process builds the model without loading anything, so what loading adds at its peak can be told from the model itself.
Loading is measured with the files in the page cache. About two minutes on two cores.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import common

LIMIT = 1.3  # peak memory beyond the model itself, in sizes of the weights
TF1, PRESET = "TF1 checkpoint", "preset (safetensors)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="albert_xxlarge_v2", help="model size (default albert_xxlarge_v2)")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--measure", nargs=2, metavar=("CONFIG", "SOURCE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measured(*args.measure)))
        return
    with tempfile.TemporaryDirectory() as folder:
        size = write_sources(args.config, Path(folder))
        built = in_fresh_process(args.config, "")
        figures = {name: in_fresh_process(args.config, str(Path(folder) / name)) for name in (TF1, PRESET)}
    for row in figures.values():
        row["weight_bytes"] = size
        # Of the model itself only its weights count; what building it takes for a moment, loading has to answer for.
        row["beyond_model"] = (row["peak_bytes"] - row["start_bytes"] - size) / size
    rows = [shown("the model alone", built | {"weight_bytes": size})]
    rows += [shown(name, row) for name, row in figures.items()]
    common.show(f"loading {args.config}, {size / 1e6:.0f} MB of weights", rows, {"built": built} | figures, args.json)
    worst = max(row["beyond_model"] for row in figures.values())
    sys.exit(f"peak memory beyond the model is {worst:.2f} times the weights, over {LIMIT}" if worst > LIMIT else 0)


def write_sources(config_name: str, folder: Path) -> int:
    """Both sources, with the same random weights; returns the weights' size in bytes."""
    import numpy as np

    from albert_tf import AlbertConfig
    from albert_tf.conversion.tf1 import write_tf1
    from albert_tf.parameters import backbone_weight_shapes, pretraining_head_weight_shapes
    from albert_tf.presets import save_preset

    config = AlbertConfig.from_name(config_name)
    random = np.random.default_rng(0)
    shapes = backbone_weight_shapes(config) | pretraining_head_weight_shapes(config)
    weights = {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    write_tf1(folder / TF1, config, weights, None)
    save_preset(folder / PRESET, config, weights, None)
    return sum(weight.nbytes for weight in weights.values())


def in_fresh_process(config_name: str, source: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--measure", config_name, source]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def measured(config_name: str, source: str) -> dict[str, Any]:
    """Loads `source`, or builds the model where there is none, after everything is imported and has run once."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from albert_tf import AlbertBackbone, AlbertConfig, AlbertPretrainer

    tiny = AlbertConfig(50, 8, 8, 1, 1)
    AlbertPretrainer(AlbertBackbone(tiny))
    start, started = resident("VmRSS"), time.perf_counter()
    if source:
        model = AlbertPretrainer.from_pretrained(source)
    else:
        model = AlbertPretrainer(AlbertBackbone(AlbertConfig.from_name(config_name)))
    seconds = time.perf_counter() - started
    return {
        "parameters": model.count_params(),
        "seconds": seconds,
        "start_bytes": start,
        "peak_bytes": resident("VmHWM"),
        "end_bytes": resident("VmRSS"),
    }


def resident(field: str) -> int:
    """Memory of this process in bytes: VmRSS now, VmHWM at its peak (Linux)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def shown(name: str, row: dict[str, Any]) -> dict[str, str]:
    grown = row["peak_bytes"] - row["start_bytes"]
    return {
        "source": name,
        "seconds": f"{row['seconds']:.1f}",
        "peak MB": f"{grown / 1e6:.0f}",
        "after MB": f"{(row['end_bytes'] - row['start_bytes']) / 1e6:.0f}",
        "peak beyond the model": f"{grown / row['weight_bytes'] - 1:.2f} × weights",
    }


if __name__ == "__main__":
    main()
