"""`albert_tf.tasks.distillation`: what a step learns, against TensorFlow written by hand, and what cannot be taught."""

import dataclasses
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny_models import TINY, example_inputs, randomize
from tiny_tasks import EXAMPLES, new_task, tiny_task

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.tasks.distillation import LABELLED, TEACHER_OUTPUTS, DistillationModel, Lesson, uniform_layer_map
from albert_tf.tasks.multiple_choice import AlbertMultipleChoice
from albert_tf.tasks.question_answering import AlbertQuestionAnswerer
from albert_tf.tasks.trained import TASKS
from export.fixed_depth import at_fixed_depth

SMALL = dataclasses.replace(TINY, num_layers=2)
NARROW = dataclasses.replace(SMALL, hidden_dim=12)
LABELS = np.array([0, 1, 1])
SHARES = np.array([0.5, 0.3, 0.2], np.float32)


def classifier(config: AlbertConfig = TINY, seed: int = 0, **settings: Any) -> AlbertTextClassifier:
    model = AlbertTextClassifier(AlbertBackbone(config), labels=["a", "b"], classifier_dropout=0.0, **settings)
    randomize(model, seed)
    return model


def gradients_of(model: DistillationModel, x: Any, y: Any) -> tuple[float, dict[str, np.ndarray]]:
    model.compile("sgd")
    loss, gradients = tf.function(model._gradients)(x, y)
    found = zip(model.trainable_variables, gradients, strict=True)
    return float(loss), {v.path: np.asarray(tf.convert_to_tensor(g)) for v, g in found if g is not None}


# === One step ===


def dense(layer: Any, x: Any) -> Any:
    return x @ tf.convert_to_tensor(layer.kernel) + tf.convert_to_tensor(layer.bias)


def norm(layer: Any, x: Any) -> Any:
    mean, variance = tf.nn.moments(x, -1, keepdims=True)
    gamma, beta = tf.convert_to_tensor(layer.gamma), tf.convert_to_tensor(layer.beta)
    return (x - mean) / tf.sqrt(variance + 1e-12) * gamma + beta


def forward(model: Any, x: Any) -> tuple[Any, list[Any], list[Any]]:
    """Logits, hidden states with the embeddings in front, and attention scores of every pass, written plainly."""
    config, parts = model.backbone.config, model.backbone.embeddings
    words = tf.gather(tf.convert_to_tensor(parts.word_embedding.embeddings), x["token_ids"])
    segments = tf.gather(tf.convert_to_tensor(parts.segment_embedding.embeddings), x["segment_ids"])
    length = x["token_ids"].shape[1]
    hidden = norm(parts.norm, words + segments + tf.convert_to_tensor(parts.position_embedding.embeddings)[:length])
    hidden = dense(parts.projection, hidden)
    bias = (1.0 - tf.cast(x["padding_mask"], tf.float32))[:, None, None, :] * -10000.0
    attention, feed_forward = model.backbone.encoder.attention_blocks[0], model.backbone.encoder.feed_forward_blocks[0]
    states, scores = [hidden], []
    for _ in range(config.num_layers):
        heads = [
            tf.stack(tf.split(dense(layer, hidden), config.num_heads, axis=-1), axis=1)
            for layer in (attention.query, attention.key, attention.value)
        ]
        scores.append(tf.einsum("bntd,bnsd->bnts", heads[0], heads[1]) / np.sqrt(config.head_dim).astype(np.float32))
        context = tf.einsum("bnts,bnsd->bntd", tf.nn.softmax(scores[-1] + bias), heads[2])
        context = tf.concat(tf.unstack(context, axis=1), axis=-1)
        hidden = norm(attention.norm, hidden + dense(attention.output_dense, context))
        inner = tf.nn.gelu(dense(feed_forward.intermediate, hidden), approximate=True)
        hidden = norm(feed_forward.norm, hidden + dense(feed_forward.output_dense, inner))
        states.append(hidden)
    pooled = tf.tanh(dense(model.backbone.pooler, hidden[:, 0]))
    return dense(model.classifier, pooled), states, scores


def masked_mean(values: Any, mask: Any) -> Any:
    mask = tf.cast(mask, tf.float32)
    axes = list(range(1, len(values.shape)))
    return tf.reduce_sum(values * mask, axes) / tf.reduce_sum(mask, axes)


def test_loss_and_gradient_of_a_step() -> None:
    """All four losses together, of a narrower student with half the passes, against the formulas in plain TensorFlow."""
    teacher, student = classifier(TINY, 1), classifier(NARROW, 2)
    lesson = Lesson(0.3, 0.7, 0.2, 0.4, temperature=2.0, layer_map=((0, 0), (1, 2), (2, 3)))
    model = DistillationModel(student, lesson, teacher)
    x = {name: tf.constant(values) for name, values in example_inputs().items()}
    y = {"label": LABELS, "scale": SHARES}
    loss, found = gradients_of(model, x, y)

    with tf.GradientTape() as tape:
        logits, states, scores = forward(student, x)
        wanted, teacher_states, teacher_scores = forward(teacher, x)
        mask = x["padding_mask"]
        hard = tf.nn.sparse_softmax_cross_entropy_with_logits(LABELS, logits)
        p = tf.nn.softmax(wanted / 2.0)
        soft = 4.0 * tf.reduce_sum(p * (tf.math.log(p) - tf.nn.log_softmax(logits / 2.0)), axis=-1)
        inner = 0.0
        for own, other in lesson.layer_map:
            kernel = tf.convert_to_tensor(model.projections["hidden" if own else "embedding"].kernel)
            squares = tf.reduce_mean((states[own] @ kernel - teacher_states[other]) ** 2, axis=-1)
            inner += 0.2 * masked_mean(squares, mask)
            if own:
                pairs = (mask[:, :, None] * mask[:, None, :])[:, None]
                pairs = tf.repeat(pairs, TINY.num_heads, axis=1)
                inner += 0.4 * masked_mean((scores[own - 1] - teacher_scores[other - 1]) ** 2, pairs)
        expected = tf.reduce_sum((0.3 * hard + 0.7 * soft + inner) * SHARES)
    variables = [variable.value for variable in model.trainable_variables]
    gradients = tape.gradient(expected, variables)
    assert loss == pytest.approx(float(expected), rel=1e-4)
    assert len(found) == len(variables) and {"hidden_projection/kernel", "embedding_projection/kernel"} <= found.keys()
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        value = np.asarray(tf.convert_to_tensor(gradient))
        np.testing.assert_allclose(found[variable.path], value, rtol=2e-3, atol=2e-5, err_msg=variable.path)


def test_the_teacher_is_no_part_of_the_model() -> None:
    teacher, student = classifier(TINY, 1), classifier(SMALL, 2)
    model = DistillationModel(student, Lesson(hidden_weight=1.0, layer_map=((2, 3),)), teacher)
    assert [v.path for v in model.weights] == [v.path for v in student.weights]  # of equal width nothing is projected
    before = {variable.path: np.asarray(variable) for variable in teacher.weights}
    model.compile(keras.optimizers.SGD(0.1))
    model.fit(
        tf.data.Dataset.from_tensors((example_inputs(), {"label": LABELS, "scale": SHARES})), verbose=0, shuffle=False
    )
    for variable in teacher.weights:
        np.testing.assert_array_equal(np.asarray(variable), before[variable.path])


def test_outputs_that_are_known_before_teach_like_the_model() -> None:
    teacher, student = classifier(TINY, 1), classifier(SMALL, 2)
    x, y = example_inputs(), {"label": LABELS, "scale": SHARES}
    running, running_gradients = gradients_of(DistillationModel(student, Lesson(temperature=3.0), teacher), x, y)
    y |= {TEACHER_OUTPUTS: np.asarray(teacher(x))}
    known, known_gradients = gradients_of(DistillationModel(student, Lesson(temperature=3.0)), x, y)
    assert known == pytest.approx(running, rel=1e-5)
    for name, value in running_gradients.items():
        np.testing.assert_allclose(known_gradients[name], value, rtol=1e-4, atol=1e-6)


def test_examples_without_a_label_learn_from_the_teacher_alone() -> None:
    teacher, student = classifier(TINY, 1), classifier(SMALL, 2)
    model = DistillationModel(student, Lesson(0.5, 0.5), teacher, all_labelled=False)
    x, labelled = example_inputs(), np.array([1.0, 0.0, 0.0], np.float32)
    losses = [
        gradients_of(model, x, {"label": np.array(labels), "scale": SHARES, LABELLED: labelled})[0]
        for labels in ([0, 1, 1], [0, 0, 1], [1, 1, 1])
    ]
    assert losses[0] == losses[1] != losses[2]
    assert "accuracy" not in [metric.name for metric in model.metrics]


def test_a_batch_in_parts_is_the_batch_as_one() -> None:
    teacher, student = classifier(TINY, 1), classifier(NARROW, 2)
    lesson = Lesson(hidden_weight=1.0, attention_weight=0.5, layer_map=uniform_layer_map(2, 3))
    model = DistillationModel(student, lesson, teacher)
    model.compile("sgd")
    shares = np.full(5, 0.2, np.float32)
    x, y = example_inputs(5, 11), {"label": np.arange(5) % 2, "scale": shares}
    x, y = tf.nest.map_structure(tf.constant, (x, y))
    whole, wanted = tf.function(model._gradients)(x, y)
    parts, found = tf.function(lambda x, y: model._summed_gradients(x, y, 3))(x, y)
    assert float(parts) == pytest.approx(float(whole), rel=1e-5)
    for variable, one, sum_ in zip(model.trainable_variables, wanted, found, strict=True):
        np.testing.assert_allclose(sum_, one, rtol=1e-3, atol=1e-5, err_msg=variable.path)


def test_every_depth_of_a_model_with_exits_is_taught() -> None:
    """PABEE's weights: 1/3 of the loss after the first pass, 2/3 after the second."""
    teacher = classifier(TINY, 1)
    student = classifier(SMALL, 2, exits={"rule": "confidence"})
    x, y = example_inputs(), {"label": LABELS, "scale": SHARES}
    loss, _ = gradients_of(DistillationModel(student, Lesson(0.0, 1.0), teacher), x, y)
    expected = 0.0
    for passes, share in ((1, 1 / 3), (2, 2 / 3)):
        one = classifier(dataclasses.replace(SMALL, num_layers=passes), 2)
        for variable, value in zip(one.weights, student.weights, strict=True):
            variable.assign(value)
        expected += share * gradients_of(DistillationModel(one, Lesson(0.0, 1.0), teacher), x, y)[0]
    assert loss == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", ["tagging", "question-answering"])
def test_every_depth_of_rows_with_several_choices_is_taught(name: str) -> None:
    """The student has the weights of a teacher without exits: after all passes there is nothing to learn."""
    settings = EXAMPLES[name][0] | {"classifier_dropout": 0.0}
    plain, student = (new_task(name, **settings, exits=exits) for exits in (None, {"rule": "confidence"}))
    y = {"labels": np.ones((3, 7), int), "scale": SHARES}
    x, layers = example_inputs(), student.backbone.config.num_layers
    losses = []
    for passes in range(1, layers + 1):
        one = at_fixed_depth(student, passes)
        losses.append(gradients_of(DistillationModel(one, Lesson(0.0, 1.0), plain), x, y)[0])
    loss, _ = gradients_of(DistillationModel(student, Lesson(0.0, 1.0), plain), x, y)
    expected = sum(depth * one for depth, one in enumerate(losses, start=1)) / sum(range(1, layers + 1))
    assert loss == pytest.approx(expected, rel=1e-4) and losses[0] > 0 and losses[-1] == pytest.approx(0, abs=1e-4)
    taught, _ = gradients_of(DistillationModel(plain, Lesson(0.0, 1.0), student), x, y)
    assert taught == pytest.approx(0, abs=1e-4)


# === Tasks ===


@pytest.mark.parametrize("name", sorted(TASKS))
def test_outputs_of_states_are_the_models(name: str) -> None:
    """Also of a squad2 head: what is taken apart for a lesson is what the model puts out."""
    model = tiny_task(name)
    x = example_inputs()
    states = model.states(x, training=False)
    tf.nest.map_structure(
        lambda found, expected: np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5),
        model.head_outputs(states[-1], x, None, False),
        model(x),
    )


def test_a_squad2_head_is_taught() -> None:
    def answerer(seed: int) -> AlbertQuestionAnswerer:
        model = AlbertQuestionAnswerer(AlbertBackbone(SMALL, pooler=False), head="squad2", classifier_dropout=0.0)
        randomize(model, seed)
        return model

    teacher, student = answerer(1), answerer(2)
    y = {
        "start": np.array([3, 2, 0]),
        "end": np.array([4, 2, 0]),
        "unanswerable": np.array([0.0, 0.0, 1.0], np.float32),
    }
    x, y = example_inputs(), y | {"scale": SHARES}
    loss, gradients = gradients_of(DistillationModel(student, Lesson(0.0, 1.0), teacher), x, y)
    assert loss > 0.01 and "question_answering/end_hidden/kernel" in gradients
    for variable, value in zip(student.weights, teacher.weights, strict=True):
        variable.assign(value)
    loss, _ = gradients_of(DistillationModel(student, Lesson(0.0, 1.0), teacher), x, y)
    assert loss == pytest.approx(0.0, abs=1e-5)


def test_hidden_states_of_options_count_by_question() -> None:
    def chooser(seed: int) -> AlbertMultipleChoice:
        model = AlbertMultipleChoice(AlbertBackbone(SMALL), classifier_dropout=0.0)
        randomize(model, seed)
        return model

    lesson = Lesson(0.5, 0.5, hidden_weight=1.0, layer_map=((2, 2),))
    model = DistillationModel(chooser(2), lesson, chooser(1))
    options = np.array([[1, 1, 1], [1, 1, 0]], np.float32)
    y = {"answer": np.array([0, 1]), "options": options, "scale": np.array([0.5, 0.5], np.float32)}
    x = example_inputs(6, 12)
    loss, _ = gradients_of(model, x, y)
    x["token_ids"][5] = 7  # of a row that only fills up
    assert gradients_of(model, x, y)[0] == pytest.approx(loss, rel=1e-6)


# === What cannot be ===


@pytest.mark.parametrize(
    ("lesson", "config", "message"),
    [
        (Lesson(attention_weight=1.0, layer_map=((1, 1),)), dataclasses.replace(SMALL, num_heads=4), "give --heads 2"),
        (Lesson(hidden_weight=1.0, layer_map=((3, 1),)), SMALL, "--layer-map 3:1: the student has the passes 0 to 2"),
        (Lesson(hidden_weight=1.0, layer_map=((1, 4),)), SMALL, "--layer-map 1:4"),
        (Lesson(attention_weight=1.0, layer_map=((0, 0),)), SMALL, "the embeddings, which have no attention"),
    ],
)
def test_lessons_that_do_not_fit(lesson: Lesson, config: AlbertConfig, message: str) -> None:
    with pytest.raises(InputError, match=message):
        DistillationModel(classifier(config), lesson, classifier())


def test_inner_states_need_a_teacher() -> None:
    with pytest.raises(InputError, match="give --teacher"):
        DistillationModel(classifier(SMALL), Lesson(hidden_weight=1.0))


def test_targets_need_their_shares() -> None:
    model = DistillationModel(classifier(SMALL), Lesson(), classifier())
    with pytest.raises(InputError, match="'scale' among them"):
        model.compute_loss(example_inputs(), {"label": LABELS}, None)


def test_the_uniform_layer_map() -> None:
    assert uniform_layer_map(4, 12) == ((0, 0), (1, 3), (2, 6), (3, 9), (4, 12))
    assert uniform_layer_map(2, 3) == ((0, 0), (1, 2), (2, 3))
    assert uniform_layer_map(3, 3) == ((0, 0), (1, 1), (2, 2), (3, 3))


def test_examples_of_every_task_are_there() -> None:
    assert EXAMPLES.keys() | {"fill-mask"} == TASKS.keys()
