"""An exported file where only ai-edge-litert, numpy and sentencepiece are installed: the same answers as here.

Makes a virtual environment and installs the three from the package index, at the versions of constraints.txt.
"""

import json
import os
import subprocess
import sys
import venv

import pytest
from conftest import ROOT
from small_vocabularies import fuzzed_texts
from tiny_exports import exported, wide_classifier

from export.runtime import TFLiteRunner
from export.tflite import export_tflite

pytestmark = pytest.mark.clients

TEXTS = ["the old mill", "12,000 people", "😀 שלום", "", "word7 a b c"]
PAIRS = ["by the river", "", "the wheel", "the water", "word8"]


class Client:
    """A Python that has the three packages and finds the project's sources."""

    def __init__(self, folder):
        venv.create(folder, with_pip=True)
        self.python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        packages = ("ai-edge-litert", "numpy", "sentencepiece")
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", ROOT / "constraints.txt"]
        self.run(*install, *packages)

    def run(self, *arguments, check=True):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        command = [str(self.python), *map(str, arguments)]
        environment |= {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert not check or done.returncode == 0, done.stderr
        return done


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    return Client(tmp_path_factory.mktemp("client"))


@pytest.fixture(scope="module", params=["sentencepiece", "wordpiece"])
def file(request, tmp_path_factory):
    if request.param == "sentencepiece":
        return exported("all", "dynamic_int8")
    path = tmp_path_factory.mktemp("files") / "wordpiece.tflite"
    export_tflite(wide_classifier(), path, recipe="dynamic_int8", form="unrolled", length=16)
    return path


def test_tensorflow_is_not_there(client):
    for module in ("tensorflow", "keras", "rich", "sklearn", "safetensors"):
        done = client.run("-c", f"import {module}", check=False)
        assert "ModuleNotFoundError" in done.stderr, module


def test_predict_command(client, file):
    texts = [argument for text in TEXTS for argument in ("--text", text)]
    pairs = [argument for pair in PAIRS for argument in ("--pair", pair)]
    runner = TFLiteRunner(file)
    for extra, expected in (([], runner(TEXTS)), (pairs, runner(TEXTS, PAIRS))):
        done = client.run("-m", "albert_tf.cli.main", "predict", file, *texts, *extra, "--jsonl")
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert [answer["text"] for answer in answers] == TEXTS
        assert [answer["label"] for answer in answers] == [answer.label for answer in expected]
        assert [answer["probabilities"] for answer in answers] == [answer.probabilities for answer in expected]
        assert done.stderr == ""
    plain = client.run("-m", "albert_tf.cli.main", "predict", file, "--text", TEXTS[0]).stdout
    assert plain == f"{runner(TEXTS[:1])[0].label}\t{runner(TEXTS[:1])[0].score:.4f}\t{TEXTS[0]}\n"


def test_runner(client, file):
    code = (
        "import json, sys; from export.runtime import TFLiteRunner\n"
        "runner = TFLiteRunner(sys.argv[1])\n"
        "print(json.dumps(runner.pipeline.predict_probabilities(json.loads(sys.argv[2])).tolist()))"
    )
    texts = fuzzed_texts(40, seed=3)
    done = client.run("-c", code, file, json.dumps(texts))
    assert json.loads(done.stdout) == TFLiteRunner(file).pipeline.predict_probabilities(texts).tolist()


def test_errors_are_one_line(client, tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(exported().read_bytes()[:5000])
    done = client.run("-m", "albert_tf.cli.main", "predict", path, "--text", "a", check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("albert-tf: error: ")
    assert done.stderr.count("\n") == 1


def test_measurement(client, file):
    done = client.run("-c", f"from export.measurement import measure; print(measure({str(file)!r}, ['a b']).threads)")
    assert done.stdout == "1\n"
