"""Signatures of tagging: texts → their words, each with a label, in the graph."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from albert_tf.data.conll import TaggedExample
from albert_tf.inference.tagging import LABEL_PROBABILITIES, word_places
from albert_tf.tokenization import graph_rules
from albert_tf.tokenization.graph_normalizer import reached_places
from albert_tf.tokenization.graph_rules import ragged, row_numbers
from export.served import SERVING_DEFAULT, TEXTS, Answer, Columns, ServedTask, Signature, Tensors, strings

WORDS, STARTS, ENDS, LABELS, SCORES = "words", "starts", "ends", "labels", "scores"
_SPACE, _IN_WORD, _ALONE = 0, 1, 2  # what a character is: none, part of a word, a word by itself
_IMPOSSIBLE = -1e9  # the logarithm of the probability of labels that make no entity, as in `best_path`
_LEAST = 1e-30


class Words(NamedTuple):
    """The words of texts.

    Attributes:
        texts: string (words,).
        starts, ends: their places in their text, in characters, int64 (words,).
        splits: of the texts among the words, int64.
    """

    texts: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    splits: tf.Tensor


class ServedTagger(ServedTask):
    """`words` with `starts` and `ends` in characters, `labels` in IOB2 and `scores`; texts of any length, in parts, of
    which each exits by itself."""

    def text_signatures(self) -> dict[str, Signature]:
        def answer(texts: tf.Tensor, **depth: tf.Tensor) -> Tensors:
            words = words_of(texts)
            found, depths = self._probabilities(words, self.encode_texts(words.texts), depth)
            table = ragged(found, words.splits).to_tensor(0.0)
            lengths = words.splits[1:] - words.splits[:-1]
            chosen = best_paths(table, lengths, self.pipeline.labels)
            is_word = tf.sequence_mask(lengths, tf.shape(table)[1])
            labels = tf.gather(tf.constant(list(self.pipeline.labels)), chosen)
            scores = tf.gather(table, chosen, axis=2, batch_dims=2)
            rows = {WORDS: words.texts, STARTS: tf.cast(words.starts, tf.int32), ENDS: tf.cast(words.ends, tf.int32)}
            answers = {name: ragged(values, words.splits).to_tensor() for name, values in rows.items()}
            return answers | depths | {LABELS: tf.where(is_word, labels, ""), SCORES: tf.where(is_word, scores, 0.0)}

        example = Signature(answer, strings(TEXTS), lambda texts: {TEXTS: list(texts)}, self._expected)
        return self.with_depth(SERVING_DEFAULT, example)

    def _probabilities(self, words: Words, ids: tf.RaggedTensor, depth: Tensors) -> tuple[tf.Tensor, Tensors]:
        """(words, labels): of each word's first piece, in as many rows of whole words as it takes; and the depths of
        these rows."""
        room = self.tokenizer.max_length - 2
        is_empty = tf.equal(ids.row_lengths(), 0)
        unknown_splits = tf.concat([[0], tf.cumsum(tf.cast(is_empty, tf.int64))], 0)
        unknown = tf.fill(unknown_splits[-1:], self.tokenizer.vocabulary.unk_id)
        ids = tf.concat([ids, ragged(unknown, unknown_splits)], 1)[:, :room]
        begin, end = tf.cast(ids.row_splits[:-1], tf.int64), tf.cast(ids.row_splits[1:], tf.int64)
        number = tf.range(tf.size(begin, tf.int64))
        # A part goes up to the first word that it has no room for, or to the end of the text.
        text = row_numbers(ragged(number, words.splits))  # of each word
        text_ends = tf.gather(words.splits[1:], text)
        following = tf.minimum(tf.searchsorted(end, begin + room, side="right", out_type=tf.int64), text_ends)
        part_starts = reached_places(ragged(number, words.splits), following - number)
        sizes = tf.scatter_nd(part_starts[:, None], tf.ones_like(part_starts), tf.shape(number, tf.int64))
        part = tf.cumsum(sizes) - 1  # of each word
        part_splits = tf.concat([tf.gather(begin, part_starts), [tf.size(ids.values, tf.int64)]], 0)
        outputs = self.run(self.padded(self.framed(ragged(ids.values, part_splits))), depth)
        place = 1 + begin - tf.gather(part_splits, part)
        found = tf.gather_nd(outputs[LABEL_PROBABILITIES], tf.stack([part, place], 1))
        texts = tf.cast(tf.gather(text, part_starts), tf.int32)
        return found, self.depths_of_parts(outputs, texts, tf.size(words.splits) - 1)

    def _expected(self, columns: Columns) -> list[Answer]:
        places = [word_places(text) for text in columns[TEXTS]]
        examples = [
            TaggedExample(tuple(text[start:end] for start, end in spans))
            for text, spans in zip(columns[TEXTS], places, strict=True)
        ]
        prepared = self.pipeline.prepare(examples)
        tagged = self.pipeline.answer(prepared)
        # A text without words has no row here.
        depths = self.expected_depths([i if starts else None for i, starts in prepared.context[0]], len(examples))
        return [
            {
                WORDS: list(example.words),
                STARTS: [start for start, _ in spans],
                ENDS: [end for _, end in spans],
                LABELS: list(found.labels),
                SCORES: list(found.scores),
                **depth,
            }
            for example, spans, found, depth in zip(examples, places, tagged, depths, strict=True)
        ]


def words_of(texts: tf.Tensor) -> Words:
    """`albert_tf.inference.tagging.word_places` and the words there, for each text."""
    code_points = graph_rules.decode(texts)
    flat, rows = code_points.values, row_numbers(code_points)
    firsts, classes = _character_classes()
    kinds = tf.gather(classes, tf.searchsorted(firsts, flat, side="right") - 1)
    joined = (kinds[1:] == _IN_WORD) & (kinds[:-1] == _IN_WORD) & (rows[1:] == rows[:-1])  # to the one before
    size = tf.size(flat)
    with_before = tf.concat([[False], joined], 0)[:size]
    with_after = tf.concat([joined, [False]], 0)[:size]
    is_kept = kinds != _SPACE
    starts, last = tf.where(is_kept & ~with_before)[:, 0], tf.where(is_kept & ~with_after)[:, 0]
    kept_before = tf.cumsum(tf.cast(is_kept, tf.int64), exclusive=True)
    character_splits = tf.concat([tf.gather(kept_before, starts), [tf.math.count_nonzero(is_kept)]], 0)
    text = tf.gather(rows, starts)
    count = tf.size(texts)
    per_text = tf.math.bincount(text, minlength=count, maxlength=count)
    text_starts = tf.gather(code_points.row_splits, text)
    return Words(
        graph_rules.encode(ragged(tf.boolean_mask(flat, is_kept), character_splits)),
        starts - text_starts,
        last + 1 - text_starts,
        tf.concat([[0], tf.cumsum(tf.cast(per_text, tf.int64))], 0),
    )


def best_paths(table: tf.Tensor, lengths: tf.Tensor, labels: Sequence[str]) -> tf.Tensor:
    """`albert_tf.inference.tagging.best_path` for each row: label numbers int32 (B, W), of the first `lengths[i]` words.

    Args:
        table: probabilities (B, W, labels).
        lengths: words of each row, int64 (B,).
        labels: in IOB2.
    """
    penalty, first_penalty = _transitions(tuple(labels))
    words = tf.shape(table)[1]
    table = tf.pad(table, [[0, 0], [0, 1], [0, 0]])  # a step more, as nothing can be made of none
    logs = tf.cast(tf.math.log(tf.maximum(table, _LEAST)), tf.float64)
    steps, count = tf.shape(table)[1], len(labels)
    same = tf.tile(tf.range(count)[None], [tf.shape(table)[0], 1])
    is_word = tf.sequence_mask(lengths, steps)

    def step(number: Any, score: Any, back: Any) -> Any:
        ways = score[:, :, None] + penalty  # (B, before, label)
        before = tf.cond(number > 0, lambda: tf.argmax(ways, 1, tf.int32), lambda: same)
        best = tf.cond(number > 0, lambda: tf.reduce_max(ways, 1), lambda: score) + logs[:, number]
        here = is_word[:, number, None]
        return number + 1, tf.where(here, best, score), back.write(number, tf.where(here, before, same))

    start = tf.zeros(tf.stack([tf.shape(table)[0], count]), tf.float64) + first_penalty
    back = tf.TensorArray(tf.int32, steps, element_shape=(None, count))
    _, score, back = tf.while_loop(lambda number, *_: number < steps, step, (0, start, back))

    def walk(number: Any, label: Any, path: Any) -> Any:
        path = path.write(number, label)
        return number - 1, tf.gather(back.read(number), label, axis=1, batch_dims=1), path

    path = tf.TensorArray(tf.int32, steps, element_shape=(None,))
    last = tf.argmax(score, 1, tf.int32)
    _, _, path = tf.while_loop(lambda number, *_: number >= 0, walk, (steps - 1, last, path))
    return tf.transpose(path.stack())[:, :words]


@functools.cache
def _transitions(labels: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """What is added to the score of a label after another one (before, label), and at the beginning (label,)."""
    kinds = [label.partition("-")[2] for label in labels]
    inside = [label.startswith("I-") for label in labels]
    allowed = [[not now or kind == before for kind, now in zip(kinds, inside, strict=True)] for before in kinds]
    return np.where(allowed, 0.0, _IMPOSSIBLE), np.where(inside, _IMPOSSIBLE, 0.0)


@functools.cache
def _character_classes() -> tuple[np.ndarray, np.ndarray]:
    """Code points that start a run of one class, and its class, as `word_places` shows them."""
    classes = np.zeros(0x110000, np.int32)
    for first in range(0, len(classes), 0x10000):
        # Each character twice: a word of two, or two words.
        text = "".join([f"{chr(code_point)}{chr(code_point)} " for code_point in range(first, first + 0x10000)])
        for start, end in word_places(text):
            classes[first + start // 3] = _IN_WORD if end - start == 2 else _ALONE
    firsts = np.flatnonzero(np.diff(classes, prepend=-1))
    return firsts.astype(np.int32), classes[firsts]
