"""`albert-tf predict`: texts from flags, files and standard input; the same from a run folder and a .tflite file."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import albert_tf, assert_refused
from conftest import ROOT

from albert_tf.cli import predict_input

TEXTS = ["ice and snow", "the fire of summer"]
ODD_TEXTS = [
    *("", "word " * 10_000, "😀👩‍👩‍👧", "a\0b", "tab\there", "\u202etxet", "明天", "line\nbreak"),
    "[/b]",
]


class Terminal(io.TextIOWrapper):
    """Standard input that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(params=["folder", "tflite"])
def model(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue({"folder": "finished_run", "tflite": "finished_tflite"}[request.param])


def stdin(monkeypatch: pytest.MonkeyPatch, content: bytes, kind: type[io.TextIOWrapper] = io.TextIOWrapper) -> None:
    monkeypatch.setattr(sys, "stdin", kind(io.BytesIO(content)))


def fields(out: str) -> list[list[str]]:
    return [line.split("\t") for line in out.splitlines()]


def test_text(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = albert_tf(capsys)("predict", model, "--text", TEXTS[0], "--text", TEXTS[1])
    assert (done.code, done.err) == (0, "")
    (cold, first, one), (warm, second, two) = fields(done.out)
    assert ([cold, warm], [one, two]) == (["cold", "warm"], TEXTS)
    assert 0.5 <= float(first) <= 1 and 0.5 <= float(second) <= 1 and len(first) == 6


def test_folder_and_file_agree(finished_run: Path, finished_tflite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [word for text in [*TEXTS, "the day", "in it is of", *ODD_TEXTS] for word in ("--text", text)]
    folder, file = (
        fields(albert_tf(capsys)("predict", model, *words).out) for model in (finished_run, finished_tflite)
    )
    assert len(folder) == len(file) == len(words) // 2
    for (ours, our_score, _), (theirs, their_score, _) in zip(folder, file, strict=True):
        assert abs(float(our_score) - float(their_score)) < 0.05
        assert ours == theirs or float(our_score) < 0.55


def test_file_and_standard_input_give_the_same(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Byte order mark, CRLF, an empty line and a line separator inside a text, which is one line to nobody else."""
    content = "\ufeffice and snow\r\n\nthe fire\u2028of summer\x0bsun\nlast".encode()
    (tmp_path / "texts.txt").write_bytes(content)
    stdin(monkeypatch, content)
    command = albert_tf(capsys)
    from_input, from_file = command("predict", model), command("predict", model, "--file", tmp_path / "texts.txt")
    assert from_input == from_file and from_input.code == 0
    assert [line[2] for line in fields(from_input.out)] == ["ice and snow", "", "the fire of summer sun", "last"]


def test_many_lines_come_in_chunks_and_in_order(
    finished_tflite: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(predict_input, "CHUNK", 4)
    stdin(monkeypatch, "".join(f"{TEXTS[n % 2]} {n}\n" for n in range(11)).encode())
    lines = fields(albert_tf(capsys)("predict", finished_tflite).out)
    assert [text for _, _, text in lines] == [f"{TEXTS[n % 2]} {n}" for n in range(11)]
    assert [label for label, _, _ in lines] == [("cold", "warm")[n % 2] for n in range(11)]


def test_a_terminal_is_told_and_answered_line_by_line(
    finished_tflite: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin(monkeypatch, b"snow\nfire\n", Terminal)
    done = albert_tf(capsys)("predict", finished_tflite)
    assert done.err == "reading texts, one a line; end with Ctrl-D\n"
    assert [line[0] for line in fields(done.out)] == ["cold", "warm"]


def test_jsonl(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [word for text in ODD_TEXTS for word in ("--text", text)]
    done = albert_tf(capsys)("predict", model, "--jsonl", *words)
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert [answer["text"] for answer in answers] == ODD_TEXTS  # line breaks too
    assert "明天" in done.out and "😀" in done.out  # readable where the terminal can show it
    for answer in answers:
        assert answer.keys() == {"text", "label", "probabilities"}
        assert list(answer["probabilities"]) == ["cold", "warm"]
        assert sum(answer["probabilities"].values()) == pytest.approx(1, abs=1e-5)
        assert answer["label"] == max(answer["probabilities"], key=answer["probabilities"].get)


def test_jsonl_loses_nothing_where_the_encoding_lacks_characters(finished_tflite: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "albert_tf.cli.main", "predict", finished_tflite, "--jsonl", "--text", "明天 café"],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "latin-1"},
        cwd=ROOT,
        check=True,
    )
    assert json.loads(done.stdout)["text"] == "明天 café"
    assert done.stderr == b""


def test_pairs(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = albert_tf(capsys)
    words = ("--text", "the day", "--pair", "ice", "--text", "the day", "--pair", "the summer fire")
    done = command("predict", model, "--jsonl", *words)
    first, second = (json.loads(line) for line in done.out.splitlines())
    assert (first["text"], first["pair"], second["pair"]) == ("the day", "ice", "the summer fire")
    assert first["probabilities"] != second["probabilities"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--text", "a", "--pair", "b", "--pair", "c"), "expected one --pair for each --text, got 2 and 1"),
        (("--pair", "b"), "expected one --pair for each --text, got 1 and 0"),
        (("--text", "a", "--threads", "0"), "--threads: expected at least 1, got 0"),
        (("--file", "absent.txt"), "cannot read absent.txt"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_use(model: Path, words: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(albert_tf(capsys)("predict", model, *words), expected)


def test_what_is_no_utf8(
    finished_tflite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin(monkeypatch, b"snow\ncaf\xe9\n")
    command = albert_tf(capsys)
    assert_refused(command("predict", finished_tflite), "standard input, line 2: expected UTF-8 text, found byte 0xe9")
    (tmp_path / "texts.txt").write_bytes(b"snow\ncaf\xe9\n")
    done = command("predict", finished_tflite, "--file", tmp_path / "texts.txt")
    assert_refused(done, "texts.txt, line 2: expected UTF-8 text, found byte 0xe9")


def test_nothing_to_read(
    finished_tflite: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin(monkeypatch, b"")
    assert albert_tf(capsys)("predict", finished_tflite).out == ""
    monkeypatch.setattr(sys, "stdin", None)  # closed, as a service has it
    assert_refused(albert_tf(capsys)("predict", finished_tflite), "expected --text, --file or texts on standard input")


def test_a_tflite_file_needs_no_tensorflow(finished_tflite: Path) -> None:
    code = (
        "import sys\nfrom albert_tf.cli.main import main\n"
        "code = main(['predict', sys.argv[1], '--text', 'snow'])\n"
        "print([name for name in ('tensorflow', 'keras') if name in sys.modules], code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, finished_tflite], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.startswith("cold\t") and done.stdout.endswith("\n[] 0\n") and done.stderr == ""


def broken_models(tmp_path: Path, run: Path) -> dict[str, Any]:
    """Path → what is said about it."""
    (tmp_path / "notes.txt").write_text("not a model at all")
    (tmp_path / "empty").mkdir()
    (tmp_path / "encoder").mkdir()
    for name in ("config.json", "weights.safetensors", "vocabulary.spm", "tokenizer.json"):
        (tmp_path / "encoder" / name).write_bytes((run / name).read_bytes())
    return {
        "absent": "no such file or folder; expected a run folder or a .tflite file",
        "notes.txt": "expected a TFLite file",
        "empty": "the folder is empty; expected",
        "encoder": "holds no trained model, but weights alone",
    }


def test_what_is_no_model(finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, expected in broken_models(tmp_path, finished_run).items():
        assert_refused(albert_tf(capsys)("predict", tmp_path / name, "--text", "a"), str(tmp_path / name), expected)
