"""The runner of exported files: any text, any file, any thread."""

import json
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import ROOT
from small_vocabularies import LINES, fuzzed_texts
from tiny_exports import FIXED_LENGTH, LABELS, MAX_LENGTH, classifier, exported, keras_probabilities

from albert_tf.data.schema import Prediction
from albert_tf.errors import InputError
from export.metadata import SETTINGS_FILE, append_files, read_files, read_settings
from export.runtime import TFLiteRunner

TOLERANCE = 2e-6
ODD_TEXTS = {
    "10,000 words": "the old mill by the river " * 1667,
    "empty": "",
    "spaces": " \t\n ",
    "emoji": "😀👩‍👩‍👧 👍🏽",
    "right to left": "שלום עולם مرحبا بالعالم",
    "nul": "the\0mill\0",
    "lone surrogates": "the \ud800 mill \udfff",
    "one endless word": "x" * 100_000,
    "unassigned": "\U000e0fff\uffff",
}


@pytest.fixture(scope="module")
def runner() -> TFLiteRunner:
    return TFLiteRunner(exported())


def expected_rows(texts, pairs=None, length=None):
    encoded = classifier().tokenizer.encode_batch(texts, pairs, length=length)
    return np.stack([keras_probabilities(classifier(), *example) for example in encoded])


def run_python(code, *arguments, **options):
    """A new interpreter that finds the project and the tests; output as text."""
    paths = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'tests')!r}]\n"
    command = [sys.executable, "-c", paths + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize("name", ODD_TEXTS)
def test_odd_texts(runner, name):
    text = ODD_TEXTS[name]
    (answer,) = runner([text])
    expected = expected_rows([text])[0]
    np.testing.assert_allclose(list(answer.probabilities.values()), expected, rtol=0, atol=TOLERANCE)
    assert answer.label == LABELS[expected.argmax()]
    assert answer.score == answer.probabilities[answer.label]


def test_fuzzed_texts_in_order(runner):
    texts = fuzzed_texts(60, seed=5)
    rows = runner.pipeline.predict_probabilities(texts)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, expected_rows(texts), rtol=0, atol=TOLERANCE)
    np.testing.assert_array_equal(runner.pipeline.predict_probabilities(texts[::-1]), rows[::-1])
    assert np.abs(np.diff(rows, axis=0)).max() > 0.05  # the order matters


def test_pairs(runner):
    pairs = [*LINES[1:], ""]
    rows = runner.pipeline.predict_probabilities(LINES, pairs)
    np.testing.assert_allclose(rows, expected_rows(LINES, pairs), rtol=0, atol=TOLERANCE)
    assert np.abs(rows - runner.pipeline.predict_probabilities(LINES)).max() > 1e-3
    assert runner(LINES, pairs) == [Prediction.from_probabilities(row, LABELS) for row in rows]


def test_no_texts(runner):
    assert runner([]) == []
    assert runner.pipeline.predict_probabilities([]).shape == (0, len(LABELS))


def test_fixed_length_files_cut_and_pad():
    runner = TFLiteRunner(exported("all", "float32", "unrolled", FIXED_LENGTH))
    texts = [*LINES, *ODD_TEXTS.values()]
    rows = runner.pipeline.predict_probabilities(texts)
    np.testing.assert_allclose(rows, expected_rows(texts, length=FIXED_LENGTH), rtol=0, atol=TOLERANCE)
    assert runner.length == runner.tokenizer.max_length == FIXED_LENGTH
    with pytest.raises(InputError, match=f"takes 1 to {FIXED_LENGTH} tokens, got {FIXED_LENGTH + 1}"):
        runner.run([5] * (FIXED_LENGTH + 1), [0] * (FIXED_LENGTH + 1))


@pytest.mark.parametrize(
    ("texts", "pairs", "message"),
    [
        ("a text", None, r"texts: expected a list of strings, got one str; write \['a text'\]"),
        (b"a text", None, "texts: expected a list of strings, got one bytes"),
        (None, None, "texts: expected a list of strings, got NoneType"),
        (7, None, "texts: expected a list of strings, got int"),
        ({"a": 1}, None, "texts: expected a list of strings, got dict"),
        ({"a"}, None, "texts: expected a list of strings, got set"),
        (["a", None], None, r"texts\[1\]: expected a string, got NoneType"),
        ([["a", "b"]], None, r"texts\[0\]: expected a string, got list"),
        (["a"], "b", "pairs: expected a list of strings"),
        (["a"], ["b", "c"], "pairs: expected one for each text; got 1 texts and 2 pairs"),
        (["a", "b"], ["b", None], r"pairs\[1\]: expected a string, got NoneType"),
    ],
)
def test_wrong_types(runner, texts, pairs, message):
    with pytest.raises(InputError, match=message):
        runner(texts, pairs)


def test_sequences_of_other_kinds(runner):
    assert runner(("the mill",)) == runner(np.array(["the mill"])) == runner(["the mill"])


def test_what_a_runner_says_about_its_file(runner):
    assert runner.pipeline.labels == LABELS
    assert runner.length is None
    assert runner.settings["form"] == "loop"
    assert runner.settings["recipe"]["name"] == "float32"
    assert runner.settings["parameters"] == classifier().count_params()
    assert runner.tokenizer.max_length == MAX_LENGTH


def test_no_tensorflow():
    code = (
        "from export.runtime import TFLiteRunner; print(TFLiteRunner(sys.argv[1])(['the mill'])[0].label)\n"
        "print([m for m in ('tensorflow', 'keras', 'tensorflow_text', 'jax', 'torch') if m in sys.modules])"
    )
    done = run_python(code, exported())
    assert done.stdout.split() == [TFLiteRunner(exported())(["the mill"])[0].label, "[]"]
    assert done.stderr == ""


def test_several_threads_share_a_runner(runner):
    texts = fuzzed_texts(40, seed=9)
    runner = TFLiteRunner(exported())  # one that remembers no words yet
    expected = expected_rows(texts)
    start = threading.Barrier(4)

    def work(offset):
        start.wait()
        order = [(i + 10 * offset) % len(texts) for i in range(len(texts))] * 3
        return order, np.concatenate([runner.pipeline.predict_probabilities([texts[i]]) for i in order])

    with ThreadPoolExecutor(4) as pool:
        for order, rows in pool.map(work, range(4)):
            np.testing.assert_allclose(rows, expected[order], rtol=0, atol=TOLERANCE)


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_threads_are_used():
    code = (
        "import os; from export.runtime import TFLiteRunner\n"
        "from ai_edge_litert import interpreter\n"
        "before = len(os.listdir('/proc/self/task'))\n"
        "runner = TFLiteRunner(sys.argv[1], threads=int(sys.argv[2])); runner(['the mill'])\n"
        "print(len(os.listdir('/proc/self/task')) - before)"
    )
    counts = {n: int(run_python(code, exported(), n).stdout) for n in (1, 3)}
    assert counts == {1: 0, 3: 2}


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", True, None])
def test_wrong_threads(threads):
    with pytest.raises(InputError, match="threads: expected a whole number from 1 to 256, got"):
        TFLiteRunner(exported(), threads=threads)


# Runs in a process of its own, for the native runtime ends the process on some damaged models. Prints a line for each
# damaged copy: refused, or the same answers as the whole file.
DAMAGE = """
import random
from pathlib import Path
from albert_tf.errors import InputError
from export.runtime import TFLiteRunner

whole, work = Path(sys.argv[1]).read_bytes(), Path(sys.argv[2])
model_bytes = TFLiteRunner(sys.argv[1]).settings["model_bytes"]
rng = random.Random(0)
copies = {f"first {n}": whole[:n] for n in [0, 1, 4, 7, 8, 9, *(len(whole) * i // 40 for i in range(1, 40))]}
copies |= {f"without last {n}": whole[:-n] for n in (1, 2, 21, 22, 23, 100, 1000)}
copies |= {f"without first {n}": whole[n:] for n in (1, 8, model_bytes)}
def changed(positions):
    copy = bytearray(whole)
    for position in positions:
        copy[position] ^= rng.randrange(1, 256)
    return bytes(copy)
copies |= {f"header {i}": changed([i]) for i in range(32)}
copies |= {f"model {i}": changed([rng.randrange(model_bytes)]) for i in range(40)}
copies |= {f"files {i}": changed([rng.randrange(model_bytes, len(whole))]) for i in range(40)}
copies |= {f"directory {i}": changed([rng.randrange(len(whole) - 500, len(whole))]) for i in range(60)}
copies |= {f"many {i}": changed(rng.sample(range(len(whole)), 20)) for i in range(20)}
start = whole.index(b"PK\\x03\\x04")
copies["a hole"] = whole[: start - 999] + whole[start:]
copies["zeros"] = whole[:1000] + bytes(20000) + whole[21000:]
expected = TFLiteRunner(sys.argv[1]).pipeline.predict_probabilities(["the mill", ""]).tolist()
for name, content in copies.items():
    print(name, end=": ", flush=True)
    work.write_bytes(content)
    try:
        answers = TFLiteRunner(work).pipeline.predict_probabilities(["the mill", ""]).tolist()
    except InputError as error:
        assert str(error).startswith(str(work)) or str(error).startswith(f"cannot read {work}"), error
        print("refused:", *str(error).split())
    else:
        print("same" if answers == expected else "OTHER ANSWERS")
"""


def test_damaged_files_are_refused(tmp_path):
    done = run_python(DAMAGE, exported(), tmp_path / "damaged.tflite")
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (lines[-1:], done.stderr[-2000:])
    assert len(lines) > 220
    assert [line for line in lines if "OTHER ANSWERS" in line] == []
    # Some bytes of a zip archive mean nothing to us, such as dates; everything else must be found.
    same = [line.split()[0] for line in lines if line.endswith("same")]
    assert set(same) <= {"files", "directory"}
    assert len(same) < 50
    by_sum = [line for line in lines if "damaged: the model's sha256 differs" in line]
    assert {"header", "model", "a", "zeros"} <= {line.split(":")[0].split()[0] for line in by_sum}


def settings_of(path):
    files = read_files(path)
    return files, read_settings(files, path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": None}, "expected a text classifier with labels"),
        ({"labels": ["a", "b"]}, r"outputs \{'probabilities': \(2,\)\} .* model has \{'probabilities': \[1, 3\]\}"),
        ({"task": "poetry"}, "expected a model of a task among classification, .*; got 'poetry'"),
        ({"model_sha256": "0" * 64}, "damaged: the model's sha256 differs"),
        ({"model_bytes": 10**12}, "damaged: the model's sha256 differs"),
        ({"model_bytes": -1}, "damaged: the model's sha256 differs"),
        ({"length": "16"}, "missing or of a wrong type: length"),
        ({"config": {}}, "its tokenizer or config cannot be used"),
    ],
)
def test_settings_that_cannot_be(tmp_path, changes, message):
    files, settings = settings_of(exported())
    if "labels" in changes:
        settings["settings"] = {"labels": changes["labels"]}
    else:
        settings |= changes
    model = exported().read_bytes()[: settings_of(exported())[1]["model_bytes"]]
    path = tmp_path / "m.tflite"
    path.write_bytes(append_files(model, files | {SETTINGS_FILE: json.dumps(settings).encode()}))
    with pytest.raises(InputError, match=message) as error:
        TFLiteRunner(path)
    assert str(path) in str(error.value)


def test_a_setting_that_has_a_default_may_be_missing(tmp_path, runner):
    files, settings = settings_of(exported())
    del settings["config"]["num_segments"]
    model = exported().read_bytes()[: settings["model_bytes"]]
    (tmp_path / "m.tflite").write_bytes(append_files(model, files | {SETTINGS_FILE: json.dumps(settings).encode()}))
    assert TFLiteRunner(tmp_path / "m.tflite")(LINES[:2]) == runner(LINES[:2])


def test_files_that_are_not_ours(tmp_path):
    files, settings = settings_of(exported())
    model = exported().read_bytes()[: settings["model_bytes"]]
    bare, foreign, headless = (tmp_path / name for name in ("bare.tflite", "foreign.tflite", "headless.tflite"))
    bare.write_bytes(model)
    foreign.write_bytes(append_files(model, {"vocab.txt": b"[PAD]\n"}))
    headless.write_bytes(append_files(model, {n: c for n, c in files.items() if not n.startswith(("voc", "tok"))}))
    archive = tmp_path / "archive.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("albert_tf.json", "{}")
    for path, message in (
        (bare, "holds no tokenizer and labels"),
        (foreign, r"has no albert_tf\.json; expected a file written by albert-tf export tflite"),
        (headless, "its tokenizer or config cannot be used"),
        (archive, "expected a TFLite file, got something else"),
        (tmp_path / "none.tflite", "cannot read"),
        (tmp_path, "cannot read"),
    ):
        with pytest.raises(InputError, match=message):
            TFLiteRunner(path)
