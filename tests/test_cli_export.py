"""`albert-tf export tflite`: the options reach the file, and nothing wrong is written."""

from pathlib import Path

import pytest
from command_line import albert_tf, assert_refused
from tiny_data import TinyFiles, read_json

from export import tflite, validation
from export.metadata import read_files, read_settings


def settings(path: Path) -> dict[str, object]:
    return read_settings(read_files(path), path)


def test_the_default_file(finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, figures = tmp_path / "deep" / "model.tflite", tmp_path / "figures.json"
    done = albert_tf(capsys)("export", "tflite", finished_run, "--out", out, "--json", figures)
    assert done.code == 0, done.err
    written = read_json(figures)
    assert written["size_bytes"] == out.stat().st_size and written["comparison"]["agreement"] == 1.0
    assert written["device"]["latencies_ms"].keys() == {"16", "32"} and written["metrics"] == {}
    for part in (
        f"{written['size_bytes']:,} bytes",
        "mean cosine",
        "same decision",
        "FULLY_CONNECTED",
        "latency, 32 tokens",
    ):
        assert part in done.out
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
    assert read_json(figures)["comparison"]["rows"] == 2  # blank lines are none, and a line separator ends none


def test_metrics_of_labelled_examples(
    finished_run: Path, tiny_files: TinyFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, figures = tmp_path / "model.tflite", tmp_path / "figures.json"
    command = ("export", "tflite", finished_run, "--out", out, "--examples", tiny_files.dev)
    done = albert_tf(capsys)(*command, "--json", figures)
    assert done.code == 0, done.err
    metrics = read_json(figures)["metrics"]
    evaluated = tmp_path / "evaluated.json"
    assert albert_tf(capsys)("evaluate", out, "--data", tiny_files.dev, "--json", evaluated).code == 0
    assert metrics["accuracy"]["file"] == read_json(evaluated)["accuracy"]
    assert metrics["accuracy"].keys() == {"keras", "file", "difference"}
    assert "on the examples" in done.out
    more = ("--text-column", "text", "--label-column", "label", "--overwrite")
    assert albert_tf(capsys)(*command, *more).code == 0


def test_several_lengths(finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, figures = tmp_path / "model.tflite", tmp_path / "figures.json"
    done = albert_tf(capsys)("export", "tflite", finished_run, "--out", out, "--length", "32,8", "--json", figures)
    assert done.code == 0, done.err
    assert settings(out)["length"] == read_json(figures)["length"] == [8, 32]
    assert read_json(figures)["device"]["latencies_ms"].keys() == {"8", "32"}
    done = albert_tf(capsys)("inspect", out)
    assert done.code == 0 and "length_8" in done.out and "length_32" in done.out


def test_text_input(finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, figures = tmp_path / "model.tflite", tmp_path / "figures.json"
    done = albert_tf(capsys)("export", "tflite", finished_run, "--out", out, "--text-input", "--json", figures)
    assert done.code == 0, done.err
    assert settings(out)["text_input"] is True and read_json(figures)["same_ids"] == 1.0
    assert "tokenizer in the graph" in done.out and "texts with the tokenizer's ids" in done.out
    done = albert_tf(capsys)("predict", out, "--text", "ice and snow")  # as from a file without
    assert done.code == 0 and done.out.startswith("cold\t")


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
        (("--runtime", "phone"), "runtime: expected one of litert, mediapipe, task-library; got 'phone'"),
        (("--length", "2"), "3 to 32 tokens, or several such, got 2"),
        (("--length", "33"), "3 to 32 tokens, or several such, got 33"),
        (("--length", "8,33"), "or several such, got [8, 33]"),
        (("--length", "8,x"), "expected numbers of tokens with commas between, got '8,x'"),
        (("--length", "8,16", "--recipe", "int8"), "expected one number"),
        (("--length", "8,16", "--runtime", "mediapipe"), "mediapipe runs one signature, several lengths have one each"),
        (("--text-input", "--runtime", "mediapipe"), "text_input: mediapipe has a tokenizer of its own"),
        (("--label-column", "x"), "--label-column: says how --examples is read"),
        (("--examples", "absent.tsv"), "cannot read absent.tsv"),
        (("--examples", "absent.tsv", "--negative-column", "x"), "--negative-column is for similarity"),
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


def test_calibration_on_pairs(finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts, out = tmp_path / "texts.txt", tmp_path / "m.tflite"
    words = ("--recipe", "int16x8", "--length", 16, "--calibration", texts, "--out", out)
    texts.write_text("ice and snow\nfire\tand the sun\n", encoding="utf-8")
    done = albert_tf(capsys)("export", "tflite", finished_run, *words, "--force")
    assert done.code in (0, 1) and read_settings(read_files(out), out)["recipe"]["calibration_texts"] == 2
    texts.write_text("ice\n\nice\tand\tsnow\n", encoding="utf-8")
    done = albert_tf(capsys)("export", "tflite", finished_run, *words, "--overwrite")
    assert_refused(done, "texts.txt, line 3: expected one text or two, with a tab between; got 3")


def test_examples_are_called_by_their_file(
    finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = tmp_path / "examples.tsv"
    examples.write_text("text\tlabel\nice and snow\twet\n", encoding="utf-8")
    done = albert_tf(capsys)("export", "tflite", finished_run, "--examples", examples, "--out", tmp_path / "m.tflite")
    assert_refused(done, f"{examples}, row 1 ('ice and snow') has the label 'wet'; the model's labels are cold, warm")
    assert list(tmp_path.iterdir()) == [examples]


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
