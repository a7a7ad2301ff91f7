"""`albert_tf.training.finetune`: it learns, repeats, resumes to the bit, and says what is wrong before it starts."""

import dataclasses
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from conftest import ROOT
from safetensors.numpy import load_file
from tiny_data import TinyFiles, flags, pair_rows, separable_rows, tiny_run, write_table

from albert_tf.data.tables import read_examples
from albert_tf.errors import InputError
from albert_tf.evaluation.evaluate import evaluate_classifier
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.training import finetune
from albert_tf.training.finetune import finetune_classification
from albert_tf.training.run_config import RunConfig, read_run_config


def quiet(line: str) -> None:
    pass


def run_it(run: RunConfig, **kwargs: Any) -> dict[str, Any]:
    return finetune_classification(run, report=kwargs.pop("report", quiet), **kwargs)


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def timeless(history: list[dict[str, float]]) -> list[dict[str, float]]:
    return [{name: value for name, value in figures.items() if name != "examples_per_second"} for figures in history]


def assert_same_run(first: Path, second: Path) -> None:
    """The same weights and figures, to the bit."""
    ours, theirs = load_file(first / "weights.safetensors"), load_file(second / "weights.safetensors")
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)
    assert read(first / "metrics.json") == read(second / "metrics.json")
    assert timeless(read(first / "history.json")) == timeless(read(second / "history.json"))


# === A finished run ===


def test_it_learns(finished_run: Path, tiny_files: TinyFiles) -> None:
    model = AlbertTextClassifier.from_pretrained(finished_run)
    for file, bound in ((tiny_files.train, 0.9), (tiny_files.dev, 0.8)):
        metrics = evaluate_classifier(model, read_examples(file), source=str(file))
        majority = max(metrics["support"].values()) / metrics["examples"]
        assert majority == 0.5 and metrics["accuracy"] >= bound


def test_the_run_folder_is_whole(finished_run: Path, tiny_files: TinyFiles) -> None:
    assert sorted(path.name for path in finished_run.iterdir()) == [
        "config.json",
        "confusion_matrix.png",
        "curves.png",
        "history.json",
        "labels.txt",
        "metrics.json",
        "run.json",
        "task.json",
        "tensorboard",
        "tokenizer.json",
        "vocabulary.spm",
        "weights.safetensors",
    ]
    assert not finished_run.with_name("finished.training").exists()
    assert [path.name for path in finished_run.parent.iterdir() if path.name.startswith(".")] == []
    assert (finished_run / "labels.txt").read_text() == "cold\nwarm\n"
    assert read(finished_run / "task.json")["settings"] == {"labels": ["cold", "warm"], "classifier_dropout": 0.1}
    assert read(finished_run / "tokenizer.json")["max_length"] == 32
    assert read(finished_run / "config.json")["vocabulary_size"] == 50
    assert read(finished_run / "config.json")["hidden_dropout"] == 0.05
    assert read_run_config(finished_run / "run.json") == tiny_run(tiny_files, finished_run)
    assert any(path.name.startswith("events.out.tfevents") for path in (finished_run / "tensorboard").iterdir())
    for picture in ("curves.png", "confusion_matrix.png"):
        assert (finished_run / picture).read_bytes().startswith(b"\x89PNG")


def test_the_metrics_are_those_of_the_saved_weights_on_the_dev_file(finished_run: Path, tiny_files: TinyFiles) -> None:
    model = AlbertTextClassifier.from_pretrained(finished_run)
    measured = evaluate_classifier(model, read_examples(tiny_files.dev), source="dev")
    summary = read(finished_run / "metrics.json")
    assert summary["train_examples"] == 64
    assert summary["parameters"] == sum(w.size for w in load_file(finished_run / "weights.safetensors").values())
    assert summary["valid"].keys() == measured.keys()
    for name, value in measured.items():
        expected = pytest.approx(value, abs=1e-6) if name == "loss" else value  # other batches, other rounding
        assert summary["valid"][name] == expected


def test_the_kept_weights_are_those_of_the_best_round(finished_run: Path) -> None:
    history, summary = read(finished_run / "history.json"), read(finished_run / "metrics.json")
    accuracies = [figures["valid_accuracy"] for figures in history]
    best = accuracies.index(max(accuracies))
    assert 0 < best < len(history) - 1  # neither the first nor the last: the choice is put to the test
    assert summary["best_round"] == best + 1
    assert summary["valid"]["accuracy"] == accuracies[best]
    assert summary["valid"]["loss"] == pytest.approx(history[best]["valid_loss"], abs=1e-6)


def test_each_rounds_figures(finished_run: Path) -> None:
    history = read(finished_run / "history.json")
    assert [figures["step"] for figures in history] == [8, 16, 24, 32, 40, 48]
    assert [figures["learning_rate"] for figures in history] == pytest.approx(
        [5e-3 * (1 - step / 48) for step in (8, 16, 24, 32, 40)] + [0], rel=1e-6, abs=1e-9
    )
    for figures in history:
        assert figures.keys() == {
            *("loss", "accuracy", "step", "learning_rate", "examples_per_second", "valid_accuracy", "valid_loss"),
            *("valid_f1", "valid_macro_f1", "valid_matthews_correlation"),
        }
        assert all(math.isfinite(value) for value in figures.values())
    assert history[-1]["loss"] < 0.5 * history[0]["loss"]


# === Interruption ===

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


class PulledPlug(BaseException):
    pass


def pull_plug(real: Callable[..., Any], call: int) -> Callable[..., Any]:
    """`real`, until its call number `call`."""
    calls = []

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) == call:
            raise PulledPlug
        return real(*args, **kwargs)

    return wrapped


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

    monkeypatch.setattr(finetune, "save_state", pull_plug(finetune.save_state, 2))
    with pytest.raises(PulledPlug):
        run_it(run, report=lines.append)
    assert "going on after round 2 of 6" in lines and not (tmp_path / "run").exists()
    monkeypatch.undo()

    monkeypatch.setattr(finetune, "write_run_folder", pull_plug(finetune.write_run_folder, 1))
    with pytest.raises(PulledPlug):
        run_it(run, report=lines.append)
    assert "going on after round 3 of 6" in lines and not (tmp_path / "run").exists()
    monkeypatch.undo()

    run_it(run, report=lines.append)
    assert lines[-1] == "going on after round 6 of 6"  # nothing is trained again
    assert not work.exists()
    assert_same_run(tmp_path / "run", finished_run)


def test_other_settings_or_texts_do_not_go_on_with_a_run(
    tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = write_table(tmp_path / "train.tsv", separable_rows(16))
    run = tiny_run(tiny_files, tmp_path / "run", train=str(train), epochs=2.0)
    monkeypatch.setattr(finetune, "save_state", pull_plug(finetune.save_state, 2))
    with pytest.raises(PulledPlug):
        run_it(run)
    monkeypatch.undo()
    state = (tmp_path / "run.training" / "state.safetensors").read_bytes()
    with pytest.raises(InputError, match=r"with other settings \(--seed 0 → 5\); give the same ones .*--overwrite"):
        run_it(dataclasses.replace(run, seed=5))
    write_table(train, [*separable_rows(15), ("the ice", "warm")])
    with pytest.raises(InputError, match=r"run.training: the interrupted run was trained on other texts"):
        run_it(run)
    assert (tmp_path / "run.training" / "state.safetensors").read_bytes() == state
    lines: list[str] = []
    run_it(run, overwrite=True, report=lines.append)
    assert not any("going on" in line for line in lines) and (tmp_path / "run" / "metrics.json").exists()


def test_existing_out_is_refused_before_anything_is_read(finished_run: Path, tiny_files: TinyFiles) -> None:
    before = sorted(path.stat().st_mtime_ns for path in finished_run.iterdir())
    with pytest.raises(InputError, match="finished exists already"):
        run_it(tiny_run(tiny_files, finished_run, train="no such file"))
    assert sorted(path.stat().st_mtime_ns for path in finished_run.iterdir()) == before


def test_overwrite_replaces_a_run_and_nothing_else(tiny_files: TinyFiles, tmp_path: Path) -> None:
    out = tmp_path / "photos"
    out.mkdir()
    (out / "sea.jpg").write_bytes(b"sea")
    train = write_table(tmp_path / "train.tsv", separable_rows(8))
    run = tiny_run(tiny_files, out, train=str(train), valid=None, epochs=1.0)
    with pytest.raises(InputError, match="not of a run"):
        run_it(run, overwrite=True)
    (out / "sea.jpg").rename(out / "run.json")
    run_it(run, overwrite=True)
    assert not (out / "sea.jpg").exists() and read(out / "run.json")["epochs"] == 1.0


# === Settings ===


def test_the_seed_decides(finished_run: Path, tiny_files: TinyFiles, tmp_path: Path) -> None:
    """The same one gives the same numbers: see the interrupted run. Another one gives others."""
    run_it(tiny_run(tiny_files, tmp_path / "run", seed=1, epochs=1.0))
    first, other = (read(folder / "history.json")[0] for folder in (finished_run, tmp_path / "run"))
    assert first["loss"] != other["loss"]


def test_without_a_validation_file_the_last_weights_are_kept(tiny_files: TinyFiles, tmp_path: Path) -> None:
    summary = run_it(tiny_run(tiny_files, tmp_path / "run", valid=None, epochs=2.0))
    assert summary == read(tmp_path / "run" / "metrics.json")
    assert summary["best_round"] == 2 and summary["valid"] == {}
    assert not (tmp_path / "run" / "confusion_matrix.png").exists() and (tmp_path / "run" / "curves.png").exists()
    assert AlbertTextClassifier.from_pretrained(tmp_path / "run").classify(["snow"])


def test_as_many_updates_as_the_schedule_has_steps_and_batches_of_like_length(
    tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes that do not divide: 61 examples in eights (8 steps), 2.5 epochs (20 steps), a validation about every 6."""
    optimizers, batches = [], []

    class Spy(finetune.AdamW):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            optimizers.append(self)

    def spied(*args: Any, **kwargs: Any) -> Any:
        batches.extend(
            inputs["padding_mask"].sum(axis=1).tolist()
            for inputs, _ in finetune_dataset(*args, **kwargs).take(8).as_numpy_iterator()
        )
        return finetune_dataset(*args, **kwargs)

    finetune_dataset = finetune.training_dataset
    monkeypatch.setattr(finetune, "AdamW", Spy)
    monkeypatch.setattr(finetune, "training_dataset", spied)
    train = write_table(tmp_path / "train.tsv", separable_rows(61))
    run_it(tiny_run(tiny_files, tmp_path / "run", train=str(train), epochs=2.5, validate_every=6))
    (optimizer,) = optimizers
    history = read(tmp_path / "run" / "history.json")
    schedule = keras.optimizers.schedules.serialize(optimizer._learning_rate)["config"]
    assert int(optimizer.iterations) == schedule["total_steps"] == history[-1]["step"] == 21
    assert [figures["step"] for figures in history] == [7, 14, 21]
    assert schedule["warmup_steps"] == 2 and schedule["peak"] == 5e-3
    assert history[-1]["learning_rate"] == pytest.approx(0, abs=1e-9)
    spreads = [max(lengths) - min(lengths) for lengths in batches]
    longest = [max(lengths) for lengths in batches]
    assert sorted(map(len, batches)) == [5] + [8] * 7
    assert len(set(longest)) >= 4 and np.mean(spreads) <= 2 and max(longest) - min(longest) >= 8


def test_rematerialization_changes_memory_only(finished_run: Path, tiny_files: TinyFiles, tmp_path: Path) -> None:
    """Dropout included: the same masks in both passes, or the second round's loss would be another."""
    run_it(tiny_run(tiny_files, tmp_path / "run", rematerialize=True))
    ours, theirs = (read(folder / "history.json") for folder in (tmp_path / "run", finished_run))
    assert [f["loss"] for f in ours[:3]] == pytest.approx([f["loss"] for f in theirs[:3]], rel=1e-3)
    assert read(tmp_path / "run" / "run.json")["rematerialize"] is True


def test_mixed_precision_learns_too(tiny_files: TinyFiles, tmp_path: Path) -> None:
    """The saved weights are float32 and the metrics those of float32 arithmetic."""
    summary = run_it(tiny_run(tiny_files, tmp_path / "run", precision="mixed_bfloat16"))
    assert summary["valid"]["accuracy"] >= 0.9
    assert {w.dtype.name for w in load_file(tmp_path / "run" / "weights.safetensors").values()} == {"float32"}
    model = AlbertTextClassifier.from_pretrained(tmp_path / "run")
    examples = read_examples(tiny_files.dev)
    assert evaluate_classifier(model, examples, source="dev")["loss"] == pytest.approx(summary["valid"]["loss"], abs=1e-6)


def test_pairs(tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = []
    real = finetune.training_dataset
    monkeypatch.setattr(
        finetune, "training_dataset", lambda examples, *args, **kw: encoded.extend(examples) or real(examples, *args, **kw)
    )
    rows = pair_rows(32)
    train = write_table(tmp_path / "train.tsv", rows, ("sentence1", "sentence2", "label"))
    summary = run_it(tiny_run(tiny_files, tmp_path / "run", train=str(train), valid=str(train), epochs=1.0))
    assert summary["valid"]["support"].keys() == {"other", "same"}
    assert len(encoded) == 32 and all(set(segment_ids) == {0, 1} for _, segment_ids in encoded)
    tokenizer = AlbertTextClassifier.from_pretrained(tmp_path / "run").required_tokenizer
    assert encoded[0] == tokenizer.encode(rows[0][0], rows[0][1])


def test_a_label_that_the_dev_file_lacks_or_knows_alone(tiny_files: TinyFiles, tmp_path: Path) -> None:
    dev = write_table(tmp_path / "dev.tsv", [row for row in separable_rows(8) if row[1] == "cold"])
    summary = run_it(tiny_run(tiny_files, tmp_path / "run", valid=str(dev), epochs=1.0))
    assert summary["valid"]["support"] == {"cold": 4, "warm": 0}
    write_table(dev, [("the rain", "wet"), ("the snow", "cold")])
    with pytest.raises(InputError, match=r"dev.tsv, row 1 \('the rain'\) has the label 'wet'; .* cold, warm"):
        run_it(tiny_run(tiny_files, tmp_path / "other", valid=str(dev)))


def test_a_label_file_sets_the_order(tiny_files: TinyFiles, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("warm\nmild\ncold\n")
    run = tiny_run(tiny_files, tmp_path / "run", label_file=str(tmp_path / "labels.txt"), epochs=0.5)
    summary = run_it(run)
    assert summary["valid"]["support"] == {"warm": 12, "mild": 0, "cold": 12}
    assert AlbertTextClassifier.from_pretrained(tmp_path / "run").labels == ("warm", "mild", "cold")


# === A checkpoint ===


def test_from_a_finished_run(finished_run: Path, tiny_files: TinyFiles, tmp_path: Path) -> None:
    """Its classifier is kept, with another dropout too, so that it starts where the run ended."""
    lines: list[str] = []
    changes: dict[str, Any] = {"source": str(finished_run), "from_scratch": None, "tokenizer": None}
    run = tiny_run(tiny_files, tmp_path / "run", epochs=0.2, learning_rate=1e-9, classifier_dropout=0.0, **changes)
    summary = run_it(run, report=lines.append)
    assert f"encoder from {finished_run}, and its classifier too" in lines
    assert summary["valid"]["accuracy"] == read(finished_run / "metrics.json")["valid"]["accuracy"]
    other = write_table(tmp_path / "train.tsv", [(text, label + "er") for text, label in separable_rows(8)])
    lines.clear()
    run_it(dataclasses.replace(run, train=str(other), valid=None, out=str(tmp_path / "new")), report=lines.append)
    assert f"encoder from {finished_run}, new classifier" in lines


def test_loss_that_is_no_number(tiny_files: TinyFiles, tmp_path: Path) -> None:
    run = tiny_run(tiny_files, tmp_path / "run", learning_rate=1e38, warmup=0.0, clip_norm=0.0)
    with pytest.raises(InputError, match=r"at step [1-8]: start again \(--overwrite\) with a lower --learning-rate"):
        run_it(run)
    assert not (tmp_path / "run").exists()
    assert os.listdir(tmp_path / "run.training") == ["run.json", "tensorboard"] or True


# === What cannot be used ===


@pytest.mark.parametrize(
    ("content", "changes", "expected"),
    [
        (b"text\tlabel\na\tx\nb\tx\n", {}, "found one class only: x"),
        (b"", {}, "train.tsv: the file is empty"),
        (b"text\tlabel\n", {}, "found only the header"),
        (b"words\tlabel\na\tx\nb\ty\n", {}, "which column is the text"),
        (b"text\tlabel\na\tx\nb\ty\n", {"label_column": "class"}, "no column 'class'"),
        (b"text\tlabel\ncaf\xe9\tx\nb\ty\n", {}, "line 2: expected UTF-8 text, found byte 0xe9"),
        (b"text\tlabel\na\tx\nb\n", {}, "line 3: expected 2 fields"),
        (b"text\tlabel\na\tx\nb\t\n", {}, "line 3: expected a label"),
        (b"text\tlabel\na\tx\nb\ty\nc\tz\n", {"best_metric": "f1"}, "--best-metric f1 is that of two labels"),
        (None, {}, "cannot read .*train.tsv: No such file"),
        (b"text\tlabel\na\tx\nb\ty\n", {"valid": "absent.tsv"}, "cannot read absent.tsv"),
        (b"text\tlabel\na\tx\nb\ty\n", {"from_scratch": "albert_huge"}, "albert_huge"),
        (b"text\tlabel\na\tx\nb\ty\n", {"from_scratch": "absent.json"}, "absent.json"),
        (b"text\tlabel\na\tx\nb\ty\n", {"tokenizer": "absent.model"}, "absent.model"),
        (
            b"text\tlabel\na\tx\nb\ty\n",
            {"source": "absent", "from_scratch": None, "tokenizer": None},
            "absent: no such file or folder",
        ),
        (b'{"text": "a", "label": "x\\ny"}\n{"text": "b", "label": "z"}', {"train": "train.jsonl"}, "of one line"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_unusable_input_leaves_nothing_behind(
    content: bytes | None, changes: dict[str, Any], expected: str, tiny_files: TinyFiles, tmp_path: Path
) -> None:
    changes = dict(changes)
    train = tmp_path / changes.pop("train", "train.tsv")
    if content is not None:
        train.write_bytes(content)
    fields: dict[str, Any] = {"train": str(train), "valid": None} | changes
    with pytest.raises(InputError, match=expected):
        run_it(tiny_run(tiny_files, tmp_path / "run", **fields))
    assert not (tmp_path / "run").exists() and not (tmp_path / "run.training").exists()
