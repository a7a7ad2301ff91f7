"""Every task through the runner alone: long texts, exact places, many threads; the answers of the Keras model."""

import dataclasses
import functools
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_vocabularies import LINES
from tiny_tasks import EXAMPLES, tiny_task

from albert_tf.data.choices import ChoiceExample
from albert_tf.data.conll import TaggedExample
from albert_tf.data.multi_label import MultiLabelExample
from albert_tf.data.schema import TextExample
from albert_tf.data.squad import QuestionExample
from albert_tf.inference.pipelines import pipeline_of
from export.runtime import TFLiteRunner
from export.tflite import export_tflite

DOCUMENT = " ".join(LINES) + "\n" + "  ".join(reversed(LINES)) + " Ünï ６ 🎬 end"  # many times what the model takes
QUESTIONS = ("who came", "when did the wheel turn", "what is the price of the mill", "where?")
LENGTHS = (None, 16, (12, 24))
_folder = tempfile.TemporaryDirectory(prefix="runtime_tasks.")


@functools.cache
def runner(name: str, length: Any = None) -> TFLiteRunner:
    path = Path(_folder.name) / f"{name}-{length}.tflite"
    if not path.exists():
        export_tflite(tiny_task(name), path, recipe="float32", length=length, measure=False)
    return TFLiteRunner(path)


def examples_of(name: str) -> list[Any]:
    """Examples with long texts, empty ones and odd characters."""
    texts = [*LINES, DOCUMENT, "", " \n", "😀 שלום", "12,000"]
    if name == "tagging":
        return [TaggedExample(tuple(text.split())) for text in texts]
    if name == "question-answering":
        return [QuestionExample("", context, question) for context in texts for question in QUESTIONS]
    if name == "multiple-choice":
        return [ChoiceExample(text, "what is _", (LINES[0], "", DOCUMENT)[: 2 + i % 2]) for i, text in enumerate(texts)]
    if name == "fill-mask":
        return [f"{text} [MASK] {text}" for text in texts]
    if name == "multi-label":
        return [MultiLabelExample(text, None) for text in texts]
    return [TextExample(text, pair) for text, pair in zip(texts, reversed(texts), strict=True)]


def numbers_in(answer: Any) -> np.ndarray:
    if dataclasses.is_dataclass(answer):
        answer = dataclasses.asdict(answer)  # type: ignore[arg-type]
    if isinstance(answer, dict):
        answer = list(answer.values())
    if isinstance(answer, (list, tuple)):
        return np.concatenate([np.zeros(0), *map(numbers_in, answer)])
    return np.ravel(answer) if isinstance(answer, (float, np.ndarray)) else np.zeros(0)


def rest_of(answer: Any) -> Any:
    """What is no number with a fraction: texts, labels, places."""
    if dataclasses.is_dataclass(answer):
        answer = dataclasses.asdict(answer)  # type: ignore[arg-type]
    if isinstance(answer, dict):
        answer = list(answer.values())
    if isinstance(answer, (list, tuple)):
        return [rest_of(part) for part in answer]
    return None if isinstance(answer, (float, np.ndarray)) else answer


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", [*EXAMPLES, "fill-mask"])
def test_answers_are_those_of_keras(name: str, length: Any) -> None:
    file, examples = runner(name, length), examples_of(name)
    prepared = file.pipeline.prepare(examples)  # of a short file, in more or shorter parts than the model's own
    pipeline = pipeline_of(tiny_task(name))
    assert len(prepared.rows) >= len(examples)
    for answer, wanted in zip(file.pipeline.answer(prepared), pipeline.answer(prepared), strict=True):
        if name != "question-answering":  # of whose many spans, some are as good as others
            assert rest_of(answer) == rest_of(wanted)
            np.testing.assert_allclose(numbers_in(answer), numbers_in(wanted), rtol=0, atol=2e-5)
        else:
            assert (answer.text, answer.start, answer.end) == (wanted.text, wanted.start, wanted.end)
            np.testing.assert_allclose(answer.no_answer_score, wanted.no_answer_score, rtol=0, atol=1e-4)


@pytest.mark.parametrize("length", LENGTHS)
def test_places_of_answers_are_exact_all_over_a_long_passage(length: Any) -> None:
    file = runner("question-answering", length)
    [asked, *_] = file.pipeline.prepare([QuestionExample("", DOCUMENT, QUESTIONS[0])]).context
    starts = [start for start, _ in asked.bounds]
    assert len(starts) > 20 and set(np.diff(starts)) == {5}  # the stride
    assert asked.bounds[-1][1] == len(asked.spans)  # to the last token
    for answer in file(QUESTIONS, [DOCUMENT] * len(QUESTIONS)):
        assert DOCUMENT[answer.start : answer.end] == answer.text != ""
        for span in answer.spans:
            assert DOCUMENT[span.start : span.end] == span.text == span.text.strip() != ""


def test_no_answer_above_the_threshold() -> None:
    file = TFLiteRunner(runner("question-answering").path)
    [answer] = file([QUESTIONS[0]], [DOCUMENT])
    for threshold, found in ((answer.no_answer_score - 0.1, ""), (answer.no_answer_score + 0.1, answer.text)):
        file.pipeline.no_answer_threshold = threshold
        [again] = file([QUESTIONS[0]], [DOCUMENT])
        assert again.text == found and again.no_answer_score == answer.no_answer_score
        assert (again.start is None) == (found == "")
        assert again.spans == answer.spans
    assert [(a.text, a.start) for a in file([QUESTIONS[0]] * 2, ["", " \n "])] == [("", None)] * 2


@pytest.mark.parametrize("length", LENGTHS)
def test_entities_have_their_places_in_a_long_text(length: Any) -> None:
    file = runner("tagging", length)
    [found] = file([DOCUMENT])
    assert len(file.pipeline.prepare([TaggedExample(tuple(DOCUMENT.split()))]).rows) > 8
    for entity in found:
        assert DOCUMENT[entity.start : entity.end] == entity.text != ""
    assert found and max(entity.end for entity in found) > len(DOCUMENT) // 2
    assert [e.start for e in found] == sorted(e.start for e in found)


@pytest.mark.parametrize("name", [*EXAMPLES, "fill-mask"])
def test_eight_threads_share_one_runner(name: str) -> None:
    examples = examples_of(name)[:10]
    shared = TFLiteRunner(runner(name, (12, 24)).path, threads=2)
    wanted = [shared.pipeline.answer(shared.pipeline.prepare([example]))[0] for example in examples]
    fresh = TFLiteRunner(shared.path, threads=2)  # one that remembers no words yet

    def work(worker: int) -> list[Any]:
        order = [(place + worker) % len(examples) for place in range(len(examples))]
        pipeline = fresh.pipeline
        answers = {place: pipeline.answer(pipeline.prepare([examples[place]]))[0] for place in order}
        return [answers[place] for place in range(len(examples))]

    with ThreadPoolExecutor(8) as pool:
        for answers in pool.map(work, range(8)):
            assert rest_of(answers) == rest_of(wanted)
            np.testing.assert_array_equal(numbers_in(answers), numbers_in(wanted))


@pytest.mark.parametrize("name", [*EXAMPLES, "fill-mask"])
def test_a_batch_is_its_examples_one_by_one(name: str) -> None:
    examples, pipeline = examples_of(name), runner(name).pipeline
    together = pipeline.answer(pipeline.prepare(examples))
    alone = [pipeline.answer(pipeline.prepare([example]))[0] for example in examples]
    assert rest_of(together) == rest_of(alone)
    np.testing.assert_allclose(numbers_in(together), numbers_in(alone), rtol=0, atol=1e-6)
    assert pipeline.answer(pipeline.prepare([])) == []
