"""`albert-tf` itself: help, exit codes, and errors in one line."""

import argparse
import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import albert_tf, assert_refused
from conftest import ROOT

import albert_tf as package
from albert_tf.cli import params
from albert_tf.cli.main import COMMANDS, Parser, build_parser
from albert_tf.errors import CheckError, InputError

NAMES = [command.__name__.rpartition(".")[2].replace("_", "-") for command in COMMANDS]
MODULE = [sys.executable, "-m", "albert_tf.cli.main"]


def failing_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Makes `albert-tf params` raise `error`."""

    def run(args: Any) -> int:
        raise error

    monkeypatch.setattr(params, "run", run)


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    done = albert_tf(capsys)("--help")
    assert done.code == 0 and done.err == ""
    assert NAMES[0] == "demo" and set(NAMES) >= {"params", "convert", "finetune", "evaluate", "predict", "export"}
    for name in NAMES:
        assert re.search(rf"\n    {name}\s", done.out)
    assert "exit codes: 0 done, 1 a check failed, 2 wrong use or bad input" in done.out


@pytest.mark.parametrize(
    "words", [[name] for name in NAMES] + [["finetune", "classification"], ["export", "tflite"]], ids=" ".join
)
def test_every_command_has_help_with_an_example(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    done = albert_tf(capsys)(*words, "--help")
    assert done.code == 0 and done.err == ""
    assert f"albert-tf {' '.join(words)}" in done.out
    if words != ["export"]:  # its one kind has the example
        assert "example" in done.out


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser, and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                assert isinstance(child, Parser)
                yield from parsers(child)


def test_every_option_is_explained() -> None:
    for parser in parsers(build_parser()):
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                continue
            assert action.help and len(action.help) > 5, f"{parser.prog} {action.dest}"
            shown = action.default not in (None, False, [], argparse.SUPPRESS) and action.dest not in (
                "help",
                "version",
            )
            assert not shown or "default" in action.help, f"{parser.prog} {action.dest} hides its default"


def test_options_that_messages_name_exist() -> None:
    foreign = {"--runner", "--flink", "--direct"}  # Beam's
    known = {flag for parser in parsers(build_parser()) for action in parser._actions for flag in action.option_strings}
    for path in (*(ROOT / "albert_tf").rglob("*.py"), *(ROOT / "export").rglob("*.py")):
        for raised in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(raised, ast.Raise):
                texts = [node.value for node in ast.walk(raised) if isinstance(node, ast.Constant)]
                named = {flag for text in texts for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", str(text))}
                assert named <= known | foreign, f"{path}, line {raised.lineno}"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert albert_tf(capsys)("--version").out == f"albert-tf {package.__version__}\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "the following arguments are required: COMMAND (see albert-tf --help)"),
        (["fly"], "invalid choice: 'fly'"),
        (["finetune"], "the following arguments are required: TASK (see albert-tf finetune --help)"),
        (
            ["finetune", "classification", "--out", "x"],
            "required: --train (see albert-tf finetune classification --help)",
        ),
        (["finetune", "classification", "--train", "a", "--out", "b"], "give either --from CHECKPOINT"),
        (["predict", "m", "--threads", "two"], "argument --threads: invalid int value: 'two'"),
        (["predict", "m", "--text", "a", "--file", "b"], "not allowed with"),
        (["evaluate", "m"], "required: --data"),
        (["params", "--nonsense"], "unrecognized arguments: --nonsense"),
    ],
    ids=" ".join,
)
def test_wrong_use(words: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(albert_tf(capsys)(*words), expected)


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InputError("expected this,\n  got\tthat"), 2, r"albert-tf: error: expected this,\n got\tthat"),
        (CheckError("not good enough"), 1, "albert-tf: error: not good enough"),
        (OSError(28, "No space left on device", "/x"), 2, "albert-tf: error: [Errno 28] No space left on device: '/x'"),
        (KeyboardInterrupt(), 130, "albert-tf: interrupted"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors_are_one_line(
    error: BaseException, code: int, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing_with(monkeypatch, error)
    done = albert_tf(capsys)("params")
    assert (done.code, done.out, done.err) == (code, "", line + "\n")


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    failing_with(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        albert_tf(capsys)("params")


def test_a_reader_that_has_gone_is_no_error() -> None:
    """As in `albert-tf params | head -1`, whether rich, argparse or print has the output in its buffer."""
    for words in (["params"], ["params", "--help"], ["--version"]):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([*MODULE, *words], stdout=write, stderr=subprocess.PIPE, cwd=ROOT, text=True, check=False)
        os.close(write)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_that_lacks_characters(tmp_path: Path) -> None:
    """An error message with a name in another script arrives, with question marks."""
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [*MODULE, "evaluate", "模型", "--data", "数据.tsv"], capture_output=True, cwd=ROOT, env=environment, check=False
    )
    assert done.returncode == 2 and done.stderr.startswith(
        b"albert-tf: error: ??: no such file or folder; expected a run"
    )
