"""Exported files that say something wrong of themselves: one clear line from inspect, predict and evaluate."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import albert_tf
from tiny_data import TinyFiles
from tiny_tasks import tiny_task

from albert_tf.errors import InputError
from export.metadata import SETTINGS_FILE, append_files, read_files, read_settings
from export.runtime import TFLiteRunner
from export.tflite import export_tflite

Change = Callable[[dict[str, Any]], Any]


def rewritten(source: Path, target: Path, change: Change, **files: bytes) -> Path:
    """A copy of the file with other settings, and other files beside them."""
    held = read_files(source)
    settings = read_settings(held, source)
    change(settings)
    model = source.read_bytes()[: settings["model_bytes"]]
    target.write_bytes(append_files(model, held | {SETTINGS_FILE: json.dumps(settings).encode()} | files))
    return target


def more_labels(settings: dict[str, Any]) -> None:
    settings["settings"]["labels"] = ["cold", "mild", "warm"]


def one_label(settings: dict[str, Any]) -> None:
    settings["settings"]["labels"] = ["cold"]


CASES: list[tuple[Change, str, str]] = [
    # What is changed, what predict and evaluate say, what inspect says.
    (more_labels, "outputs {'probabilities': (3,)}", "albert_tf.json has 3 labels, the output has 2 values"),
    (one_label, "outputs {'probabilities': (1,)}", "albert_tf.json has 1 labels, the output has 2 values"),
    (lambda s: s.update(length=600), "inputs of int32 [1, 600]", "a length of 600 tokens, and a config of at most 32"),
    (lambda s: s.update(length=[16, 600]), "length_16", "a length of 600 tokens, and a config of at most 32"),
    (lambda s: s.update(length="any"), "of a wrong type: length", "of a wrong type: length"),
    (lambda s: s.update(task="poetry"), "a task among classification", ""),
    (lambda s: s["config"].update(vocabulary_size=7), "its model 7 words", ""),
    (lambda s: s.update(model_sha256="0" * 64), "the model's sha256 differs", "the model's sha256 differs"),
    (lambda s: s.update(format=99), "expected format 1", "expected format 1"),
]


@pytest.mark.parametrize(("change", "said", "inspected"), CASES, ids=[said for _, said, _ in CASES])
def test_one_clear_line(
    change: Change,
    said: str,
    inspected: str,
    finished_tflite: Path,
    tiny_files: TinyFiles,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = rewritten(finished_tflite, tmp_path / "broken.tflite", change)
    for command in (("predict", path, "--text", "a"), ("evaluate", path, "--data", tiny_files.dev)):
        done = albert_tf(capsys)(*command)
        assert (done.code, done.out) == (2, "") and done.err.count("\n") == 1, done.err
        assert done.err.startswith(f"albert-tf: error: {path}: ") and said in done.err
    done = albert_tf(capsys)("inspect", path)
    assert done.code == (1 if inspected else 0), done.err
    assert inspected in done.err and done.err.count("\n") == bool(inspected)


def test_labels_beside_the_settings(finished_tflite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = rewritten(finished_tflite, tmp_path / "m.tflite", lambda settings: None, **{"labels.txt": b"warm\ncold\n"})
    done = albert_tf(capsys)("inspect", path)
    assert done.code == 1 and "labels.txt has other labels than albert_tf.json: ['warm', 'cold']" in done.err


def test_metadata_that_is_cut_off(finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.tflite"
    assert albert_tf(capsys)("export", "tflite", finished_run, "--out", path, "--runtime", "mediapipe").code == 0
    content = path.read_bytes()
    place = content.index(b"M001")  # the mark of TFLite Metadata, within the model
    path.write_bytes(content[: place - 4] + b"\xff\xff\xff\x7f" + content[place:])
    for command in (("predict", path, "--text", "a"), ("inspect", path)):
        done = albert_tf(capsys)(*command)
        assert done.code == (2 if command[0] == "predict" else 1)
        assert "sha256 differs" in done.err and done.err.count("\n") == 1
    assert "its metadata cannot be read" in done.err


def test_a_file_that_takes_fewer_tokens_than_it_says(tmp_path: Path) -> None:
    """The graph cuts what is too long for it; places behind the cut would be those of nothing."""
    source, path = tmp_path / "whole.tflite", tmp_path / "m.tflite"
    export_tflite(tiny_task("tagging"), source, recipe="float32", measure=False)
    held = read_files(source)
    tokenizer = json.loads(held["tokenizer.json"]) | {"max_length": 600}
    rewritten(
        source,
        path,
        lambda settings: settings["config"].update(max_sequence_length=600),
        **{"tokenizer.json": json.dumps(tokenizer).encode()},
    )
    with pytest.raises(InputError, match="takes 24 tokens, while its settings say 600; export the file again"):
        TFLiteRunner(path)(["the old mill by the river " * 40])
    assert TFLiteRunner(path)(["the mill"]) == TFLiteRunner(source)(["the mill"])
