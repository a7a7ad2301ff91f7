"""`albert_tf.training.finetune`: it learns, repeats, resumes to the bit, and says what is wrong before it starts."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file
from tiny_data import (
    PulledPlug,
    TinyFiles,
    pair_rows,
    read_json,
    run_quietly,
    separable_rows,
    tiny_run,
    write_table,
)

from albert_tf.data.tables import read_examples
from albert_tf.errors import InputError
from albert_tf.evaluation.evaluate import evaluate
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.training import finetune, finetune_rounds
from albert_tf.training.task_runs import ClassificationRun

# === A finished run ===


def test_it_learns(finished_run: Path, tiny_files: TinyFiles) -> None:
    model = AlbertTextClassifier.from_pretrained(finished_run)
    for file, bound in ((tiny_files.train, 0.9), (tiny_files.dev, 0.8)):
        metrics = evaluate(model, read_examples(file), source=str(file))
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
        "report.html",
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
    assert read_json(finished_run / "task.json")["settings"] == {"labels": ["cold", "warm"], "classifier_dropout": 0.1}
    assert read_json(finished_run / "tokenizer.json")["max_length"] == 32
    assert read_json(finished_run / "config.json")["vocabulary_size"] == 50
    assert read_json(finished_run / "config.json")["hidden_dropout"] == 0.05
    assert ClassificationRun.read(finished_run / "run.json") == tiny_run(tiny_files, finished_run)
    assert any(path.name.startswith("events.out.tfevents") for path in (finished_run / "tensorboard").iterdir())
    for picture in ("curves.png", "confusion_matrix.png"):
        assert (finished_run / picture).read_bytes().startswith(b"\x89PNG")


def test_the_metrics_are_those_of_the_saved_weights_on_the_dev_file(finished_run: Path, tiny_files: TinyFiles) -> None:
    model = AlbertTextClassifier.from_pretrained(finished_run)
    measured = evaluate(model, read_examples(tiny_files.dev), source="dev")
    summary = read_json(finished_run / "metrics.json")
    assert summary["train_examples"] == 64
    assert summary["parameters"] == sum(w.size for w in load_file(finished_run / "weights.safetensors").values())
    assert summary["valid"].keys() == measured.keys()
    for name, value in measured.items():
        expected = pytest.approx(value, abs=1e-6) if name == "loss" else value  # other batches, other rounding
        assert summary["valid"][name] == expected


def test_the_kept_weights_are_those_of_the_best_round(finished_run: Path) -> None:
    history, summary = read_json(finished_run / "history.json"), read_json(finished_run / "metrics.json")
    accuracies = [figures["valid_accuracy"] for figures in history]
    best = accuracies.index(max(accuracies))
    assert 0 < best < len(history) - 1  # neither the first nor the last: the choice is put to the test
    assert summary["best_round"] == best + 1
    assert summary["valid"]["accuracy"] == accuracies[best]
    assert summary["valid"]["loss"] == pytest.approx(history[best]["valid_loss"], abs=1e-6)


def test_each_rounds_figures(finished_run: Path) -> None:
    history = read_json(finished_run / "history.json")
    assert [figures["step"] for figures in history] == [8, 16, 24, 32, 40, 48]
    assert [figures["learning_rate"] for figures in history] == pytest.approx(
        [5e-3 * (1 - step / 48) for step in (8, 16, 24, 32, 40)] + [0], rel=1e-6, abs=1e-9
    )
    for figures in history:
        assert figures.keys() == {
            *("loss", "accuracy", "step", "learning_rate", "seconds", "examples_per_second"),
            *("valid_accuracy", "valid_loss", "valid_f1", "valid_macro_f1", "valid_matthews_correlation"),
        }
        assert all(math.isfinite(value) for value in figures.values())
    assert history[-1]["loss"] < 0.5 * history[0]["loss"]


# === Settings ===


def test_existing_out_is_refused_before_anything_is_read_json(finished_run: Path, tiny_files: TinyFiles) -> None:
    before = sorted(path.stat().st_mtime_ns for path in finished_run.iterdir())
    with pytest.raises(InputError, match="finished exists already"):
        run_quietly(tiny_run(tiny_files, finished_run, train="no such file"))
    assert sorted(path.stat().st_mtime_ns for path in finished_run.iterdir()) == before


def test_the_seed_decides(finished_run: Path, tiny_files: TinyFiles, tmp_path: Path) -> None:
    """The same one gives the same numbers: see the interrupted run. Another one gives others."""
    run_quietly(tiny_run(tiny_files, tmp_path / "run", seed=1))
    for first, other in zip(
        *(read_json(folder / "history.json") for folder in (finished_run, tmp_path / "run")), strict=True
    ):
        assert first["loss"] != other["loss"]


def test_without_a_validation_file_the_last_weights_are_kept(tiny_files: TinyFiles, tmp_path: Path) -> None:
    """And --overwrite replaces a run folder, but no other."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "sea.jpg").write_bytes(b"sea")
    run = tiny_run(tiny_files, tmp_path / "run", valid=None, epochs=2.0)
    with pytest.raises(InputError, match="not a run folder"):
        run_quietly(run, overwrite=True)
    (tmp_path / "run" / "sea.jpg").rename(tmp_path / "run" / "run.json")
    summary = run_quietly(run, overwrite=True)
    assert summary == read_json(tmp_path / "run" / "metrics.json")
    assert summary["best_round"] == 2 and summary["valid"] == {}
    assert not (tmp_path / "run" / "confusion_matrix.png").exists() and (tmp_path / "run" / "curves.png").exists()
    assert AlbertTextClassifier.from_pretrained(tmp_path / "run").classify(["snow"])


def test_as_many_updates_as_the_schedule_has_steps_and_batches_of_like_length(
    tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes that do not divide: 61 examples in eights (8 steps), 2.5 epochs (20 steps), a validation every 6."""
    optimizers, batches = [], []

    class Spy(finetune_rounds.AdamW):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            optimizers.append(self)

    def spied(*args: Any, **kwargs: Any) -> Any:
        batches.extend(
            inputs["padding_mask"].sum(axis=1).tolist()
            for inputs, _ in finetune_dataset(*args, **kwargs).take(8).as_numpy_iterator()
        )
        return finetune_dataset(*args, **kwargs)

    finetune_dataset = finetune_rounds.training_dataset
    monkeypatch.setattr(finetune_rounds, "AdamW", Spy)
    monkeypatch.setattr(finetune_rounds, "training_dataset", spied)
    train = write_table(tmp_path / "train.tsv", separable_rows(61))
    run_quietly(tiny_run(tiny_files, tmp_path / "run", train=str(train), epochs=2.5, validate_every=6))
    (optimizer,) = optimizers
    history = read_json(tmp_path / "run" / "history.json")
    schedule = keras.optimizers.schedules.serialize(optimizer._learning_rate)["config"]
    assert int(optimizer.iterations) == schedule["total_steps"] == history[-1]["step"] == 20
    assert [figures["step"] for figures in history] == [6, 12, 18, 20]
    assert schedule["warmup_steps"] == 2 and schedule["peak"] == 5e-3
    assert history[-1]["learning_rate"] == pytest.approx(0, abs=1e-9)
    spreads = [max(lengths) - min(lengths) for lengths in batches]
    longest = [max(lengths) for lengths in batches]
    assert sorted(map(len, batches)) == [5] + [8] * 7
    assert len(set(longest)) >= 4 and np.mean(spreads) <= 5 and max(longest) - min(longest) >= 8


def test_rematerialization_changes_memory_only(finished_run: Path, tiny_files: TinyFiles, tmp_path: Path) -> None:
    """Dropout included: the same masks in both passes, or the second round's loss would be another."""
    run_quietly(tiny_run(tiny_files, tmp_path / "run", rematerialize=True))
    ours, theirs = (read_json(folder / "history.json") for folder in (tmp_path / "run", finished_run))
    assert [f["loss"] for f in ours[:3]] == pytest.approx([f["loss"] for f in theirs[:3]], rel=1e-3)
    assert read_json(tmp_path / "run" / "run.json")["rematerialize"] is True


def test_mixed_precision_learns_too(tiny_files: TinyFiles, tmp_path: Path) -> None:
    """The saved weights are float32 and the metrics those of float32 arithmetic."""
    summary = run_quietly(tiny_run(tiny_files, tmp_path / "run", precision="mixed_bfloat16"))
    assert summary["valid"]["accuracy"] >= 0.9
    assert {w.dtype.name for w in load_file(tmp_path / "run" / "weights.safetensors").values()} == {"float32"}
    model = AlbertTextClassifier.from_pretrained(tmp_path / "run")
    examples = read_examples(tiny_files.dev)
    assert evaluate(model, examples, source="dev")["loss"] == pytest.approx(summary["valid"]["loss"], abs=1e-6)


def encoded_by(
    run: ClassificationRun, monkeypatch: pytest.MonkeyPatch
) -> tuple[AlbertTextClassifier, finetune_rounds.TrainingRows, list[str]]:
    """What `run` would train: the model, the examples and the lines reported."""
    seen: list[Any] = []

    def instead(run: ClassificationRun, model: Any, train: Any, *rest: Any) -> None:
        seen.extend([model, train])
        raise PulledPlug

    lines: list[str] = []
    monkeypatch.setattr(finetune, "train_rounds", instead)
    with pytest.raises(PulledPlug):
        run_quietly(run, report=lines.append)
    return seen[0], seen[1], lines


def test_pairs(tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pair_rows(32)
    train = write_table(tmp_path / "train.tsv", rows, ("sentence1", "sentence2", "label"))
    run = tiny_run(tiny_files, tmp_path / "run", train=str(train), valid=str(train))
    model, data, _ = encoded_by(run, monkeypatch)
    assert model.labels == ("other", "same")
    assert all(set(segment_ids) == {0, 1} for _, segment_ids in data.rows)
    assert data.rows[3] == model.required_tokenizer.encode(*rows[3][:2])


def test_columns_by_name(tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = write_table(tmp_path / "train.tsv", [("x", "the ice", "a"), ("y", "fire", "b")], ("id", "said", "kind"))
    columns = {"text_column": "said", "label_column": "kind", "pair_column": "id"}
    run = tiny_run(tiny_files, tmp_path / "run", train=str(train), valid=None, **columns)
    model, data, _ = encoded_by(run, monkeypatch)
    assert data.rows == [model.required_tokenizer.encode(*texts) for texts in (("the ice", "x"), ("fire", "y"))]
    assert model.labels == ("a", "b") and data.targets == {"label": [0, 1]}


def test_longer_texts_are_cut_to_what_the_model_takes(
    tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = write_table(tmp_path / "train.tsv", [("snow " * 50, "cold"), ("fire", "warm")])
    for asked, length in ((10, 10), (512, 32)):  # the shape has 32 positions
        run = tiny_run(tiny_files, tmp_path / "run", train=str(train), valid=None, max_length=asked)
        model, data, _ = encoded_by(run, monkeypatch)
        assert len(data.rows[0][0]) == length == model.required_tokenizer.max_length


def test_a_label_file_sets_the_order_and_the_dev_file_may_lack_labels(tiny_files: TinyFiles, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("warm\nmild\ncold\n")
    dev = write_table(tmp_path / "dev.tsv", [row for row in separable_rows(8) if row[1] == "cold"])
    run = tiny_run(tiny_files, tmp_path / "run", valid=str(dev), label_file=str(tmp_path / "labels.txt"), epochs=0.5)
    summary = run_quietly(run)
    assert summary["valid"]["support"] == {"warm": 0, "mild": 0, "cold": 4}
    assert AlbertTextClassifier.from_pretrained(tmp_path / "run").labels == ("warm", "mild", "cold")
    write_table(dev, [("the rain", "wet"), ("the snow", "cold")])
    with pytest.raises(InputError, match=r"dev.tsv, row 1 \('the rain'\) has the label 'wet'; .* warm, mild, cold"):
        run_quietly(dataclasses.replace(run, out=str(tmp_path / "other")))


# === A checkpoint ===


def test_from_a_finished_run(
    finished_run: Path, tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its classifier is kept, with another dropout too, where the labels are its own."""
    theirs = load_file(finished_run / "weights.safetensors")
    changes: dict[str, Any] = {"source": str(finished_run), "from_scratch": None, "tokenizer": None}
    run = tiny_run(tiny_files, tmp_path / "run", classifier_dropout=0.0, attention_dropout=0.2, **changes)
    model, _, lines = encoded_by(run, monkeypatch)
    assert f"encoder from {finished_run}, and its head too" in lines
    assert (model.backbone.config.hidden_dropout, model.backbone.config.attention_dropout) == (0.05, 0.2)
    for name, variable in model.named_weights().items():
        np.testing.assert_array_equal(variable, theirs[name], err_msg=name)
    other = write_table(tmp_path / "train.tsv", [(text, label + "er") for text, label in separable_rows(8)])
    model, _, lines = encoded_by(dataclasses.replace(run, train=str(other), valid=None), monkeypatch)
    assert f"encoder from {finished_run}, new head" in lines
    assert model.labels == ("colder", "warmer") and model.head_is_new


def test_a_loss_that_is_no_number(tiny_files: TinyFiles, tmp_path: Path) -> None:
    run = tiny_run(tiny_files, tmp_path / "run", learning_rate=1e38, warmup=0.0, clip_norm=0.0)
    with pytest.raises(InputError, match=r"at step [1-8]: start again \(--overwrite\) with a lower --learning-rate"):
        run_quietly(run)
    assert not (tmp_path / "run").exists() and not (tmp_path / "run.training" / "state.safetensors").exists()


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
        run_quietly(tiny_run(tiny_files, tmp_path / "run", **fields))
    assert not (tmp_path / "run").exists() and not (tmp_path / "run.training").exists()
