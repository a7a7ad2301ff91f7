"""SavedModels of every task: moved elsewhere, loaded without this package, they answer as the task does."""

import dataclasses
import functools
import json
import pickle
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from small_vocabularies import LINES, fuzzed_texts, sentencepiece_vocabulary, wordpiece_vocabulary
from tiny_exports import BASE, LABELS, MAX_LENGTH, exported, new_classifier
from tiny_models import randomize
from tiny_tasks import TAGS

from albert_tf.backbone import AlbertBackbone
from albert_tf.errors import InputError
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.tasks.trained import TASKS
from albert_tf.tokenization.rules import to_utf8
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from export import export_saved_model
from export.runtime import TFLiteRunner
from export.saved_model import SERVED

SETTINGS: dict[str, dict[str, Any]] = {
    "classification": {"labels": LABELS, "temperature": 1.7},
    "multi-label": {"labels": LABELS, "threshold": 0.4},
    "regression": {},
    "multiple-choice": {},
    "tagging": {"labels": TAGS},
    "similarity": {"pooling": "cls"},
    "fill-mask": {},
    "question-answering": {"doc_stride": 5, "max_question_length": 9, "no_answer_threshold": -1.0},
}
WORDPIECE = ("multi-label", "multiple-choice", "fill-mask")
TEXTS = ["", "\0", "The mill 🎬 by the river", *LINES[:5], *fuzzed_texts(12, 31), "mill " * 3000]
_folder = tempfile.TemporaryDirectory(prefix="saved_models.")

# What a server does: no albert_tf, no export. Inputs and outputs are pickled.
SERVER = """
import pickle, sys
sys.modules["albert_tf"] = sys.modules["export"] = None
import numpy as np, tensorflow as tf, tensorflow_text
answers = {}
for task, (folder, requests) in pickle.load(open(sys.argv[1], "rb")).items():
    loaded = tf.saved_model.load(folder)
    answers[task] = {
        name: {k: v.numpy() for k, v in loaded.signatures[name](**{k: tf.constant(v) for k, v in inputs.items()}).items()}
        for name, inputs in requests.items()
    }
pickle.dump(answers, open(sys.argv[2], "wb"))
"""


@functools.cache
def task_of(name: str) -> Any:
    vocabulary = wordpiece_vocabulary() if name in WORDPIECE else sentencepiece_vocabulary()
    config = dataclasses.replace(BASE, vocabulary_size=vocabulary.size)
    task = TASKS[name](AlbertBackbone(config), AlbertTokenizer(vocabulary, max_length=MAX_LENGTH), **SETTINGS[name])
    randomize(task, scale=0.4)
    if name == "multi-label":
        task.multi_label.bias.assign([-9.0, 0.0, 9.0])  # one that is never given, one that always is
    return task


def strings(texts: list[Any]) -> np.ndarray:
    return np.array([to_utf8(t) if isinstance(t, str) else [to_utf8(one) for one in t] for t in texts], object)


QUESTIONS = ["who came", "when did the wheel turn", "Ηρωας", "what"]
PASSAGES = [" ".join(LINES[:4]), LINES[1] + "\u3000\n", "", "🎬 the mill"]
OPTIONS = [["the mill", "the wheel", ""], ["a", "b", "c"], ["no", "yes", ""], ["x", "", ""]]
CHOICES = ["who is _ or _", "the river", "_", "why?"]
CONTEXTS = ["", LINES[0], " ", "the mill " * 100]
MASKED = ["the [MASK] by the river", "[MASK]", "a[MASK]b[MASK] [MASK]e", "no mask", "mill [MASK] " * 40]


def requests_of(name: str) -> dict[str, dict[str, np.ndarray]]:
    """Inputs of every signature that takes strings."""
    if name == "question-answering":
        return {"serving_default": {"questions": strings(QUESTIONS), "passages": strings(PASSAGES)}}
    if name == "multiple-choice":
        inputs = {"questions": strings(CHOICES), "options": strings(OPTIONS), "contexts": strings(CONTEXTS)}
        return {"serving_default": inputs}
    if name == "fill-mask":
        return {"serving_default": {"texts": strings(MASKED)}, "embed": {"texts": strings(TEXTS)}}
    if name == "tagging":
        return {"serving_default": {"texts": strings(TEXTS)}}
    pairs = {"texts": strings(TEXTS), "pairs": strings(TEXTS[::-1])}
    return {"serving_default": {"texts": pairs["texts"]}, "pairs": pairs, "embed": {"texts": pairs["texts"]}}


@pytest.fixture(scope="module")
def reports() -> dict[str, Any]:
    """Every task's report; the SavedModels are in `_folder`, as they were written."""
    return {name: export_saved_model(task_of(name), Path(_folder.name) / "written" / name) for name in SETTINGS}


@pytest.fixture(scope="module")
def answers(reports: dict[str, Any]) -> dict[str, Any]:
    """What another process answers with the folders moved away, and this package out of reach."""
    moved = Path(_folder.name) / "elsewhere"
    shutil.copytree(Path(_folder.name) / "written", moved)
    jobs = {name: (str(moved / name / "1"), requests_of(name)) for name in SETTINGS}
    given, taken = Path(_folder.name) / "requests", Path(_folder.name) / "answers"
    given.write_bytes(pickle.dumps(jobs))
    command = [sys.executable, "-I", "-c", SERVER, str(given), str(taken)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=_folder.name)
    assert done.returncode == 0, done.stderr
    return pickle.loads(taken.read_bytes())


def texts_of(array: np.ndarray) -> Any:
    return [texts_of(row) if isinstance(row, np.ndarray) else row.decode() for row in array]


def assert_near(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)


def test_every_task_is_served() -> None:
    assert set(SERVED) == set(TASKS) == set(SETTINGS)


@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_written(name: str, reports: dict[str, Any]) -> None:
    folder = Path(_folder.name) / "written" / name
    assert [path.name for path in folder.iterdir()] == ["1"]
    held = {path.relative_to(folder / "1").as_posix() for path in folder.rglob("*") if path.is_file()}
    tokenizer = {"vocab.txt"} if name in WORDPIECE else {"vocabulary.spm"}
    assert held == {
        *("saved_model.pb", "fingerprint.pb", "variables/variables.index", "variables/variables.data-00000-of-00001"),
        *("assets.extra/tf_serving_warmup_requests", "assets.extra/albert_tf.json"),
        *(f"assets.extra/tokenizer/{file}" for file in (*tokenizer, "tokenizer.json")),
    }
    report = reports[name]
    assert (report.version, report.agreement) == (1, 1.0) and 0 < report.max_difference < 1e-4
    assert report.size_bytes == sum((folder / "1" / file).stat().st_size for file in held)
    # Weights once, and the tables of the text rules, which are some 3 MB for WordPiece, once.
    assert report.size_bytes - 4 * task_of(name).count_params() < 4_500_000
    settings = json.loads((folder / "1/assets.extra/albert_tf.json").read_text(encoding="utf-8"))
    assert settings["task"] == name and settings["settings"] == json.loads(json.dumps(task_of(name).settings()))
    assert set(settings["signatures"]) == {*requests_of(name), "tokens"} == set(report.signatures)


def test_labels(answers: dict[str, Any]) -> None:
    task, found = task_of("classification"), answers["classification"]
    for signature, pairs in (("serving_default", None), ("pairs", TEXTS[::-1])):
        expected = task.classify(TEXTS, pairs)
        outputs = found[signature]
        assert texts_of(outputs["label"]) == [prediction.label for prediction in expected]
        assert texts_of(outputs["labels"]) == [list(LABELS)] * len(TEXTS)
        assert_near(outputs["score"], [prediction.score for prediction in expected])
        assert_near(outputs["probabilities"], task.predict_probabilities(TEXTS, pairs))
    temperature = new_classifier().task_settings.get("temperature", 1.0)
    assert task.temperature == 1.7 != temperature


def test_any_number_of_labels(answers: dict[str, Any]) -> None:
    expected = task_of("multi-label").classify(TEXTS)
    outputs = answers["multi-label"]["serving_default"]
    assert_near(outputs["sigmoid_probabilities"], [list(found.probabilities.values()) for found in expected])
    names = [
        tuple(label for label, given in zip(row, is_given, strict=True) if given)
        for row, is_given in zip(texts_of(outputs["labels"]), outputs["is_given"], strict=True)
    ]
    assert names == [found.labels for found in expected]
    assert 0 < outputs["is_given"].mean() < 1


def test_numbers_and_embeddings(answers: dict[str, Any]) -> None:
    regressor, embedder = task_of("regression"), task_of("similarity")
    assert_near(answers["regression"]["serving_default"]["value"], regressor.predict_values(TEXTS))
    assert_near(answers["regression"]["pairs"]["value"], regressor.predict_values(TEXTS, TEXTS[::-1]))
    found = answers["similarity"]
    assert_near(found["serving_default"]["embedding"], embedder.embed(TEXTS))
    assert_near(found["embed"]["embedding"], embedder.embed(TEXTS))
    assert_near(found["pairs"]["cosine"], pipeline_of(embedder)(TEXTS, TEXTS[::-1]))


@pytest.mark.parametrize("name", ["classification", "fill-mask"])
def test_embeddings_of_the_last_layer(name: str, answers: dict[str, Any]) -> None:
    task = task_of(name)
    outputs = task.backbone(task.tokenizer(TEXTS), training=False)
    mask = task.tokenizer(TEXTS)["padding_mask"][:, :, None]
    found = answers[name]["embed"]
    assert_near(found["mean_embedding"], (np.asarray(outputs["sequence_output"]) * mask).sum(1) / mask.sum(1))
    assert_near(found["pooled_embedding"], outputs["pooled_output"])


def test_options(answers: dict[str, Any]) -> None:
    given = [[option for option in options if option] for options in OPTIONS]
    expected = pipeline_of(task_of("multiple-choice"))(CHOICES, given, CONTEXTS)
    outputs = answers["multiple-choice"]["serving_default"]
    assert outputs["option"].tolist() == [choice.option for choice in expected]
    for row, choice in zip(outputs["probabilities"], expected, strict=True):
        count = len(choice.probabilities)
        assert_near(row[:count], choice.probabilities)
        assert not row[count:].any()


def test_words(answers: dict[str, Any]) -> None:
    outputs = answers["tagging"]["serving_default"]
    entities = pipeline_of(task_of("tagging"))(TEXTS)
    assert any(entities)
    for number, (text, expected) in enumerate(zip(TEXTS, entities, strict=True)):
        row = {name: values[number] for name, values in outputs.items()}
        count = int((row["ends"] > 0).sum())
        for word, start, end in zip(texts_of(row["words"][:count]), row["starts"], row["ends"], strict=False):
            assert to_utf8(text[start:end]).decode() == word
        assert set(texts_of(row["words"][count:])) <= {""} and set(texts_of(row["labels"][count:])) <= {""}
        firsts = [i for i, label in enumerate(texts_of(row["labels"][:count])) if label.startswith("B-")]
        assert [int(row["starts"][i]) for i in firsts] == [entity.start for entity in expected]
        assert [texts_of(row["labels"])[i].removeprefix("B-") for i in firsts] == [entity.kind for entity in expected]


def test_masks(answers: dict[str, Any]) -> None:
    outputs = answers["fill-mask"]["serving_default"]
    for number, text in enumerate(MASKED):
        row = {name: values[number] for name, values in outputs.items()}
        count = text.count("[MASK]")
        assert not row["probabilities"][count:].any() and set(texts_of(row["pieces"][count:].ravel())) <= {""}
        if not count:
            continue
        (expected,) = pipeline_of(task_of("fill-mask"))([text])
        assert texts_of(row["pieces"][:count]) == [[c.piece for c in mask] for mask in expected.masks]
        assert row["token_ids"][:count].tolist() == [[c.token_id for c in mask] for mask in expected.masks]
        assert_near(row["probabilities"][:count], [[c.probability for c in mask] for mask in expected.masks])


def test_answers(answers: dict[str, Any]) -> None:
    expected = pipeline_of(task_of("question-answering"))(QUESTIONS, PASSAGES)
    outputs = answers["question-answering"]["serving_default"]
    assert texts_of(outputs["answer"]) == [found.text for found in expected]
    assert {bool(found.text) for found in expected} == {True, False}
    places = [(-1, -1) if found.start is None else (found.start, found.end) for found in expected]
    assert list(zip(outputs["start"].tolist(), outputs["end"].tolist(), strict=True)) == places
    assert_near(outputs["score"], [found.score for found in expected])
    assert_near(outputs["no_answer_score"], [found.no_answer_score for found in expected])


def test_as_the_device_file(tmp_path: Path) -> None:
    """Token ids and texts, of the same classifier."""
    runner, task = TFLiteRunner(exported()), new_classifier()
    assert export_saved_model(task, tmp_path / "m").version == 1
    loaded = tf.saved_model.load(str(tmp_path / "m/1"))
    texts = [*LINES, *fuzzed_texts(40, 32)]
    expected = runner.pipeline.predict_probabilities(texts)
    by_text = loaded.signatures["serving_default"](texts=tf.constant([to_utf8(text) for text in texts]))
    assert_near(by_text["probabilities"], expected)
    inputs = {name: tf.constant(array) for name, array in task.tokenizer(texts).items()}
    assert_near(loaded.signatures["tokens"](**inputs)["probabilities"], expected)


def test_batches_of_any_size(reports: dict[str, Any]) -> None:
    for name in ("classification", "tagging", "fill-mask", "multiple-choice", "question-answering"):
        loaded = tf.saved_model.load(str(Path(_folder.name) / "written" / name / "1"))
        inputs = requests_of(name)["serving_default"]
        for size in (0, 1, 3):
            found = loaded.signatures["serving_default"](**{k: tf.constant(v[:size]) for k, v in inputs.items()})
            assert {len(array) for array in found.values()} == {size}
        if len(inputs) > 1:
            uneven = {k: tf.constant(v[: 1 + n]) for n, (k, v) in enumerate(inputs.items())}
            with pytest.raises(tf.errors.InvalidArgumentError, match="expected as many rows as questions has"):
                loaded.signatures["serving_default"](**uneven)


def test_bytes_that_are_no_text(reports: dict[str, Any]) -> None:
    for name in ("classification", "tagging", "fill-mask", "similarity"):
        loaded = tf.saved_model.load(str(Path(_folder.name) / "written" / name / "1"))
        found = loaded.signatures["serving_default"](texts=tf.constant([b"\xff\xfe[MASK]", b"a\xc3", b"\x80 mill"]))
        numbers = [array for array in found.values() if array.dtype.is_floating]
        assert numbers and all(np.isfinite(array).all() for array in numbers)


def test_no_version_after_the_last_one_that_serving_holds(tmp_path: Path) -> None:
    (tmp_path / str(2**63 - 1)).mkdir()
    with pytest.raises(InputError, match=f"has the version {2**63 - 1}, after which no other can be"):
        export_saved_model(new_classifier(), tmp_path)


def test_wrong_use(tmp_path: Path) -> None:
    task = new_classifier()
    with pytest.raises(InputError, match="task: expected a task such as AlbertTextClassifier, got str"):
        export_saved_model("runs/sst2", tmp_path / "m")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="texts: expected at least one text"):
        export_saved_model(task, tmp_path / "m", texts=[])
    for version in (0, -1, True, "1", 2**63):
        with pytest.raises(InputError, match="version: expected a whole number from 1 to 9223372036854775807, got"):
            export_saved_model(task, tmp_path / "m", version=version)  # type: ignore[arg-type]
    (tmp_path / "a file").write_text("")
    with pytest.raises(InputError, match="a file exists already"):
        export_saved_model(task, tmp_path / "a file")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/weights.safetensors").write_text("")
    with pytest.raises(InputError, match=r"expected a folder with versions of one model .* found weights.safetensors"):
        export_saved_model(task, tmp_path / "run", overwrite=True)
    (tmp_path / "m/3").mkdir(parents=True)
    (tmp_path / "m/3/notes.txt").write_text("")
    with pytest.raises(InputError, match=r"m/3 exists already; pass --overwrite"):
        export_saved_model(task, tmp_path / "m", version=3)
    with pytest.raises(InputError, match=r"m/3 is not a SavedModel \(notes.txt\), so it is not replaced"):
        export_saved_model(task, tmp_path / "m", overwrite=True)
    assert [path.name for path in (tmp_path / "m").iterdir()] == ["3"]
    no_tokenizer = type(task)(task.backbone, None, labels=LABELS)
    with pytest.raises(InputError, match="this model has no tokenizer"):
        export_saved_model(no_tokenizer, tmp_path / "m")
