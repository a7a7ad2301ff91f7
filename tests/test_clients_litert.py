"""An exported file where only ai-edge-litert, numpy and sentencepiece are installed: the same answers as here.

Makes a virtual environment and installs the three from the package index, at the versions of constraints.txt.
"""

import json

import pytest
from client_python import CONSTRAINTS, ClientPython
from conftest import ROOT
from real_texts import reader_of_english, real_sentences
from small_vocabularies import fuzzed_texts
from tiny_exports import exported, wide_classifier

from export.runtime import TFLiteRunner
from export.tflite import export_tflite

pytestmark = pytest.mark.clients

TEXTS = ["the old mill", "12,000 people", "😀 שלום", "", "word7 a b c"]
PAIRS = ["by the river", "", "the wheel", "the water", "word8"]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A Python that has the three packages; `run` has it find the project's sources."""
    return ClientPython(tmp_path_factory.mktemp("client"), [*CONSTRAINTS, "ai-edge-litert", "numpy", "sentencepiece"])


def run(client, *arguments, check=True):
    return client.run(*arguments, check=check, PYTHONPATH=str(ROOT), PYTHONDONTWRITEBYTECODE="1")


@pytest.fixture(scope="module", params=["sentencepiece", "wordpiece"])
def file(request, tmp_path_factory):
    if request.param == "sentencepiece":
        return exported("all", "dynamic_int8")
    path = tmp_path_factory.mktemp("files") / "wordpiece.tflite"
    export_tflite(wide_classifier(), path, recipe="dynamic_int8", form="unrolled", length=16)
    return path


def test_tensorflow_is_not_there(client):
    for module in ("tensorflow", "keras", "rich", "sklearn", "safetensors"):
        done = run(client, "-c", f"import {module}", check=False)
        assert "ModuleNotFoundError" in done.stderr, module


def test_predict_command(client, file):
    texts = [argument for text in TEXTS for argument in ("--text", text)]
    pairs = [argument for pair in PAIRS for argument in ("--pair", pair)]
    runner = TFLiteRunner(file)
    for extra, expected in (([], runner(TEXTS)), (pairs, runner(TEXTS, PAIRS))):
        done = run(client, "-m", "albert_tf.cli.main", "predict", file, *texts, *extra, "--jsonl")
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert [answer["text"] for answer in answers] == TEXTS
        assert [answer["label"] for answer in answers] == [answer.label for answer in expected]
        assert [answer["probabilities"] for answer in answers] == [answer.probabilities for answer in expected]
        assert done.stderr == ""
    plain = run(client, "-m", "albert_tf.cli.main", "predict", file, "--text", TEXTS[0]).stdout
    assert plain == f"{runner(TEXTS[:1])[0].label}\t{runner(TEXTS[:1])[0].score:.4f}\t{TEXTS[0]}\n"


def test_runner(client, file):
    code = (
        "import json, sys; from export.runtime import TFLiteRunner\n"
        "runner = TFLiteRunner(sys.argv[1])\n"
        "print(json.dumps(runner.pipeline.predict_probabilities(json.loads(sys.argv[2])).tolist()))"
    )
    texts = fuzzed_texts(40, seed=3)
    done = run(client, "-c", code, file, json.dumps(texts))
    assert json.loads(done.stdout) == TFLiteRunner(file).pipeline.predict_probabilities(texts).tolist()


def test_errors_are_one_line(client, tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(exported().read_bytes()[:5000])
    done = run(client, "-m", "albert_tf.cli.main", "predict", path, "--text", "a", check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("albert-tf: error: ")
    assert done.stderr.count("\n") == 1


def test_measurement(client, file):
    done = run(client, "-c", f"from export.measurement import measure; print(measure({str(file)!r}, ['a b']).threads)")
    assert done.stdout == "1\n"


def test_real_sentences(client, shared_data, tmp_path):
    """Beside the Keras model: the file's loop, in float32 and of any length."""
    path, lines = tmp_path / "m.tflite", real_sentences(shared_data)
    task = reader_of_english(shared_data, "classification", labels=["no", "yes", "是"])
    export_tflite(task, path, recipe="float32", measure=False)
    code = (
        "import json, sys; from export.runtime import TFLiteRunner\n"
        "answers = TFLiteRunner(sys.argv[1])(json.loads(open(sys.argv[2], encoding='utf-8').read()))\n"
        "print(json.dumps([[answer.label, answer.score] for answer in answers]))"
    )
    (tmp_path / "lines.json").write_text(json.dumps(lines), encoding="utf-8")
    found = json.loads(run(client, "-c", code, path, tmp_path / "lines.json").stdout)
    expected = task.classify(lines)
    assert [label for label, _ in found] == [answer.label for answer in expected]
    assert [score for _, score in found] == pytest.approx([answer.score for answer in expected], abs=1e-4)
