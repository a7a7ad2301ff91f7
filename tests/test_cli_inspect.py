"""`albert-tf inspect`, and what it, `predict` and `evaluate` say of files that are broken."""

import json
from pathlib import Path
from typing import Any

import fuzz_tflite
import pytest
from command_line import Done, albert_tf, assert_refused
from tiny_data import read_json
from tiny_exports import exported

from export.metadata import SETTINGS_FILE, append_files, model_record, read_files, read_settings

FUZZED_FILES = 24


def rewritten(path: Path, target: Path, **changes: Any) -> Path:
    """The file with other settings, which belong to its model."""
    files = read_files(path)
    settings = read_settings(files, path)
    model = path.read_bytes()[: settings["model_bytes"]]
    settings = settings | model_record(model) | changes
    target.write_bytes(append_files(model, files | {SETTINGS_FILE: json.dumps(settings).encode()}))
    return target


def one_error(done: Done, code: int) -> str:
    """The message of a command that failed as it should."""
    assert done.code == code and done.err.startswith("albert-tf: error: ") and done.err.count("\n") == 1, done.err
    return done.err


def test_all_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    path = exported("all", "dynamic_int8", "loop")
    done = albert_tf(capsys)("inspect", path, "--json", tmp_path / "found.json")
    assert (done.code, done.err) == (0, "")
    for part in (
        "serving_default",
        "token_ids int32 [1, any]",
        "probabilities float32",
        "FULLY_CONNECTED",
        "2 while_body",
        "per channel",
        "config hidden_dim",
        "vocabulary.spm",
        "3 subgraphs: it takes one; export with form unrolled",
    ):
        assert part in done.out, part
    found = read_json(tmp_path / "found.json")
    assert found["size_bytes"] == path.stat().st_size and found["settings"]["task"] == "classification"
    assert {runtime["runtime"]: runtime["takes"] for runtime in found["runtimes"]}["TFLite GPU delegate"] == "no"
    assert_refused(albert_tf(capsys)("inspect", path, "--json", tmp_path / "found.json"), "exists already")
    assert albert_tf(capsys)("inspect", path, "--json", tmp_path / "found.json", "--overwrite").code == 0


def test_a_file_with_something_wrong_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = rewritten(exported(), tmp_path / "m.tflite", settings={"labels": ["one", "two"]})
    done = albert_tf(capsys)("inspect", path, "--json", tmp_path / "found.json")
    assert "albert_tf.json has 2 labels, the output has 3 values for each" in one_error(done, 1)
    assert "FULLY_CONNECTED" in done.out and len(read_json(tmp_path / "found.json")["problems"]) == 1


def test_what_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command, path = albert_tf(capsys), tmp_path / "m.tflite"
    assert_refused(command("inspect", path), "cannot read", "No such file")
    assert_refused(command("inspect", tmp_path), "expected a .tflite file, got a folder")
    path.write_bytes(b"")
    assert_refused(command("inspect", path), "expected a TFLite file, got an empty one")
    path.write_bytes(exported().read_bytes()[:20_000])
    assert_refused(command("inspect", path), "m.tflite: damaged: ", "copy, download or export it again")


def test_text_that_would_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = read_files(exported())
    model = exported().read_bytes()[: read_settings(files, exported())["model_bytes"]]
    path = tmp_path / "m.tflite"
    path.write_bytes(append_files(model, {"\x1b[31mred[bold]": b"", "x" * 500: b""}))
    done = albert_tf(capsys)("inspect", path)
    assert done.code == 0 and "\x1b" not in done.out
    assert r"\x1b[31mred[bold]" in done.out and "x" * 121 not in done.out.replace("\n", "")


@pytest.mark.parametrize(
    ("changes", "of_predict", "of_inspect"),
    [
        ({"settings": {"labels": ["one", "two"]}}, "its settings ask for the outputs", "has 2 labels"),
        ({"length": 600}, "its settings ask for inputs of int32 [1, 600]", "a length of 600 tokens"),
        ({"length": "long"}, "missing or of a wrong type: length", "missing or of a wrong type: length"),
        ({"format": 2}, "expected format 1", "expected format 1"),
        ({"model_bytes": 5}, "the model's sha256 differs", "the model's sha256 differs"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_settings_that_do_not_fit(
    changes: dict[str, Any], of_predict: str, of_inspect: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, command = rewritten(exported(), tmp_path / "m.tflite", **changes), albert_tf(capsys)
    data = tmp_path / "data.tsv"
    data.write_text("text\tlabel\nthe mill\tyes\n", encoding="utf-8")
    assert_refused(command("predict", path, "--text", "the mill"), str(path), of_predict)
    assert_refused(command("evaluate", path, "--data", data), str(path), of_predict)
    assert of_inspect in one_error(command("inspect", path), 1)


def test_texts_beyond_the_longest_are_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = albert_tf(capsys)("predict", exported(), "--text", "the old mill " * 2000, "--jsonl")
    assert done.code == 0 and json.loads(done.out)["label"] in ("no", "yes", "是")


def test_a_packed_archive_is_not_unpacked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import zipfile

    path = tmp_path / "m.tflite"
    path.write_bytes(exported().read_bytes()[: read_settings(read_files(exported()), exported())["model_bytes"]])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(SETTINGS_FILE, bytes(50_000_000))
    command = albert_tf(capsys)
    assert_refused(command("predict", path, "--text", "a"), "its files are packed, or larger than the whole")
    assert "would unpack to 50,000,000 bytes; they are not read" in one_error(command("inspect", path), 1)


def test_damaged_files(tmp_path: Path) -> None:
    """A few of what `python tests/fuzz_tflite.py` does."""
    for number, source in enumerate((("float32", "loop", None), ("dynamic_int8", "unrolled", 16))):
        (tmp_path / f"{number}.tflite").write_bytes(exported("all", *source).read_bytes())
    right = fuzz_tflite.right_answers(tmp_path)
    assert len(right) == 2 and all(len(answers.splitlines()) == len(fuzz_tflite.TEXTS) for answers in right)
    done = list(fuzz_tflite.outcomes(tmp_path, range(FUZZED_FILES), 1, fuzz_tflite.COMMANDS))
    assert len(done) == FUZZED_FILES * len(fuzz_tflite.COMMANDS)
    faults = [(outcome, wrong) for outcome in done if (wrong := fuzz_tflite.fault(outcome, right)) is not None]
    assert faults == []
    assert {outcome.code for outcome in done if outcome.command == "inspect"} >= {1, 2}
    assert {outcome.kind.split(",")[0] for outcome in done} == set(fuzz_tflite.KINDS)


def test_the_fuzzer_sees_faults(tmp_path: Path) -> None:
    outcome = fuzz_tflite.Outcome(0, "bits", "predict", 2, "albert-tf: error: m.tflite: damaged\n", "", 0.1)
    replace = fuzz_tflite.dataclasses.replace
    assert fuzz_tflite.fault(outcome, set()) is None
    assert fuzz_tflite.fault(replace(outcome, message="Traceback\n"), set()) is not None
    assert fuzz_tflite.fault(replace(outcome, code=3), set()) == "exit code 3"
    assert fuzz_tflite.fault(replace(outcome, code=0, answers="no\n"), {"yes\n"}) is not None
    (tmp_path / "0.tflite").write_bytes(exported().read_bytes())
    ends = (
        "import os, signal\n"
        "def run_command(command, path, table):\n"
        "    if command == 'predict': os.kill(os.getpid(), signal.SIGSEGV)\n"
        "    return 2, 'albert-tf: error: x\\n', ''\n"
        "fuzz_tflite.run_command = run_command"
    )
    done = list(fuzz_tflite.outcomes(tmp_path, range(3), 1, fuzz_tflite.COMMANDS, first=ends))
    assert [(o.number, o.command) for o in done] == [(n, c) for n in range(3) for c in fuzz_tflite.COMMANDS]
    assert [o.message for o in done if o.command == "predict"] == ["the process ended with -11"] * 3
