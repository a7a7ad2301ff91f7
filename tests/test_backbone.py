"""`albert_tf.backbone`: the whole encoder against NumPy, in every precision, compiled, trained."""

import dataclasses
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from references import numpy_albert
from tiny_models import DROPPING, TINY, example_inputs, random_backbone, randomize, set_seeds, with_dense_head

from albert_tf.backbone import AlbertBackbone
from albert_tf.errors import InputError

# float32 against float64, three or six steps with values up to 3: measured at most 2e-6.
TOLERANCE = 1e-5
# Half precision against float32, mean absolute difference: measured at most 0.0063 for bfloat16 and 0.0006 for float16,
# where the values have a standard deviation of 1.
HALF_TOLERANCE = {"mixed_bfloat16": 0.02, "mixed_float16": 0.002}
# float32 compiled in two ways, outputs and gradients (of the largest): measured at most 1.6e-6 on one CPU,
# 1.2e-5 on another, of a bias of keys, whose gradient is 0 but for rounding.
COMPILED_TOLERANCE = 3e-5


def numbers(x: Any) -> np.ndarray:
    return np.asarray(keras.ops.cast(x, "float32"))


# === Agreement with the formulas ===

SHAPES: list[dict[str, Any]] = [
    {},
    {"sharing": "attention"},
    {"sharing": "ffn"},
    {"sharing": "none"},
    {"num_groups": 2},
    {"num_groups": 3},
    {"num_inner_repetitions": 2},
    {"num_groups": 2, "num_inner_repetitions": 2},
    {"sharing": "attention", "num_groups": 2, "num_inner_repetitions": 2},
    {"sharing": "ffn", "num_groups": 2, "num_inner_repetitions": 2},
    {"sharing": "none", "num_inner_repetitions": 2},
    {"embedding_dim": 16},
    {"factorization": "words"},
    {"factorization": "words", "embedding_dim": 16, "sharing": "attention"},
    {"activation": "gelu_erf"},
    {"activation": "relu"},
    {"activation": "linear"},
    {"num_heads": 1, "num_segments": 3, "layer_norm_epsilon": 0.1},
]


@pytest.mark.parametrize("fields", SHAPES, ids=str)
def test_against_numpy(fields: dict[str, Any]) -> None:
    config = dataclasses.replace(TINY, **fields)
    backbone = AlbertBackbone(config, all_layers=True)
    weights, inputs = randomize(backbone), example_inputs()
    expected, ours = numpy_albert.encode(weights, config, **inputs), backbone(inputs)
    assert set(ours) == {"sequence_output", "pooled_output", "embedding_output", "layer_outputs"}
    for name in ("embedding_output", "sequence_output", "pooled_output"):
        np.testing.assert_allclose(np.asarray(ours[name]), expected[name], rtol=0, atol=TOLERANCE, err_msg=name)
    assert len(ours["layer_outputs"]) == len(config.block_schedule)
    for step, output in zip(expected["layer_outputs"], ours["layer_outputs"], strict=True):
        np.testing.assert_allclose(np.asarray(output), step, rtol=0, atol=TOLERANCE)


def test_outputs_on_request() -> None:
    inputs = example_inputs()
    assert set(random_backbone()(inputs)) == {"sequence_output", "pooled_output"}
    assert set(random_backbone(pooler=False)(inputs)) == {"sequence_output"}
    full = random_backbone(all_layers=True)(inputs)
    np.testing.assert_array_equal(np.asarray(full["layer_outputs"][-1]), np.asarray(full["sequence_output"]))
    np.testing.assert_array_equal(
        np.asarray(full["sequence_output"]), np.asarray(random_backbone()(inputs)["sequence_output"])
    )


def test_padding_does_not_change_the_tokens() -> None:
    backbone, random = random_backbone(), np.random.default_rng(2)
    short = {name: value[:, :5] for name, value in example_inputs(batch=2, length=5).items()}
    short["padding_mask"] = np.ones_like(short["padding_mask"])
    padded = {name: np.concatenate([value, random.integers(0, 2, (2, 4))], axis=1) for name, value in short.items()}
    padded["padding_mask"][:, 5:] = 0
    padded["token_ids"][:, 5:] = random.integers(0, 60, (2, 4))
    expected, ours = backbone(short), backbone(padded)
    np.testing.assert_allclose(ours["sequence_output"][:, :5], expected["sequence_output"], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(ours["pooled_output"], expected["pooled_output"], rtol=0, atol=TOLERANCE)
    padded["padding_mask"][:, 5:] = 1
    changed = backbone(padded)["sequence_output"][:, :5]
    assert np.abs(np.asarray(changed) - np.asarray(expected["sequence_output"])).max() > 0.1


def test_a_row_of_padding_only_gives_numbers() -> None:
    inputs = example_inputs()
    inputs["padding_mask"][1] = 0
    for dtype in ("float32", "mixed_float16", "mixed_bfloat16"):
        assert np.isfinite(numbers(random_backbone(dtype=dtype)(inputs)["sequence_output"])).all()


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.float32, tf.int64], ids=str)
def test_inputs_of_other_types(kind: Any) -> None:
    backbone, inputs = random_backbone(), example_inputs()
    others = {name: tf.cast(value, kind) if kind is tf.int64 else value.astype(kind) for name, value in inputs.items()}
    np.testing.assert_array_equal(backbone(others)["pooled_output"], backbone(inputs)["pooled_output"])


def test_too_long_a_sequence() -> None:
    backbone = random_backbone()
    inputs = {name: np.ones((1, 13), np.int32) for name in example_inputs()}
    for run in (backbone, lambda x: backbone.predict(x, verbose=0)):
        with pytest.raises(InputError, match=r"expected at most 12 positions \(max_sequence_length\), got 13"):
            run(inputs)


# === Dropout ===


def test_dropout_acts_in_training_only() -> None:
    inputs = example_inputs()
    expected = random_backbone()(inputs)["sequence_output"]
    backbone = random_backbone(DROPPING)
    for output in (backbone(inputs), backbone(inputs, training=False), backbone.predict(inputs, verbose=0)):
        np.testing.assert_allclose(output["sequence_output"], expected, rtol=0, atol=TOLERANCE)
    first, second = (np.asarray(backbone(inputs, training=True)["sequence_output"]) for _ in range(2))
    assert np.abs(first - expected).max() > 0.1 and np.abs(first - second).max() > 0.1


def test_without_rates_training_changes_nothing() -> None:
    backbone, inputs = random_backbone(), example_inputs()
    np.testing.assert_array_equal(
        backbone(inputs, training=True)["sequence_output"], backbone(inputs)["sequence_output"]
    )


# === Precision and compilation ===


@pytest.mark.parametrize("dtype", HALF_TOLERANCE)
def test_half_precision(dtype: str) -> None:
    inputs = example_inputs()
    expected, ours = random_backbone(all_layers=True)(inputs), random_backbone(dtype=dtype, all_layers=True)(inputs)
    for name in ("sequence_output", "pooled_output"):
        assert ours[name].dtype.name == dtype.removeprefix("mixed_")
        assert np.isfinite(numbers(ours[name])).all()
        assert np.abs(numbers(ours[name]) - numbers(expected[name])).mean() < HALF_TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", ["float32", *HALF_TOLERANCE])
def test_symbolic_outputs_have_the_types_and_shapes_of_real_ones(dtype: str) -> None:
    backbone = random_backbone(dtype=dtype, all_layers=True)
    symbolic, real = keras.tree.flatten(backbone.output), keras.tree.flatten(backbone(example_inputs()))
    assert [x.dtype for x in symbolic] == [keras.backend.standardize_dtype(x.dtype) for x in real]
    assert [x.shape[1:] for x in symbolic] == [(None, 16) if x.ndim == 3 else (16,) for x in real]


def test_weights_stay_float32_in_mixed_precision() -> None:
    assert {variable.dtype for variable in random_backbone(dtype="mixed_bfloat16").weights} == {"float32"}


def test_xla() -> None:
    backbone, inputs = random_backbone(), example_inputs()
    expected = np.asarray(backbone(inputs)["sequence_output"])
    ours = tf.function(lambda x: backbone(x)["sequence_output"], jit_compile=True)(inputs)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=COMPILED_TOLERANCE)
    backbone.compile(jit_compile=True)
    np.testing.assert_allclose(
        backbone.predict(inputs, verbose=0)["sequence_output"], expected, rtol=0, atol=COMPILED_TOLERANCE
    )


def test_training_with_xla() -> None:
    model = with_dense_head(random_backbone(DROPPING))
    model.compile(keras.optimizers.SGD(0.05), loss="mse", jit_compile=True)
    before = randomize(model)
    history = model.fit(example_inputs(), np.zeros((3, 1)), epochs=2, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    assert any(np.abs(np.asarray(v) - before[v.path]).max() > 1e-3 for v in model.weights)


# === Training ===


@pytest.mark.parametrize("rematerialize", [False, True])
@pytest.mark.parametrize("fields", [{}, {"sharing": "none", "num_inner_repetitions": 2}], ids=str)
def test_gradients_reach_every_weight(fields: dict[str, Any], rematerialize: bool) -> None:
    backbone = random_backbone(dataclasses.replace(TINY, **fields), rematerialize=rematerialize)
    direction = np.random.default_rng(1).standard_normal((3, 7, 16)).astype(np.float32)
    with tf.GradientTape() as tape:
        outputs = backbone(example_inputs(), training=True)
        loss = tf.reduce_sum(outputs["sequence_output"] * direction) + tf.reduce_sum(outputs["pooled_output"])
    variables = backbone.trainable_variables
    gradients = tape.gradient(loss, [variable.value for variable in variables])
    assert {variable.path for variable in variables} == {variable.path for variable in backbone.weights}
    for variable, gradient in zip(variables, gradients, strict=True):
        assert gradient is not None, variable.path
        largest = float(tf.reduce_max(tf.abs(tf.convert_to_tensor(gradient))))
        # A key bias adds the same to all scores of a query, which the softmax takes out again.
        expect_none = variable.path.endswith("key/bias")
        assert (largest < 1e-4) if expect_none else (largest > 1e-3), (variable.path, largest)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "tf.function"])
def test_rematerialized_gradients_with_dropout(compiled: bool) -> None:
    def step(backbone: AlbertBackbone):
        with tf.GradientTape() as tape:
            outputs = backbone(example_inputs(), training=True)
            loss = tf.reduce_sum(outputs["sequence_output"][:, 1] ** 3) + tf.reduce_sum(outputs["pooled_output"])
        return outputs, tape.gradient(loss, [variable.value for variable in backbone.trainable_variables])

    results = []
    for backbone in (random_backbone(DROPPING), random_backbone(DROPPING, rematerialize=True)):
        set_seeds(backbone)
        results.append((tf.function(step) if compiled else step)(backbone))
    (expected, expected_gradients), (ours, gradients) = results
    np.testing.assert_allclose(ours["sequence_output"], expected["sequence_output"], rtol=0, atol=COMPILED_TOLERANCE)
    for ours_, expected_ in zip(gradients, expected_gradients, strict=True):
        ours_, expected_ = np.asarray(tf.convert_to_tensor(ours_)), np.asarray(tf.convert_to_tensor(expected_))
        largest = max(np.abs(expected_).max(), 1.0)
        np.testing.assert_allclose(ours_, expected_, rtol=0, atol=COMPILED_TOLERANCE * largest)


def test_frozen_backbone_does_not_train() -> None:
    backbone = random_backbone()
    backbone.trainable = False
    model = with_dense_head(backbone)
    model.compile(keras.optimizers.SGD(0.1), loss="mse", run_eagerly=True)
    before = [np.asarray(variable).copy() for variable in backbone.weights]
    model.fit(example_inputs(), np.zeros((3, 1)), shuffle=False, verbose=0)
    for old, new in zip(before, backbone.weights, strict=True):
        np.testing.assert_array_equal(np.asarray(new), old)
    assert not AlbertBackbone.from_config(backbone.get_config()).trainable
