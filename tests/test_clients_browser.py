"""The page in headless Chromium: the runtimes of the web give the answers of the files, and the page shows them.

Needs chromium and node (Debian: chromium, nodejs, npm) and `make .web/.installed`.
"""

import itertools

import numpy as np
import pytest
import sentencepiece
from browser_client import MODULES, browse
from small_vocabularies import LINES, fuzzed_texts, sentencepiece_vocabulary
from tiny_exports import wide_classifier
from tiny_tasks import new_task, tiny_task
from web_pages import serving

from albert_tf.tokenization.device_model import device_model
from export.runtime import TFLiteRunner
from export.tflite import export_tflite
from export.web.examples import example_texts

pytestmark = pytest.mark.clients

LENGTHS = (8, 16, 24)
RECIPES = ("float32", "dynamic_int8", "int4")
TASKS = (
    "classification",
    "multi-label",
    "regression",
    "similarity",
    "tagging",
    "question-answering",
    "multiple-choice",
    "fill-mask",
)
FLOAT_TOLERANCE, INTEGER_TOLERANCE = 1e-5, 0.02
# But for what the device model cannot say, see test_tokens_of_all_kinds_of_texts: "22," as a piece of its own.
TEXTS = [
    *(line for line in LINES if "22," not in line),
    "the old mill",
    "Élan vital, naïve CAFÉ – ĞÜŞ ﬁne ½ ℌ",
    "12,000 people, 9,000 more and 1,2,3,",
    " the\tmill \n  by the\u00a0river ",
    "<b>the</b> river's ``wheel''",
    "😀 שלום the 가나다 water",
    "the old mill by the river " * 20,
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    made = {}
    for task in TASKS:
        for recipe in RECIPES:
            made[f"{task} {recipe}"] = folder / f"{task}_{recipe}.tflite"
            export_tflite(
                tiny_task(task), made[f"{task} {recipe}"], recipe=recipe, length=LENGTHS, measure=False, force=True
            )
    made["squad2"] = folder / "squad2.tflite"
    squad2 = new_task("question-answering", head="squad2", doc_stride=5, max_question_length=9, no_answer_threshold=0.0)
    export_tflite(squad2, made["squad2"], recipe="float32", length=LENGTHS, measure=False)
    for task in ("classification", "multi-label", "similarity"):
        for recipe in RECIPES:
            path = made[f"{task} {recipe} mediapipe"] = folder / f"{task}_{recipe}_mediapipe.tflite"
            export_tflite(tiny_task(task), path, recipe=recipe, runtime="mediapipe", measure=False, force=True)
    made["words"] = folder / "words_mediapipe.tflite"
    export_tflite(wide_classifier(), made["words"], recipe="float32", runtime="mediapipe", measure=False)
    made["any"] = folder / "any.tflite"
    export_tflite(tiny_task("classification"), made["any"], recipe="float32", measure=False)
    return made


@pytest.fixture(scope="module")
def asker(files):
    with serving(list(files.values()), MODULES) as found:
        yield found


def asked(name, text):
    """The request about a text to the file called so."""
    if name.startswith(("question", "squad2")):
        return {"question": text[:40], "context": f"😀 {LINES[0]} {text} Café {LINES[3]}"}
    if name.startswith("multiple"):
        return {"question": f"{text} _", "options": ["the wheel", "water", "£ 4"], "context": LINES[1]}
    if name.startswith("fill-mask"):
        return {"text": f"[MASK] {text}[MASK]{text[:9]} [MASK]."}
    return {"text": text}


def in_both(asker, files, name, requests):
    """What the browser and the server answer to each request."""
    calls = [
        {"file": files[name].name, "asked": request, "where": where}
        for request in requests
        for where in ("browser", "server")
    ]
    results = browse(asker.url, calls=calls)["results"]
    assert [result for result in results if "error" in result] == []
    return list(zip(results[0::2], results[1::2], strict=True))


def numbers_of(answer):
    """All numbers of an answer in their order, and all else."""
    if isinstance(answer, dict):
        answer = [part for item in sorted(answer.items()) for part in item]
    if isinstance(answer, list):
        parts = [numbers_of(item) for item in answer]
        return [number for found, _ in parts for number in found], [value for _, other in parts for value in other]
    return ([answer], []) if isinstance(answer, (int, float)) else ([], [answer])


@pytest.mark.parametrize("name", [*(f"{task} {recipe}" for task in TASKS for recipe in RECIPES), "squad2"])
def test_litert_for_the_web(asker, files, name):
    tolerance = FLOAT_TOLERANCE if "float32" in name or name == "squad2" else INTEGER_TOLERANCE
    for here, there in in_both(asker, files, name, [asked(name, text) for text in TEXTS]):
        assert here["runtime"] == "LiteRT for the web 2.5.3 in this browser" and here["why"] == ""
        assert here["tokens"] == there["tokens"]
        if tolerance == FLOAT_TOLERANCE:
            assert_same(here["answer"], there["answer"], tolerance)
        else:
            assert_close(here["answer"], there["answer"], tolerance)


def assert_same(here, there, tolerance):
    """Numbers to the tolerance, all else exactly."""
    found, other = numbers_of(here)
    expected, said = numbers_of(there)
    assert other == said
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def assert_close(here, there, tolerance):
    """Probabilities to the tolerance; where two answers are as good, either may be chosen."""
    if "scores" in here:
        assert [label for label, _ in here["scores"]] == [label for label, _ in there["scores"]]
        found, expected = ([score for _, score in answer["scores"]] for answer in (here, there))
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    elif "embedding" in here:
        assert np.dot(here["embedding"], there["embedding"]) > 1 - tolerance
    elif "value" in here:
        assert here["value"] == pytest.approx(there["value"], abs=tolerance * 10)
    elif "masks" in here:
        for mask, other in zip(here["masks"], there["masks"], strict=True):
            found, expected = dict(mask["scores"]), dict(other["scores"])
            common = found.keys() & expected.keys()
            assert common and [found[piece] for piece in common] == pytest.approx(
                [expected[piece] for piece in common], abs=tolerance
            )
            assert max(found.values()) == pytest.approx(max(expected.values()), abs=tolerance)
    elif here.keys() & {"entities", "answer"}:
        name = "entities" if "entities" in here else "answer"
        if here[name] and name == "answer" and here[name] == there[name]:
            # Its share among the best spans, of sums of two logits: three times as wide.
            assert here["score"] == pytest.approx(there["score"], abs=3 * tolerance)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("task", ["classification", "multi-label", "similarity"])
def test_mediapipe_for_the_web(asker, files, task, recipe):
    name = f"{task} {recipe} mediapipe"
    tolerance = FLOAT_TOLERANCE if recipe == "float32" else INTEGER_TOLERANCE
    for here, there in in_both(asker, files, name, [{"text": text} for text in TEXTS]):
        assert here["runtime"] == "MediaPipe Tasks for the web 1.0.1 in this browser" and here["why"] == ""
        assert here["tokens"] == there["tokens"]
        (assert_same if recipe == "float32" else assert_close)(here["answer"], there["answer"], tolerance)


def test_a_wordpiece_vocabulary_on_mediapipe(asker, files):
    for here, there in in_both(
        asker, files, "words", [{"text": text} for text in ("word7 WORD1000", "a b, c!", "unheard-of")]
    ):
        assert here["runtime"].startswith("MediaPipe")
        assert_same(here["answer"], there["answer"], FLOAT_TOLERANCE)


def test_pairs(asker, files):
    requests = [{"text": text, "pair": pair} for text, pair in itertools.pairwise(TEXTS)]
    for name, here_too in (
        ("classification float32", True),
        ("similarity float32", True),
        ("similarity float32 mediapipe", True),
        ("classification float32 mediapipe", False),
    ):
        for here, there in in_both(asker, files, name, requests):
            assert ("in this browser" in here["runtime"]) is here_too
            assert here["why"] == ("" if here_too else "MediaPipe's TextClassifier takes one text, no pairs")
            assert_same(here["answer"], there["answer"], FLOAT_TOLERANCE)


def test_files_that_the_server_runs(asker, files):
    ((here, there),) = in_both(asker, files, "any", [{"text": "the old mill"}])
    assert here["why"].startswith("LiteRT for the web 2.5.3 does not take it: an input of open size")
    assert "server" in here["runtime"] and here["answer"] == there["answer"]


@pytest.mark.parametrize("task", ["tagging", "question-answering", "fill-mask"])
def test_what_is_a_space_to_one_and_not_to_the_other(asker, files, task):
    texts = ["the\x1cmill\x1f by\x85the river\u2028 \x1c", "\ufeffthe \ufeff mill\ufeff by\ufeffthe \ufeffriver \ufeff"]
    for here, there in in_both(asker, files, f"{task} float32", [asked(task, text) for text in texts]):
        assert "in this browser" in here["runtime"] and here["tokens"] == there["tokens"]
        assert_same(here["answer"], there["answer"], FLOAT_TOLERANCE)


def test_tokens_of_all_kinds_of_texts(asker, files):
    """Ids, and places by the answers that they lead to, wherever the device model says what the vocabulary does."""
    vocabulary = sentencepiece_vocabulary()
    processor = sentencepiece.SentencePieceProcessor(model_proto=device_model(vocabulary))
    texts = []
    for text in fuzzed_texts(80, seed=5):
        said = text.encode(errors="ignore").decode()  # half a character is none that can be typed
        if said.strip() and [i for word in said.split() for i in processor.encode(word)] == vocabulary.encode(said):
            texts.append(said)
    assert len(texts) > 50
    found = in_both(asker, files, "question-answering float32", [{"question": "a", "context": text} for text in texts])
    # npm's SentencePiece is an old one: of several ways to cut up "!!!!!!!!!" that are as good it takes another.
    same = [(here["answer"], there["answer"]) for here, there in found if here["tokens"] == there["tokens"]]
    assert len(same) >= 0.75 * len(texts)
    others = [both for both in same if any(both[0][name] != both[1][name] for name in ("start", "end"))]
    assert len(others) <= 0.06 * len(same), others


def test_the_page(asker, files, tmp_path):
    names = [files[f"classification {recipe}"].name for recipe in RECIPES]
    example = example_texts()["question-answering"][0]
    html = '<img src="x" onerror="alert(1)"><script>alert(2)</script> the mill'
    for width, height in ((1280, 900), (390, 844)):
        steps = [
            {"task": "classification", "files": names, "values": {"text": html}, "keyboard": "#text"},
            {"files": names[:1], "values": {"text": "  "}},
            {"files": [], "values": {"text": "a"}},
            {"files": names[:1], "values": {"text": "the old mill " * 90_000}},
            {"task": "tagging", "files": [files["tagging float32"].name], "where": "server"},
            {"task": "question-answering", "files": [files["question-answering float32"].name], "where": "browser"},
        ]
        for number, step in enumerate(steps):
            step["screenshot"] = str(tmp_path / f"{width}_{number}.png")
        shown = browse(asker.url, width=width, height=height, steps=steps)["shown"]
        assert all(step["overflow"] <= 0 and step["unlabelled"] == [] for step in shown)
        assert all((step["scripts"], step["images"]) == (0, 0) for step in shown)  # no typed markup became one
        beside, blank, none, long, tagged, answered = shown
        assert [card["name"] for card in beside["cards"]] == names and beside["focus"] == "text"
        assert all("LiteRT for the web" in card["text"] and "kB" in card["text"] for card in beside["cards"])
        assert blank["status"] == "Type a text for “Text”." and blank["focus"] == "text"
        assert none["status"] == "Choose a file."
        assert long["status"].startswith("The texts have 1,170,000 bytes, more than 1,048,576")
        (card,) = tagged["cards"]
        (entities,) = TFLiteRunner(files["tagging float32"])([example_texts()["tagging"][0]["text"]])
        assert card["marks"] == [entity.text for entity in entities] and "on the server" in card["text"]
        (card,) = answered["cards"]
        (expected,) = TFLiteRunner(files["question-answering float32"])([example["question"]], [example["context"]])
        assert card["marks"] == [expected.text] and card["passage"] == example["context"]


def test_without_runtimes(files):
    with serving([files["classification float32"]]) as asker:
        (shown,) = browse(asker.url, steps=[{"values": {"text": "the old mill"}}])["shown"]
        assert "ai-edge-litert on the server" in shown["cards"][0]["text"]


def test_more_than_a_minute_of_mediapipe(asker, files):
    """After one it would post statistics elsewhere; they come here, and are dropped."""
    call = {"file": files["classification float32 mediapipe"].name, "asked": {"text": "the mill"}}
    found = browse(asker.url, calls=[call], wait=65_000)
    assert found["results"][0]["runtime"].startswith("MediaPipe")
    assert any(address.endswith("/api/dropped") for address in found["requests"])
