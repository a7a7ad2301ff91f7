"""Signatures of multiple choice: a question with options → the option chosen, in the graph."""

from collections.abc import Sequence

import tensorflow as tf

from albert_tf.data.choices import ChoiceExample
from albert_tf.data.schema import TOKEN_IDS
from albert_tf.inference.multiple_choice import SCORE
from albert_tf.tokenization.graph_rules import row_numbers
from export.served import SERVING_DEFAULT, Answer, Columns, ServedTask, Signature, Tensors, same_batch, strings

QUESTIONS, OPTIONS, CONTEXTS = "questions", "options", "contexts"
OPTION, PROBABILITIES = "option", "probabilities"
_BLANK = "_"  # in a question: where the option goes; see `ChoiceExample.statements`
_ABSENT = -1e9  # the score of an option that a question does not have


class ServedMultipleChoice(ServedTask):
    """`option`, the index of the one chosen, and `probabilities` of all; "" is no option, "" no context."""

    def text_signatures(self) -> dict[str, Signature]:
        def answer(questions: tf.Tensor, options: tf.Tensor, contexts: tf.Tensor) -> Tensors:
            same_batch(questions=questions, options=options, contexts=contexts)
            shape = tf.shape(options)
            flat = tf.reshape(options, [-1])
            statements = filled(tf.repeat(questions, shape[1]), flat)
            inputs = self._rows(statements, tf.repeat(contexts, shape[1]))
            scores = tf.reshape(self.run(inputs)[SCORE], shape)
            present = tf.not_equal(options, "")
            probabilities = tf.where(present, tf.nn.softmax(tf.where(present, scores, _ABSENT), 1), 0.0)
            # A column more, so that there is a best one also where there are no options.
            best = tf.argmax(tf.pad(probabilities, [[0, 0], [0, 1]]), 1, tf.int32)
            best = tf.where(tf.reduce_any(present, 1), best, -1)
            return {OPTION: best, PROBABILITIES: probabilities}

        inputs = strings(QUESTIONS, CONTEXTS) | {OPTIONS: tf.TensorSpec((None, None), tf.string, OPTIONS)}
        return {SERVING_DEFAULT: Signature(answer, inputs, self._example, self._expected)}

    def _rows(self, statements: tf.Tensor, contexts: tf.Tensor) -> Tensors:
        """Context and statement as a pair; the statement alone where there is no context."""
        alone, together = self.inputs_of(statements), self.inputs_of(contexts, statements)
        is_alone = tf.equal(contexts, "")[:, None]
        # A statement alone may be longer than it is in a pair, where the context leaves less room.
        lengths = [tf.shape(inputs[TOKEN_IDS])[1] for inputs in (alone, together)]
        length = tf.maximum(*lengths)
        rows = {}
        for name in alone:
            fill = self.tokenizer.vocabulary.pad_id if name == TOKEN_IDS else 0
            both = [
                tf.pad(inputs[name], [[0, 0], [0, length - own]], constant_values=fill)
                for inputs, own in zip((alone, together), lengths, strict=True)
            ]
            rows[name] = tf.where(is_alone, *both)
        return rows

    def _example(self, texts: Sequence[str]) -> Columns:
        """A question for each text: some with a blank, some with a context; the last option is missing of some."""
        count = len(texts)
        present = [text or "no" for text in texts]
        options = [[present[i], present[i - 1], present[i - 2] if i % 3 else ""] for i in range(count)]
        questions = [text[:40] + (f" {_BLANK}." if i % 2 else "") for i, text in enumerate(texts)]
        return {
            QUESTIONS: questions,
            OPTIONS: options,
            CONTEXTS: [texts[i - 1] if i % 4 < 2 else "" for i in range(count)],
        }

    def _expected(self, columns: Columns) -> list[Answer]:
        examples = [
            ChoiceExample(context, question, tuple(option for option in options if option))
            for question, options, context in zip(*(columns[n] for n in (QUESTIONS, OPTIONS, CONTEXTS)), strict=True)
        ]
        found = self.pipeline.answer(self.pipeline.prepare(examples))
        return [{OPTION: choice.option, PROBABILITIES: choice.probabilities} for choice in found]


def filled(questions: tf.Tensor, options: tf.Tensor) -> tf.Tensor:
    """`ChoiceExample.statements` for pairs of a question and an option, strings (n,)."""
    parts = tf.strings.split(questions, _BLANK)
    rows = row_numbers(parts)
    is_last = tf.equal(tf.range(tf.size(rows, tf.int64)), tf.gather(parts.row_splits, rows + 1) - 1)
    with_option = tf.strings.join([parts.values, tf.where(is_last, "", tf.gather(options, rows))])
    in_place = tf.strings.reduce_join(parts.with_values(with_option), axis=1)
    return tf.where(parts.row_lengths() > 1, in_place, tf.strings.join([questions, " ", options]))
