"""Several devices, several workers and JAX against one device: the same figures, also after a worker was killed.

Each training is a process of its own, as TensorFlow and Keras take their devices and backend only once.
"""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from safetensors.numpy import load_file
from tiny_data import TinyFiles, read_json, tiny_run, write_files
from tiny_pretraining import SHAPE, make_data

from albert_tf.errors import InputError
from albert_tf.training.distribution import ONE_DEVICE, Devices, open_devices
from albert_tf.training.pretrain_config import PretrainConfig

# No dropout: replicas draw other masks than one device does. A clip norm below that of most gradients, so that clipping
# before the sum over replicas would be seen.
SETTINGS: dict[str, Any] = {
    "steps": 20,
    "round_steps": 5,
    "batch_size": 16,
    "optimizer": "adamw",
    "learning_rate": 0.01,
    "hidden_dropout": 0.0,
    "attention_dropout": 0.0,
    "clip_norm": 0.1,
}
# Measured: 2e-6 in the losses, whichever way; figures have as many digits as float32.
TOLERANCE = 1e-4
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("distribution")
    make_data(folder)
    (folder / "shape.json").write_text(json.dumps(SHAPE))
    return folder


def settings(folder: Path, name: str, **changes: Any) -> dict[str, Any]:
    files = {"data": str(folder / "data"), "from_scratch": str(folder / "shape.json"), "out": str(folder / name)}
    return files | SETTINGS | changes


def run_job(*settings: dict[str, Any], **environment: str) -> None:
    """tests/distribution_job.py in a process of its own: one training after the other."""
    command = [sys.executable, str(ROOT / "tests/distribution_job.py"), *map(json.dumps, settings)]
    done = subprocess.run(command, env=ENVIRONMENT | environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def one(folder: Path) -> Path:
    """A run on one device."""
    run_job(settings(folder, "one") | {"command": "pretrain"})
    return folder / "one"


def assert_same_figures(first: Path, second: Path, names: tuple[str, ...] = ("loss", "valid_loss")) -> None:
    ours, theirs = read_json(first / "history.json"), read_json(second / "history.json")
    assert len(ours) == len(theirs) > 1
    for name in names:
        curves = [[figures[name] for figures in history] for history in (ours, theirs)]
        np.testing.assert_allclose(*curves, rtol=TOLERANCE, err_msg=name)
    weights, others = (load_file(run / "weights.safetensors") for run in (first, second))
    assert weights.keys() == others.keys()
    for name, value in weights.items():
        np.testing.assert_allclose(value, others[name], atol=TOLERANCE, err_msg=name)


PRETRAINING_FIGURES = ("masked_lm_loss", "sentence_order_loss", "valid_masked_lm_loss", "valid_loss", "tokens")


def test_two_devices_are_one(folder: Path, one: Path) -> None:
    run_job(settings(folder, "mirrored", strategy="mirrored") | {"command": "pretrain"})
    assert_same_figures(folder / "mirrored", one, PRETRAINING_FIGURES)


@pytest.mark.parametrize("victim", [0, 1])
def test_two_workers_are_one_also_when_one_is_killed(folder: Path, one: Path, victim: int) -> None:
    out = folder / f"workers_{victim}"
    flags = [
        part
        for name, value in settings(folder, out.name).items()
        for part in ("--" + name.replace("_", "-"), str(value))
    ]
    command = [sys.executable, "-m", "albert_tf.cli.main", "launch", "--workers", "2", "--restarts", "1", "--"]
    with subprocess.Popen(
        [*command, "pretrain", *flags], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as launcher:
        state = out.with_name(f"{out.name}.training") / "state.safetensors"
        deadline = time.monotonic() + 400
        while not state.exists() and time.monotonic() < deadline and launcher.poll() is None:
            time.sleep(0.05)
        os.kill(_worker(launcher.pid, victim), signal.SIGKILL)
        said = launcher.communicate(timeout=500)[0]
    assert launcher.returncode == 0, said
    assert f"worker {victim} was ended by signal 9" in said and "going on after round" in said
    assert_same_figures(out, one, PRETRAINING_FIGURES)


def _worker(launcher: int, index: int) -> int:
    """The process of a worker, by its number in TF_CONFIG."""
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    for child in children:
        environment = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        config = next(entry for entry in environment if entry.startswith(b"TF_CONFIG="))
        if json.loads(config.partition(b"=")[2])["task"]["index"] == index:
            return int(child)
    raise AssertionError("no such worker")


@pytest.mark.parametrize("strategy", ["one", "mirrored"])
def test_jax_is_tensorflow(folder: Path, one: Path, strategy: str) -> None:
    # From the same weights: the two draw other random numbers.
    start = {"from_scratch": None, "source": str(one), "command": "pretrain"}
    if not (folder / "again").exists():
        run_job(settings(folder, "again") | start)
    out = f"jax_{strategy}"
    devices = {"KERAS_BACKEND": "jax", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    run_job(settings(folder, out, strategy=strategy) | start, **devices)
    assert_same_figures(folder / out, folder / "again", PRETRAINING_FIGURES)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> TinyFiles:
    return write_files(tmp_path_factory.mktemp("tables"))


@pytest.mark.parametrize("changes", [{"batch_size": 10}, {"batch_tokens": 150}, {"batch_size": 12, "accumulate": 3}])
def test_fine_tuning_on_two_devices_is_that_on_one(tables: TinyFiles, changes: dict[str, Any]) -> None:
    """With a last batch that the devices cannot share equally, and batches that differ in size."""
    undisturbed = {"hidden_dropout": 0.0, "attention_dropout": 0.0, "classifier_dropout": 0.0, "clip_norm": 0.1}
    runs = [tables.train.with_name("_".join(map(str, [*changes.values(), where]))) for where in ("one", "mirrored")]
    run_job(
        *(
            dataclasses.asdict(tiny_run(tables, out, epochs=2.0, strategy=strategy, **undisturbed | changes))
            | {"command": "classification"}
            for out, strategy in zip(runs, ("one", "mirrored"), strict=True)
        )
    )
    assert_same_figures(*runs)


def test_several_runs_on_two_devices_in_one_process(tables: TinyFiles) -> None:
    outs = [tables.train.with_name(f"seed_{seed}") for seed in (1, 2)]
    run_job(
        *(
            dataclasses.asdict(tiny_run(tables, out, epochs=1.0, seed=seed, strategy="mirrored"))
            | {"command": "classification"}
            for seed, out in enumerate(outs, start=1)
        )
    )
    assert all((out / "metrics.json").is_file() for out in outs)


def test_fine_tuning_on_jax_is_refused(tables: TinyFiles) -> None:
    run = tiny_run(tables, tables.train.with_name("jax"))
    with pytest.raises(AssertionError, match="unset KERAS_BACKEND"):
        run_job(dataclasses.asdict(run) | {"command": "classification"}, KERAS_BACKEND="jax")


FORM = "TF_CONFIG: expected"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("{", FORM),
        ("[]", FORM),
        ('{"cluster": {"worker": "a:1"}, "task": {"type": "worker", "index": 0}}', FORM),
        ('{"cluster": {"worker": ["a:1"]}}', FORM),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}', "index below 1"),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"type": "chief", "index": 0}}', "type worker"),
        (
            '{"cluster": {"worker": ["a:1"], "ps": ["b:1"]}, "task": {"type": "worker", "index": 0}}',
            "parameter servers",
        ),
    ],
)
def test_a_cluster_that_is_none(monkeypatch: pytest.MonkeyPatch, config: str, message: str) -> None:
    monkeypatch.setenv("TF_CONFIG", config)
    with pytest.raises(InputError, match=message):
        open_devices("multiworker")


def test_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(InputError, match="albert-tf launch --workers N"):
        open_devices("multiworker")


def test_no_tpu() -> None:
    with pytest.raises(InputError, match="found no TPU"):
        open_devices("tpu")


def test_batches_that_cannot_be_shared() -> None:
    Devices(replicas=4).check_batch_size(32)
    ONE_DEVICE.check_batch_size(7)
    with pytest.raises(InputError, match="multiple of the 4 devices"):
        Devices(replicas=4).check_batch_size(30)


def test_strategies_are_checked() -> None:
    with pytest.raises(InputError, match="--strategy: expected one of one, mirrored, multiworker, tpu"):
        PretrainConfig(out="o", data="d", from_scratch="c", strategy="parameter_server")
