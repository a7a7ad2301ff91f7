"""How far a student is from its teacher's outputs and inner states; each loss is float32 (rows,).

Soft targets: Hinton, Vinyals and Dean, 2015, section 2. Hidden states and attention: TinyBERT (Jiao et al., 2020, equations
7 to 9). Cosine of hidden states: DistilBERT (Sanh et al., 2019, section 3). Words in place of tokens let the two have
vocabularies of their own.
"""

from collections.abc import Callable
from typing import Any

from keras import ops

from albert_tf.data.schema import PADDING_MASK
from albert_tf.data.word_vectors import WORD_VECTORS, WORDS
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.multiple_choice import option_logits
from albert_tf.tasks.similarity import of_length_1

HIDDEN_LOSSES = ("mse", "cosine")


def soft_cross_entropy(student: Any, teacher: Any, temperature: float) -> Any:
    """T² · KL(softmax(teacher / T) ‖ softmax(student / T)) over the last axis.

    The gradient is that of the cross-entropy with soft targets, of whose magnitude T² makes up for 1 / T² (section 2.1);
    the divergence is 0 where both agree.
    """
    wanted = ops.log_softmax(ops.cast(teacher, "float32") / temperature, axis=-1)
    found = ops.log_softmax(ops.cast(student, "float32") / temperature, axis=-1)
    return temperature**2 * ops.sum(ops.exp(wanted) * (wanted - found), axis=-1)


def soft_binary_cross_entropy(student: Any, teacher: Any, temperature: float) -> Any:
    """The same of a sigmoid for each logit: T² · KL of the two outcomes, elementwise."""
    student, teacher = (ops.cast(logits, "float32") / temperature for logits in (student, teacher))
    yes = ops.sigmoid(teacher)
    divergence = yes * (ops.log_sigmoid(teacher) - ops.log_sigmoid(student))
    divergence += (1.0 - yes) * (ops.log_sigmoid(-teacher) - ops.log_sigmoid(-student))
    return temperature**2 * divergence


def hidden_losses(student: Any, teacher: Any, padding_mask: Any, kind: str) -> Any:
    """How far vectors (B, S, H) are from the teacher's, in the mean over the tokens of a row.

    "mse": the mean of the squared differences; "cosine": 1 - cosine.
    """
    student, teacher = ops.cast(student, "float32"), ops.cast(teacher, "float32")
    if kind == "mse":
        losses = ops.mean(ops.square(student - teacher), axis=-1)
    else:
        losses = 1.0 - ops.sum(of_length_1(student) * of_length_1(teacher), axis=-1)
    return _mean_over(losses, padding_mask)


def attention_losses(student: Any, teacher: Any, padding_mask: Any) -> Any:
    """The mean of the squared differences of scores (B, N, T, S) over heads and pairs of tokens.

    TinyBERT learns the scores before the softmax. Its code has 0 for pairs with padding and counts them in the mean; here
    they do not count, so that a row's loss does not depend on the others of its batch.
    """
    squares = ops.square(ops.cast(student, "float32") - ops.cast(teacher, "float32"))
    mask = ops.cast(padding_mask, "float32")
    return _mean_over(_mean_over(ops.mean(squares, axis=1), mask[:, None, :]), mask)


def word_losses(vectors: Any, targets: dict[str, Any], projection: Callable[[Any], Any]) -> Any:
    """1 - cosine of what a student and its teacher make of a word, in the mean over the words of a row.

    Args:
        vectors: of the student's tokens, (B, S, H). A word's is the sum of its tokens', projected.
        targets: the word of each token, int (B, S), and the teacher's vectors, (B, W, D); words without tokens, or
            whose vector is 0, do not count.
        projection: (…, H) → (…, D), linear.
    """
    wanted = ops.cast(targets[WORD_VECTORS], "float32")
    belongs = ops.one_hot(targets[WORDS], ops.shape(wanted)[1], axis=1, dtype=vectors.dtype)  # (B, W, S)
    found = projection(ops.cast(ops.matmul(belongs, vectors), "float32"))
    losses = 1.0 - ops.sum(of_length_1(found) * of_length_1(wanted), axis=-1)
    return _mean_over(losses, ops.logical_and(ops.any(belongs > 0, axis=-1), ops.any(wanted != 0, axis=-1)))


def comparable(model: Any, targets: dict[str, Any], outputs: Any) -> Any:
    """A model's outputs as its soft loss takes them: of the head "squad2" with the ends given the right start."""
    if not isinstance(outputs, dict):
        return outputs
    right = targets["start"][:, None]
    ends = model.question_answering.end_logits(outputs["sequence_output"], right, outputs["allowed"])
    return outputs | {"end_logits": ends[:, 0]}


def row_losses(losses: Any, targets: dict[str, Any]) -> Any:
    """Losses of rows as those of examples (B,): of a question's options that there are, the mean."""
    if "options" not in targets:
        return losses
    present = ops.cast(targets["options"], "float32")
    return _mean_over(ops.reshape(losses, ops.shape(present)), present)


def _classification(student: AlbertTask, y: Any, x: Any, own: Any, wanted: Any, temperature: float) -> Any:
    return soft_cross_entropy(own, wanted, temperature)


def _multi_label(student: AlbertTask, y: Any, x: Any, own: Any, wanted: Any, temperature: float) -> Any:
    """In the mean over the labels, as the hard loss is."""
    return ops.mean(soft_binary_cross_entropy(own, wanted, temperature), axis=-1)


def _regression(student: AlbertTask, y: Any, x: Any, own: Any, wanted: Any, temperature: float) -> Any:
    """The squared difference of the values."""
    return ops.square(own[:, 0] - ops.cast(wanted, "float32")[:, 0])


def _multiple_choice(student: AlbertTask, y: Any, x: Any, own: Any, wanted: Any, temperature: float) -> Any:
    """Over the options of a question."""
    return soft_cross_entropy(option_logits(y, own), option_logits(y, wanted), temperature)


def _tagging(student: AlbertTask, y: Any, x: Any, own: Any, wanted: Any, temperature: float) -> Any:
    """In the mean over the tokens that begin words."""
    return _mean_over(soft_cross_entropy(own, wanted, temperature), y["labels"] >= 0)


def _fill_mask(student: AlbertTask, y: Any, x: Any, own: Any, wanted: Any, temperature: float) -> Any:
    """In the mean over all tokens, as DistilBERT; not over the masked ones alone."""
    return _mean_over(soft_cross_entropy(own, wanted, temperature), x[PADDING_MASK])


def _similarity(student: AlbertTask, y: Any, x: Any, own: Any, wanted: Any, temperature: float) -> Any:
    """The loss of `AlbertTextEmbedder` for the teacher's vectors, which are among the targets."""
    return student.training_losses(y, own)


def _question_answering(student: Any, y: Any, x: Any, own: Any, wanted: Any, temperature: float) -> Any:
    """Half that of the start and half that of the end, as the hard loss; "squad2": ends given the right start, and half
    that of "no answer"."""
    if student.answering.head == "span":
        losses = soft_cross_entropy(ops.moveaxis(own, -1, 1), ops.moveaxis(wanted, -1, 1), temperature)
        return 0.5 * ops.sum(losses, axis=1)
    starts = soft_cross_entropy(own["start_logits"], wanted["start_logits"], temperature)
    ends = soft_cross_entropy(own["end_logits"], wanted["end_logits"], temperature)
    none = soft_binary_cross_entropy(own["no_answer_logit"], wanted["no_answer_logit"], temperature)
    return 0.5 * (starts + ends + none[:, 0])


# Task → (student, targets, inputs, its outputs, the teacher's, temperature) → the soft loss (B,).
SOFT_LOSSES: dict[str, Callable[..., Any]] = {
    "classification": _classification,
    "multi-label": _multi_label,
    "regression": _regression,
    "multiple-choice": _multiple_choice,
    "tagging": _tagging,
    "question-answering": _question_answering,
    "similarity": _similarity,
    "fill-mask": _fill_mask,
}


def _mean_over(losses: Any, mask: Any) -> Any:
    """The mean over the last axis of those where the mask is 1; 0 where it nowhere is."""
    mask = ops.cast(mask, "float32")
    return ops.sum(losses * mask, axis=-1) / ops.maximum(ops.sum(mask, axis=-1), 1.0)
