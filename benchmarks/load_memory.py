"""Time and peak memory of loading albert-xxlarge (223 million parameters) from every form of checkpoint.

    python benchmarks/load_memory.py --json load_memory.json

The weights are random: time and memory do not depend on them. They are written in each form in turn, with the
pretraining heads where the form has them, to a temporary folder, which needs twice their size (0.9 GB in float32). Each
encoder is loaded in a process of its own; one more process builds it without loading anything, so what loading adds at
its peak can be told from the model itself. Loading is measured with the files in the page cache. A pytorch_model.bin is
written by PyTorch, and left out where that is not installed. About five minutes on two cores.
"""

import argparse
import functools
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common
import numpy as np

from albert_tf import AlbertConfig
from albert_tf.conversion.huggingface import write_huggingface
from albert_tf.conversion.keras_hub import write_keras_hub
from albert_tf.conversion.model_garden import write_model_garden
from albert_tf.conversion.tf1 import write_tf1
from albert_tf.parameters import backbone_weight_shapes, pretraining_head_weight_shapes
from albert_tf.presets import save_preset

LIMIT = 1.3  # peak memory beyond the model itself, in sizes of the weights
Weights = dict[str, np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="albert_xxlarge_v2", help="model size (default albert_xxlarge_v2)")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--measure", nargs=2, metavar=("CONFIG", "SOURCE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measured(*args.measure)))
        return
    config = AlbertConfig.from_name(args.config)
    weights = random_weights(config)
    size = sum(weights[name].nbytes for name in backbone_weight_shapes(config))
    built = in_fresh_process(args.config, "") | {"weight_bytes": size}
    figures = {}
    for name, write in forms().items():
        with tempfile.TemporaryDirectory() as folder:
            source = write(Path(folder), config, weights)
            row = in_fresh_process(args.config, str(source)) | {"weight_bytes": size}
        # Of the model itself only its weights count; what building it takes for a moment, loading has to answer for.
        figures[name] = row | {"beyond_model": (row["peak_bytes"] - row["start_bytes"] - size) / size}
    rows = [shown("the model alone", built), *(shown(name, row) for name, row in figures.items())]
    common.show(f"loading {args.config}, {size / 1e6:.0f} MB of weights", rows, {"built": built} | figures, args.json)
    worst = max(figures, key=lambda name: figures[name]["beyond_model"])
    beyond = figures[worst]["beyond_model"]
    sys.exit(f"{worst}: peak memory beyond the model is {beyond:.2f} times the weights" if beyond > LIMIT else 0)


# === The sources ===


def random_weights(config: AlbertConfig) -> Weights:
    """An encoder's and its pretraining heads'."""
    random = np.random.default_rng(0)
    shapes = backbone_weight_shapes(config) | pretraining_head_weight_shapes(config)
    return {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}


def forms() -> dict[str, Callable[[Path, AlbertConfig, Weights], Path]]:
    """Name of a form → what writes it below a folder, and returns what to load."""
    written: dict[str, Callable[..., Any]] = {
        "preset": save_preset,
        "TF1 checkpoint": write_tf1,
        "Hugging Face, safetensors": write_huggingface,
        "Hugging Face, .bin": _write_bin,
        "KerasHub preset": write_keras_hub,
        "Model Garden checkpoint": write_model_garden,
        "Model Garden SavedModel": _write_saved_model,
    }
    if importlib.util.find_spec("torch") is None:
        print("Hugging Face, .bin: left out, PyTorch is not installed")
        del written["Hugging Face, .bin"]
    return {name: functools.partial(_folder, write=write) for name, write in written.items()} | {
        "preset in a .zip": _zip
    }


def _folder(folder: Path, config: AlbertConfig, weights: Weights, *, write: Callable[..., Any]) -> Path:
    write(folder / "model", config, weights, None)
    return folder / "model"


def _write_bin(folder: Path, config: AlbertConfig, weights: Weights, tokenizer: None) -> None:
    """The safetensors file's tensors, saved by PyTorch."""
    import torch
    from safetensors.torch import load_file

    write_huggingface(folder, config, weights, tokenizer)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def _write_saved_model(folder: Path, config: AlbertConfig, weights: Weights, tokenizer: None) -> None:
    """The checkpoint's variables, and a graph without operations, which says what Keras says of the encoder."""
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    write_model_garden(folder, config, weights, tokenizer)
    (folder / "variables").mkdir()
    for path in folder.glob("ckpt-1.*"):
        path.rename(folder / "variables" / path.name.replace("ckpt-1", "variables"))
    arguments = {"num_layers": config.num_layers, "activation": {"config": "Text>gelu"}}
    saved = SavedModel()
    node = saved.meta_graphs.add().object_graph_def.nodes.add()
    node.user_object.metadata = json.dumps({"class_name": "AlbertEncoder", "config": arguments})
    (folder / "saved_model.pb").write_bytes(saved.SerializeToString())


def _zip(folder: Path, config: AlbertConfig, weights: Weights) -> Path:
    source = _folder(folder, config, weights, write=save_preset)
    with zipfile.ZipFile(folder / "model.zip", "w") as archive:
        for path in source.iterdir():
            archive.write(path, f"model/{path.name}")
    return folder / "model.zip"


# === Measuring ===


def in_fresh_process(config_name: str, source: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--measure", config_name, source]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def measured(config_name: str, source: str) -> dict[str, Any]:
    """Loads `source`, or builds the model where there is none, after everything is imported and has run once."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from albert_tf import AlbertBackbone

    AlbertBackbone(AlbertConfig(50, 8, 8, 1, 1))
    start, started = common.resident("VmRSS"), time.perf_counter()
    if source:
        model = AlbertBackbone.from_pretrained(source)
    else:
        model = AlbertBackbone(AlbertConfig.from_name(config_name))
    seconds = time.perf_counter() - started
    return {
        "parameters": model.count_params(),
        "seconds": seconds,
        "start_bytes": start,
        "peak_bytes": common.resident("VmHWM"),
        "end_bytes": common.resident("VmRSS"),
    }


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
