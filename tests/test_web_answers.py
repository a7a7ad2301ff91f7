"""The page's questions and answers for every task: those of the file itself, as JSON."""

import json

import pytest
from tiny_tasks import tiny_task
from web_pages import serving

from albert_tf.inference.pipelines import PIPELINES
from export.runtime import TFLiteRunner
from export.tflite import export_tflite
from export.web.answers import ASKING
from export.web.examples import example_texts
from export.web.models import MOST_PIECES

TEXT = "The old mill, by the river!"
ASKED = {
    "classification": {"text": TEXT, "pair": "the wheel"},
    "multi-label": {"text": TEXT},
    "regression": {"text": TEXT, "pair": ""},
    "similarity": {"text": TEXT, "pair": "the wheel"},
    "tagging": {"text": TEXT},
    "question-answering": {"question": "where is the mill", "context": f"😀 {TEXT} They say it has been turning."},
    "multiple-choice": {"question": "what turns _", "options": ["the wheel", "water"], "context": TEXT},
    "fill-mask": {"text": "😀 the [MASK] mill [MASK]"},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for task in ASKED:
        export_tflite(tiny_task(task), folder / f"{task}.tflite", recipe="float32", measure=False)
    return {task: folder / f"{task}.tflite" for task in ASKED}


@pytest.fixture(scope="module")
def asker(files):
    with serving(list(files.values())) as found:
        yield found


def answer(asker, task, **changes):
    reply = asker.post({"file": str(list(ASKED).index(task) + 1)} | ASKED[task] | changes)
    assert reply.status == 200, reply.json
    return reply.json


def test_every_task_is_asked():
    assert ASKING.keys() == PIPELINES.keys() == ASKED.keys() == example_texts().keys()


def test_scores_of_texts(asker, files):
    runners = {task: TFLiteRunner(path) for task, path in files.items()}
    (expected,) = runners["classification"]([TEXT], ["the wheel"])
    found = answer(asker, "classification")["answer"]
    assert found == {"label": expected.label, "scores": [list(item) for item in expected.probabilities.items()]}
    (labels,) = runners["multi-label"]([TEXT])
    found = answer(asker, "multi-label")["answer"]
    assert found == {"labels": list(labels.labels), "scores": [list(item) for item in labels.probabilities.items()]}
    assert answer(asker, "regression")["answer"] == {"value": runners["regression"]([TEXT])[0]}
    assert answer(asker, "similarity")["answer"] == {"cosine": runners["similarity"]([TEXT], ["the wheel"])[0]}
    found = answer(asker, "similarity", pair="")["answer"]["embedding"]
    assert found == runners["similarity"]([TEXT])[0].tolist()
    (choice,) = runners["multiple-choice"](["what turns _"], [["the wheel", "water"]], [TEXT])
    found = answer(asker, "multiple-choice")["answer"]
    assert (found["option"], [score for _, score in found["scores"]]) == (choice.option, list(choice.probabilities))


def test_places_in_texts(asker, files):
    found = answer(asker, "tagging")["answer"]["entities"]
    (expected,) = TFLiteRunner(files["tagging"])([TEXT])
    assert [(e["type"], e["text"], e["start"], e["end"], e["score"]) for e in found] == [
        (e.kind, e.text, e.start, e.end, e.score) for e in expected
    ]
    found, context = answer(asker, "question-answering")["answer"], ASKED["question-answering"]["context"]
    (said,) = TFLiteRunner(files["question-answering"])(["where is the mill"], [context])
    assert (found["answer"], found["start"], found["end"], found["score"]) == (
        said.text,
        said.start,
        said.end,
        said.score,
    )
    assert context[found["start"] : found["end"]] == found["answer"] != ""


def test_masks(asker, files):
    found = answer(asker, "fill-mask")["answer"]
    (expected,) = TFLiteRunner(files["fill-mask"])([ASKED["fill-mask"]["text"]])
    assert found["filled"] == expected.text
    assert len(found["masks"]) == 2
    for mask, candidates in zip(found["masks"], expected.masks, strict=True):
        assert mask["scores"] == [[candidate.piece, candidate.probability] for candidate in candidates]
        assert found["filled"][mask["start"] : mask["end"]] == candidates[0].piece.removeprefix("▁")


def test_texts_without_and_with_many_masks(asker):
    message = "text: expected [MASK] in the text, found none; write [MASK] where a word is to be found"
    for text in ("no mask", "[mask]", "[ MASK ]", "MASK"):
        reply = asker.post({"file": "8", "text": text})
        assert (reply.status, reply.json["error"]) == (400, message)
    for text in ("[MASK] " * 600, "[MASK]" * 600):
        reply = asker.post({"file": "8", "text": text})
        assert reply.status == 200 and len(reply.json["answer"]["masks"]) == 600
        assert len(reply.body) < 600 * 400  # not the text once more for each candidate


def test_long_texts(asker):
    found = answer(asker, "tagging", text="the old mill by the river " * 400)
    assert (
        found["tokens"]["parts"] > 100
        and sum(map(len, found["tokens"]["rows"])) <= MOST_PIECES < found["tokens"]["count"]
    )
    found = answer(asker, "question-answering", context="the old mill by the river " * 200)
    assert found["tokens"]["parts"] > 100 and found["answer"]["answer"]


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        ("question-answering", {"question": " "}, "question: expected a text, got a blank one; type one"),
        ("question-answering", {"context": None}, "context: expected a text, got NoneType; type one"),
        ("question-answering", {"text": "a"}, "text: not for this task; it takes question, context"),
        ("multiple-choice", {"options": "a"}, "options: expected a list of texts, none of them blank"),
        ("multiple-choice", {"options": ["a", ""]}, "options: expected a list of texts, none of them blank"),
        ("multiple-choice", {"options": ["a"]}, "options: expected 2 to 26, got 1"),
        ("multiple-choice", {"options": ["a"] * 27}, "options: expected 2 to 26, got 27"),
        ("multiple-choice", {"context": 3}, "context: expected a text or nothing, got int"),
        ("classification", {"pair": ["a"]}, "pair: expected a text or nothing, got list"),
    ],
)
def test_what_is_missing(asker, task, changes, message):
    reply = asker.post({"file": str(list(ASKED).index(task) + 1)} | ASKED[task] | changes)
    assert (reply.status, reply.json["error"]) == (400, message)


def test_examples_can_be_asked(asker):
    for number, (task, asking) in enumerate(ASKING.items(), start=1):
        examples = example_texts()[task]
        assert examples
        for example in examples:
            asking.read(example)
        place = list(ASKED).index(task) + 1
        assert asker.post({"file": str(place)} | examples[0]).status == 200, number


def test_answers_are_json_that_a_browser_reads(asker):
    for task in ASKED:
        json.dumps(answer(asker, task), allow_nan=False)
