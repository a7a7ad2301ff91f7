"""Signatures of question answering: questions and passages → answers with their places, decoded in the graph."""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from albert_tf.data.schema import PADDING_MASK
from albert_tf.data.squad import QuestionExample
from albert_tf.inference.depth import DEPTH
from albert_tf.inference.question_answering import (
    END_LOG_PROBS,
    END_LOGITS,
    NO_ANSWER_LOGIT,
    START_LOG_PROBS,
    START_LOGITS,
    AnswerSettings,
)
from albert_tf.tokenization import graph_rules
from albert_tf.tokenization.graph_rules import ragged, row_numbers
from export.served import SERVING_DEFAULT, SPACES, Answer, Columns, ServedTask, Signature, Tensors, same_batch, strings

QUESTIONS, PASSAGES = "questions", "passages"
ANSWER, START, END, SCORE, NO_ANSWER_SCORE = "answer", "start", "end", "score", "no_answer_score"
NOWHERE = -1  # start and end where there is no answer
_SPECIAL_TOKENS = 3

_LOWEST = float("-inf")


class Windows(NamedTuple):
    """Questions with the parts of their passages: one row of the model each.

    Attributes:
        example: the question that each row is of, int32 (rows,).
        before: tokens before those of the passage.
        first: number of the first token of the passage, counted over all passages, int64.
        count: tokens of the passage, int64.
        is_best: for each token of the passages in each row, ragged (rows, None): whether it counts there (`max_context`).
        inputs: of the model.
    """

    example: tf.Tensor
    before: tf.Tensor
    first: tf.Tensor
    count: tf.Tensor
    is_best: tf.RaggedTensor
    inputs: Tensors


class Spans(NamedTuple):
    """Spans of passages that speak for themselves, in the order in which `QuestionAnsweringPipeline` finds them.

    Attributes:
        example: the question that each is of.
        starts, ends: its place among the characters of all passages.
        scores: float32.
    """

    example: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    scores: tf.Tensor


class ServedQuestionAnswerer(ServedTask):
    """`answer` with its `start` and `end` in characters of the passage, `score` and `no_answer_score`; passages of any
    length, in parts, of which each exits by itself. A question that leaves no room for the passage is cut."""

    asked = QUESTIONS

    def text_signatures(self) -> dict[str, Signature]:
        encode_with_offsets = self.tokenizer.vocabulary.graph_offset_encoder()

        def answer(questions: tf.Tensor, passages: tf.Tensor, **depth: tf.Tensor) -> Tensors:
            same_batch(questions=questions, passages=passages)
            ids, places = encode_with_offsets(passages)
            windows = self._windows(self.encode_texts(questions), ids)
            characters = graph_rules.decode(passages)
            found = self.run(windows.inputs, depth)
            depths = self.depths_of_parts(found, windows.example, tf.size(questions))
            outputs = self._shown({name: found[name] for name in found if name != DEPTH}, windows)
            spans = self._spans(outputs, windows, places, characters)
            return self._answers(spans, self._against(outputs, windows), characters) | depths

        example = Signature(answer, strings(QUESTIONS, PASSAGES), self._example, self._expected)
        return self.with_depth(SERVING_DEFAULT, example)

    @property
    def settings(self) -> AnswerSettings:
        """Those of the model."""
        settings: AnswerSettings = self.pipeline.settings
        return settings

    def _windows(self, questions: tf.RaggedTensor, passages: tf.RaggedTensor) -> Windows:
        """`QuestionAnsweringPipeline.prepare` of ids."""
        vocabulary, length = self.tokenizer.vocabulary, self.tokenizer.max_length
        questions = questions[:, : min(self.settings.max_question_length, length - _SPECIAL_TOKENS - 1)]
        splits = tf.cast(passages.row_splits, tf.int64)
        sizes = splits[1:] - splits[:-1]
        room = length - _SPECIAL_TOKENS - tf.cast(questions.row_lengths(), tf.int64)
        stride = tf.minimum(room, self.settings.doc_stride)
        rows = 1 + (tf.maximum(sizes - room, 0) + stride - 1) // stride
        example = tf.repeat(tf.range(tf.size(rows)), rows)
        number = tf.range(tf.size(example, tf.int64)) - tf.gather(tf.cumsum(rows, exclusive=True), example)
        start = number * tf.gather(stride, example)
        end = tf.minimum(start + tf.gather(room, example), tf.gather(sizes, example))
        first = tf.gather(splits, example) + start
        tokens = tf.ragged.range(first, first + end - start)
        asked = self.framed(tf.gather(questions, example))
        shown = tf.gather(passages.values, tokens)
        shown = tf.concat([shown, tf.fill(tf.stack([tf.size(example), 1]), vocabulary.sep_id)], 1)
        segments = tf.concat([tf.zeros_like(asked), tf.ones_like(shown)], 1)
        return Windows(
            example,
            tf.cast(asked.row_lengths(), tf.int64),
            first,
            end - start,
            _is_best(tokens, start, end - start),
            self.padded(tf.concat([asked, shown], 1), segments),
        )

    def _shown(self, outputs: Tensors, windows: Windows) -> Tensors:
        """The outputs, lowest behind the end of a row, and as many positions as are looked at at least."""
        is_token = tf.cast(windows.inputs[PADDING_MASK], tf.bool)
        settings = self.settings
        more = settings.n_best if settings.head == "span" else max(settings.start_beams, settings.end_beams)
        shown = {}
        for name, values in outputs.items():
            if name == NO_ANSWER_LOGIT:
                shown[name] = values
                continue
            kept = is_token[:, :, None] if values.shape.rank == 3 else is_token
            wider = [[0, 0], [0, more], [0, 0]][: values.shape.rank]
            shown[name] = tf.pad(tf.where(kept, values, _LOWEST), wider, constant_values=_LOWEST)
        return shown

    def _spans(self, outputs: Tensors, windows: Windows, places: tf.RaggedTensor, characters: tf.RaggedTensor) -> Spans:
        """All spans that fit, with their places in the passages, without spaces around them."""
        starts, ends, scores = self._candidates(outputs)
        length = tf.shape(outputs[START_LOGITS if self.settings.head == "span" else START_LOG_PROBS])[1]
        before = tf.cast(windows.before, tf.int32)[:, None]
        nothing = ragged(tf.zeros([tf.reduce_sum(windows.before)], tf.int32), _splits(windows.before))
        may_start = tf.concat([nothing, windows.is_best], 1).to_tensor(0, shape=[None, None])
        may_start = tf.pad(may_start, [[0, 0], [0, length - tf.shape(may_start)[1]]])
        fits = (
            tf.equal(tf.gather(may_start, starts, batch_dims=1), 1)
            & (ends >= starts)
            & (ends < before + tf.cast(windows.count, tf.int32)[:, None])
            & (ends - starts < self.settings.max_answer_length)
        )
        found = tf.where(fits)
        row = found[:, 0]
        shift = tf.gather(windows.first - windows.before, row)
        first = tf.cast(tf.gather_nd(starts, found), tf.int64) + shift
        last = tf.cast(tf.gather_nd(ends, found), tf.int64) + shift
        example = tf.gather(windows.example, row)
        passage = tf.gather(characters.row_splits, example)
        start = passage + tf.cast(tf.gather(places.values[:, 0], first), tf.int64)
        end = passage + tf.cast(tf.gather(places.values[:, 1], last), tf.int64)
        start, end = _without_spaces(start, end, characters.values)
        is_text = start < end
        parts = (example, start, end, tf.gather_nd(scores, found))
        return Spans(*(tf.boolean_mask(part, is_text) for part in parts))

    def _candidates(self, outputs: Tensors) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """First and last token and score of the spans that are looked at in each row (rows, n), best starts first:
        `independent_spans`, `beam_spans`."""
        settings = self.settings
        rows = tf.shape(outputs[START_LOGITS if settings.head == "span" else START_LOG_PROBS])[0]
        if settings.head == "span":
            start_scores, starts = tf.math.top_k(outputs[START_LOGITS], settings.n_best)
            end_scores, ends = tf.math.top_k(outputs[END_LOGITS], settings.n_best)
            end_scores, ends = end_scores[:, None], ends[:, None]
        else:
            start_scores, starts = tf.math.top_k(outputs[START_LOG_PROBS], settings.start_beams)
            end_scores, ends = tf.math.top_k(tf.transpose(outputs[END_LOG_PROBS], (0, 2, 1)), settings.end_beams)
        scores = start_scores[:, :, None] + end_scores
        starts = starts[:, :, None] + tf.zeros_like(ends)
        ends = tf.zeros_like(starts) + ends
        shape = tf.stack([rows, tf.shape(starts)[1] * tf.shape(starts)[2]])
        return tf.reshape(starts, shape), tf.reshape(ends, shape), tf.reshape(scores, shape)

    def _against(self, outputs: Tensors, windows: Windows) -> tf.Tensor:
        """What speaks for "no answer", the least of a question's rows, float64 (B,)."""
        if self.settings.head == "squad2":
            values = tf.cast(outputs[NO_ANSWER_LOGIT][:, 0], tf.float64)
        else:
            values = tf.cast(outputs[START_LOGITS][:, 0], tf.float64) + tf.cast(outputs[END_LOGITS][:, 0], tf.float64)
        return tf.math.segment_min(values, windows.example)

    def _answers(self, spans: Spans, against: tf.Tensor, characters: tf.RaggedTensor) -> Tensors:
        """The best span of each question and its share among the best ones of different texts."""
        count = tf.size(against)
        spans = _ordered(spans)
        texts = graph_rules.encode(tf.gather(characters.values, tf.ragged.range(spans.starts, spans.ends)))
        spans, texts = _different(spans, texts, count, self.settings.n_best)
        number = tf.range(tf.size(spans.example))
        has = tf.math.bincount(spans.example, minlength=count, maxlength=count) > 0
        best = tf.where(has, tf.math.unsorted_segment_min(number, spans.example, count), 0)
        # One more, for questions without any.
        texts = tf.gather(tf.concat([texts, [""]], 0), best)
        starts, ends = (tf.gather(tf.concat([part, [0]], 0), best) for part in (spans.starts, spans.ends))
        scores = tf.cast(spans.scores, tf.float64)
        top = tf.gather(tf.concat([scores, [0.0]], 0), best)
        shares = tf.exp(scores - tf.gather(top, spans.example))
        share = tf.math.divide_no_nan(tf.ones_like(top), tf.math.unsorted_segment_sum(shares, spans.example, count))
        if self.settings.head == "span":
            against = tf.where(has, against - top, against)
        threshold = self.settings.no_answer_threshold
        given = has if threshold is None else has & (against <= threshold)
        passage = characters.row_splits[:-1]
        return {
            ANSWER: tf.where(given, texts, ""),
            START: tf.where(given, tf.cast(starts - passage, tf.int32), NOWHERE),
            END: tf.where(given, tf.cast(ends - passage, tf.int32), NOWHERE),
            SCORE: tf.cast(share, tf.float32),
            NO_ANSWER_SCORE: tf.cast(against, tf.float32),
        }

    def _example(self, texts: Sequence[str]) -> Columns:
        """Questions that leave room for a passage, about passages of one text and of all."""
        room = self.tokenizer.max_length - _SPECIAL_TOKENS
        starts = [text[:30] for text in texts]
        kept = [text for text in starts if text.strip() and len(self.tokenizer.vocabulary.encode(text)) < room]
        questions = kept or ["?"]
        passages = [texts[-1 - i % len(texts)] for i in range(len(questions))]
        passages[-1] = " ".join(text[:400] for text in texts)
        return {QUESTIONS: questions, PASSAGES: passages}

    def _expected(self, columns: Columns) -> list[Answer]:
        examples = [QuestionExample("", p, q) for q, p in zip(columns[QUESTIONS], columns[PASSAGES], strict=True)]
        prepared = self.pipeline.prepare(examples)
        answers = self.pipeline.answer(prepared)
        rows = [number for number, asked in enumerate(prepared.context) for _ in asked.bounds]
        return [
            {
                ANSWER: found.text,
                START: NOWHERE if found.start is None else found.start,
                END: NOWHERE if found.end is None else found.end,
                SCORE: found.score,
                NO_ANSWER_SCORE: found.no_answer_score,
                **depth,
            }
            for found, depth in zip(answers, self.expected_depths(rows, len(answers)), strict=True)
        ]


def _splits(lengths: tf.Tensor) -> tf.Tensor:
    return tf.concat([[0], tf.cumsum(lengths)], 0)


def _is_best(tokens: tf.RaggedTensor, starts: tf.Tensor, counts: tf.Tensor) -> tf.RaggedTensor:
    """`windows.max_context`: 1 for the tokens (rows, None), numbered over all passages, that have no better row.

    Args:
        starts: of each row in its passage.
        counts: tokens of each row.
    """
    rows = row_numbers(tokens)
    place = tf.range(tf.size(rows, tf.int64)) - tf.gather(tokens.row_splits, rows)  # in the row
    count = tf.gather(counts, rows)
    score = tf.cast(tf.minimum(place, count - 1 - place), tf.float64) + 0.01 * tf.cast(count, tf.float64)
    total = tf.reduce_max(tf.concat([tokens.values, [-1]], 0)) + 1
    best = tf.math.unsorted_segment_max(score, tokens.values, total)
    is_best = tf.equal(score, tf.gather(best, tokens.values))
    first = tf.math.unsorted_segment_min(tf.where(is_best, rows, tf.int32.max), tokens.values, total)
    return tokens.with_values(tf.cast(tf.equal(tf.gather(first, tokens.values), rows), tf.int32))


def _without_spaces(starts: tf.Tensor, ends: tf.Tensor, characters: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Places among characters without the spaces that they begin and end with; of spaces alone, an empty one."""
    is_space = tf.reduce_any(tf.equal(characters[:, None], SPACES), 1)
    others = tf.where(~is_space)[:, 0]
    others_before = _splits(tf.cast(~is_space, tf.int64))
    first, last = tf.gather(others_before, starts), tf.gather(others_before, ends) - 1
    is_text = first <= last
    padded = tf.concat([others, [0]], 0)  # for places without any
    start = tf.where(is_text, tf.gather(padded, tf.where(is_text, first, 0)), starts)
    end = tf.where(is_text, tf.gather(padded, tf.where(is_text, last, 0)) + 1, starts)
    return start, end


def _ordered(spans: Spans) -> Spans:
    """By question, and for each the best first; of equal ones the one found first."""
    order = tf.argsort(spans.scores, direction="DESCENDING", stable=True)
    order = tf.gather(order, tf.argsort(tf.gather(spans.example, order), stable=True))
    return Spans(*(tf.gather(part, order) for part in spans))


def _different(spans: Spans, texts: tf.Tensor, count: tf.Tensor, most: int) -> tuple[Spans, tf.Tensor]:
    """The first `most` spans of each of `count` questions that have different texts."""
    keys, numbers = tf.unique(tf.strings.join([tf.strings.as_string(spans.example), texts], " "))
    place = tf.range(tf.size(numbers))
    is_new = tf.equal(tf.gather(tf.math.unsorted_segment_min(place, numbers, tf.size(keys)), numbers), place)
    spans = Spans(*(tf.boolean_mask(part, is_new) for part in spans))
    per_example = tf.math.bincount(spans.example, minlength=count, maxlength=count)
    rank = tf.range(tf.size(spans.example)) - tf.gather(tf.cumsum(per_example, exclusive=True), spans.example)
    kept = rank < most
    return Spans(*(tf.boolean_mask(part, kept) for part in spans)), tf.boolean_mask(
        tf.boolean_mask(texts, is_new), kept
    )
