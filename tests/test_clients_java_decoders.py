"""Answers, entities and model files in Java, on the Java machine of this computer: as the pipelines in Python have them."""

import re

import numpy as np
import pytest
from java_client import Java, as_java_has_it, digits, row_text, squad_paragraphs
from real_texts import english_tokenizer, real_questions
from small_vocabularies import LINES, fuzzed_texts, sentencepiece_vocabulary
from tiny_exports import LABELS as NAMES
from tiny_exports import exported

from albert_tf.inference.question_answering import QuestionAnsweringPipeline
from albert_tf.inference.tagging import TaggingPipeline
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from export.runtime import TFLiteRunner

pytestmark = pytest.mark.clients

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


@pytest.fixture(scope="module")
def java(tmp_path_factory):
    return Java(tmp_path_factory.mktemp("java"))


class Guesser:
    """A model of random outputs, which it keeps."""

    def __init__(self, tokenizer, **settings):
        self.required_tokenizer = tokenizer
        self.task_settings = settings
        self.random = np.random.default_rng(0)
        self.rows, self.outputs = [], []

    def run_rows(self, rows):
        self.rows = list(rows)
        self.outputs = [self.outputs_of(len(ids)) for ids, _ in rows]
        return self.outputs

    def outputs_of(self, length):
        if "labels" in self.task_settings:
            values = self.random.dirichlet([0.3] * len(LABELS), length).astype(np.float32)
            return {"label_probabilities": values}
        # Of few values, so that some are equal.
        values = (self.random.integers(-40, 40, (2, length)) / 8).astype(np.float32)
        if self.task_settings["head"] == "span":
            return {"start_logits": values[0], "end_logits": values[1]}
        ends = self.random.normal(0, 2, (length, 4)).astype(np.float32)
        return {"start_log_probs": values[0], "end_log_probs": ends, "no_answer_logit": values[1, :1]}


def outputs_text(outputs):
    return ";".join(" ".join(map(repr, values.ravel().tolist())) for values in outputs.values())


@pytest.mark.parametrize("head", ["span", "squad2"])
def test_answers_to_questions(java, shared_data, head):
    settings = {"head": head, "doc_stride": 40, "max_question_length": 20, "max_answer_length": 12, "n_best": 9}
    settings |= {"start_beams": 4, "end_beams": 3, "no_answer_threshold": -9.5 if head == "span" else -1.5}
    tokenizer = english_tokenizer(shared_data, 96)
    pipeline = QuestionAnsweringPipeline(Guesser(tokenizer, **settings))
    setting_text = ",".join(f"{name}={value}" for name, value in settings.items())
    lines, expected = [], []
    for question, passage in [
        *real_questions(shared_data, 150),
        ("Who?", ""),
        ("Who?", " \n"),
        ("q " * 50, "\ud800 a"),
    ]:
        (found,) = pipeline([question], [passage])
        outputs = map(outputs_text, pipeline.runner.outputs)
        lines.append("\t".join([digits(question), digits(passage), setting_text, *outputs]))
        expected.append((found, [row_text(*row) for row in pipeline.runner.rows]))
    answered = 0
    for (found, rows), line in zip(expected, java.ask("question", tokenizer, lines), strict=True):
        numbers, text, *more = line.split("\t")
        spans, java_rows = [span.split(" ") for span in more[: -len(rows)]], more[-len(rows) :]
        start, end, score, against = numbers.split(" ")
        assert java_rows == rows
        assert (int(start), int(end)) == ((-1, -1) if found.start is None else (found.start, found.end))
        assert text == digits(found.text)
        assert float(against) == found.no_answer_score
        assert float(score) == pytest.approx(found.score, rel=1e-12)
        assert [(int(s), int(e)) for s, e, _ in spans] == [(span.start, span.end) for span in found.spans]
        assert [float(p) for _, _, p in spans] == pytest.approx([span.score for span in found.spans], rel=1e-12)
        answered += found.start is not None
    assert 10 < answered < len(lines) - 10


def test_questions_that_cannot_be_asked(java):
    tokenizer = AlbertTokenizer(sentencepiece_vocabulary(), max_length=12)
    few, damaged = "0 0 0;0 0", f"{'0 ' * 12};NaN{' 0' * 11}"
    asked = (" \u3000", few), ("q a b c d e f g h", few), ("a", few), ("a", damaged)
    lines = [f"{digits(question)}\t0061\thead=span\t{outputs}" for question, outputs in asked]
    blank, long, short, no_number = java.ask("question", tokenizer, lines)
    assert blank == "InputException: question: expected a question, got a blank one"
    assert long.startswith("InputException: the model takes 12 tokens: expected room for the passage")
    assert short.startswith("InputException: outputs: expected values for ")
    assert no_number.startswith("InputException: outputs: expected finite numbers, found NaN")


@pytest.mark.parametrize("constrained", [True, False])
def test_entities(java, shared_data, constrained):
    tokenizer = english_tokenizer(shared_data, 48)
    pipeline = TaggingPipeline(Guesser(tokenizer, labels=LABELS), constrained=constrained)
    texts = [
        *squad_paragraphs(shared_data)[:100],
        *map(as_java_has_it, fuzzed_texts(500, 16)),
        "x" * 3000,
        "日本のカナ_a1 b",
    ]
    lines, expected = [], []
    for text in texts:
        (found,) = pipeline([text])
        tables = map(outputs_text, pipeline.runner.outputs)
        lines.append("\t".join([digits(text), " ".join(LABELS), str(constrained).lower(), *tables]))
        expected.append((found, [row_text(*row) for row in pipeline.runner.rows]))
    for (found, rows), line in zip(expected, java.ask("tag", tokenizer, lines), strict=True):
        _, *more = line.split("\t")
        entities = [entity.split(" ") for entity in more[: -len(rows)]]
        assert more[-len(rows) :] == rows
        assert [
            (kind, int(start), int(end), np.float32(score), text) for kind, start, end, score, text in entities
        ] == [
            (entity.kind, entity.start, entity.end, np.float32(entity.score), digits(entity.text)) for entity in found
        ]


@pytest.mark.parametrize("length", [None, 16, (8, 16)])
def test_a_models_own_file(java, length):
    path = exported(recipe="dynamic_int8", length=length)
    tokenizer = TFLiteRunner(path).tokenizer
    texts = ["the old mill", "", *LINES]
    lines = [f"{digits(text)}\t0.25 0.5 0.25" for text in texts]
    first, *answers, few, damaged = java.run("file", path, lines=[*lines, "\t0.5 0.5", "\t0 Infinity 0"])
    lengths = [] if length is None else [length] if isinstance(length, int) else list(length)
    assert first == f"classification\t[{', '.join(NAMES)}]\t{lengths}\t{tokenizer.max_length}"
    for text, answer in zip(texts, answers, strict=True):
        signature, row, best = answer.split("\t")
        token_ids, _ = tokenizer.encode(text)
        size = min((n for n in lengths if n >= len(token_ids)), default=len(token_ids))
        assert signature == (f"length_{size}" if isinstance(length, tuple) else "serving_default")
        padding = size - len(token_ids)
        expected = ([*token_ids, *[0] * padding], [0] * size, [1] * len(token_ids) + [0] * padding)
        assert row == ";".join(" ".join(map(str, numbers)) for numbers in expected)
        assert best == f"{NAMES[1]} 0.5 3"
    assert few == "InputException: probabilities: expected one for each of 3 labels, got 2"
    assert damaged.startswith("InputException: probabilities: expected finite numbers, found Infinity")


def test_damaged_model_files(java, tmp_path):
    content = exported(recipe="dynamic_int8").read_bytes()
    middle = content.rindex(b'"kind"')
    variants = [b"", content[:100], content[:-1], content[:-100], content[: middle - 50], b"text" * 100]
    variants += [content[:place] + b"x" + content[place + 1 :] for place in (middle, 1000)]
    for number, variant in enumerate(variants):
        path = tmp_path / f"{number}.tflite"
        path.write_bytes(variant)
        (answer,) = java.run("file", path)
        assert re.match("InputException: .*expected a (whole )?TFLite file", answer)
