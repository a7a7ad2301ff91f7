"""`albert_tf.inference.question_answering`: rows, spans and scores beside run_squad's way of finding them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from references import squad_decoding
from small_vocabularies import LINES, sentencepiece_vocabulary, wordpiece_vocabulary

from albert_tf.data.squad import QuestionExample
from albert_tf.errors import InputError
from albert_tf.inference.answer_spans import Room, beam_spans, independent_spans
from albert_tf.inference.question_answering import AnswerSettings, QuestionAnsweringPipeline
from albert_tf.inference.runner import Outputs
from albert_tf.tokenization.packing import Packed
from albert_tf.tokenization.tokenizer import AlbertTokenizer

VOCABULARY = sentencepiece_vocabulary()
QUESTION = "Who came to see the wheel?"


class Guesser:
    """A model of random outputs, which are the same for the same row."""

    task = "question-answering"

    def __init__(self, max_length: int = 40, **settings: Any) -> None:
        self.required_tokenizer = AlbertTokenizer(VOCABULARY, max_length)
        self.task_settings = {"head": "span", "doc_stride": 9, "max_question_length": 12} | settings
        self.rows: list[Packed] = []

    def run_rows(self, rows: Sequence[Packed]) -> list[Outputs]:
        self.rows = list(rows)
        return [self.outputs_of(ids) for ids, _ in rows]

    def outputs_of(self, ids: list[int]) -> Outputs:
        random = np.random.default_rng(ids)
        values = random.normal(0, 2, (2, len(ids))).astype(np.float32)
        if self.task_settings["head"] == "span":
            return {"start_logits": values[0], "end_logits": values[1]}
        ends = random.normal(0, 2, (len(ids), 5)).astype(np.float32)
        return {"start_log_probs": values[0], "end_log_probs": ends, "no_answer_logit": values[1, :1]}


class Pointer(Guesser):
    """A model that finds the pieces of one word, wherever they are, and nothing else."""

    def __init__(self, word: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.word = VOCABULARY.encode(word)

    def outputs_of(self, ids: list[int]) -> Outputs:
        size = len(self.word)
        start, end = np.zeros(len(ids), np.float32), np.zeros(len(ids), np.float32)
        start[0] = end[0] = 3.0
        for place in range(len(ids) - size + 1):
            if ids[place : place + size] == self.word:
                start[place], end[place + size - 1] = 9.0, 9.0
        return {"start_logits": start, "end_logits": end}


@pytest.mark.parametrize("head", ["span", "squad2"])
@pytest.mark.parametrize("passage", [LINES[1], " ".join(LINES), "wheel", "Ça coûte £3.50,\n\tnaïve – ﬁn."])
def test_the_same_answers_as_one_span_at_a_time(head: str, passage: str) -> None:
    guesser = Guesser(head=head, n_best=7, max_answer_length=6)
    pipeline = QuestionAnsweringPipeline(guesser)
    (found,) = pipeline([QUESTION], [passage])
    ids, spans = VOCABULARY.encode_with_offsets(passage)
    question = VOCABULARY.encode(QUESTION)[:12]
    rows, first = [], 0
    for row_ids, segments in guesser.rows:
        assert row_ids[: len(question) + 2] == [VOCABULARY.cls_id, *question, VOCABULARY.sep_id]
        own = row_ids[len(question) + 2 : -1]
        assert ids[first : first + len(own)] == own and row_ids[-1] == VOCABULARY.sep_id and len(row_ids) <= 40
        assert segments == [0] * (len(question) + 2) + [1] * (len(own) + 1)
        outputs = {name: values.tolist() for name, values in guesser.outputs_of(row_ids).items()}
        rows.append((outputs, first, len(question) + 2, len(own)))
        first += 9
    beams = (5, 5) if head == "squad2" else None
    expected, against = squad_decoding.answers(rows, spans, passage, n_best=7, longest=6, beams=beams)
    assert [(span.text, span.score) for span in found.spans] == [(t, pytest.approx(share)) for t, share in expected]
    assert found.no_answer_score == pytest.approx(against, abs=1e-5)
    if len(passage) > 40:
        assert len(found.spans) > 1
    for span in found.spans:
        assert passage[span.start : span.end] == span.text != ""


def test_an_answer_far_into_ten_thousand_words() -> None:
    words = ["water"] * 10_000
    words[7_777] = "Café"
    passage = "  ".join(words)
    pointer = Pointer("café", max_length=64, doc_stride=20)
    (found,) = QuestionAnsweringPipeline(pointer)([QUESTION], [passage])
    assert len(pointer.rows) > 400
    assert (found.text, found.start) == ("Café", passage.index("Café")) and found.end == found.start + 4
    assert found.score > 0.9 and found.no_answer_score == pytest.approx(6.0 - 18.0)


def test_no_answer() -> None:
    pipeline = QuestionAnsweringPipeline(Pointer("mill", no_answer_threshold=0.0))
    there, absent, empty = pipeline([QUESTION] * 3, ["the old mill", "the old wheel", " \n"])
    assert (there.text, there.start, there.end) == ("mill", 8, 12) and there.no_answer_score < 0
    assert (absent.text, absent.start, absent.end) == ("", None, None) and absent.no_answer_score > 0
    assert absent.spans and absent.score == absent.spans[0].score
    assert (empty.text, empty.start, empty.score, empty.spans) == ("", None, 0.0, ())
    assert empty.no_answer_score == 6.0
    pipeline.no_answer_threshold = None
    assert pipeline([QUESTION], ["the old wheel"])[0].text != ""
    assert pipeline([QUESTION], [""])[0].text == "" and pipeline([], []) == []
    pipeline.no_answer_threshold = -20.0
    assert pipeline([QUESTION], ["the old mill"])[0].text == ""
    with pytest.raises(InputError, match="no_answer_threshold: expected a number or none, got nan"):
        pipeline.no_answer_threshold = float("nan")


def test_chinese() -> None:
    """WordPiece: every ideograph is a token, and spans count characters."""
    guesser = Guesser(max_answer_length=3)
    guesser.required_tokenizer = AlbertTokenizer(wordpiece_vocabulary(), 24)
    passage = "我爱你，中国人。" * 5
    (found,) = QuestionAnsweringPipeline(guesser)(["你爱中国人？"], [passage])
    assert len(guesser.rows) > 2 and len(found.spans) > 5
    for span in found.spans:
        assert span.text == passage[span.start : span.end] and 1 <= len(span.text) <= 3


def test_a_question_without_pieces_is_read_all_the_same() -> None:
    pipeline = QuestionAnsweringPipeline(Pointer("mill"))
    prepared = pipeline.prepare([QuestionExample("1", "the old mill", "")])
    ids = VOCABULARY.encode("the old mill")
    assert prepared.rows[0][0] == [VOCABULARY.cls_id, VOCABULARY.sep_id, *ids, VOCABULARY.sep_id]
    assert pipeline.answer(prepared)[0].text == "mill"


def test_spans_stay_in_the_passage() -> None:
    room = Room(np.array([False, False, True, True, False]), 4, 2)
    high = np.float32([9, 9, 1, 0, 9])
    spans = independent_spans(high, high, room, 5)
    assert {(s.first, s.last, s.score) for s in spans} == {(2, 2, 2.0), (2, 3, 1.0), (3, 3, 0.0)}
    assert independent_spans(high, high, room, 3) == []  # the best three are all outside
    assert independent_spans(high, high, room._replace(longest=1), 5)[0] == (2, 2, 2.0)
    ends = np.stack([high, -high], axis=1)
    assert beam_spans(np.float32([0, 0, 9, 8, 0]), ends, room, 2, 5) == [(2, 2, 10.0), (2, 3, 9.0), (3, 3, 8.0)]


def test_decisions() -> None:
    span, squad2 = (QuestionAnsweringPipeline(Guesser(head=head)) for head in ("span", "squad2"))
    high = np.float32([0, 3, 1])
    assert span.decision({"start_logits": high, "end_logits": high[::-1]}) == ((1, 1), 2.0)
    outputs = {"start_log_probs": high, "end_log_probs": np.stack([high[::-1] * 2, high], 1), "no_answer_logit": high}
    assert squad2.decision(outputs) == ((1, 1), 2.0)
    assert span.outputs({}) == {"start_logits": (None,), "end_logits": (None,)}
    assert squad2.outputs({})["end_log_probs"] == (None, 5)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"head": "beam"}, "head: expected one of span, squad2; got 'beam'"),
        ({"language": "latin"}, "language: expected one of english, chinese; got 'latin'"),
        ({"n_best": 0}, "n_best: expected a whole number of at least 1, got 0"),
        ({"doc_stride": True}, "doc_stride: expected a whole number of at least 1, got True"),
        ({"no_answer_threshold": float("nan")}, "no_answer_threshold: expected a number or none, got nan"),
        ({"no_answer_threshold": "0"}, "no_answer_threshold: expected a number or none, got '0'"),
    ],
)
def test_settings_that_cannot_be_used(settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        QuestionAnsweringPipeline(Guesser(**settings))


def test_wrong_use() -> None:
    pipeline = QuestionAnsweringPipeline(Guesser())
    with pytest.raises(InputError, match="questions: expected a list of strings"):
        pipeline(QUESTION, ["the mill"])
    with pytest.raises(InputError, match="passages: expected one for each of 1 questions, got 2"):
        pipeline([QUESTION], ["a", "b"])
    with pytest.raises(InputError, match="questions: expected a question, number 2 is blank"):
        pipeline([QUESTION, " "], ["a", "b"])
    with pytest.raises(
        InputError, match=r"takes 15 tokens, .* question of 12 tokens and 3 special ones; give a longer"
    ):
        QuestionAnsweringPipeline(Guesser(max_length=15))([QUESTION * 3], ["a"])
    assert AnswerSettings.of({"head": "squad2", "labels": ["a"]}) == AnswerSettings("squad2")
