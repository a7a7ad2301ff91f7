"""`albert-tf tune-device`: from a run to a file with its report, and what is refused."""

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import pytest
from command_line import Done, albert_tf, assert_refused
from small_vocabularies import sentencepiece_vocabulary
from tiny_data import TinyFiles, read_json
from tiny_exports import BASE, MAX_LENGTH
from tiny_models import randomize
from tiny_tasks import new_task

from albert_tf.backbone import AlbertBackbone
from albert_tf.cli.tune_device import size_in_bytes
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from export.runtime import TFLiteRunner
from export.tuning_choice import pareto_front


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tuning")


@pytest.fixture(scope="module")
def early(folder: Path) -> Path:
    """A classifier of three passes that stops early."""
    return saved(folder / "early", num_heads=4, exits={"rule": "confidence"})


@pytest.fixture(scope="module")
def plain(folder: Path) -> Path:
    """A classifier of three passes through one block of one head and 64 columns."""
    return saved(folder / "plain", num_heads=1)


def saved(folder: Path, num_heads: int, **settings: Any) -> Path:
    """A model with random weights, small enough for int8."""
    tokenizer = AlbertTokenizer(sentencepiece_vocabulary(), max_length=MAX_LENGTH)
    backbone = AlbertBackbone(dataclasses.replace(BASE, num_heads=num_heads))
    task = AlbertTextClassifier(backbone, tokenizer, labels=["cold", "warm"], **settings)
    randomize(task, scale=0.15)
    task.save_pretrained(folder)
    return folder


def assert_says_what_it_is(out: Path, dev: Path, done: Done, command: Any) -> dict[str, Any]:
    """The report of a written file, after it was compared with the file, with `evaluate` and with its own table."""
    assert done.code == 0, done.err
    record = read_json(out.with_suffix(".json"))
    chosen = record["chosen"]
    assert f"written: {out}: {chosen['candidate']['name']}; " in done.out
    assert out.stat().st_size == chosen["size_bytes"] == record["export"]["size_bytes"]
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    figures = out.with_suffix(".evaluate.json")
    assert command("evaluate", out, "--data", dev, "--json", figures, "--overwrite").code == 0
    assert read_json(figures)["accuracy"] == pytest.approx(chosen["value"])
    assert read_json(figures).get("mean_depth", chosen["mean_passes"]) == pytest.approx(chosen["mean_passes"])
    tried = record["candidates"]
    costs = [(-one["value"], one["latency_ms"], one["size_bytes"], one["memory_bytes"]) for one in tried]
    assert [one["pareto"] for one in tried] == pareto_front(costs)
    assert any(one["candidate"] == chosen["candidate"] and not one["misses"] for one in tried)
    for one in tried:
        assert one["candidate"]["name"].split(",")[0] in done.out
    return dict(record)


def test_a_run_with_early_exits(early: Path, tiny_files: TinyFiles, capsys: pytest.CaptureFixture[str]) -> None:
    command, out = albert_tf(capsys), early.parent / "early.tflite"
    words = ["tune-device", early, "--valid", tiny_files.dev, "--recipes", "dynamic_int8", "--max-drop", 100]
    done = command(*words, "--passes", 1, "--exit-rules", "confidence", "--examples", 20, "--out", out)
    dev = first_rows(tiny_files.dev, 20)
    record = assert_says_what_it_is(out, dev, done, command)
    names = [one["candidate"]["name"] for one in record["candidates"]]
    exits = [f"dynamic_int8, confidence {threshold}" for threshold in (0.7, 0.8, 0.9, 0.95, 0.98)]
    assert names == ["dynamic_int8, all passes", "dynamic_int8, 1 pass", *exits]
    assert (record["examples"], record["metric"], record["prefer"]) == (20, "accuracy", "latency")
    assert record["bounds"] == {"max_size": None, "max_latency_ratio": None, "max_drop": 100.0}
    adaptive = "none" if record["chosen"]["candidate"]["exits"] is None else "exits"
    assert TFLiteRunner(out).adaptive == adaptive

    assert_refused(command(*words, "--out", out), f"{out}", "--overwrite")


def first_rows(dev: Path, count: int) -> Path:
    """As many rows of the validation file, evenly taken."""
    import numpy as np

    header, *rows = dev.read_text(encoding="utf-8").splitlines()
    places = np.unique(np.linspace(0, len(rows) - 1, count).round().astype(int))
    path = dev.parent / f"first{count}.tsv"
    path.write_text("\n".join([header, *(rows[place] for place in places)]) + "\n", encoding="utf-8")
    return path


def test_a_plain_run_and_narrower_ones(plain: Path, tiny_files: TinyFiles, capsys: pytest.CaptureFixture[str]) -> None:
    command, out = albert_tf(capsys), plain.parent / "plain.tflite"
    words = [
        "tune-device",
        plain,
        "--valid",
        tiny_files.dev,
        "--recipes",
        "dynamic_int8",
        "--passes",
        "3",
        "--out",
        out,
    ]
    words += ["--max-drop", 100, "--keep-shares", "0.5", "--train", tiny_files.train, "--prefer", "size"]
    record = assert_says_what_it_is(out, tiny_files.dev, command(*words), command)
    tried, chosen = record["candidates"], record["chosen"]
    assert [one["candidate"]["shape"] for one in tried] == [[1, 64], [1, 32]]
    assert chosen["candidate"]["shape"] == [1, 32] and tried[1]["size_bytes"] < tried[0]["size_bytes"]
    config = TFLiteRunner(out).settings["config"]
    assert [config["num_heads"], config["intermediate_dim"]] == chosen["candidate"]["shape"]
    assert config["num_layers"] == 3


def test_nothing_is_written_where_nothing_keeps_the_bounds(
    plain: Path, tiny_files: TinyFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    out = plain.parent / "none" / "none.tflite"
    words = ["tune-device", plain, "--valid", tiny_files.dev, "--recipes", "int4", "--max-size", "1kB"]
    done = albert_tf(capsys)(*words, "--out", out)
    assert done.code == 1
    assert "no candidate meets the bounds, nothing is written; nearest: dynamic_int8, all passes (size " in done.err
    assert "bytes, at most 1,000)" in done.err and "3 not tried, such as int4, 1 pass (at least " in done.err
    assert "not tried: int4, 1 pass; int4, 2 passes; int4, all passes: at least" in done.out
    assert not out.parent.exists()


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("6MB", 6_000_000),
        ("500kB", 500_000),
        ("1.5MiB", 1_572_864),
        (" 2 mb ", 2_000_000),
        ("1GB", 10**9),
        ("1gib", 2**30),
        ("3KiB", 3072),
        ("1234", 1234),
        ("1234B", 1234),
        (".5kB", 500),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert size_in_bytes(text) == size


@pytest.mark.parametrize("text", ["", "MB", "0", "-1MB", "6 M", "6TB", "1e6", "0.1", "nan", "6,5MB", "9" * 400])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="expected a size such as 6MB, 500kB"):
        size_in_bytes(text)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--max-size", "6 parsecs"], "expected a size such as 6MB"),
        (["--max-latency-ratio", "0"], "expected a number above 0, such as 0.5; got '0'"),
        (["--max-latency-ratio", "nan"], "expected a number above 0"),
        (["--max-drop", "-1"], "expected a number of points from 0 on"),
        (["--prefer", "luck"], "invalid choice: 'luck'"),
        (["--passes", "two"], "expected whole numbers with commas between, got 'two'"),
        (["--passes", "4"], "--passes: expected some of 1, 2, 3, the passes of this model; got 4"),
        (["--recipes", "int8"], "--recipes: expected some of float32"),
        (["--exit-rules", "patience"], "no early exits"),
        (["--keep-shares", "0.5"], "--keep-shares and --train go together"),
        (["--examples", "0"], "--examples: expected at least 1, got 0"),
        (["--metric", "loss"], "--metric: expected one of accuracy"),
        (["--out", "model.bin"], "--out: expected the name of a .tflite file, got model.bin"),
        (["--plot", "charts.bmp"], "expected a file name that ends in .png"),
    ],
)
def test_what_is_refused(
    plain: Path, tiny_files: TinyFiles, capsys: pytest.CaptureFixture[str], words: list[str], expected: str
) -> None:
    out = plain.parent / "refused.tflite"
    done = albert_tf(capsys)("tune-device", plain, "--valid", tiny_files.dev, "--out", out, *words)
    assert_refused(done, expected)
    assert not out.exists()


def test_the_report_does_not_replace_what_is_read(
    plain: Path, tiny_files: TinyFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    dev = plain.parent / "dev.json"
    dev.write_bytes(tiny_files.dev.read_bytes())
    words = ("tune-device", plain, "--valid", dev, "--out", dev.with_suffix(".tflite"), "--overwrite")
    assert_refused(albert_tf(capsys)(*words), f"--json: {dev} is what this command reads")


def test_models_without_figures(folder: Path, tiny_files: TinyFiles, capsys: pytest.CaptureFixture[str]) -> None:
    new_task("fill-mask").save_pretrained(folder / "words")
    done = albert_tf(capsys)("tune-device", folder / "words", "--valid", tiny_files.dev, "--out", folder / "w.tflite")
    assert_refused(done, "holds", "expected one for classification")
