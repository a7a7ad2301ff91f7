"""Signatures of the tasks whose examples are texts or pairs of texts: a label, labels, a number, an embedding."""

import abc
from collections.abc import Sequence

import tensorflow as tf

from albert_tf.inference.classification import PROBABILITIES
from albert_tf.inference.depth import DEPTH
from albert_tf.inference.multi_label import SIGMOID_PROBABILITIES
from albert_tf.inference.regression import VALUE
from albert_tf.inference.similarity import EMBEDDING
from export.served import (
    EMBED,
    PAIRS,
    SECOND_TEXTS,
    SERVING_DEFAULT,
    TEXTS,
    Answer,
    Columns,
    ServedTask,
    Signature,
    Tensors,
    as_labels,
    same_batch,
    strings,
)

LABEL, SCORE, LABELS, IS_GIVEN, COSINE = "label", "score", "labels", "is_given", "cosine"
_EPSILON = 1e-12  # of a product of lengths, so that the vector 0 has a cosine too


class ServedTexts(ServedTask):
    """`serving_default` of texts, `pairs` of pairs of texts, `embed`. A subclass says what the model's outputs amount to."""

    @abc.abstractmethod
    def columns(self, outputs: Tensors) -> Tensors:
        """Device outputs → what is answered."""

    @abc.abstractmethod
    def answers(self, texts: Sequence[str], pairs: Sequence[str] | None) -> list[Answer]:
        """`columns` of each text or pair, as the task's pipeline has it."""

    def text_signatures(self) -> dict[str, Signature]:
        def answer_texts(texts: tf.Tensor, **depth: tf.Tensor) -> Tensors:
            return answered(self.run(self.inputs_of(texts), depth))

        def answer_pairs(texts: tf.Tensor, pairs: tf.Tensor, **depth: tf.Tensor) -> Tensors:
            same_batch(texts=texts, pairs=pairs)
            return answered(self.run(self.inputs_of(texts, pairs), depth))

        def answered(outputs: Tensors) -> Tensors:
            return self.columns(outputs) | {name: outputs[name] for name in outputs if name == DEPTH}

        def expected(columns: Columns) -> list[Answer]:
            return self.answers(columns[TEXTS], columns.get(SECOND_TEXTS))

        of_texts = Signature(answer_texts, strings(TEXTS), lambda texts: {TEXTS: list(texts)}, expected)
        of_pairs = Signature(answer_pairs, strings(TEXTS, SECOND_TEXTS), texts_and_pairs, expected)
        both = self.with_depth(SERVING_DEFAULT, of_texts) | self.with_depth(PAIRS, of_pairs)
        return both | {EMBED: self.embeddings()}


class ServedClassifier(ServedTexts):
    """`label`, `score`, and for each of `labels` its probability."""

    def columns(self, outputs: Tensors) -> Tensors:
        probabilities = outputs[PROBABILITIES]
        return {
            LABEL: tf.gather(tf.constant(list(self.pipeline.labels)), tf.argmax(probabilities, 1)),
            SCORE: tf.reduce_max(probabilities, 1),
            LABELS: as_labels(self.pipeline.labels, probabilities),
            PROBABILITIES: probabilities,
        }

    def answers(self, texts: Sequence[str], pairs: Sequence[str] | None) -> list[Answer]:
        return [
            {
                LABEL: found.label,
                SCORE: found.score,
                LABELS: list(found.probabilities),
                PROBABILITIES: list(found.probabilities.values()),
            }
            for found in self.pipeline(texts, pairs)
        ]


class ServedMultiLabel(ServedTexts):
    """For each of `labels` its probability, and whether it is above the model's threshold."""

    def columns(self, outputs: Tensors) -> Tensors:
        probabilities = outputs[SIGMOID_PROBABILITIES]
        return {
            LABELS: as_labels(self.pipeline.labels, probabilities),
            SIGMOID_PROBABILITIES: probabilities,
            IS_GIVEN: tf.cast(probabilities, tf.float64) > self.pipeline.threshold,
        }

    def answers(self, texts: Sequence[str], pairs: Sequence[str] | None) -> list[Answer]:
        return [
            {
                LABELS: list(found.probabilities),
                SIGMOID_PROBABILITIES: list(found.probabilities.values()),
                IS_GIVEN: [label in found.labels for label in found.probabilities],
            }
            for found in self.pipeline(texts, pairs)
        ]


class ServedRegressor(ServedTexts):
    """`value`."""

    def columns(self, outputs: Tensors) -> Tensors:
        return {VALUE: outputs[VALUE][:, 0]}

    def answers(self, texts: Sequence[str], pairs: Sequence[str] | None) -> list[Answer]:
        return [{VALUE: value} for value in self.pipeline(texts, pairs)]


class ServedEmbedder(ServedTask):
    """`embedding` of texts, also as `embed`; of `pairs` the cosine of the two."""

    def text_signatures(self) -> dict[str, Signature]:
        def answer(texts: tf.Tensor, **depth: tf.Tensor) -> Tensors:
            return self.run(self.inputs_of(texts), depth)

        def answer_pairs(texts: tf.Tensor, pairs: tf.Tensor) -> Tensors:
            same_batch(texts=texts, pairs=pairs)
            both = tf.cast(answer(tf.concat([texts, pairs], 0))[EMBEDDING], tf.float64)
            count = tf.shape(texts)[0]
            first, second = both[:count], both[count:]
            lengths = tf.norm(first, axis=1) * tf.norm(second, axis=1)
            cosines = tf.reduce_sum(first * second, 1) / tf.maximum(lengths, _EPSILON)
            return {COSINE: tf.cast(cosines, tf.float32)}

        def expected(columns: Columns) -> list[Answer]:
            return [{EMBEDDING: row} for row in self.pipeline.embed(columns[TEXTS])]

        def expected_cosines(columns: Columns) -> list[Answer]:
            return [{COSINE: value} for value in self.pipeline(columns[TEXTS], columns[SECOND_TEXTS])]

        embedding = Signature(answer, strings(TEXTS), lambda texts: {TEXTS: list(texts)}, expected)
        pairs = Signature(answer_pairs, strings(TEXTS, SECOND_TEXTS), texts_and_pairs, expected_cosines)
        found = self.with_depth(SERVING_DEFAULT, embedding)
        return found | {PAIRS: pairs, EMBED: found[SERVING_DEFAULT]}


def texts_and_pairs(texts: Sequence[str]) -> Columns:
    """Each text with another one."""
    return {TEXTS: list(texts), SECOND_TEXTS: list(texts[1:]) + list(texts[:1])}
