"""Files with a signature for strings: the tokenizer's ids and the model's answers, in TensorFlow Text's operators."""

import numpy as np
import pytest
from small_vocabularies import LINES, fuzzed_texts
from tiny_exports import MAX_LENGTH, classifier, new_classifier, wide_classifier
from tiny_tasks import tiny_task

from albert_tf.errors import InputError
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from export import text_input
from export.inspection import inspect_file
from export.runtime import TFLiteRunner
from export.text_input import run_texts
from export.tflite import export_tflite
from export.validation import ExportError

TEXTS = [
    *LINES,
    "",
    " ",
    "\0",
    "Ηρωας ΟΔΟΣ",
    "naïve CAFÉ “quotes” ``x''",
    "9, 12,,3 1,234,567",
    "a\u00a0b\tc",
    "mill " * 300,
]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "m.tflite"
    report = export_tflite(classifier(), path, recipe="float32", text_input=True, measure=False)
    assert report.same_ids == 1 and report.tokenizer_bytes > 10_000 and report.repeated_bytes == 0
    return path


def test_ids_and_answers(file):
    task = classifier()
    rows = task.encode(TEXTS)
    for text, outputs, (ids, segments) in zip(TEXTS, run_texts(file, TEXTS), rows, strict=True):
        assert outputs["token_ids"].tolist() == ids, text
        wanted = task.run_rows([(ids, segments)])[0]["probabilities"]
        np.testing.assert_allclose(outputs["probabilities"], wanted, rtol=0, atol=2e-6)


def test_ids_of_any_text(file):
    # But for capital sigma: whether it is a final one, a map of characters cannot tell of every word.
    texts = [text for text in fuzzed_texts(150, seed=5) if "\u03a3" not in text]
    assert len(texts) > 60
    found = [outputs["token_ids"].tolist() for outputs in run_texts(file, texts)]
    assert found == [ids for ids, _ in classifier().encode(texts)]


def test_who_has_no_such_operators_reads_the_rest(file):
    """ai-edge-litert alone: the operators are not there, and the signature for ids works."""
    answers = TFLiteRunner(file)(LINES)
    for answer, wanted in zip(answers, classifier().classify(LINES), strict=True):
        assert answer.label == wanted.label and answer.score == pytest.approx(wanted.score, abs=1e-5)
    found = inspect_file(file)
    assert found.problems == () and {s.key for s in found.signatures} == {"serving_default", "texts"}
    assert "custom FastSentencepieceTokenize" in " ".join(
        operator.name.replace("TFText>", "") for graph in found.subgraphs for operator in graph.operators
    )


@pytest.mark.parametrize("form", ["loop", "unrolled"])
def test_recipes_forms_and_lengths(form, tmp_path):
    path, task = tmp_path / "m.tflite", new_classifier()
    report = export_tflite(task, path, form=form, length=(8, 16), text_input=True, measure=False)
    assert report.same_ids == 1
    [outputs] = run_texts(path, ["the old mill by the river " * 5])
    assert (
        outputs["token_ids"].tolist()
        == task.required_tokenizer.encode_batch(["the old mill by the river " * 5], length=16)[0][0]
    )


@pytest.mark.parametrize(("name", "output"), [("regression", "value"), ("similarity", "embedding")])
def test_other_tasks(name, output, tmp_path):
    path, task = tmp_path / "m.tflite", tiny_task(name)
    export_tflite(task, path, recipe="float32", text_input=True, measure=False)
    for found, wanted in zip(run_texts(path, LINES), task.run_rows(task.encode(LINES)), strict=True):
        np.testing.assert_allclose(found[output], wanted[output], rtol=0, atol=1e-5)


def test_another_tokenizer_is_found(tmp_path, monkeypatch):
    other = new_classifier()
    other.tokenizer = AlbertTokenizer(other.tokenizer.vocabulary, max_length=MAX_LENGTH)
    monkeypatch.setattr(
        text_input, "ruled_model", lambda vocabulary: vocabulary.graph_model()
    )  # without the text rules
    with pytest.raises(
        ExportError, match=r"the signature for strings gives other answers .* ids for \d+% of \d+ texts"
    ):
        export_tflite(other, tmp_path / "m.tflite", text_input=True, texts=[line.upper() for line in LINES])
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_have_one(tmp_path):
    for task, arguments, message in (
        (tiny_task("tagging"), {}, "expected a model for classification, .*; one for tagging needs places in the text"),
        (tiny_task("multiple-choice"), {}, "one for multiple-choice needs"),
        (wide_classifier(), {}, "expected a model with a SentencePiece vocabulary"),
        (classifier(), {"runtime": "mediapipe"}, "mediapipe has a tokenizer of its own"),
        (classifier(), {"recipe": "int8", "length": 16, "calibration": LINES}, "a graph for ids alone"),
    ):
        with pytest.raises(InputError, match=f"text_input: .*{message}|text_input: {message}"):
            export_tflite(task, tmp_path / "m.tflite", text_input=True, **arguments)
    assert list(tmp_path.iterdir()) == []


def test_real_lines(shared_data, tmp_path):
    from albert_tf.backbone import AlbertBackbone
    from albert_tf.config import AlbertConfig
    from albert_tf.data.tables import read_examples
    from albert_tf.tasks.classification import AlbertTextClassifier

    tokenizer = AlbertTokenizer.from_pretrained(shared_data / "albert_vocab_en/30k-clean.model", max_length=128)
    config = AlbertConfig(
        vocabulary_size=30000, hidden_dim=16, intermediate_dim=16, num_layers=1, num_heads=1, embedding_dim=8
    )
    task = AlbertTextClassifier(AlbertBackbone(config), tokenizer, labels=["0", "1"])
    export_tflite(task, tmp_path / "m.tflite", recipe="float32", text_input=True, measure=False)
    texts = [example.text for example in read_examples(shared_data / "glue_canonical/SST-2/dev.tsv")]
    found = [outputs["token_ids"].tolist() for outputs in run_texts(tmp_path / "m.tflite", texts)]
    assert found == [ids for ids, _ in tokenizer.encode_batch(texts)]
