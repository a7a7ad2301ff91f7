"""Where a run was trained: versions, device and speed, as its page tells them."""

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

import albert_tf

_PACKAGES = ("tensorflow", "keras", "numpy", "jax")


def environment(precision: str, history: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """What can make the same settings give other figures, or take longer.

    Args:
        precision: the arithmetic.
        history: the figures of each round, validation left out of their seconds.
    """
    versions = {"albert-tf": albert_tf.__version__, "Python": platform.python_version()}
    backend = keras.backend.backend()
    for package in _PACKAGES:
        if package != "jax" or backend == "jax":
            versions[package] = importlib.metadata.version(package)
    seconds = sum(figures.get("seconds", 0.0) for figures in history)
    examples = sum(figures.get("seconds", 0.0) * figures.get("examples_per_second", 0.0) for figures in history)
    return {
        **versions,
        "Keras backend": backend,
        "system": platform.platform(),
        "device": ", ".join(_devices(backend)),
        "CPU cores": os.cpu_count(),
        "precision": precision,
        "seconds of training": seconds,
        "examples per second": examples / seconds if seconds else None,
        "finished": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _devices(backend: str) -> list[str]:
    """The accelerators, or else the processor."""
    if backend == "jax":
        import jax

        return [f"{device.platform} {device.device_kind}" for device in jax.devices()]
    import tensorflow as tf

    found = [device for kind in ("GPU", "TPU") for device in tf.config.list_physical_devices(kind)]
    names = [str(tf.config.experimental.get_device_details(device).get("device_name", device.name)) for device in found]
    return names or [_processor()]


def _processor() -> str:
    """Linux says the model in a file, other systems to Python."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
