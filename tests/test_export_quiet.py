"""What reaches standard error, and what does not."""

import os
import subprocess
import sys
import threading

import pytest
from conftest import ROOT
from tiny_exports import exported, new_classifier

from export.quiet import without_native_notes

NOTES = (
    "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
    "W0000 00:00:1795975513.996202   14746 tf_tfl_flatbuffer_helpers.cc:364] Ignored output_format.\n"
    "I0000 00:00:1795975514.019813   14746 mlir_graph_optimization_pass.cc:437] MLIR V1 optimization pass is not enabled\n"
    "INFO: Created TensorFlow Lite XNNPACK delegate for CPU.\n"
)


def write(text):
    os.write(2, text.encode())


def test_only_notes_are_held_back(capfd):
    with without_native_notes():
        write(NOTES + "ERROR: something real\n" + NOTES + "unfinished line")
    write("\nafter\n")
    assert capfd.readouterr().err == "ERROR: something real\nunfinished line\nafter\n"


def test_everything_is_shown_when_it_fails(capfd):
    with pytest.raises(RuntimeError), without_native_notes():
        write(NOTES)
        raise RuntimeError
    write("after\n")
    assert capfd.readouterr().err == NOTES + "after\n"


def test_nested_and_in_threads(capfd):
    def work(index):
        for _ in range(50):
            with without_native_notes(), without_native_notes():
                write(NOTES)
                write(f"line {index}\n")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    write("after\n")
    assert sorted(capfd.readouterr().err.splitlines()) == sorted(["after", *[f"line {i % 4}" for i in range(200)]])


def run(*command, **options):
    return subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, check=True, cwd=ROOT, **options
    )


def test_without_standard_error():
    # As under pythonw or a daemon: descriptor 2 is closed, sys.stderr is None.
    code = (
        "import os, sys; os.close(2); sys.stderr = None\n"
        "from export.quiet import without_native_notes\n"
        "with without_native_notes(): print('done')"
    )
    assert run("-c", code).stdout == "done\n"


def test_commands_print_nothing_but_their_answers(tmp_path):
    answer = run("-m", "albert_tf.cli.main", "predict", exported(), "--text", "the mill")
    assert answer.stderr == ""
    assert answer.stdout.endswith("\tthe mill\n")
    new_classifier().save_pretrained(tmp_path / "run")
    (tmp_path / "texts.txt").write_text("the mill\nthe wheel\tby the river\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    integers = ("--recipe", "int16x8", "--length", "16", "--calibration", tmp_path / "texts.txt", "--force")
    for number, options in enumerate(((), integers)):
        out = tmp_path / f"{number}.tflite"
        words = ("export", "tflite", tmp_path / "run", "--out", out, *options)
        done = run("-m", "albert_tf.cli.main", *words, env=environment)
        assert done.stderr.replace("albert-tf: written all the same (--force)", "").count("\n") in (
            0,
            len(options) and 1,
        )
        assert "INFO" not in done.stderr and out.exists()
