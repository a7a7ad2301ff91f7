"""`albert_tf.backbone` saved and restored: Keras files, SavedModel, weights by name, presets."""

import dataclasses
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from references import numpy_albert
from tiny_models import (
    DROPPING,
    TINY,
    example_inputs,
    named_weights,
    random_backbone,
    randomize,
    set_seeds,
    with_dense_head,
)

from albert_tf.backbone import AlbertBackbone
from albert_tf.errors import InputError

# float32 compiled in two ways, or against float64: measured at most 2e-6.
TOLERANCE = 1e-5


def numbers(x: Any) -> np.ndarray:
    return np.asarray(keras.ops.cast(x, "float32"))


def assert_same_weights(ours: AlbertBackbone, expected: AlbertBackbone) -> None:
    mine, theirs = named_weights(ours), named_weights(expected)
    assert mine.keys() == theirs.keys()
    for name, value in theirs.items():
        np.testing.assert_array_equal(mine[name], value, err_msg=name)


# === Keras files and SavedModel ===


@pytest.mark.parametrize(
    "fields", [{}, {"sharing": "attention", "num_groups": 2, "embedding_dim": 16}, {"factorization": "words"}], ids=str
)
def test_keras_file(fields: dict[str, Any], tmp_path: Path) -> None:
    config, inputs = dataclasses.replace(DROPPING, **fields), example_inputs()
    backbone = random_backbone(config, all_layers=True, pooler=False, rematerialize=True, dtype="mixed_bfloat16")
    backbone.save(tmp_path / "backbone.keras")
    restored = keras.saving.load_model(tmp_path / "backbone.keras")
    assert isinstance(restored, AlbertBackbone)
    assert restored.config == config and restored.get_config() == backbone.get_config()
    assert_same_weights(restored, backbone)
    assert restored.pooler is None and restored.encoder.rematerialize
    assert restored.policy.name == "mixed_bfloat16"
    np.testing.assert_array_equal(
        numbers(restored(inputs)["layer_outputs"][0]), numbers(backbone(inputs)["layer_outputs"][0])
    )


def test_weights_file(tmp_path: Path) -> None:
    backbone = random_backbone()
    backbone.save_weights(tmp_path / "backbone.weights.h5")
    fresh = AlbertBackbone(TINY)
    fresh.load_weights(tmp_path / "backbone.weights.h5")
    assert_same_weights(fresh, backbone)
    with pytest.raises(ValueError, match=r"attention_1|Layer"):
        AlbertBackbone(dataclasses.replace(TINY, sharing="none")).load_weights(tmp_path / "backbone.weights.h5")


def test_shared_weights_stay_shared_after_loading(tmp_path: Path) -> None:
    """Three layers, one block: 16 arrays before and after, and they are still one block after a training step."""
    model = with_dense_head(random_backbone(DROPPING))
    model.compile(keras.optimizers.Adam(0.01), loss="mse", run_eagerly=True)
    batch = example_inputs(), np.zeros((3, 1))
    model.fit(*batch, shuffle=False, verbose=0)
    model.save(tmp_path / "model.keras")
    restored = keras.saving.load_model(tmp_path / "model.keras")
    backbone = next(layer for layer in restored.layers if isinstance(layer, AlbertBackbone))
    assert len(backbone.encoder.attention_blocks) == len(backbone.encoder.feed_forward_blocks) == 1
    assert sum(variable.path.startswith("encoder/") for variable in restored.trainable_variables) == 16
    # Adam holds two arrays for each weight, its step and its rate.
    assert len(restored.optimizer.variables) == 2 + 2 * len(restored.trainable_variables)

    before = named_weights(backbone)
    for one in (model, restored):
        set_seeds(one)  # a .keras file does not hold the state of the dropout generators
        one.fit(*batch, shuffle=False, verbose=0)
    assert (
        np.abs(
            named_weights(backbone)["encoder/attention_0/query/kernel"] - before["encoder/attention_0/query/kernel"]
        ).max()
        > 1e-3
    )
    for ours, expected in zip(restored.weights, model.weights, strict=True):  # the optimizer's state came along
        np.testing.assert_allclose(np.asarray(ours), np.asarray(expected), rtol=0, atol=TOLERANCE)
    expected = numpy_albert.encode(named_weights(backbone), DROPPING, **example_inputs())["sequence_output"]
    np.testing.assert_allclose(backbone(example_inputs())["sequence_output"], expected, rtol=0, atol=TOLERANCE)


def test_saved_model(tmp_path: Path) -> None:
    backbone, inputs = random_backbone(), example_inputs()
    archive = keras.export.ExportArchive()
    archive.track(backbone)
    signature = {name: tf.TensorSpec((None, None), tf.int32, name=name) for name in inputs}
    archive.add_endpoint("serve", lambda x: backbone(x), input_signature=[signature])
    archive.write_out(str(tmp_path / "saved"), verbose=False)
    restored = tf.saved_model.load(str(tmp_path / "saved"))
    for size in (inputs, example_inputs(batch=1, length=12, seed=1)):
        expected = backbone(size)
        ours = restored.serve({name: tf.constant(value) for name, value in size.items()})
        for name in ("sequence_output", "pooled_output"):
            np.testing.assert_allclose(ours[name], expected[name], rtol=0, atol=TOLERANCE)


# === Weights by name ===


def test_load_named_weights() -> None:
    source, fresh = random_backbone(), AlbertBackbone(TINY)
    fresh.load_named_weights(named_weights(source), source="here")
    assert_same_weights(fresh, source)


def test_a_pooler_is_left_aside_where_the_model_has_none() -> None:
    source, fresh = random_backbone(), AlbertBackbone(TINY, pooler=False)
    fresh.load_named_weights(named_weights(source), source="here")
    np.testing.assert_array_equal(
        fresh(example_inputs())["sequence_output"], source(example_inputs())["sequence_output"]
    )
    with pytest.raises(InputError, match=r"here: .*pooler/kernel"):
        random_backbone().load_named_weights(named_weights(fresh), source="here")


def test_weights_that_do_not_fit_change_nothing() -> None:
    source = named_weights(random_backbone())
    missing = {name: value for name, value in source.items() if name != "encoder/attention_0/query/bias"}
    left_over = source | {"encoder/attention_1/query/bias": np.zeros(16, np.float32)}
    misshapen = source | {"encoder/attention_0/query/bias": np.zeros(17, np.float32)}
    for weights, name in ((missing, "attention_0"), (left_over, "attention_1"), (misshapen, "attention_0")):
        fresh = AlbertBackbone(TINY)
        before = {key: value.copy() for key, value in named_weights(fresh).items()}
        with pytest.raises(InputError, match=f"here: .*encoder/{name}/query/bias"):
            fresh.load_named_weights(weights, source="here")
        for key, value in named_weights(fresh).items():
            np.testing.assert_array_equal(value, before[key])


def test_an_unfilled_encoder_is_filled_by_its_weights() -> None:
    expected = random_backbone()
    weights = named_weights(expected)
    backbone = AlbertBackbone.unfilled(TINY)
    assert {v.path: tuple(v.shape) for v in backbone.weights} == {n: w.shape for n, w in weights.items()}
    backbone.load_named_weights(weights, source="here", consume=True)
    assert weights == {}
    assert_same_weights(backbone, expected)
    without = AlbertBackbone.unfilled(TINY, pooler=False)
    weights = named_weights(expected)
    without.load_named_weights(weights, source="here", consume=True)
    assert set(weights) == {"pooler/kernel", "pooler/bias"}


def test_from_pretrained(tmp_path: Path) -> None:
    from albert_tf.presets import save_preset
    from albert_tf.tasks.pretraining import AlbertPretrainer

    pretrainer = AlbertPretrainer(random_backbone())
    weights = randomize(pretrainer, seed=5)  # the heads, too: they are left aside
    save_preset(tmp_path / "preset", TINY, weights, None)
    restored = AlbertBackbone.from_pretrained(tmp_path / "preset", dtype="mixed_bfloat16", all_layers=True)
    assert restored.config == TINY and restored.policy.name == "mixed_bfloat16" and restored.all_layers
    assert_same_weights(restored, pretrainer.backbone)
    assert AlbertBackbone.from_pretrained(str(tmp_path / "preset"), pooler=False).pooler is None
