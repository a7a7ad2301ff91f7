"""Files that crash the native runtime, given to the program as a user gives it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ai_edge_litert import schema_py_generated as schema
from conftest import ROOT
from inspected_files import parts, signed
from tflite_changes import changed
from tiny_exports import exported

from albert_tf.cli.main import main

PROGRAM = [sys.executable, "-m", "albert_tf.cli.main"]


@pytest.fixture(scope="module")
def crashing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Layer norms write over a weight, which the runtime has mapped for reading alone."""
    folder = tmp_path_factory.mktemp("crashing")
    model, files = parts(exported())

    def overwrite(content: Any) -> None:
        body = content.subgraphs[-1]
        largest = max((t.buffer for t in body.tensors), key=lambda b: data_size(content, b))
        for operator in body.operators:
            if content.operatorCodes[operator.opcodeIndex].builtinCode == schema.BuiltinOperator.RSQRT:
                body.tensors[operator.outputs[0]].buffer = largest

    path = folder / "crashing.tflite"
    path.write_bytes(signed(changed(folder, model, overwrite).read_bytes(), files))
    return path


def data_size(content: Any, buffer: int) -> int:
    data = content.buffers[buffer].data
    return 0 if data is None else len(data)


def program(*words: Any, send: str | None = None) -> "subprocess.CompletedProcess[str]":
    command = [*PROGRAM, *map(str, words)]
    return subprocess.run(command, input=send, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_crash_is_one_line(crashing: Path, tmp_path: Path) -> None:
    table = tmp_path / "data.tsv"
    table.write_text("text\tlabel\nthe mill\tyes\n", encoding="utf-8")
    for words in (("predict", crashing, "--text", "the mill"), ("evaluate", crashing, "--data", table)):
        done = program(*words)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert done.stderr.startswith(f"albert-tf: error: {crashing}: the runtime ended the process (SIG"), done.stderr
        assert done.stderr.count("\n") == 1
    done = program("inspect", crashing)
    assert done.returncode == 1 and "write to" in done.stderr


def test_whole_files_answer_as_in_one_process(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["predict", str(exported()), "--jsonl"]
    assert main([*words, "--text", "the mill"]) == 0
    done = program(*words, send="the mill\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, capsys.readouterr().out, "")
    done = program(*words, send="")
    assert done.returncode == 2 and done.stderr.count("\n") == 1


@pytest.mark.skipif(not Path("/proc/thread-self/children").exists(), reason="no /proc to see the other process in")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130)])
def test_who_ends_it_from_outside_ends_both(number: signal.Signals, code: int) -> None:
    command = [*PROGRAM, "predict", str(exported()), "--jsonl"]
    pipe = subprocess.PIPE
    running = subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT, start_new_session=True
    )
    assert running.stdin is not None and running.stdout is not None and running.stderr is not None
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    until = time.monotonic() + 120
    while not children.read_text() and time.monotonic() < until:
        time.sleep(0.05)
    child = int(children.read_text())
    time.sleep(1)  # it is a Python that waits for lines by now
    if number == signal.SIGINT:
        os.killpg(running.pid, number)  # as a terminal does
    else:
        running.send_signal(number)
    _, said = running.communicate(timeout=120)
    assert running.returncode == code, said
    assert not Path(f"/proc/{child}").exists()
