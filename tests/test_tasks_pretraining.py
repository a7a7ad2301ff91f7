"""`albert_tf.tasks.pretraining`: both heads against NumPy, the tied table, saving."""

import dataclasses
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from references import numpy_albert
from tiny_models import TINY, example_inputs, randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import FACTORIZATIONS
from albert_tf.errors import InputError
from albert_tf.tasks.pretraining import AlbertPretrainer

# float32 against float64, logits up to 10: measured at most 2.2e-6.
TOLERANCE = 1e-5

TABLE = "embeddings/word_embedding/embeddings"


def inputs_with_positions() -> dict[str, np.ndarray]:
    return example_inputs() | {"masked_positions": np.array([[6, 0], [4, 2], [1, 1]], np.int32)}


@pytest.mark.parametrize(
    "fields",
    [{}, {"embedding_dim": 16, "activation": "relu"}, {"sharing": "none"}, {"factorization": "words"}],
    ids=str,
)
def test_against_numpy(fields: dict[str, Any]) -> None:
    config = dataclasses.replace(TINY, **fields)
    pretrainer = AlbertPretrainer(AlbertBackbone(config))
    weights, inputs = randomize(pretrainer), inputs_with_positions()
    encoded = numpy_albert.encode(weights, config, **example_inputs())
    ours = pretrainer(inputs)
    words = numpy_albert.masked_lm_logits(
        weights, config, encoded["sequence_output"], positions=inputs["masked_positions"]
    )
    np.testing.assert_allclose(ours["masked_lm_logits"], words, rtol=0, atol=TOLERANCE)
    order = numpy_albert.sentence_order_logits(weights, encoded["pooled_output"])
    np.testing.assert_allclose(ours["sentence_order_logits"], order, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_logits_are_float32_in_half_precision(dtype: str) -> None:
    pretrainer = AlbertPretrainer(AlbertBackbone(TINY, dtype=dtype))
    logits = pretrainer(inputs_with_positions())
    for name, output in pretrainer.output.items():
        assert (output.dtype, logits[name].dtype) == ("float32", tf.float32)
        assert np.isfinite(np.asarray(logits[name])).all()


def test_the_word_table_is_one_weight_with_two_gradients() -> None:
    """Its gradient is that of the lookup (slices) plus that of the output (dense), and it trains as one."""
    pretrainer = AlbertPretrainer(AlbertBackbone(TINY))
    randomize(pretrainer)
    table = pretrainer.backbone.embeddings.word_embedding.embeddings
    assert sum(tuple(variable.shape) == (60, 8) for variable in pretrainer.weights) == 1
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(pretrainer(inputs_with_positions())["masked_lm_logits"] ** 2)
    gradient = np.asarray(tf.convert_to_tensor(tape.gradient(loss, table.value)))
    assert (np.abs(gradient).max(axis=1) > 1e-3).all()  # every word is predicted, whether it occurs or not

    def loss_at(shift: float) -> float:
        start = np.asarray(table).copy()
        table.assign(start + shift * np.eye(60, 8, dtype=np.float32))
        value = tf.reduce_sum(pretrainer(inputs_with_positions())["masked_lm_logits"] ** 2)
        table.assign(start)
        return float(value)

    slope = (loss_at(1e-3) - loss_at(-1e-3)) / 2e-3
    assert np.trace(gradient[:8]) == pytest.approx(slope, rel=0.02)


@pytest.mark.parametrize("factorization", FACTORIZATIONS)
def test_gradients_reach_every_weight(factorization: str) -> None:
    pretrainer = AlbertPretrainer(AlbertBackbone(dataclasses.replace(TINY, factorization=factorization)))
    randomize(pretrainer)
    with tf.GradientTape() as tape:
        outputs = pretrainer(inputs_with_positions(), training=True)
        loss = sum(tf.reduce_sum(logits**2) for logits in outputs.values())
    variables = pretrainer.trainable_variables
    for variable, gradient in zip(variables, tape.gradient(loss, [v.value for v in variables]), strict=True):
        assert gradient is not None, variable.path
        assert variable.path.endswith("key/bias") or np.abs(tf.convert_to_tensor(gradient)).max() > 1e-3, variable.path


@pytest.mark.parametrize("factorization", FACTORIZATIONS)
def test_the_table_stays_tied_in_a_keras_file(tmp_path: Path, factorization: str) -> None:
    config = dataclasses.replace(TINY, factorization=factorization)
    pretrainer, inputs = AlbertPretrainer(AlbertBackbone(config, rematerialize=True)), inputs_with_positions()
    randomize(pretrainer)
    pretrainer.save(tmp_path / "pretrainer.keras")
    restored = keras.saving.load_model(tmp_path / "pretrainer.keras")
    assert isinstance(restored, AlbertPretrainer) and restored.backbone.encoder.rematerialize
    assert [v.path for v in restored.weights] == [v.path for v in pretrainer.weights]
    for name, expected in pretrainer(inputs).items():
        np.testing.assert_array_equal(restored(inputs)[name], expected)
    before = np.asarray(restored(inputs)["masked_lm_logits"])
    table = restored.backbone.embeddings.word_embedding.embeddings
    table.assign(np.zeros(table.shape))
    bias = np.asarray(restored.get_layer("masked_lm").output_bias)
    assert not np.allclose(before, bias, atol=0.1)
    np.testing.assert_allclose(restored(inputs)["masked_lm_logits"], np.broadcast_to(bias, before.shape), atol=1e-6)


def test_weights_file(tmp_path: Path) -> None:
    pretrainer, fresh = (AlbertPretrainer(AlbertBackbone(TINY)) for _ in range(2))
    randomize(pretrainer)
    pretrainer.save_weights(tmp_path / "pretrainer.weights.h5")
    fresh.load_weights(tmp_path / "pretrainer.weights.h5")
    for name, expected in pretrainer(inputs_with_positions()).items():
        np.testing.assert_array_equal(fresh(inputs_with_positions())[name], expected)


def test_learns_in_fit() -> None:
    keras.utils.set_random_seed(0)
    pretrainer, inputs = AlbertPretrainer(AlbertBackbone(TINY)), inputs_with_positions()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    pretrainer.compile(keras.optimizers.Adam(0.01), loss={name: loss for name in pretrainer.output})
    labels = {"masked_lm_logits": np.array([[3, 50], [7, 7], [9, 9]]), "sentence_order_logits": np.array([0, 1, 0])}
    history = pretrainer.fit(inputs, labels, epochs=25, verbose=0).history["loss"]
    assert history[0] > 4 and history[-1] < 0.5 * history[0]


def targets() -> dict[str, np.ndarray]:
    weights = np.array([[1, 1], [1, 0], [1, 0]], np.float32)
    return {
        "masked_ids": np.array([[3, 50], [7, 0], [9, 0]], np.int32),
        "masked_weights": weights,
        "sentence_order_labels": np.array([0, 1, 0], np.int32),
        "word_scale": np.full(3, 1 / weights.sum(), np.float32),
        "text_scale": np.full(3, 1 / 3, np.float32),
    }


def nll(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    logits = np.asarray(logits, np.float64)
    normalised = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return -np.take_along_axis(normalised, labels[..., None], axis=-1)[..., 0]


def test_the_published_loss_and_figures() -> None:
    """sum(weights · nll) / sum(weights) + mean(nll), run_pretraining.py; the figures are over words and texts."""
    pretrainer, inputs, goal = AlbertPretrainer(AlbertBackbone(TINY)), inputs_with_positions(), targets()
    randomize(pretrainer)
    logits = pretrainer(inputs)
    words = nll(logits["masked_lm_logits"], goal["masked_ids"])
    texts = nll(logits["sentence_order_logits"], goal["sentence_order_labels"])
    weights = goal["masked_weights"]
    expected = {
        "masked_lm_loss": (words * weights).sum() / weights.sum(),
        "sentence_order_loss": texts.mean(),
        "masked_lm_accuracy": ((logits["masked_lm_logits"].numpy().argmax(-1) == goal["masked_ids"]) * weights).sum()
        / 4,
        "sentence_order_accuracy": np.mean(logits["sentence_order_logits"].numpy().argmax(-1) == [0, 1, 0]),
        "tokens": inputs["padding_mask"].sum(),
    }
    expected["loss"] = expected["masked_lm_loss"] + expected["sentence_order_loss"]
    pretrainer.compile("sgd")
    figures = pretrainer.evaluate(inputs, goal, batch_size=3, verbose=0, return_dict=True)
    assert figures == pytest.approx(expected, rel=1e-5)


def test_parts_of_a_batch_add_up_to_its_gradient() -> None:
    """Replicas have different numbers of masked words: the mean is that of the whole batch, not of their means."""
    pretrainer, inputs, goal = AlbertPretrainer(AlbertBackbone(TINY)), inputs_with_positions(), targets()
    randomize(pretrainer)
    pretrainer.compile("sgd")

    def gradients(rows: slice) -> list[np.ndarray]:
        part, part_goal = ({name: tf.constant(a[rows]) for name, a in arrays.items()} for arrays in (inputs, goal))
        with tf.GradientTape() as tape:
            loss = pretrainer.compute_loss(part, part_goal, pretrainer(part, training=True))
        found = tape.gradient(loss, [v.value for v in pretrainer.trainable_variables])
        return [np.asarray(tf.convert_to_tensor(gradient)) for gradient in found]

    for whole, first, second in zip(*(map(gradients, (slice(3), slice(1), slice(1, 3)))), strict=True):
        np.testing.assert_allclose(first + second, whole, rtol=1e-4, atol=1e-6)


def test_from_pretrained(tmp_path: Path) -> None:
    from albert_tf.presets import save_preset

    pretrainer = AlbertPretrainer(AlbertBackbone(TINY))
    weights = randomize(pretrainer)
    save_preset(tmp_path / "preset", TINY, weights, None)
    restored = AlbertPretrainer.from_pretrained(tmp_path / "preset", rematerialize=True)
    assert restored.backbone.encoder.rematerialize
    for name, expected in pretrainer(inputs_with_positions()).items():
        np.testing.assert_array_equal(restored(inputs_with_positions())[name], expected)
    headless = {name: value for name, value in weights.items() if not name.startswith("sentence_order/")}
    save_preset(tmp_path / "headless", TINY, headless, None)
    with pytest.raises(InputError, match=r"sentence_order/bias"):
        AlbertPretrainer.from_pretrained(tmp_path / "headless")
