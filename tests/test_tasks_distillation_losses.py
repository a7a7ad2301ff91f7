"""`albert_tf.tasks.distillation_losses` against NumPy, in float64, written from the papers' formulas."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.tasks.distillation_losses import (
    SOFT_LOSSES,
    attention_losses,
    hidden_losses,
    row_losses,
    soft_binary_cross_entropy,
    soft_cross_entropy,
    word_losses,
)
from albert_tf.tasks.trained import TASKS

RANDOM = np.random.default_rng(0)
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


def normal(*shape: int) -> np.ndarray:
    return (3.0 * RANDOM.standard_normal(shape)).astype(np.float32)


def softmax(values: np.ndarray) -> np.ndarray:
    powers = np.exp(values.astype(np.float64) - values.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def sigmoid(values: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-values.astype(np.float64)))


def divergence(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return (p * np.log(p / q)).sum(axis=-1)


@pytest.mark.parametrize("temperature", [1.0, 2.0, 7.5])
def test_soft_cross_entropy(temperature: float) -> None:
    student, teacher = normal(4, 5), normal(4, 5)
    expected = temperature**2 * divergence(softmax(teacher / temperature), softmax(student / temperature))
    np.testing.assert_allclose(soft_cross_entropy(student, teacher, temperature), expected, rtol=1e-4)
    np.testing.assert_allclose(soft_cross_entropy(teacher, teacher, temperature), 0.0, atol=1e-6)


def test_its_gradient_is_that_of_hinton_equation_2_times_the_square_of_the_temperature() -> None:
    student, teacher, temperature = normal(3, 4), normal(3, 4), 3.0
    variable = tf.Variable(student)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(soft_cross_entropy(variable, teacher, temperature))
    expected = temperature * (softmax(student / temperature) - softmax(teacher / temperature))
    np.testing.assert_allclose(tape.gradient(loss, variable), expected, atol=1e-5)


def test_logits_of_what_cannot_be_count_nothing() -> None:
    student = np.array([[1.0, 2.0, -1e9]], np.float32)
    teacher = np.array([[2.0, 2.0, -1e9]], np.float32)
    found = soft_cross_entropy(student, teacher, 2.0)
    np.testing.assert_allclose(found, soft_cross_entropy(student[:, :2], teacher[:, :2], 2.0), rtol=1e-5)


def test_soft_binary_cross_entropy() -> None:
    student, teacher, temperature = normal(4, 5), normal(4, 5), 2.0
    p, q = sigmoid(teacher / temperature), sigmoid(student / temperature)
    expected = temperature**2 * (p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q)))
    np.testing.assert_allclose(soft_binary_cross_entropy(student, teacher, temperature), expected, rtol=1e-3, atol=1e-6)


def test_hidden_losses() -> None:
    student, teacher = normal(2, 5, 6), normal(2, 5, 6)
    squares = ((student.astype(np.float64) - teacher) ** 2).mean(axis=-1)
    cosines = (student * teacher).sum(-1) / np.linalg.norm(student, axis=-1) / np.linalg.norm(teacher, axis=-1)
    for kind, of_tokens in (("mse", squares), ("cosine", 1.0 - cosines)):
        expected = [of_tokens[0].mean(), of_tokens[1, :3].mean()]
        np.testing.assert_allclose(hidden_losses(student, teacher, MASK, kind), expected, rtol=1e-5)


def test_attention_losses_do_not_look_at_padding() -> None:
    student, teacher = normal(2, 3, 5, 5), normal(2, 3, 5, 5)
    squares = (student.astype(np.float64) - teacher) ** 2
    expected = [squares[0].mean(), squares[1, :, :3, :3].mean()]
    np.testing.assert_allclose(attention_losses(student, teacher, MASK), expected, rtol=1e-5)


def test_losses_of_options_are_those_of_questions() -> None:
    losses = np.array([1.0, 2.0, 6.0, 4.0, 8.0, 100.0], np.float32)
    options = np.array([[1, 1, 1], [1, 1, 0]], np.float32)
    np.testing.assert_allclose(row_losses(losses, {"options": options}), [3.0, 6.0])
    assert row_losses(losses, {}) is losses


def test_every_task_has_a_soft_loss() -> None:
    assert SOFT_LOSSES.keys() == TASKS.keys()


def test_soft_losses_of_tasks() -> None:
    def soft(task: str, own: Any, wanted: Any, y: Any = None, x: Any = None) -> Any:
        return SOFT_LOSSES[task](None, y, x, tf.constant(own), tf.constant(wanted), 2.0)

    def kl(teacher: np.ndarray, student: np.ndarray) -> np.ndarray:
        return 4.0 * divergence(softmax(teacher / 2), softmax(student / 2))

    own, wanted = normal(2, 1), normal(2, 1)
    np.testing.assert_allclose(soft("regression", own, wanted), (own - wanted)[:, 0] ** 2, rtol=1e-5)
    own, wanted = normal(2, 5, 3), normal(2, 5, 3)
    labels = np.where(MASK == 1, 0, -1)
    labels[0, 2] = -1
    of_tokens = kl(wanted, own)
    expected = [of_tokens[0, [0, 1, 3, 4]].mean(), of_tokens[1, :3].mean()]
    np.testing.assert_allclose(soft("tagging", own, wanted, {"labels": labels}), expected, rtol=1e-4)
    expected = [of_tokens[0].mean(), of_tokens[1, :3].mean()]
    np.testing.assert_allclose(soft("fill-mask", own, wanted, None, {"padding_mask": MASK}), expected, rtol=1e-4)
    own, wanted = normal(6, 1), normal(6, 1)
    options = np.array([[1, 1, 1], [1, 1, 0]], np.float32)
    expected = [kl(wanted[:3, 0], own[:3, 0]), kl(wanted[3:5, 0], own[3:5, 0])]
    np.testing.assert_allclose(soft("multiple-choice", own, wanted, {"options": options}), expected, rtol=1e-4)


def test_words_are_the_sums_of_their_tokens() -> None:
    vectors, wanted, matrix = normal(2, 5, 3), normal(2, 3, 4), normal(3, 4)
    words = np.array([[-1, 0, 0, 1, -1], [-1, 2, -1, -1, -1]])  # the second text has lost its first two words

    def cosine(a: np.ndarray, b: np.ndarray) -> float:
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    expected = [
        1.0
        - (
            cosine((vectors[0, 1] + vectors[0, 2]) @ matrix, wanted[0, 0])
            + cosine(vectors[0, 3] @ matrix, wanted[0, 1])
        )
        / 2,
        1.0 - cosine(vectors[1, 1] @ matrix, wanted[1, 2]),
    ]
    found = word_losses(tf.constant(vectors), {"words": words, "word_vectors": wanted}, lambda x: x @ matrix)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    wanted[0, 0] = 0.0  # the teacher did not see it
    expected[0] = 1.0 - cosine(vectors[0, 3] @ matrix, wanted[0, 1])
    found = word_losses(tf.constant(vectors), {"words": words, "word_vectors": wanted}, lambda x: x @ matrix)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
