"""The page in headless Chromium on real texts with the published vocabulary: tokens, places and scores as in Python.

Needs what test_clients_browser.py needs.
"""

import itertools
import random

import pytest
from browser_client import MODULES, browse
from real_texts import reader_of_english, real_questions, real_sentences
from web_pages import serving

from albert_tf.inference.fill_mask import MASK
from export.runtime import TFLiteRunner
from export.tflite import export_tflite

pytestmark = pytest.mark.clients

SENTENCES, QUESTIONS = 150, 60
# Of the texts, those in which the device model says something else than the vocabulary; docs/tokenizer.md has figures.
MOST_OTHERS = 0.02


def answers(folder, task, requests, **export):
    """What the browser says to each request, and the runner of the file."""
    path = folder / "m.tflite"
    export_tflite(task, path, measure=False, force=True, **export)
    with serving([path], MODULES) as asker:
        results = browse(asker.url, calls=[{"file": path.name, "asked": request} for request in requests])["results"]
    assert [result for result in results if "error" in result or result["why"]] == []
    return results, TFLiteRunner(path)


@pytest.mark.parametrize(("recipe", "tolerance"), [("float32", 1e-5), ("dynamic_int8", 0.02), ("int4", 0.02)])
def test_labels(recipe, tolerance, shared_data, tmp_path):
    lines = real_sentences(shared_data, SENTENCES)
    task = reader_of_english(shared_data, "classification", labels=["no", "yes", "是"])
    found, runner = answers(tmp_path, task, [{"text": line} for line in lines], recipe=recipe, length=(16, 32, 64))
    others = 0
    for line, here, expected in zip(lines, found, runner(lines), strict=True):
        ids, _ = runner.tokenizer.encode(line)
        if here["tokens"]["rows"] != [runner.tokenizer.pieces(ids)]:
            others += 1
            continue
        assert dict(here["answer"]["scores"]) == pytest.approx(expected.probabilities, abs=tolerance), line
    assert others <= MOST_OTHERS * len(lines)


def test_answers(shared_data, tmp_path):
    """Long passages in parts, and the characters of the answer."""
    asked = real_questions(shared_data, QUESTIONS)
    task = reader_of_english(shared_data, "question-answering", doc_stride=24, max_question_length=24)
    requests = [{"question": question, "context": passage} for question, passage in asked]
    found, runner = answers(tmp_path, task, requests, recipe="float32", length=(16, 32, 64))
    others = 0
    for (question, passage), here, expected in zip(asked, found, runner(*zip(*asked, strict=True)), strict=True):
        answer = here["answer"]
        if (answer["start"], answer["end"]) != (expected.start, expected.end):
            others += 1
            continue
        assert answer["answer"] == passage[answer["start"] : answer["end"]] == expected.text, question
        assert answer["score"] == pytest.approx(expected.score, abs=1e-4)
    assert others <= 2 * MOST_OTHERS * len(asked)


def test_entities(shared_data, tmp_path):
    lines = [" ".join(pair) for pair in itertools.pairwise(real_sentences(shared_data, SENTENCES // 2))]
    labels = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    task = reader_of_english(shared_data, "tagging", labels=labels)
    found, runner = answers(tmp_path, task, [{"text": line} for line in lines], recipe="float32", length=(16, 32, 64))
    others = 0
    for here, expected in zip(found, runner(lines), strict=True):
        entities = here["answer"]["entities"]
        if [(e["type"], e["text"], e["start"]) for e in entities] != [(e.kind, e.text, e.start) for e in expected]:
            others += 1
            continue
        assert [e["score"] for e in entities] == pytest.approx([e.score for e in expected], abs=1e-5)
    assert others <= 2 * MOST_OTHERS * len(lines)


def test_masks(shared_data, tmp_path):
    """Of words, and of parts of words: "un[MASK]able"."""
    chosen = random.Random(0)
    texts = []
    for line in real_sentences(shared_data, SENTENCES):
        start, end = sorted(chosen.sample(range(len(line) + 1), 2))
        word = chosen.choice(line.split())
        texts.append(line.replace(word, MASK, 1) if chosen.random() < 0.5 else line[:start] + MASK + line[end:])
    task = reader_of_english(shared_data, "fill-mask")
    found, runner = answers(tmp_path, task, [{"text": text} for text in texts], recipe="float32", length=(16, 32, 64))
    others = 0
    for text, here, expected in zip(texts, found, runner(texts), strict=True):
        rows = [runner.tokenizer.pieces(ids) for ids, _ in runner.pipeline.prepare([text]).rows]
        if here["tokens"]["rows"] != rows:
            others += 1
            continue
        answer = here["answer"]
        assert answer["filled"] == expected.text
        assert [(mask["start"], mask["end"]) for mask in answer["masks"]] == list(expected.places)
        for mask, candidates in zip(answer["masks"], expected.masks, strict=True):
            scores = dict(mask["scores"])
            assert scores == pytest.approx({one.piece: one.probability for one in candidates}, abs=1e-5), text
    assert others <= MOST_OTHERS * len(texts)
