"""`albert_tf.tasks.depth`: depths and exits against a model of so many layers, and training against NumPy."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from small_vocabularies import sentencepiece_vocabulary
from tiny_exports import BASE, LABELS, MAX_LENGTH, random_inputs
from tiny_models import TINY, example_inputs, named_weights, randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.conversion.checkpoint import settings_in_weights
from albert_tf.errors import InputError
from albert_tf.inference.depth import DepthChoice, ExitSettings
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.tasks.depth import at_depth, depth_weighted
from albert_tf.tasks.multiple_choice import AlbertMultipleChoice
from albert_tf.tasks.regression import AlbertTextRegressor
from albert_tf.tasks.similarity import AlbertTextEmbedder
from albert_tf.tokenization.tokenizer import AlbertTokenizer

CONFIG = dataclasses.replace(BASE, num_layers=5)
ROWS = [random_inputs(length, seed=length) for length in range(2, 14)]
MODELS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "classification": (AlbertTextClassifier, {"labels": LABELS}, "probabilities"),
    "regression": (AlbertTextRegressor, {}, "value"),
    "similarity": (AlbertTextEmbedder, {}, "embedding"),
}


def new_model(task: str, exits: Any = None, config: Any = CONFIG) -> Any:
    model_class, settings, _ = MODELS[task]
    tokenizer = AlbertTokenizer(sentencepiece_vocabulary(), max_length=MAX_LENGTH)
    model = model_class(AlbertBackbone(config), tokenizer, **settings, exits=exits)
    randomize(model, 0, 0.15)
    return model


def answers_by_depth(task: str) -> list[np.ndarray]:
    """The answers (rows, …) of models with 1, 2, … layers and the same weights."""
    whole, name = new_model(task), MODELS[task][2]
    found = []
    for layers in range(1, CONFIG.num_layers + 1):
        model = new_model(task, config=dataclasses.replace(CONFIG, num_layers=layers))
        for variable, value in zip(model.weights, whole.weights, strict=True):
            variable.assign(value)
        found.append(np.stack([outputs[name] for outputs in model.run_rows(ROWS)]))
    return found


def exit_depths(answers: list[np.ndarray], exits: ExitSettings) -> tuple[list[int], float]:
    """By the definition, row by row; and how near any decision was to the other one."""
    depths, nearest = [], np.inf
    for row in range(len(ROWS)):
        in_a_row, depth = 0, 0
        while depth < len(answers) and in_a_row < exits.patience:
            now, before = answers[depth][row], answers[depth - 1][row]
            if exits.rule == "patience":
                first, second = np.sort(now)[-1:-3:-1]
                settled, margin = depth > 0 and now.argmax() == before.argmax(), first - second
            else:
                entropy = -(now * np.log(np.maximum(now, 1e-30))).sum() / np.log(len(now)) if len(now) > 1 else 0.0
                measure = {
                    "confidence": now.max(),
                    "entropy": entropy,
                    "tolerance": abs(now - before)[0] if len(now) == 1 else 1 - now @ before,
                }[exits.rule]
                settled = measure > exits.threshold if exits.rule == "confidence" else measure < exits.threshold
                settled = settled and (depth > 0 or exits.rule != "tolerance")
                margin = abs(measure - exits.threshold)
            nearest = min(nearest, float(margin))
            in_a_row, depth = in_a_row + 1 if settled else 0, depth + 1
        depths.append(depth)
    return depths, nearest


CASES = [
    ("classification", ExitSettings("patience", 1)),
    ("classification", ExitSettings("patience", 2)),
    ("classification", ExitSettings("confidence", 1, 0.6)),
    ("classification", ExitSettings("confidence", 2, 0.5)),
    ("classification", ExitSettings("entropy", 1, 0.8)),
    ("regression", ExitSettings("tolerance", 1, 0.05)),
    ("similarity", ExitSettings("tolerance", 1, 0.02)),
]


@pytest.mark.parametrize("task", MODELS)
def test_depth_d_is_the_model_with_d_layers(task: str) -> None:
    model, name = new_model(task), MODELS[task][2]
    for depth, expected in enumerate(answers_by_depth(task), start=1):
        model.choose_depth(DepthChoice(depth))
        found = model.run_rows(ROWS)
        assert found[0].keys() == {name}
        np.testing.assert_allclose([outputs[name] for outputs in found], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("task", "exits"), CASES)
def test_each_row_of_a_batch_exits_where_its_answer_is_settled(task: str, exits: ExitSettings) -> None:
    model, answers, name = new_model(task, exits), answers_by_depth(task), MODELS[task][2]
    depths, nearest = exit_depths(answers, exits)
    assert nearest > 1e-5 and len(set(depths)) > 1, "a case that tells nothing"
    found = model.run_rows(ROWS)
    assert [int(outputs["depth"]) for outputs in found] == depths
    expected = [answers[depth - 1][row] for row, depth in enumerate(depths)]
    np.testing.assert_allclose([outputs[name] for outputs in found], expected, rtol=1e-4, atol=1e-5)
    model.choose_depth(DepthChoice(2))
    assert [int(outputs["depth"]) for outputs in model.run_rows(ROWS)] == [min(depth, 2) for depth in depths]


@pytest.mark.parametrize(
    ("task", "rule", "choice", "depth"),
    [
        ("classification", "confidence", DepthChoice(threshold=0.0), 1),
        ("classification", "confidence", DepthChoice(threshold=1.0), 5),
        ("classification", "confidence", DepthChoice(threshold=0.0, patience=3), 3),
        ("classification", "entropy", DepthChoice(threshold=0.0), 5),
        ("classification", "entropy", DepthChoice(threshold=1.0), 1),
        ("classification", "patience", DepthChoice(patience=5), 5),
        ("classification", "patience", DepthChoice(patience=6), 5),
        ("classification", "confidence", DepthChoice(threshold=0.0, patience=6), 5),
        ("regression", "tolerance", DepthChoice(threshold=0.0), 5),
        ("regression", "tolerance", DepthChoice(threshold=1e9), 2),
        ("similarity", "tolerance", DepthChoice(threshold=3.0, patience=2), 3),
    ],
)
def test_edge_values_are_as_documented(task: str, rule: str, choice: DepthChoice, depth: int) -> None:
    model = new_model(task, {"rule": rule})
    model.choose_depth(choice)
    assert {int(outputs["depth"]) for outputs in model.run_rows(ROWS)} == {depth}


@pytest.mark.parametrize("heads", ["shared", "own"])
def test_loss_and_gradient_of_the_joint_training(heads: str) -> None:
    """Against losses in NumPy, and against gradients of each depth's loss added up by hand."""
    model = AlbertTextClassifier(
        AlbertBackbone(TINY), labels=LABELS, exits={"rule": "patience", "heads": heads}, classifier_dropout=0.0
    )
    randomize(model)
    inputs, labels = example_inputs(), np.array([0, 2, 1])
    weights = named_weights(model)
    layers = [np.asarray(one)[:, 0] for one in layers_of(model, inputs)]
    kernel = weights["classifier/kernel"].reshape(16, -1, 3)
    bias = weights["classifier/bias"].reshape(-1, 3)
    total = 0.0
    for depth, first in enumerate(layers):
        own = depth if heads == "own" else 0
        logits = np.tanh(first @ weights["pooler/kernel"] + weights["pooler/bias"]) @ kernel[:, own] + bias[own]
        logarithms = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        total += (depth + 1) * -logarithms[np.arange(3), labels].mean()
    targets = {"label": labels}
    model.compile("sgd")
    found, gradients = model._gradients(inputs, targets)
    assert float(found) == pytest.approx(total / 6, rel=1e-5)

    with tf.GradientTape(persistent=True) as tape:
        outputs = model.training_outputs(inputs)
        losses = [tf.reduce_mean(model.training_losses(targets, one)) for one in outputs]
    variables = [variable.value for variable in model.trainable_variables]
    for place, variable in enumerate(variables):
        parts = [tape.gradient(loss, variable, unconnected_gradients="zero") for loss in losses]
        expected = sum((d + 1) * tf.convert_to_tensor(part) for d, part in enumerate(parts)) / 6
        np.testing.assert_allclose(gradients[place], expected, rtol=1e-3, atol=1e-5)


def layers_of(model: Any, inputs: Any) -> list[Any]:
    """The output of every layer."""
    embedded = model.backbone.embeddings(inputs["token_ids"], inputs["segment_ids"])
    layers: list[Any] = model.backbone.encoder(embedded, inputs["padding_mask"])
    return layers


def test_heads_of_their_own() -> None:
    values = np.arange(12.0, dtype=np.float32).reshape(1, 12)
    for depth in range(4):
        for given in (depth, tf.constant(depth)):
            np.testing.assert_array_equal(at_depth(tf.constant(values), 3, given), values[:, 3 * depth : 3 * depth + 3])
    np.testing.assert_array_equal(at_depth(values, 3, None), values[:, -3:])
    assert float(depth_weighted([np.float32(1), np.float32(4)])) == 3.0
    model = new_model("classification", {"rule": "confidence", "heads": "own", "threshold": 1.0})
    plain = [outputs["probabilities"] for outputs in model.run_rows(ROWS)]
    batch = {name: np.array([value]) for name, value in zip(("token_ids", "segment_ids"), ROWS[0], strict=True)}
    logits = np.asarray(model(batch | {"padding_mask": np.ones((1, 2), int)}))[0]
    assert logits.shape == (3,) and model.classifier.kernel.shape == (32, 15)
    np.testing.assert_allclose(plain[0], np.exp(logits) / np.exp(logits).sum(), rtol=1e-4)


def test_saved_and_read_again(tmp_path: Any) -> None:
    exits = ExitSettings("entropy", 2, 0.7, "own")
    model = new_model("classification", exits)
    model.save_pretrained(tmp_path / "model")
    again = AlbertTextClassifier.from_pretrained(tmp_path / "model")
    assert again.exits == exits
    for ours, theirs in zip(model.run_rows(ROWS), again.run_rows(ROWS), strict=True):
        np.testing.assert_array_equal(ours["probabilities"], theirs["probabilities"])
    with_shared = AlbertTextClassifier.from_pretrained(tmp_path / "model", exits={"rule": "entropy"})
    assert with_shared.head_is_new and not again.head_is_new
    model.save(tmp_path / "model.keras")
    import keras

    assert keras.models.load_model(tmp_path / "model.keras").exits == exits
    assert "exits" not in new_model("classification").settings()
    assert "exits" not in new_model("regression").settings() | new_model("similarity").settings()


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="rule: expected one of tolerance for this task"):
        new_model("regression", {"rule": "patience"})
    with pytest.raises(InputError, match="no head of its own for each pass"):
        new_model("similarity", {"rule": "tolerance", "heads": "own"})
    model = new_model("classification")
    with pytest.raises(InputError, match="expected 1 to 5"):
        model.choose_depth(DepthChoice(6))
    with pytest.raises(InputError, match="does not exit early"):
        model.choose_depth(DepthChoice(patience=2))
    assert AlbertMultipleChoice.exit_rules == ()


def test_other_systems_get_the_head_of_the_last_pass() -> None:
    model = new_model("classification", {"rule": "confidence", "heads": "own"})
    weights, notes = settings_in_weights(
        {name: np.asarray(value) for name, value in model.named_weights().items()},
        {"task": "classification", "settings": model.settings()},
        ("labels",),
    )
    np.testing.assert_array_equal(weights["classifier/kernel"], np.asarray(model.classifier.kernel)[:, -3:])
    np.testing.assert_array_equal(weights["classifier/bias"], np.asarray(model.classifier.bias)[-3:])
    assert any("but the last are left out" in note for note in notes) and any("exits = " in note for note in notes)
