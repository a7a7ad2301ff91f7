"""`albert_tf.training.finetune`, interrupted: it goes on to the same bits, or says why it does not."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from safetensors.numpy import load_file
from tiny_data import (
    PulledPlug,
    TinyFiles,
    flags,
    pull_plug,
    read_json,
    run_quietly,
    separable_rows,
    tiny_run,
    write_table,
)

from albert_tf.errors import InputError
from albert_tf.training import finetune, finetune_rounds

KILLED_AT_STEP_20 = """
import os, signal, sys
from albert_tf.cli.main import main
from albert_tf.training.rounds import Rounds
after_step = Rounds.on_train_batch_end
def dying(self, batch, logs=None):
    after_step(self, batch, logs)
    if int(self.model.optimizer.iterations) == 20:
        os.kill(os.getpid(), signal.SIGKILL)
Rounds.on_train_batch_end = dying
sys.exit(main(sys.argv[1:]))
"""


def timeless(history: list[dict[str, float]]) -> list[dict[str, float]]:
    timed = ("seconds", "examples_per_second")
    return [{name: value for name, value in figures.items() if name not in timed} for figures in history]


def assert_same_run(first: Path, second: Path) -> None:
    """The same weights and figures, to the bit."""
    ours, theirs = load_file(first / "weights.safetensors"), load_file(second / "weights.safetensors")
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)
    assert read_json(first / "metrics.json") == read_json(second / "metrics.json")
    assert timeless(read_json(first / "history.json")) == timeless(read_json(second / "history.json"))


def test_a_run_interrupted_anywhere_ends_as_if_it_had_not_been(
    finished_run: Path, tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kill -9 in the third round; then between best weights and state; then while the run folder is being written."""
    run, work, lines = tiny_run(tiny_files, tmp_path / "run"), tmp_path / "run.training", []
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_AT_STEP_20, *flags(run)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert killed.returncode == -9, killed.stderr
    assert "round 2/6" in killed.stdout and "round 3/6" not in killed.stdout
    assert not (tmp_path / "run").exists() and (work / "state.safetensors").exists()

    monkeypatch.setattr(finetune_rounds, "save_state", pull_plug(finetune_rounds.save_state, 2))
    with pytest.raises(PulledPlug):
        run_quietly(run, report=lines.append)
    assert "going on after round 2 of 6" in lines and not (tmp_path / "run").exists()
    monkeypatch.undo()

    monkeypatch.setattr(finetune, "write_run_folder", pull_plug(finetune.write_run_folder, 1))
    with pytest.raises(PulledPlug):
        run_quietly(run, report=lines.append)
    assert "going on after round 3 of 6" in lines and not (tmp_path / "run").exists()
    monkeypatch.undo()

    run_quietly(run, report=lines.append)
    assert lines[-1] == "going on after round 6 of 6"  # nothing is trained again
    assert not work.exists()
    assert_same_run(tmp_path / "run", finished_run)


def test_other_settings_or_texts_do_not_go_on_with_a_run(
    tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = write_table(tmp_path / "train.tsv", separable_rows(16))
    run = tiny_run(tiny_files, tmp_path / "run", train=str(train), epochs=2.0)
    monkeypatch.setattr(finetune_rounds, "save_state", pull_plug(finetune_rounds.save_state, 2))
    with pytest.raises(PulledPlug):
        run_quietly(run)
    monkeypatch.undo()
    state = (tmp_path / "run.training" / "state.safetensors").read_bytes()
    with pytest.raises(InputError, match=r"with other settings \(--seed 0 → 5\); give the same ones .*--overwrite"):
        run_quietly(dataclasses.replace(run, seed=5))
    write_table(train, [*separable_rows(15), ("the ice", "warm")])
    with pytest.raises(InputError, match=r"run.training: the interrupted run was trained on other texts"):
        run_quietly(run)
    assert (tmp_path / "run.training" / "state.safetensors").read_bytes() == state
    lines: list[str] = []
    run_quietly(run, overwrite=True, report=lines.append)
    assert not any("going on" in line for line in lines) and (tmp_path / "run" / "metrics.json").exists()
