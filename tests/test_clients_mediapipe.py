"""Files for MediaPipe in its own TextClassifier and TextEmbedder, their tokenizer included: the same answers as here.

Makes a virtual environment and installs MediaPipe from the package index, at the version of constraints.txt. On Linux
its library needs libEGL and libGLESv2 (Debian's libegl1 and libgles2).

Scores are compared to the last digits: two texts with other ids have other scores, see
`test_the_vocabulary_as_it_was_gives_other_scores`.
"""

import json
import random
import re

import numpy as np
import pytest
from client_python import CONSTRAINTS, ClientPython
from real_texts import reader_of_english, real_sentences
from small_vocabularies import LINES
from tiny_exports import FIXED_LENGTH, LABELS, MAX_LENGTH, new_classifier, wide_classifier
from tiny_tasks import tiny_task

from export.metadata import append_files, read_files, read_settings
from export.runtime import TFLiteRunner
from export.tflite import export_tflite

pytestmark = pytest.mark.clients

TOLERANCE = 1e-6
TEXTS = [
    *LINES,
    "",
    "THE OLD MILL",
    "Élan vital, naïve CAFÉ – ĞÜŞ ﬁne ½ ℌ",
    "''Never'' said ``she''",
    "12,000 people, 9,000 more and 1,2,3,",
    " the\tmill \n  by the\u00a0river ",
    "ＦＵＬＬ ｗｉｄｔｈ",
    "ΟΔΥΣΣΕΥΣ",
    "😀 שלום",
    "[CLS] the [SEP] <pad>",
]
CLASSIFY = """
import json, sys
from mediapipe.tasks.python import text
from mediapipe.tasks.python.core.base_options import BaseOptions
options = text.TextClassifierOptions(base_options=BaseOptions(model_asset_path=sys.argv[1]))
with text.TextClassifier.create_from_options(options) as classifier:
    heads = [classifier.classify(line).classifications for line in json.load(sys.stdin)]
print(json.dumps([{c.category_name: c.score for c in head.categories} for [head] in heads]))
"""
EMBED = """
import json, sys
from mediapipe.tasks.python import text
from mediapipe.tasks.python.core.base_options import BaseOptions
options = text.TextEmbedderOptions(base_options=BaseOptions(model_asset_path=sys.argv[1]))
with text.TextEmbedder.create_from_options(options) as embedder:
    found = [embedder.embed(line).embeddings for line in json.load(sys.stdin)]
print(json.dumps([embedding.embedding.tolist() for [embedding] in found]))
"""
READ_METADATA = """
import json, sys
from mediapipe.tasks.metadata import metadata_schema_py_generated as metadata, schema_py_generated as schema
model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(open(sys.argv[1], "rb").read(), 0))
[data] = [bytes(model.buffers[m.buffer].data) for m in model.metadata if m.name == b"TFLITE_METADATA"]
assert metadata.ModelMetadata.ModelMetadataBufferHasIdentifier(data, 0)
def values(x):
    if isinstance(x, list): return [values(item) for item in x]
    if isinstance(x, bytes): return x.decode()
    return {n: values(v) for n, v in vars(x).items() if v is not None} if hasattr(x, "__dict__") else x
print(json.dumps(values(metadata.ModelMetadataT.InitFromObj(metadata.ModelMetadata.GetRootAs(data, 0)))))
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    return ClientPython(tmp_path_factory.mktemp("client"), [*CONSTRAINTS, "mediapipe"])


@pytest.fixture(scope="module", params=[None, FIXED_LENGTH])
def file(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "m.tflite"
    export_tflite(
        new_classifier(scale=0.3), path, recipe="float32", runtime="mediapipe", length=request.param, measure=False
    )
    return path


def answers(file, texts):
    """What the file's own runner says, as CLASSIFY prints it."""
    return [prediction.probabilities for prediction in TFLiteRunner(file)(texts)]


def different(found, expected):
    """The places at which two lists of scores differ."""
    assert len(found) == len(expected)
    assert all(a.keys() == b.keys() for a, b in zip(found, expected, strict=True))
    pairs = enumerate(zip(found, expected, strict=True))
    return [i for i, (a, b) in pairs if max(abs(a[label] - b[label]) for label in a) > TOLERANCE]


def with_vocabulary_as_it_was(file, folder):
    """The file with the vocabulary's own SentencePiece model in the place of the device copy."""
    files = read_files(file)
    assert files["device.spm"] != files["vocabulary.spm"]
    path = folder / "as_it_was.tflite"
    model = file.read_bytes()[: read_settings(files, file)["model_bytes"]]
    path.write_bytes(append_files(model, files | {"device.spm": files["vocabulary.spm"]}))
    return path


def test_scores(client, file):
    found, expected = client.ask(CLASSIFY, file, TEXTS), answers(file, TEXTS)
    assert set(found[0]) == set(LABELS)
    assert [TEXTS[i] for i in different(found, expected)] == []
    keras = [prediction.probabilities for prediction in new_classifier(scale=0.3).classify(TEXTS)]
    if TFLiteRunner(file).length is None:
        assert max(abs(a[x] - b[x]) for a, b in zip(found, keras, strict=True) for x in LABELS) < 1e-5


def test_the_vocabulary_as_it_was_gives_other_scores(client, file, tmp_path):
    path = with_vocabulary_as_it_was(file, tmp_path)
    others = {TEXTS[i] for i in different(client.ask(CLASSIFY, path, TEXTS), answers(file, TEXTS))}
    # MediaPipe itself lower-cases ASCII; SentencePiece's usual normalisation widens the full width, not these.
    assert {TEXTS[LINES.index(LINES[3])], "Élan vital, naïve CAFÉ – ĞÜŞ ﬁne ½ ℌ", "ΟΔΥΣΣΕΥΣ"} <= others
    assert LINES[0] not in others


def test_long_texts_are_cut_as_here(client, file):
    texts = ["the old mill by the river " * 5, "the old mill by the river " * 400, " ".join(LINES) * 50]
    runner = TFLiteRunner(file)
    lengths = [len(token_ids) for token_ids, _ in runner.tokenizer.encode_batch(texts)]
    assert lengths == [runner.length or MAX_LENGTH] * 3
    assert different(client.ask(CLASSIFY, file, texts), answers(file, texts)) == []


def test_every_recipe(client, tmp_path):
    for recipe in ("float16", "dynamic_int8", "int4"):
        path = tmp_path / f"{recipe}.tflite"
        export_tflite(new_classifier(scale=0.3), path, recipe=recipe, runtime="mediapipe", measure=False, force=True)
        found, expected = client.ask(CLASSIFY, path, TEXTS), answers(path, TEXTS)
        assert max(abs(a[x] - b[x]) for a, b in zip(found, expected, strict=True) for x in LABELS) < 1e-3


def test_wordpiece(client, tmp_path):
    path = tmp_path / "m.tflite"
    export_tflite(wide_classifier(), path, recipe="float32", runtime="mediapipe", measure=False)
    texts = ["word7 word1000 WORD7", "a b, c! word3word4", "a0 b1 c29", "", "unheard-of", "word7 " * 100]
    found = client.ask(CLASSIFY, path, texts)
    assert different(found, answers(path, texts)) == []
    assert different(found[:3], found[1:4]) == [0, 1, 2]


def test_metadata_as_mediapipe_reads_it(client, file):
    metadata = client.ask(READ_METADATA, file, [])
    [subgraph] = metadata["subgraphMetadata"]
    assert {tensor["name"] for tensor in subgraph["inputTensorMetadata"]} == {"ids", "segment_ids", "mask"}
    [output] = subgraph["outputTensorMetadata"]
    assert (output["name"], output["associatedFiles"][0]["name"]) == ("probability", "labels.txt")
    [unit] = subgraph["inputProcessUnits"]
    assert (unit["optionsType"], unit["options"]["sentencePieceModel"][0]["name"]) == (5, "device.spm")


def test_any_number_of_labels(client, tmp_path):
    path = tmp_path / "m.tflite"
    export_tflite(tiny_task("multi-label"), path, recipe="float32", runtime="mediapipe", measure=False)
    for scores, answer in zip(client.ask(CLASSIFY, path, TEXTS), TFLiteRunner(path)(TEXTS), strict=True):
        assert scores == pytest.approx(answer.probabilities, abs=TOLERANCE)


@pytest.mark.parametrize(("recipe", "length"), [("float32", None), ("dynamic_int8", 64)])
def test_embeddings_of_real_sentences(client, recipe, length, shared_data, tmp_path):
    path, lines = tmp_path / "m.tflite", real_sentences(shared_data)
    task = reader_of_english(shared_data, "similarity")
    options = {"recipe": recipe, "length": length, "runtime": "mediapipe", "measure": False, "force": True}
    export_tflite(task, path, **options)
    found, expected = np.array(client.ask(EMBED, path, lines)), np.array(TFLiteRunner(path)(lines))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, rtol=0, atol=1e-3)  # the cosines
    assert (found @ found.T).min() < 0.9


def test_two_hundred_real_sentences(client, shared_data, tmp_path):
    path, lines = tmp_path / "m.tflite", real_sentences(shared_data)
    task = reader_of_english(shared_data, "classification", labels=LABELS)
    export_tflite(task, path, recipe="dynamic_int8", runtime="mediapipe", measure=False, force=True)
    found, expected = client.ask(CLASSIFY, path, lines), answers(path, lines)
    assert max(abs(a[x] - b[x]) for a, b in zip(found, expected, strict=True) for x in LABELS) < 1e-3
    assert [max(scores, key=scores.get) for scores in found] == [max(scores, key=scores.get) for scores in expected]


def test_lines_of_every_kind_in_the_published_vocabulary(client, shared_data, tmp_path):
    path, lines = tmp_path / "m.tflite", lines_of_every_kind(shared_data)
    task = reader_of_english(shared_data, "classification", labels=LABELS)
    export_tflite(task, path, recipe="float32", runtime="mediapipe", measure=False)
    assert len(lines) > 1500 and sum(not line.isascii() for line in lines) > 80
    expected = answers(path, lines)
    others = different(client.ask(CLASSIFY, path, lines), expected)
    assert len(others) <= 0.001 * len(lines), [lines[i] for i in others]
    plain = different(client.ask(CLASSIFY, with_vocabulary_as_it_was(path, tmp_path), lines), expected)
    assert len(plain) > 50


def lines_of_every_kind(shared_data):
    """SST-2, CoLA and sentences of SQuAD, those beyond ASCII among them."""
    glue = shared_data / "glue_canonical"
    sst = [line.split("\t")[0] for line in (glue / "SST-2" / "dev.tsv").read_text("utf-8").splitlines()[1:]]
    cola = [line.split("\t")[3] for line in (glue / "CoLA" / "dev.tsv").read_text("utf-8").splitlines()]
    articles = json.loads((shared_data / "squad2" / "cs224n_dev-v2.0.json").read_text("utf-8"))["data"]
    contexts = [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]
    squad = [sentence for context in contexts for sentence in re.split(r"(?<=[.!?])\s+", context) if sentence]
    chosen = random.Random(0).sample(squad, 300) + [s for s in squad if not s.isascii()]
    return [*sst, *random.Random(1).sample(cola, 500), *chosen]
