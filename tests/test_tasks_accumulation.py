"""`albert_tf.tasks.accumulation`: a batch in parts gives the update of the batch as one."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny_models import DROPPING, TINY, example_inputs, named_weights, randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.errors import InputError
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.tasks.multiple_choice import AlbertMultipleChoice
from albert_tf.tasks.pretraining import AlbertPretrainer
from albert_tf.tasks.token_classification import AlbertTokenClassifier
from albert_tf.training.compiling import compile_model
from albert_tf.training.optimizers import AdamW
from albert_tf.training.schedules import LinearWarmupDecay

RATE = 0.1


def scale(weights: list[float]) -> np.ndarray:
    return (np.array(weights) / np.sum(weights)).astype(np.float32)


def classifier(config: Any = TINY, **kwargs: Any) -> Any:
    return AlbertTextClassifier(AlbertBackbone(config, **kwargs), labels=["a", "b"], classifier_dropout=0.0)


def classifier_batch(examples: int = 7) -> Any:
    return example_inputs(examples), {"label": np.arange(examples) % 2, "scale": scale([1.0] * examples)}


def tagger() -> Any:
    return AlbertTokenClassifier(AlbertBackbone(TINY), labels=["O", "B-X", "I-X"], classifier_dropout=0.0)


def tagger_batch() -> Any:
    labels = np.where(np.arange(7) % 3 == 0, np.arange(5)[:, None] % 3, -1).astype(np.int32)
    return example_inputs(5), {"labels": labels, "scale": scale([3, 3, 2, 1, 5])}


def chooser() -> Any:
    return AlbertMultipleChoice(AlbertBackbone(TINY), classifier_dropout=0.0)


def chooser_batch() -> Any:
    """Five questions of three options, the second with two."""
    options = np.ones((5, 3), np.float32)
    options[1, 2] = 0
    return example_inputs(15), {"answer": np.array([0, 1, 2, 0, 1]), "options": options, "scale": scale([1.0] * 5)}


def pretrainer() -> Any:
    return AlbertPretrainer(AlbertBackbone(TINY))


def pretrainer_batch() -> Any:
    random = np.random.default_rng(0)
    weights = np.array([[1, 1], [1, 0], [1, 1], [0, 0], [1, 1]], np.float32)
    targets = {
        "masked_ids": random.integers(0, 60, (5, 2)).astype(np.int32),
        "masked_weights": weights,
        "sentence_order_labels": np.array([0, 1, 1, 0, 1], np.int32),
        "word_scale": np.full(5, 1 / weights.sum(), np.float32),
        "text_scale": scale([1.0] * 5),
    }
    return example_inputs(5) | {"masked_positions": np.array([[0, 2]] * 5, np.int32)}, targets


CASES = [
    (classifier, classifier_batch),
    (tagger, tagger_batch),
    (chooser, chooser_batch),
    (pretrainer, pretrainer_batch),
]


def stepped(make: Any, batch: Any, parts: int, **settings: Any) -> tuple[Any, dict[str, float]]:
    keras.utils.set_random_seed(1)
    model = make()
    randomize(model, scale=0.1)
    options = {"precision": "float32", "jit": False} | settings
    compile_model(model, keras.optimizers.SGD(RATE), accumulate=parts, **options)
    return model, model.train_on_batch(*batch(), return_dict=True)


@pytest.mark.parametrize(("make", "batch"), CASES, ids=lambda case: case.__name__)
def test_one_step_is_that_of_a_plain_gradient_whatever_the_parts(make: Any, batch: Any) -> None:
    """Parts that do not divide the batch, and more of them than examples; the plain gradient is taken here."""
    plain = make()
    before = randomize(plain, scale=0.1)
    x, y = batch()
    with tf.GradientTape() as tape:
        loss = plain.compute_loss(x, {name: tf.constant(value) for name, value in y.items()}, plain(x, training=True))
    gradients = tape.gradient(loss, [variable.value for variable in plain.trainable_variables])
    expected = {
        variable.path: before[variable.path]
        - (0 if gradient is None else RATE * tf.convert_to_tensor(gradient).numpy())
        for variable, gradient in zip(plain.trainable_variables, gradients, strict=True)
    }
    seen = []
    for parts in (1, 2, 3, 50):
        model, logs = stepped(make, batch, parts)
        assert logs["loss"] == pytest.approx(float(loss), rel=1e-5)
        for name, value in named_weights(model).items():
            np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-6, err_msg=f"{parts} {name}")
        assert (
            np.abs(expected["encoder/attention_0/query/kernel"] - before["encoder/attention_0/query/kernel"]).max()
            > 1e-5
        )
        seen.append(logs)
    for logs in seen[1:]:
        assert logs == pytest.approx(seen[0], rel=1e-5)  # accuracies and counts, too


def test_what_has_no_part_in_the_loss_does_not_decay() -> None:
    """The pooler of a tagger: its gradient is none, in parts as in one."""
    for parts in (1, 3):
        model = tagger()
        before = randomize(model)
        compile_model(model, AdamW(0.1, weight_decay=0.5), precision="float32", accumulate=parts, jit=False)
        model.train_on_batch(*tagger_batch())
        after = named_weights(model)
        np.testing.assert_array_equal(after["pooler/kernel"], before["pooler/kernel"])
        assert (
            np.abs(after["encoder/attention_0/query/kernel"] - before["encoder/attention_0/query/kernel"]).min() > 0.001
        )


def test_the_schedule_counts_updates_and_the_sum_is_clipped() -> None:
    models = []
    for parts in (1, 4):
        keras.utils.set_random_seed(1)
        model = classifier()
        randomize(model, scale=0.1)
        optimizer = AdamW(LinearWarmupDecay(0.01, 2, 10), global_clipnorm=0.05)
        compile_model(model, optimizer, precision="float32", accumulate=parts, jit=False)
        for _ in range(3):
            model.train_on_batch(*classifier_batch())
        assert int(optimizer.iterations) == 3
        models.append(named_weights(model))
    for name, value in models[0].items():
        np.testing.assert_allclose(models[1][name], value, rtol=1e-3, atol=2e-5, err_msg=name)


def test_dropout_in_parts() -> None:
    """The random states go on, within the loop too."""
    model, logs = stepped(lambda: classifier(DROPPING), classifier_batch, 3)
    seeds = [np.asarray(v).copy() for v in model.variables if v.path.endswith("seed_generator_state")]
    assert all(state[1] > 0 for state in seeds)
    assert np.isfinite(logs["loss"])


def test_recomputed_activations_in_parts() -> None:
    plain, _ = stepped(lambda: classifier(DROPPING), classifier_batch, 3)
    recomputed, _ = stepped(lambda: classifier(DROPPING, rematerialize=True), classifier_batch, 3)
    for name, value in named_weights(plain).items():
        np.testing.assert_allclose(named_weights(recomputed)[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision(precision: str) -> None:
    """Near the step of float32: 8 and 11 bits of mantissa."""
    exact, _ = stepped(classifier, classifier_batch, 1)
    for parts in (1, 2):
        model, _ = stepped(lambda: classifier(dtype=precision), classifier_batch, parts, precision=precision)
        moved, expected = (
            np.concatenate([(w - s).ravel() for w, s in zip(named_weights(m).values(), START.values(), strict=True)])
            for m in (model, exact)
        )
        cosine = moved @ expected / np.linalg.norm(moved) / np.linalg.norm(expected)
        assert cosine > 0.99 and np.linalg.norm(moved) == pytest.approx(np.linalg.norm(expected), rel=0.05)


START = randomize(classifier(), scale=0.1)


def test_xla_takes_the_same_step() -> None:
    """Without dropout, whose masks XLA draws otherwise."""
    plain, logs = stepped(classifier, classifier_batch, 1)
    compiled, compiled_logs = stepped(classifier, classifier_batch, 1, jit=True)
    assert compiled.jit_compile is True and compiled_logs == pytest.approx(logs, rel=1e-4)
    for name, value in named_weights(plain).items():
        np.testing.assert_allclose(named_weights(compiled)[name], value, rtol=1e-3, atol=1e-5, err_msg=name)


def test_a_loss_of_the_users_own() -> None:
    """As stock Keras takes it; in parts it cannot be known to be a sum."""
    model = classifier()
    model.compile(AdamW(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = classifier_batch()
    assert np.isfinite(model.train_on_batch(x, y["label"])).all()
    model.accumulated_parts = 2
    model.train_function = None
    with pytest.raises(InputError, match="goes with the model's own loss"):
        model.train_on_batch(x, y["label"])


@pytest.mark.parametrize(
    ("make", "batch"), [(classifier, classifier_batch), (chooser, chooser_batch)], ids=["classifier", "chooser"]
)
def test_targets_without_shares_are_a_whole_batch(make: Any, batch: Any) -> None:
    """As a user of Keras gives them: the step of equal shares."""
    x, y = batch()
    stepped_models = []
    for targets in (y, {name: value for name, value in y.items() if name != "scale"}):
        model = make()
        randomize(model, scale=0.1)
        model.compile(AdamW(RATE))
        losses = np.ravel(model.train_on_batch(x, targets))[0], np.ravel(model.test_on_batch(x, targets))[0]
        stepped_models.append((losses, named_weights(model)))
    (losses, weights), (plain_losses, plain_weights) = stepped_models
    np.testing.assert_allclose(plain_losses, losses, rtol=1e-5)
    for name, value in weights.items():
        np.testing.assert_allclose(plain_weights[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


def test_what_a_models_own_loss_cannot_take() -> None:
    model = classifier()
    model.compile(AdamW(RATE), run_eagerly=True)
    x, y = classifier_batch()
    with pytest.raises(InputError, match=r"needs targets by name: see AlbertTextClassifier\.training_losses"):
        model.train_on_batch(x, y["label"])
    with pytest.raises(InputError, match="targets: expected 'label' among them, got labels"):
        model.train_on_batch(x, {"labels": y["label"]})
    for call in (model.train_on_batch, model.test_on_batch):
        with pytest.raises(InputError, match="sample_weight and class_weight go with a loss of your own"):
            call(x, y, sample_weight=np.ones(7, np.float32))
    model.accumulated_parts = 2
    with pytest.raises(InputError, match="targets: expected 'scale' among them"):
        model.train_on_batch(x, {"label": y["label"]})
