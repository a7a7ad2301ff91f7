"""`albert-tf export tflite`: the options reach the file, and nothing wrong is written."""

from pathlib import Path

import pytest
from command_line import albert_tf, assert_refused
from tiny_data import read_json

from export import tflite, validation
from export.metadata import read_files, read_settings


def settings(path: Path) -> dict[str, object]:
    return read_settings(read_files(path), path)


def test_the_default_file(finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, figures = tmp_path / "deep" / "model.tflite", tmp_path / "figures.json"
    done = albert_tf(capsys)("export", "tflite", finished_run, "--out", out, "--json", figures)
    assert done.code == 0, done.err
    written = read_json(figures)
    assert written["size_bytes"] == out.stat().st_size and written["agreement"] == 1.0
    assert f"{written['size_bytes']:,}" in done.out
    made = settings(out)
    assert (made["form"], made["length"], made["recipe"]["name"]) == ("loop", None, "dynamic_int8")
    assert read_files(out)["labels.txt"] == b"cold\nwarm\n"


def test_options_reach_the_file(finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, texts = tmp_path / "model.tflite", tmp_path / "texts.txt"
    texts.write_text("ice\u2028and snow\n\n  \nfire\n", encoding="utf-8")
    options = ("--recipe", "float32", "--form", "unrolled", "--length", 16, "--text-file", texts)
    figures = tmp_path / "figures.json"
    done = albert_tf(capsys)("export", "tflite", finished_run, "--out", out, *options, "--json", figures)
    assert done.code == 0, done.err
    made = settings(out)
    assert (made["form"], made["length"], made["recipe"]["name"]) == ("unrolled", 16, "float32")
    assert read_json(figures)["texts"] == 2  # blank lines are none, and a line separator ends none


def test_a_file_for_mediapipe(finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "model.tflite"
    done = albert_tf(capsys)("export", "tflite", finished_run, "--out", out, "--runtime", "mediapipe")
    assert done.code == 0, done.err
    made = settings(out)
    assert (made["form"], made["length"], made["runtime"]) == ("unrolled", None, "mediapipe")


def test_a_file_that_fails_its_check_is_not_written(
    finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise validation.ExportError("the file's answers differ")

    monkeypatch.setattr(tflite, "check_export", refuse)
    done = albert_tf(capsys)("export", "tflite", finished_run, "--out", tmp_path / "model.tflite")
    assert (done.code, done.err) == (1, "albert-tf: error: the file's answers differ\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--recipe", "int3"), "no recipe is called 'int3'; there are float32, float16, dynamic_int8"),
        (("--form", "round"), "form: expected one of loop, unrolled; got 'round'"),
        (("--runtime", "phone"), "runtime: expected one of litert, mediapipe; got 'phone'"),
        (("--length", "2"), "3 to 32 tokens, got 2"),
        (("--length", "33"), "3 to 32 tokens, got 33"),
        (("--text-file", "absent.txt"), "cannot read absent.txt"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_options(
    words: tuple[str, ...], expected: str, finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = albert_tf(capsys)("export", "tflite", finished_run, "--out", tmp_path / "m.tflite", *words)
    assert_refused(done, expected)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_run_or_exists_already(
    finished_run: Path, finished_tflite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, out = albert_tf(capsys), tmp_path / "m.tflite"
    assert_refused(command("export", "tflite", tmp_path / "absent", "--out", out), "absent: no such file or folder")
    assert_refused(command("export", "tflite", tmp_path, "--out", out), "the folder is empty")
    assert_refused(command("export", "tflite", finished_tflite, "--out", out), "a TFLite file, whose weights are final")
    assert_refused(command("export", "tflite", finished_run, "--out", finished_tflite), "exists already")
    done = command("export", "tflite", finished_run, "--out", finished_run, "--overwrite")
    assert_refused(done, "finished is a folder, so no file is written in its place")
    assert (finished_run / "weights.safetensors").exists()
    empty = tmp_path / "texts.txt"
    empty.write_text("\n \n")
    assert_refused(command("export", "tflite", finished_run, "--out", out, "--text-file", empty), "the file has none")
