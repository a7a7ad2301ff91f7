"""`albert-tf prune`: a narrower checkpoint that every other command takes, its record, and what is refused."""

import dataclasses
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from command_line import Done, albert_tf, assert_refused
from tiny_data import read_json, write_table
from tiny_exports import BASE, MAX_LENGTH
from tiny_tasks import new_task

from albert_tf.backbone import AlbertBackbone
from albert_tf.conversion.pruning import cut, magnitudes
from albert_tf.data.tables import read_examples
from albert_tf.evaluation.evaluate import evaluate
from albert_tf.presets import load_checkpoint, save_preset
from albert_tf.tasks.pretraining import AlbertPretrainer
from albert_tf.tasks.trained import load_task
from export.quantization import recipe_by_name

MAGNITUDE = ("--importance", "magnitude")
ROWS = [("the old mill", "yes"), ("by the river", "no"), ("the great wheel", "no"), ("they say", "yes")] * 2


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier with random weights, three passes through one block of 4 heads and 64 columns."""
    folder = tmp_path_factory.mktemp("pruning") / "run"
    new_task("classification", labels=["no", "yes"]).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def data(model: Path) -> Path:
    return write_table(model.parent / "texts.tsv", ROWS)


@pytest.fixture(scope="module")
def encoders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pretrained checkpoints, with both heads, by their sharing."""
    folder = tmp_path_factory.mktemp("encoders")
    for sharing in ("all", "none"):
        pretrainer = AlbertPretrainer(AlbertBackbone(dataclasses.replace(BASE, sharing=sharing, num_layers=2)))
        weights = {variable.path: np.asarray(variable) for variable in pretrainer.weights}
        save_preset(folder / sharing, pretrainer.backbone.config, weights, None)
    return {sharing: folder / sharing for sharing in ("all", "none")}


@pytest.fixture(scope="module")
def pruned(model: Path, data: Path) -> Path:
    """2 of 4 heads and half the columns, with everything that can be asked for."""
    from albert_tf.cli.main import main

    out = model.parent / "pruned"
    words = ["prune", model, "--heads", 2, "--intermediate-dim", 0.5, "--data", data, "--valid", data, "--out", out]
    words += ["--keep-shares", "1,0.5", "--each-head", "--examples", 5, "--json", model.parent / "record.json"]
    assert main([str(word) for word in words]) == 0
    return out


def test_the_result_is_a_narrower_task(pruned: Path, model: Path) -> None:
    config = load_checkpoint(pruned).config
    assert config == dataclasses.replace(BASE, num_heads=2, attention_dim=16, intermediate_dim=32)
    record = read_json(pruned / "pruning.json")
    assert read_json(model.parent / "record.json") == record
    (heads,), (columns,) = record["attention"], record["feed_forward"]
    for found, there, count in ((heads, 4, 2), (columns, 64, 32)):
        assert sorted(found["kept"] + found["removed"]) == list(range(there))
        largest = np.argsort(found["importance"])[-count:]
        assert found["kept"] == sorted(largest.tolist())
    whole = load_checkpoint(model)
    kept = dataclasses.replace(
        magnitudes(whole.config, whole.weights).best(2, 32),
        heads=(tuple(heads["kept"]),),
        columns=(tuple(columns["kept"]),),
    )
    _, expected = cut(whole.config, whole.weights, kept)
    found = load_checkpoint(pruned).weights
    assert found.keys() == expected.keys()
    for name, weight in expected.items():
        np.testing.assert_array_equal(found[name], weight)


def test_the_record_says_what_is_there(pruned: Path, model: Path, data: Path) -> None:
    record = read_json(pruned / "pruning.json")
    examples = read_examples(data)
    assert (record["examples"], record["valid_examples"]) == (5, len(ROWS))
    stored_bytes = recipe_by_name("dynamic_int8").stored_bytes
    for name, folder, metrics in (("before", model, "valid_before"), ("after", pruned, "valid")):
        task = load_task(folder)
        assert record[name]["parameters"] == task.count_params()
        sizes = sum(stored_bytes(path, weight.shape) for path, weight in task.named_weights().items())
        assert record[name]["int8_bytes"] == round(sizes)
        assert record[metrics]["loss"] == pytest.approx(evaluate(task, examples, source="texts")["loss"], abs=1e-6)
    # 4 · H · N · D + 2 · S · N · D + 2 · H · I in each of three passes, and E · H.
    tokens = record["tokens"]
    assert record["after"]["multiply_adds_per_token"] == round(
        3 * (4 * 32 * 16 + 2 * tokens * 16 + 2 * 32 * 32) + 16 * 32
    )
    rows = [(row["heads"], row["columns"]) for row in record["sensitivity"]]
    assert rows == [(4, 64), (4, 32), (2, 64), (2, 32)]
    assert record["sensitivity"][0]["accuracy"] == record["valid_before"]["accuracy"]
    assert record["sensitivity"][-1]["accuracy"] == record["valid"]["accuracy"]
    assert np.shape(record["without_head"]) == (1, 4)
    assert read_json(pruned / "metrics.json")["valid"] == record["valid"]
    assert (pruned / "labels.txt").read_text() == "no\nyes\n"
    page = (pruned / "report.html").read_text(encoding="utf-8")
    assert "Sensitivity" in page and f'<data value="{record["after"]["parameters"]}">' in page


def test_other_commands_take_it(pruned: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = albert_tf(capsys)
    words = ("--from", pruned, "--train", data, "--steps", 1, "--out", tmp_path / "tuned", "--max-length", MAX_LENGTH)
    assert command("finetune", "classification", *words).code == 0
    tuned = load_task(tmp_path / "tuned")
    assert (tuned.backbone.config.num_heads, tuned.backbone.config.intermediate_dim) == (2, 32)
    assert not tuned.head_is_new
    # A second pruning counts what is left; a .keras file holds the shape.
    tuned.save(tmp_path / "tuned.keras")
    again = ("--importance", "magnitude", "--heads", 1, "--out", tmp_path / "again")
    assert command("prune", tmp_path / "tuned.keras", *again).code == 0
    assert load_checkpoint(tmp_path / "again").config.attention_dim == 8
    restored = keras.saving.load_model(tmp_path / "tuned.keras")
    ids = np.array([[2, 9, 3]], np.int32)
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    np.testing.assert_array_equal(restored(inputs), tuned(inputs))
    done = command("convert", pruned, tmp_path / "theirs", "--to", "huggingface")
    assert_refused(done, "attention_dim=16 beside hidden_dim=32", "pruning")
    assert not (tmp_path / "theirs").exists()


def test_without_data(encoders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Any checkpoint by magnitude, and heads by name; heads for pretraining stay."""
    command = albert_tf(capsys)
    words = ("--importance", "magnitude", "--keep-heads", "1:0,3", "0:2,1", "--out", tmp_path / "own")
    assert command("prune", encoders["none"], *words).code == 0
    found, whole = load_checkpoint(tmp_path / "own"), load_checkpoint(encoders["none"])
    assert (found.config.num_heads, found.config.intermediate_dim, found.head) == (2, 64, "pretraining")
    kernel = whole.weights["encoder/attention_1/key/kernel"].reshape(32, 4, 8)
    np.testing.assert_array_equal(found.weights["encoder/attention_1/key/kernel"].reshape(32, 2, 8), kernel[:, [0, 3]])
    kernel = whole.weights["encoder/attention_0/output/kernel"].reshape(4, 8, 32)
    np.testing.assert_array_equal(found.weights["encoder/attention_0/output/kernel"].reshape(2, 8, 32), kernel[[1, 2]])
    # Other systems have a width of the feed-forward half of their own.
    assert (
        command("prune", encoders["all"], *MAGNITUDE, "--intermediate-dim", 20, "--out", tmp_path / "columns").code == 0
    )
    assert command("convert", tmp_path / "columns", tmp_path / "theirs", "--to", "huggingface").code == 0
    assert load_checkpoint(tmp_path / "theirs").config.intermediate_dim == 20
    # Tables alone, and nothing written.
    done = command("prune", encoders["all"], "--importance", "magnitude", "--heads", 0.5)
    assert done.code == 0 and "removed" in done.out and "sensitivity" not in done.out
    assert sorted(path.name for path in encoders["all"].parent.iterdir()) == ["all", "none"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--heads", 4, *MAGNITUDE), "--heads: expected 1 to 3, of 4 there are, or a share such as 0.5; got 4"),
        (("--heads", 0, *MAGNITUDE), "--heads: expected 1 to 3"),
        (("--heads", -1, *MAGNITUDE), "--heads: expected 1 to 3"),
        (("--heads", 0.99, *MAGNITUDE), "--heads: expected 1 to 3"),
        (("--intermediate-dim", 65, *MAGNITUDE), "--intermediate-dim: expected 1 to 63, of 64 there are"),
        (("--intermediate-dim", 64, *MAGNITUDE), "--intermediate-dim: expected 1 to 63"),
        (("--heads", 2), "--importance gradient needs labelled texts: give --data FILE, or --importance magnitude"),
        (("--heads", 2, "--data", "x.tsv", *MAGNITUDE), "--data: --importance magnitude looks at the weights alone"),
        (("--heads", 2, "--keep-heads", "1", *MAGNITUDE), "--heads and --keep-heads"),
        (("--keep-heads", "1,4", *MAGNITUDE), "attention block 0 has the heads 0 to 3; expected some of them"),
        (("--keep-heads", "1,1", *MAGNITUDE), "each once, got 1,1"),
        (("--keep-heads", "0,1,2,3", *MAGNITUDE), "--keep-heads: keeps all 4 heads"),
        (("--keep-heads", "one", *MAGNITUDE), "expected numbers such as 0,3,5 or 1:0,3,5; got 'one'"),
        (("--keep-heads", "1:0", *MAGNITUDE), "no attention block 1; there are 1, numbered from 0"),
        (("--keep-heads", "0:1", "0:2", *MAGNITUDE), "attention block 0 is given twice"),
        (MAGNITUDE, "nothing would be removed"),
        (("--heads", 2, "--each-head", *MAGNITUDE), "--each-head and --keep-shares go with --valid FILE"),
        (("--heads", 2, "--label-column", "x", *MAGNITUDE), "--label-column: says how --data and --valid are read"),
        (
            ("--heads", 2, "--glue", "SST-2", "--data", "x", "--negative-column", "y"),
            "--negative-column is for similarity",
        ),
        (("--heads", 2, "--examples", 0, *MAGNITUDE), "--examples: expected at least 1, got 0"),
        (("--heads", 2, "--data", "missing.tsv"), "missing.tsv"),
    ],
)
def test_refusals(
    words: tuple[Any, ...], expected: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_refused(albert_tf(capsys)("prune", model, *words, "--out", tmp_path / "out"), expected)
    assert not (tmp_path / "out").exists()


def test_refusals_of_other_checkpoints(
    encoders: dict[str, Path], data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: Any) -> Done:
        return albert_tf(capsys)("prune", *words, "--out", tmp_path / "out")

    assert_refused(run(encoders["all"], "--heads", 2, "--data", data), "holds no fine-tuned model")
    assert_refused(
        run(encoders["none"], "--keep-heads", "0:1", *MAGNITUDE), "each of 2 attention blocks", "none of block 1"
    )
    assert_refused(run(encoders["none"], "--keep-heads", "0:1", "1:1,2", *MAGNITUDE), "as many heads of each block")
    assert_refused(run(tmp_path / "nowhere", "--heads", 2, *MAGNITUDE), "nowhere")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    assert_refused(run(encoders["all"], "--heads", 2, *MAGNITUDE), "exists")
    assert_refused(run(encoders["all"], "--heads", 2, *MAGNITUDE, "--overwrite"), "is not a preset")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--heads", "1.5"), "expected a whole number, or a share between 0 and 1 such as 0.5; got '1.5'"),
        (("--intermediate-dim", "many"), "expected a whole number, or a share"),
        (("--keep-shares", "1,0"), "expected shares above 0 and at most 1"),
        (("--keep-shares", "half"), "expected shares above 0 and at most 1"),
    ],
)
def test_wrong_use(words: tuple[str, ...], expected: str, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(albert_tf(capsys)("prune", model, *words), expected)
