"""`albert-tf export saved-model`: versions, options, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401  # the operations of the tokenizer
from command_line import albert_tf, assert_refused
from tiny_data import read_json

from albert_tf.tasks.trained import load_task
from export import saved_model
from export.saved_model_check import ODD_TEXTS
from export.validation import ExportError


def test_versions(finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command, out, figures = albert_tf(capsys), tmp_path / "served" / "films", tmp_path / "figures.json"
    texts = tmp_path / "texts.txt"
    texts.write_text("ice and snow\n\nfire\n", encoding="utf-8")
    options = ("export", "saved-model", finished_run, "--out", out)
    done = command(*options, "--text-file", texts, "--json", figures)
    assert done.code == 0, done.err
    written = read_json(figures)
    assert (written["version"], written["agreement"], written["texts"]) == (1, 1.0, 2 + len(ODD_TEXTS))
    assert "films/1againsttheKerasmodel" in "".join(done.out.split())  # a long title is broken anywhere
    loaded = tf.saved_model.load(str(out / "1"))
    found = loaded.signatures["serving_default"](texts=tf.constant(["ice and snow", "the fire of the sun"]))
    expected = load_task(finished_run).classify(["ice and snow", "the fire of the sun"])  # type: ignore[attr-defined]
    assert [label.decode() for label in found["label"].numpy()] == [prediction.label for prediction in expected]

    stamp = (out / "1/fingerprint.pb").stat().st_mtime_ns
    assert command(*options, "--version", 9).code == 0
    assert command(*options, "--overwrite").code == 0  # 9 again
    assert sorted(path.name for path in out.iterdir()) == ["1", "9"]
    assert (out / "1/fingerprint.pb").stat().st_mtime_ns == stamp
    assert_refused(command(*options, "--version", 9), "films/9 exists already; pass --overwrite")
    assert_refused(command(*options, "--json", figures), "figures.json exists already")
    assert_refused(command(*options, "--json", out / "a.json"), "--json: expected a file outside the folder of --out")
    assert_refused(
        command(*options, "--version", 0), "version: expected a whole number from 1 to 9223372036854775807, got 0"
    )


def test_one_that_fails_its_check_is_not_written(
    finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise ExportError("the answers differ")

    monkeypatch.setattr(saved_model, "check_saved_model", refuse)
    done = albert_tf(capsys)("export", "saved-model", finished_run, "--out", tmp_path / "m")
    assert (done.code, done.err) == (1, "albert-tf: error: the answers differ\n")
    assert [path.name for path in tmp_path.rglob("*")] == ["m"]


def test_wrong_folders(finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = albert_tf(capsys)
    done = command("export", "saved-model", finished_run, "--out", finished_run, "--overwrite")
    assert_refused(done, "expected a folder with versions of one model (1, 2, …) or a new one, found")
    done = command("export", "saved-model", tmp_path / "absent", "--out", tmp_path / "m")
    assert_refused(done, "absent: no such file or folder")
    empty = tmp_path / "texts.txt"
    empty.write_text("\n")
    done = command("export", "saved-model", finished_run, "--out", tmp_path / "m", "--text-file", empty)
    assert_refused(done, "the file has none")
    assert not (tmp_path / "m").exists()
