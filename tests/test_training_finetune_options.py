"""What a fine-tuning can be told beside its data: each option through a whole run, killed on the way, to the same bits."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from safetensors.numpy import load_file
from test_training_finetune_resuming import KILLED_AT_STEP_20, assert_same_run
from tiny_data import PulledPlug, TinyFiles, flags, pull_plug, read_json, run_quietly, tiny_run

from albert_tf.errors import InputError
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.training import finetune_rounds

OPTIONS: dict[str, dict[str, Any]] = {
    # In rounds of nine steps, the last one shorter.
    "parts of token batches, computed twice": {
        "batch_tokens": 150,
        "accumulate": 3,
        "rematerialize": True,
        "steps": 43,
        "validate_every": 9,
    },
    "additions": {"lora_rank": 4, "lora_layers": "all", "learning_rate": 2e-2, "layer_decay": 0.9},
    "half precision, stopping early": {
        "precision": "mixed_float16",
        "patience": 2,
        "best_metric": "loss",
        "epochs": 9.0,
    },
}


@pytest.mark.parametrize("changes", OPTIONS.values(), ids=OPTIONS)
def test_a_run_killed_on_the_way_ends_as_one_that_was_not(
    changes: dict[str, Any], tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kill -9 within a round; then, gone on with, between the best weights and the state; then a damaged last state."""
    summary = run_quietly(tiny_run(tiny_files, tmp_path / "whole", **changes))
    assert summary["valid"]["accuracy"] >= 0.8
    run, work, lines = tiny_run(tiny_files, tmp_path / "run", **changes), tmp_path / "run.training", []
    command = [sys.executable, "-c", KILLED_AT_STEP_20, *flags(run)]
    killed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert killed.returncode == -9, killed.stderr
    monkeypatch.setattr(finetune_rounds, "save_state", pull_plug(finetune_rounds.save_state, 2))
    with pytest.raises(PulledPlug):
        run_quietly(run, report=lines.append)
    monkeypatch.undo()
    state = work / "state.safetensors"
    state.write_bytes(state.read_bytes()[:-100])
    run_quietly(run, report=lines.append)
    assert sum("going on after round" in line for line in lines) == 2
    assert any(line.startswith(f"{state}: damaged (") for line in lines) and not work.exists()
    assert_same_run(tmp_path / "whole", tmp_path / "run")


def test_additions_leave_no_trace_in_the_run_folder(finished_run: Path, tiny_files: TinyFiles, tmp_path: Path) -> None:
    """Its weights are those of any run of this shape; what was frozen is as it was, and the matrices moved by low rank."""
    changes = {"source": str(finished_run), "from_scratch": None, "tokenizer": None, "epochs": 1.0}
    run = tiny_run(tiny_files, tmp_path / "run", lora_rank=2, **changes)
    summary = run_quietly(run)
    before, after = (load_file(folder / "weights.safetensors") for folder in (finished_run, tmp_path / "run"))
    assert before.keys() == after.keys()
    moved = {name for name in before if not np.array_equal(before[name], after[name])}
    matrices = {f"encoder/attention_0/{name}/kernel" for name in ("query", "value")}
    assert moved == matrices | {"pooler/kernel", "pooler/bias", "classifier/kernel", "classifier/bias"}
    for name in matrices:
        singular = np.linalg.svd(after[name] - before[name], compute_uv=False)
        assert singular[1] > 1e-4 and singular[2:].max() < 1e-3 * singular[1]
    trained = sum(before[name].size for name in moved - matrices) + 2 * 2 * (32 + 32)
    assert summary["trained_parameters"] == trained
    assert summary["parameters"] == sum(weight.size for weight in before.values())
    assert AlbertTextClassifier.from_pretrained(tmp_path / "run").classify(["snow"])


def test_it_stops_when_validations_get_no_better(tiny_files: TinyFiles, tmp_path: Path) -> None:
    lines: list[str] = []
    run = tiny_run(tiny_files, tmp_path / "run", patience=2, best_metric="loss", epochs=40.0, learning_rate=2e-2)
    summary = run_quietly(run, report=lines.append)
    losses = [figures["valid_loss"] for figures in read_json(tmp_path / "run" / "history.json")]
    best = int(np.argmin(losses))
    assert len(losses) == best + 3 < 40 and summary["best_round"] == best + 1
    assert "stopped: no better loss in 2 validations" in lines
    assert summary["valid"]["loss"] == pytest.approx(losses[best], abs=1e-6)


def test_steps_and_the_recipe_are_told(tiny_files: TinyFiles, tmp_path: Path) -> None:
    lines: list[str] = []
    run = tiny_run(tiny_files, tmp_path / "run", steps=5, validate_every=5, recipe="cola", precision="mixed_float16")
    run_quietly(run, report=lines.append)
    assert [figures["step"] for figures in read_json(tmp_path / "run" / "history.json")] == [5]
    (told,) = [line for line in lines if line.startswith("recipe cola: ")]
    assert "--learning-rate 0.005, --batch-size 8, --steps 5" in told
    assert any(line.startswith("note: encoder and head begin with random weights") for line in lines)


def test_xla_compiles_few_lengths(tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()
    fit = finetune_rounds.training_dataset

    def spied(*args: Any, **kwargs: Any) -> Any:
        seen.update(inputs["token_ids"].shape[1] for inputs, _ in fit(*args, **kwargs).take(16).as_numpy_iterator())
        return fit(*args, **kwargs)

    monkeypatch.setattr(finetune_rounds, "training_dataset", spied)
    run_quietly(tiny_run(tiny_files, tmp_path / "run", jit=True, epochs=1.0))
    assert seen <= {16, 24, 32} and len(seen) > 1
    assert np.isfinite(read_json(tmp_path / "run" / "history.json")[0]["loss"])


def test_a_full_disk_loses_nothing(tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the third round is saved: said so, and the same command goes on to the same end."""
    run, work, calls = tiny_run(tiny_files, tmp_path / "run", epochs=4.0), tmp_path / "run.training", []
    real = finetune_rounds.save_state

    def full(path: Path, *args: Any) -> None:
        calls.append(path)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        real(path, *args)

    monkeypatch.setattr(finetune_rounds, "save_state", full)
    with pytest.raises(InputError, match=r"cannot save round 3 \(.*No space left.*\); make room .* after round 2"):
        run_quietly(run)
    assert {path.name for path in work.glob("state*")} == {"state.safetensors", "state.before.safetensors"}
    assert [path for path in work.glob("best_*") if (path / "weights.safetensors").exists()]
    monkeypatch.undo()
    run_quietly(run)
    run_quietly(tiny_run(tiny_files, tmp_path / "whole", epochs=4.0))
    assert_same_run(tmp_path / "run", tmp_path / "whole")
