"""Files for TFLite Task Library 0.4.4 in its own classes, their tokenizers included: the same answers as here.

Makes a virtual environment and installs tflite-support from the package index, with the versions that fit it: it is of 2023
and needs NumPy 1. On Linux its library needs libusb-1.0 (Debian's libusb-1.0-0).
"""

import numpy as np
import pytest
from client_python import ClientPython
from real_texts import reader_of_english, real_questions, real_sentences
from small_vocabularies import LINES
from tiny_exports import FIXED_LENGTH, MAX_LENGTH, new_classifier, wide_classifier
from tiny_tasks import tiny_task

from albert_tf.data.squad import QuestionExample
from export.associated_files import associated_files
from export.device_graph import convert
from export.device_runtimes import with_metadata
from export.inspection import inspect_file
from export.metadata import append_files
from export.quantization import RECIPES
from export.runtime import TFLiteRunner
from export.tflite import export_tflite

pytestmark = pytest.mark.clients

PACKAGES = (
    *("tflite-support==0.4.4", "numpy==1.26.4", "protobuf==3.20.3", "flatbuffers==25.12.19", "absl-py==2.5.1"),
    *("pybind11==3.1.0", "sounddevice==0.5.6", "cffi==2.1.1", "pycparser==3.12"),
)
TOLERANCE = 1e-5
# Inputs of dense layers are rounded to 8 bits while the model runs. Kernels that add floats in another order round a few of
# them the other way, which a model of random weights enlarges; LiteRT's own with and without XNNPACK differ as much.
ROUNDED_OTHERWISE = {"float32": 0, "float16": 0, "weight_only_int8": 0, "dynamic_int8": 0.03}
TEXTS = [*LINES, "", "THE OLD MILL", "Élan vital, naïve CAFÉ – ½", "12,000 people", "the old mill by the river " * 40]
CLASSIFY = """
import json, sys
from tflite_support.task import text
classifier = text.BertNLClassifier.create_from_file(sys.argv[1])
heads = [classifier.classify(line).classifications for line in json.load(sys.stdin)]
print(json.dumps([{c.category_name: c.score for c in head.categories} for [head] in heads]))
"""
EMBED = """
import json, sys
from tflite_support.task import text
embedder = text.TextEmbedder.create_from_file(sys.argv[1])
print(json.dumps([embedder.embed(line).embeddings[0].feature_vector.value.tolist() for line in json.load(sys.stdin)]))
"""
ANSWER = """
import json, sys
from tflite_support.task import text
answerer = text.BertQuestionAnswerer.create_from_file(sys.argv[1])
found = [answerer.answer(passage, question).answers for question, passage in json.load(sys.stdin)]
print(json.dumps([[(answer.text, answer.pos.logit) for answer in answers] for answers in found]))
"""
READ_METADATA = """
import json, sys
from tflite_support import metadata
shown = metadata.MetadataDisplayer.with_model_file(sys.argv[1])
print(json.dumps([json.loads(shown.get_metadata_json()), shown.get_packed_associated_file_list()]))
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    return ClientPython(tmp_path_factory.mktemp("client"), PACKAGES)


def classifier_file(path, recipe="float32", *, force=False, **options):
    export_tflite(
        new_classifier(scale=0.3), path, recipe=recipe, runtime="task-library", measure=False, force=force, **options
    )
    return path


def differences(found, file, texts):
    """The largest difference of a text's scores from those of the file's own runner, for each text."""
    expected = [prediction.probabilities for prediction in TFLiteRunner(file)(texts)]
    assert all(a.keys() == b.keys() for a, b in zip(found, expected, strict=True))
    return np.array([max(abs(a[x] - b[x]) for x in b) for a, b in zip(found, expected, strict=True)])


@pytest.mark.parametrize(
    ("form", "length", "recipe"),
    [
        ("loop", None, "float32"),
        ("loop", FIXED_LENGTH, "dynamic_int8"),
        ("unrolled", None, "float16"),
        ("unrolled", FIXED_LENGTH, "weight_only_int8"),
    ],
)
def test_forms_lengths_and_recipes(client, form, length, recipe, tmp_path):
    file = classifier_file(tmp_path / "m.tflite", recipe, form=form, length=length, force=True)
    assert differences(client.ask(CLASSIFY, file, TEXTS), file, TEXTS).max() < TOLERANCE
    lengths = [len(ids) for ids, _ in TFLiteRunner(file).tokenizer.encode_batch(TEXTS)]
    assert lengths[-1] == (length or MAX_LENGTH)  # the longest text was cut as here


@pytest.mark.parametrize("recipe", ["dynamic_int8", "int4", "int4_int8_table", "int8", "int16x8"])
def test_what_it_does_not_open_inspect_does_not_promise(client, recipe, tmp_path):
    """Files as LiteRT gets them."""
    task, chosen = new_classifier(), RECIPES[recipe]
    form, length, texts = ("unrolled", 16, LINES) if chosen.activation_bits else ("loop", None, ())
    model = with_metadata(task, convert(task, chosen, form=form, length=length, calibration=texts), "task-library")
    files = associated_files(task, model, chosen, form=form, length=length, runtime="task-library")
    path = tmp_path / "m.tflite"
    path.write_bytes(append_files(model, files))
    done = client.run("-c", CLASSIFY, path, send=["the mill"], check=False)
    assert done.returncode != 0 and done.stdout == ""  # of some files its process ends without a word
    [verdict] = [found for found in inspect_file(path).runtimes if "BertNLClassifier" in found.runtime]
    assert verdict.takes == "no"


def test_any_number_of_labels(client, tmp_path):
    file = tmp_path / "m.tflite"
    task = tiny_task("multi-label")
    export_tflite(task, file, recipe="float32", runtime="task-library", measure=False)
    found = client.ask(CLASSIFY, file, TEXTS)
    expected = TFLiteRunner(file)(TEXTS)
    for scores, answer in zip(found, expected, strict=True):
        assert scores == pytest.approx(answer.probabilities, abs=TOLERANCE)


def test_word_pieces(client, tmp_path):
    file = tmp_path / "m.tflite"
    export_tflite(wide_classifier(), file, recipe="dynamic_int8", runtime="task-library", measure=False)
    texts = ["word7 word1000 WORD7", "a b, c! word3word4", "a0 b1 c29", "", "unheard-of", "word7 " * 100]
    assert differences(client.ask(CLASSIFY, file, texts), file, texts).max() < TOLERANCE


@pytest.mark.parametrize("recipe", ROUNDED_OTHERWISE)
def test_real_sentences(client, recipe, shared_data, tmp_path):
    task = reader_of_english(shared_data, "classification", scale=0.15, labels=["no", "yes", "是"])
    file, lines = tmp_path / "m.tflite", real_sentences(shared_data)
    export_tflite(task, file, recipe=recipe, runtime="task-library", measure=False, force=True)
    found, expected = client.ask(CLASSIFY, file, lines), TFLiteRunner(file)(lines)
    others = differences(found, file, lines) > 1e-3
    assert others.mean() <= ROUNDED_OTHERWISE[recipe]
    assert differences(found, file, lines).max() < 0.01
    labels = [max(scores, key=scores.get) for scores in found]
    assert all(others[i] or label == expected[i].label for i, label in enumerate(labels))
    assert len({round(scores["yes"], 4) for scores in found}) > 100


def test_embeddings_of_real_sentences(client, shared_data, tmp_path):
    file, lines = tmp_path / "m.tflite", real_sentences(shared_data)
    task = reader_of_english(shared_data, "similarity")
    export_tflite(task, file, recipe="dynamic_int8", runtime="task-library", measure=False, force=True)
    np.testing.assert_allclose(client.ask(EMBED, file, lines), TFLiteRunner(file)(lines), rtol=0, atol=1e-3)


def whole_words(passage, start, end):
    """What stands between spaces around `passage[start:end]`: the class gives no part of a word, and no double spaces."""
    start, end = passage.rfind(" ", 0, start) + 1, (passage + " ").index(" ", end)
    return " ".join(filter(None, passage[start:end].split(" ")))


@pytest.fixture(scope="module", params=["float32", "weight_only_int8", "dynamic_int8"])
def answerer(request, shared_data, tmp_path_factory):
    """Its settings are what the class has built in: five starts and ends, answers of at most 32 tokens."""
    file = tmp_path_factory.mktemp("answerer") / "m.tflite"
    settings = {"n_best": 5, "max_answer_length": 32}
    task = reader_of_english(shared_data, "question-answering", max_length=384, scale=0.2, **settings)
    export_tflite(task, file, recipe=request.param, runtime="task-library", measure=False, force=True)
    return file


def test_real_questions(client, answerer, shared_data):
    asked, runner = real_questions(shared_data), TFLiteRunner(answerer)
    rows = runner.pipeline.prepare([QuestionExample("", passage, question) for question, passage in asked])
    whole = [k for k, of_question in enumerate(rows.context) if len(of_question.bounds) == 1]  # read in one part
    assert len(whole) >= 150
    asked = [asked[k] for k in whole]
    found = client.ask(ANSWER, answerer, asked)
    expected = runner([question for question, _ in asked], [passage for _, passage in asked])
    assert sum(answer.text != "" for answer in expected) >= 100
    outputs = runner.run_rows([rows.rows[sum(len(c.bounds) for c in rows.context[:k])] for k in whole])
    recipe, others = runner.settings["recipe"]["name"], 0
    tolerance = 0.05 if recipe == "dynamic_int8" else 1e-3  # of the sum of two logits
    for answers, answer, row, (_, passage) in zip(found, expected, outputs, asked, strict=True):
        wanted = []
        if answer.start is not None:
            first_token = float(row["start_logits"][0]) + float(row["end_logits"][0])
            wanted = [(whole_words(passage, answer.start, answer.end), first_token - answer.no_answer_score)]
        same = len(answers[:1]) == len(wanted) and all(
            text == expected_text and score == pytest.approx(expected_score, abs=tolerance)
            for (text, score), (expected_text, expected_score) in zip(answers, wanted, strict=False)
        )
        others += not same
    assert others <= ROUNDED_OTHERWISE[recipe] * len(asked)


def test_long_passages_are_cut(client, answerer, shared_data):
    """It reads one part of a passage, where `predict` reads all."""
    question, passage = real_questions(shared_data)[0]
    [short] = client.ask(ANSWER, answerer, [(question, " ".join([passage] * 9))])
    [long] = client.ask(ANSWER, answerer, [(question, " ".join([passage] * 12))])
    assert short == long


def test_metadata_as_tflite_support_reads_it(client, answerer, tmp_path):
    for file, outputs in (
        (classifier_file(tmp_path / "m.tflite"), ["probability"]),
        (answerer, ["end_logits", "start_logits"]),
    ):
        metadata, files = client.ask(READ_METADATA, file, [])
        [graph] = metadata["subgraph_metadata"]
        assert {tensor["name"] for tensor in graph["input_tensor_metadata"]} == {"ids", "segment_ids", "mask"}
        assert [tensor["name"] for tensor in graph["output_tensor_metadata"]] == outputs
        assert "device.spm" in files
        assert graph["input_process_units"][0]["options"]["sentencePiece_model"][0]["name"] == "device.spm"
