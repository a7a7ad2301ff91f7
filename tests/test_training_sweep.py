"""`albert_tf.training.sweep`: several runs, each as it would be alone; what is interrupted goes on; the best is the best."""

import dataclasses
import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import albert_tf, assert_refused
from rich.console import Console
from tiny_data import PulledPlug, TinyFiles, flags, pull_plug, read_json, run_quietly, tiny_run

from albert_tf.errors import InputError
from albert_tf.training import sweep
from albert_tf.training.checkpoints import UnsavedError
from albert_tf.training.sweep import Sweep, parse_sweep, run_sweep, summary_table

QUIET: Any = {"report": lambda line: None}


def short_run(files: TinyFiles, out: Path, **changes: Any) -> Any:
    return tiny_run(files, out, epochs=1.0, **changes)


def test_seeds(tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the second run and begun again: the first is not done twice, and each is what it would be alone."""
    run = short_run(tiny_files, tmp_path / "runs")
    seeds = parse_sweep(run, "3,1,2", [])
    monkeypatch.setattr(sweep, "finetune", pull_plug(sweep.finetune, 2))
    with pytest.raises(PulledPlug):
        run_sweep(run, seeds, **QUIET)
    monkeypatch.undo()
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["seed_3", "sweep.json"]
    first = (tmp_path / "runs" / "seed_3" / "metrics.json").stat().st_mtime_ns
    with pytest.raises(InputError, match="unfinished runs with other settings"):
        run_sweep(run, Sweep((3, 1), {}), **QUIET)
    summary = run_sweep(run, seeds, **QUIET)
    assert (tmp_path / "runs" / "seed_3" / "metrics.json").stat().st_mtime_ns == first
    assert summary == read_json(tmp_path / "runs" / "summary.json")

    alone = run_quietly(dataclasses.replace(run, out=str(tmp_path / "alone"), seed=1))
    assert read_json(tmp_path / "runs" / "seed_1" / "metrics.json") == alone
    (row,) = summary["rows"]
    losses = [read_json(tmp_path / "runs" / f"seed_{seed}" / "metrics.json")["valid"]["loss"] for seed in (3, 1, 2)]
    assert [figures["loss"] for figures in row["runs"].values()] == losses
    assert row["mean"]["loss"] == pytest.approx(np.mean(losses)) and len(set(losses)) == 3
    assert row["deviation"]["loss"] == pytest.approx(np.sqrt(((losses - np.mean(losses)) ** 2).sum() / 2))
    accuracies = {folder: figures["accuracy"] for folder, figures in row["runs"].items()}
    assert accuracies[summary["best"]] == max(accuracies.values())
    with pytest.raises(InputError, match="runs exists already"):
        run_sweep(run, seeds, **QUIET)


def test_a_grid(tiny_files: TinyFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the command line, with a rate that learns nothing and one that diverges."""
    run = short_run(tiny_files, tmp_path / "runs", clip_norm=0.0, warmup=0.0, best_metric="loss")
    words = ["--sweep", "learning-rate=1e-9,5e-3,1e38", "batch_size=8", "--json", tmp_path / "summary.json"]
    done = albert_tf(capsys)(*flags(run), *words)
    assert done.code == 0, done.err
    summary = read_json(tmp_path / "summary.json")
    assert [row["settings"] for row in summary["rows"]] == [
        {"learning_rate": rate, "batch_size": 8} for rate in (5e-3, 1e-9, 1e38)
    ]
    assert [row["diverged"] for row in summary["rows"]] == [0, 0, 1]
    assert summary["best"] == "learning_rate=0.005,batch_size=8/seed_0"
    assert f"best run: {tmp_path / 'runs' / summary['best']}" in done.out and "diverged: " in done.out
    saved = read_json(tmp_path / "runs" / summary["best"] / "run.json")
    assert (saved["learning_rate"], saved["batch_size"], saved["seed"]) == (5e-3, 8, 0)
    assert not Path(saved["out"]).with_name("seed_0.training").exists()


def test_runs_that_cannot_be_made(tiny_files: TinyFiles, tmp_path: Path) -> None:
    """They do not keep the others from being made, and are told; with a full disk there is no going on."""
    run, lines = short_run(tiny_files, tmp_path / "runs"), []
    grid = parse_sweep(run, None, ["batch_tokens=3,64"])
    summary = run_sweep(run, grid, report=lines.append)
    assert summary["best"] == "batch_tokens=64/seed_0"
    good, bad = summary["rows"]
    assert good["failures"] == {} and list(bad["failures"]) == ["batch_tokens=3/seed_0"] and bad["diverged"] == 0
    assert (
        "--batch-tokens: expected at least the tokens of the longest example"
        in bad["failures"]["batch_tokens=3/seed_0"]
    )
    assert any(line.startswith("failed: --batch-tokens: expected") for line in lines)
    assert list(map(str, summary_table(summary, "title").columns[1].cells)) == ["1", "0, 1 failed"]
    run = short_run(tiny_files, tmp_path / "none", train=str(tmp_path / "absent.tsv"))
    with pytest.raises(InputError, match=r"no run came to an end, the first because: cannot read .*absent\.tsv"):
        run_sweep(run, Sweep((1, 2), {}), **QUIET)


def test_a_full_disk_ends_a_sweep(tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        raise UnsavedError("no room")

    run = short_run(tiny_files, tmp_path / "runs")
    monkeypatch.setattr(sweep, "finetune", full)
    with pytest.raises(UnsavedError, match="no room"):
        run_sweep(run, Sweep((1, 2), {}), **QUIET)
    assert not (tmp_path / "runs" / "summary.json").exists()


def test_the_table() -> None:
    rows = [
        {"settings": {"learning_rate": 0.5}, "runs": {"a": {}, "b": {}}, "mean": {"loss": 1.0, "f1": 0.5}}
        | {"deviation": {"f1": 0.125}, "diverged": 0, "failures": {}},
        {"settings": {"learning_rate": 2.0}, "runs": {}, "mean": {}, "deviation": {}}
        | {"diverged": 2, "failures": {"c": "", "d": "", "e": ""}},
    ]
    text = io.StringIO()
    console = Console(width=100, file=text)
    console.print(summary_table({"metric": "f1", "rows": rows}, "title"))
    lines = [line.replace("│", " ").split() for line in text.getvalue().splitlines()]
    assert ["0.5", "2", "0.5000", "±", "0.1250", "1.0000"] in lines
    assert ["2.0", "0,", "2", "diverged,", "1", "failed", "-", "-"] in lines


@pytest.mark.parametrize(
    ("changes", "seeds", "values", "expected"),
    [
        ({"valid": None}, "1,2", [], "--seeds and --sweep compare runs by --valid"),
        ({}, "1,x", [], "--seeds: expected different whole numbers such as 1,2,3, got '1,x'"),
        ({}, "1,01", [], "--seeds: expected different"),
        ({}, "", [], "--seeds: expected different"),
        (
            {},
            None,
            ["learning_rate"],
            "--sweep: expected FIELD=VALUE,VALUE with a field among train, .*'learning_rate'",
        ),
        ({}, None, ["out=a,b"], "--sweep: expected FIELD"),
        ({}, None, ["momentum=1"], "--sweep: expected FIELD"),
        ({}, None, ["batch_size=8,x"], "--sweep batch_size: expected values of the kind of --batch-size"),
        ({}, None, ["batch_size=8,8"], "a value comes twice"),
        ({}, None, ["batch_size=8", "batch-size=16"], "batch_size is named twice"),
        ({}, None, ["batch_size=8,0"], "--batch-size: expected a number at least 1, got 0"),
        ({}, None, ["rematerialize=yes"], "expected true or false"),
    ],
    ids=str,
)
def test_what_cannot_be_swept(
    changes: dict[str, Any], seeds: str | None, values: list[str], expected: str, tiny_files: TinyFiles, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=expected):
        parse_sweep(tiny_run(tiny_files, tmp_path / "runs", **changes), seeds, values)


def test_values_have_the_kind_of_their_field(tiny_files: TinyFiles, tmp_path: Path) -> None:
    texts = ["learning_rate=1e-5,2e-5", "lora_rank=4,8", "rematerialize=true,false", "precision=float32"]
    parsed = parse_sweep(tiny_run(tiny_files, tmp_path / "runs"), None, texts)
    assert parsed.values == {
        "learning_rate": (1e-5, 2e-5),
        "lora_rank": (4, 8),
        "rematerialize": (True, False),
        "precision": ("float32",),
    }
    assert len(parsed.combinations()) == 8 and parsed.seeds == (0,)


def test_other_folders_are_left_alone(
    finished_run: Path, tiny_files: TinyFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "photos"
    out.mkdir()
    (out / "sea.jpg").write_bytes(b"sea")
    run = tiny_run(tiny_files, out)
    for words in ([], ["--overwrite"]):
        assert_refused(albert_tf(capsys)(*flags(run), "--seeds", "1,2", *words), str(out))
    shutil.copytree(finished_run, tmp_path / "run")  # a single run is no folder of several
    assert_refused(
        albert_tf(capsys)(*flags(tiny_run(tiny_files, tmp_path / "run")), "--seeds", "1", "--overwrite"),
        "not a folder of",
    )
