"""`albert_tf.training.finetune`, interrupted: it goes on to the same bits, or says why it does not."""

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

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
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.training import checkpoints, finetune, finetune_rounds
from albert_tf.training.rounds import Rounds

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
    """kill -9 in the third round; then between best weights and state; then before and after the run folder is
    written."""
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

    monkeypatch.setattr(finetune, "remove_work", pull_plug(finetune.remove_work, 1))
    with pytest.raises(PulledPlug):
        run_quietly(run, report=lines.append)
    assert lines[-1] == "going on after round 6 of 6" and work.exists()  # nothing is trained again
    monkeypatch.undo()

    assert run_quietly(run, report=lines.append) == read_json(finished_run / "metrics.json")
    assert lines[-1] == f"{run.out}: was finished by an interrupted call; nothing is trained again"
    assert not work.exists()
    assert_same_run(tmp_path / "run", finished_run)
    with pytest.raises(InputError, match="exists already"):
        run_quietly(run)


@pytest.mark.parametrize("best", [1, 2, 3])
def test_damaged_best_weights_are_written_again_or_missed(
    best: int, tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a run killed after three of four rounds: the state has the weights of round 3, the one before it of round 2."""
    monkeypatch.setattr(finetune_rounds, "_is_best", lambda history, metric: len(history) == best)
    whole = tiny_run(tiny_files, tmp_path / "whole", epochs=4.0)
    run_quietly(whole)
    run, folder = dataclasses.replace(whole, out=str(tmp_path / "run")), tmp_path / "run.training" / f"best_{best}"
    monkeypatch.setattr(finetune_rounds, "save_state", pull_plug(finetune_rounds.save_state, 4))
    with pytest.raises(PulledPlug):
        run_quietly(run)
    monkeypatch.setattr(finetune_rounds, "save_state", checkpoints.save_state)
    weights = bytearray((folder / "weights.safetensors").read_bytes())
    weights[-9] ^= 1  # in a number, which nothing else would notice
    (folder / "weights.safetensors").write_bytes(weights)
    lines: list[str] = []
    if best == 1:
        with pytest.raises(InputError, match=r"damaged best weights in .*best_1\); pass --overwrite to start again"):
            run_quietly(run, report=lines.append)
        return
    run_quietly(run, report=lines.append)
    assert f"{folder}: damaged; written again from the state" in lines
    assert f"going on after round {best} of 4" in lines
    assert any("the state before it is taken" in line for line in lines) == (best == 2)
    assert_same_run(tmp_path / "run", tmp_path / "whole")


def test_a_run_that_diverges_says_where_its_best_weights_are(
    tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tiny_run(tiny_files, tmp_path / "run", epochs=2.0)

    def nan_in_the_second_round(self: Rounds, batch: int, logs: Any = None) -> None:
        if int(self.model.optimizer.iterations) > 9:
            raise self.diverged("the loss became nan")

    monkeypatch.setattr(Rounds, "on_train_batch_end", nan_in_the_second_round)
    with pytest.raises(InputError, match=r"nan at step 10: .*; the best weights so far are in .*run\.training/best_1"):
        run_quietly(run)
    assert AlbertTextClassifier.from_pretrained(tmp_path / "run.training" / "best_1").classify(["ice"])

    def nan_in_the_validation(self: AlbertTextClassifier, rows: Any) -> Any:
        return [{"probabilities": np.full(2, np.nan)} for _ in rows]

    monkeypatch.undo()
    monkeypatch.setattr(AlbertTextClassifier, "run_rows", nan_in_the_validation)
    expected = rf"outputs for {run.valid} became NaN or infinite at step 16: start again .*; the best weights so far"
    with pytest.raises(InputError, match=expected):
        run_quietly(run)


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
