"""`albert_tf.training.optimizers`: AdamW and LAMB against NumPy, and stock Keras failing where ours is needed.

The tests named `test_stock_keras_...` pass while Keras is wrong. The day one fails, a correction can go.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny_models import TINY

from albert_tf.training.optimizers import AdamW, CorrectedGradients, Lamb
from albert_tf.training.schedules import LinearWarmupDecay

# float32 against float64 after 20 steps of 0.05: measured at most 7e-6 (in float32, 1 - 0.999 has 5 right digits).
TOLERANCE = 2e-5

IDS = np.array([[0, 1, 1, 1], [1, 0, 3, 1]])  # row 1 five times, row 2 never
PATHS = ["table/embeddings", "dense/kernel", "dense/bias", "layer_norm/gamma"]


class NumpyAdamW:
    """Algorithm 2 of Loshchilov and Hutter with the epsilon inside the bias correction, as in Keras and TensorFlow."""

    def __init__(self, rate: Callable[[int], float], decay: float, decayed: list[bool], clip: float | None) -> None:
        self.rate, self.decay, self.decayed, self.clip = rate, decay, decayed, clip
        self.step, self.first, self.second = 0, [0.0] * len(decayed), [0.0] * len(decayed)

    def apply(self, weights: list[np.ndarray], gradients: list[np.ndarray]) -> list[np.ndarray]:
        rate, self.step = self.rate(self.step), self.step + 1
        if self.clip is not None:
            norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients))
            gradients = [gradient * min(1.0, self.clip / norm) for gradient in gradients]
        updated = []
        for i, (weight, gradient) in enumerate(zip(weights, gradients, strict=True)):
            self.first[i] = 0.9 * self.first[i] + 0.1 * gradient
            self.second[i] = 0.999 * self.second[i] + 0.001 * gradient**2
            updated.append(self.step_of(i, weight, rate))
        return updated

    def step_of(self, i: int, weight: np.ndarray, rate: float) -> np.ndarray:
        size = rate * np.sqrt(1 - 0.999**self.step) / (1 - 0.9**self.step)
        decayed = weight - rate * self.decay * weight * self.decayed[i]
        return decayed - size * self.first[i] / (np.sqrt(self.second[i]) + 1e-6)


class NumpyLamb(NumpyAdamW):
    """google-research/albert lamb_optimizer.py: no bias correction, the decay inside the trust ratio, exclusions."""

    def step_of(self, i: int, weight: np.ndarray, rate: float) -> np.ndarray:
        update = self.first[i] / (np.sqrt(self.second[i]) + 1e-6)
        if not self.decayed[i]:
            return weight - rate * update
        update = update + self.decay * weight
        return weight - rate * np.linalg.norm(weight) / np.linalg.norm(update) * update


def differences_after(steps: int, optimizer: keras.optimizers.Optimizer, reference: NumpyAdamW) -> dict[str, float]:
    """Trains y = LN-like gain · (table[ids] · kernel + bias) both ways: largest difference in each weight."""
    random = np.random.default_rng(1)
    weights = [random.standard_normal(shape) for shape in ((4, 3), (3, 2), (2,), (2,))]
    variables = []
    for path, weight in zip(PATHS, weights, strict=True):
        scope, name = path.split("/")
        with keras.name_scope(scope):
            variables.append(keras.Variable(weight, dtype="float32", name=name))
    assert [variable.path for variable in variables] == PATHS
    target = random.standard_normal((2, 4, 2)) * 3
    for _ in range(steps):
        with tf.GradientTape() as tape:
            table, kernel, bias, gain = (variable.value for variable in variables)
            output = gain * (tf.gather(table, IDS) @ kernel + bias)
            loss = tf.reduce_sum((output - target.astype(np.float32)) ** 2)
        gradients = tape.gradient(loss, [table, kernel, bias, gain])
        assert isinstance(gradients[0], tf.IndexedSlices)  # what an embedding's gradient is in Keras
        optimizer.apply(gradients, variables)

        table, kernel, bias, gain = weights
        inner = table[IDS] @ kernel + bias
        error = 2 * (gain * inner - target)
        table_gradient = np.zeros_like(table)
        np.add.at(table_gradient, IDS, error * gain @ kernel.T)
        kernel_gradient = np.einsum("bse,bso->eo", table[IDS], error * gain)
        gradients = [table_gradient, kernel_gradient, (error * gain).sum((0, 1)), (error * inner).sum((0, 1))]
        weights = reference.apply(weights, gradients)
    return {
        variable.path: float(np.abs(np.asarray(variable) - weight).max())
        for variable, weight in zip(variables, weights, strict=True)
    }


def reference(rate: Any = 0.05, decay: float = 0.1, clip: float | None = None) -> NumpyAdamW:
    return NumpyAdamW(rate if callable(rate) else lambda step: rate, decay, [True, True, False, False], clip)


# === Ours ===


@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adamw_against_numpy(decay: float, clip: float | None) -> None:
    optimizer = AdamW(0.05, weight_decay=decay, global_clipnorm=clip)
    differences = differences_after(20, optimizer, reference(decay=decay, clip=clip))
    assert max(differences.values()) < TOLERANCE, differences
    assert int(optimizer.iterations) == 20


@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_lamb_against_numpy(decay: float, clip: float | None) -> None:
    optimizer = Lamb(0.02, weight_decay=decay, global_clipnorm=clip)
    lamb = NumpyLamb(lambda step: 0.02, decay, [True, True, False, False], clip)
    differences = differences_after(50, optimizer, lamb)
    assert max(differences.values()) < TOLERANCE, differences
    assert int(optimizer.iterations) == 50


def test_stock_keras_lamb_is_another_optimizer() -> None:
    lamb = NumpyLamb(lambda step: 0.02, 0.1, [True, True, False, False], None)
    differences = differences_after(50, keras.optimizers.Lamb(0.02, weight_decay=0.1, epsilon=1e-6), lamb)
    assert min(differences.values()) > 100 * TOLERANCE


def test_lamb_without_a_norm_to_trust() -> None:
    """A zero variable or a zero update has the ratio 1, not 0 or NaN."""
    variables = [keras.Variable(value, dtype="float32", name="kernel") for value in (np.zeros(2), np.ones(2))]
    Lamb(0.5, weight_decay=0.0).apply([tf.constant([1.0, 1.0]), tf.zeros(2)], variables)
    np.testing.assert_allclose(variables[0], -0.5 * 0.1 / np.sqrt(0.001) * np.ones(2), rtol=1e-4)
    np.testing.assert_array_equal(variables[1], np.ones(2))


def test_lamb_is_saved_with_the_model(tmp_path: Path) -> None:
    optimizer = Lamb(LinearWarmupDecay(0.1, 2, 10), weight_decay=0.2, excluded=["gamma"], global_clipnorm=0.5)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile(optimizer, loss="mse", run_eagerly=True)
    model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras").optimizer
    assert type(loaded) is Lamb and loaded.get_config() == optimizer.get_config()
    assert (loaded.excluded, loaded.decay, loaded.global_clipnorm) == (("gamma",), 0.2, 0.5)
    for ours, theirs in zip(optimizer.variables, loaded.variables, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_adamw_with_a_schedule() -> None:
    optimizer = AdamW(LinearWarmupDecay(0.1, 5, 25), weight_decay=0.1, global_clipnorm=1.0)

    def rate(step: int) -> float:
        return 0.1 * (step / 5 if step < 5 else 1 - step / 25)

    differences = differences_after(20, optimizer, reference(rate, clip=1.0))
    assert max(differences.values()) < TOLERANCE, differences


def test_what_does_not_decay() -> None:
    """Only layer norms and biases, in the whole pretraining model; a zero gradient leaves the decay alone to act."""
    from albert_tf.backbone import AlbertBackbone
    from albert_tf.tasks.pretraining import AlbertPretrainer

    model = AlbertPretrainer(AlbertBackbone(TINY))
    variables = model.trainable_variables
    for variable in variables:
        variable.assign(tf.ones(variable.shape))
    AdamW(1.0, weight_decay=0.25).apply([tf.zeros(variable.shape) for variable in variables], variables)
    decayed = {variable.path for variable in variables if (np.asarray(variable) == 0.75).all()}
    kept = {variable.path for variable in variables if (np.asarray(variable) == 1).all()}
    assert decayed | kept == {variable.path for variable in variables}
    assert decayed == {path for path in decayed | kept if path.split("/")[-1] in ("kernel", "embeddings")}
    assert "masked_lm/output_bias" in kept and "embeddings/word_embedding/embeddings" in decayed


def test_rate_factors_multiply_rate_and_decay() -> None:
    """Against NumPy, with a rate for each weight; of two names that fit, the longer decides."""
    factors = {"table/": 0.25, "dense/": 3.0, "dense/kernel": 0.5}
    rates = [0.25, 0.5, 3.0, 1.0]  # of PATHS

    class Factored(NumpyAdamW):
        def step_of(self, i: int, weight: np.ndarray, rate: float) -> np.ndarray:
            return super().step_of(i, weight, rate * rates[i])

    expected = Factored(lambda step: 0.02, 0.1, [True, True, False, False], None)
    differences = differences_after(20, AdamW(0.02, weight_decay=0.1, rate_factors=factors), expected)
    assert max(differences.values()) < TOLERANCE, differences
    restored = AdamW.from_config(json.loads(json.dumps(AdamW(0.1, rate_factors=factors).get_config())))
    assert restored.rate_factors == factors


def test_own_exclusions() -> None:
    variables = [keras.Variable(np.ones(2), name=name) for name in ("kernel", "table", "other")]
    optimizer = AdamW(1.0, weight_decay=0.25, undecayed=["^kern"])
    optimizer.exclude_from_weight_decay(var_names=["table"])  # Keras's own way works, too
    optimizer.apply([tf.zeros(2)] * 3, variables)
    assert [float(variable[0]) for variable in variables] == [1, 1, 0.75]


def test_exclusions_are_saved_with_the_model(tmp_path: Path) -> None:
    optimizer = AdamW(LinearWarmupDecay(0.1, 2, 10), weight_decay=0.2, undecayed=["gamma"], global_clipnorm=0.5)
    restored = AdamW.from_config(json.loads(json.dumps(optimizer.get_config())))
    assert restored.get_config() == optimizer.get_config()
    assert (restored.undecayed, restored.weight_decay, restored.epsilon) == (("gamma",), 0.2, 1e-6)

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile(optimizer, loss="mse", run_eagerly=True)
    model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras").optimizer
    assert type(loaded) is AdamW and loaded.undecayed == ("gamma",) and loaded.global_clipnorm == 0.5
    assert int(loaded.iterations) == 1 and loaded.get_config() == optimizer.get_config()


@pytest.mark.parametrize(
    ("clip", "expected"),
    [
        ({"global_clipnorm": 1.0}, [[0.6, 0.0], [0.0, 0.8]]),
        ({"clipnorm": 1.0}, [[1.0, 0.0], [0.0, 1.0]]),
        ({"clipvalue": 20.0}, [[20.0, 0.0], [0.0, 20.0]]),
        ({}, [[30.0, 0.0], [0.0, 40.0]]),
    ],
    ids=str,
)
def test_clipping_on_one_device(clip: dict[str, float], expected: list[list[float]]) -> None:
    variables = [keras.Variable(np.zeros(2), dtype="float32") for _ in range(2)]
    CorrectedSGD(1.0, **clip).apply([tf.constant([30.0, 0.0]), tf.constant([0.0, 40.0])], variables)
    np.testing.assert_allclose([-np.asarray(variable) for variable in variables], expected, rtol=1e-6)


def test_duplicate_slices_are_clipped_as_their_sum() -> None:
    """Four slices of norm 1 for the same row are a gradient of norm 4."""
    slices = tf.IndexedSlices(tf.constant([[1.0, 0.0]] * 4), tf.zeros(4, tf.int32), (2, 2))
    variable = keras.Variable(np.zeros((2, 2)), dtype="float32")
    CorrectedSGD(1.0, global_clipnorm=1.0).apply([slices], [variable])
    np.testing.assert_allclose(-np.asarray(variable), [[1, 0], [0, 0]], rtol=1e-6)


def test_accumulated_gradients_are_clipped_once_summed() -> None:
    variable = keras.Variable(np.zeros(2), dtype="float32")
    optimizer = CorrectedSGD(1.0, global_clipnorm=1.0, gradient_accumulation_steps=2)
    for gradient in ([60.0, 0.0], [0.0, 80.0]):
        optimizer.apply([tf.constant(gradient)], [variable])
    np.testing.assert_allclose(-np.asarray(variable), [0.6, 0.8], rtol=1e-6)


def test_under_loss_scaling() -> None:
    """Wrapped as float16 training wraps it: the same steps, whatever the scale."""
    plain, wrapped = (
        AdamW(0.05, global_clipnorm=0.5),
        keras.optimizers.LossScaleOptimizer(AdamW(0.05, global_clipnorm=0.5)),
    )
    results = []
    for optimizer, scale in ((plain, 1.0), (wrapped, wrapped.initial_scale)):
        variable = keras.Variable(np.ones((2, 2)), dtype="float32", name="kernel")
        for _ in range(3):
            slices = tf.IndexedSlices(tf.constant([[2.0, 1.0]] * 3) * scale, tf.constant([0, 0, 1]), (2, 2))
            optimizer.apply([slices], [variable])
        results.append(np.asarray(variable))
    np.testing.assert_allclose(results[1], results[0], rtol=1e-6)


class CorrectedSGD(CorrectedGradients, keras.optimizers.SGD):
    """An update that is the clipped gradient itself."""


# === What stock Keras does ===


def first_step(optimizer: keras.optimizers.Optimizer) -> float:
    """How far one step moves a table of two rows when each is looked up 1024 times. Adam's first step is the rate."""
    layer = keras.layers.Embedding(2, 4)
    layer.build()
    before = np.asarray(layer.embeddings).copy()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(np.arange(2048).reshape(2, 1024) % 2))
    gradients = tape.gradient(loss, [layer.embeddings.value])
    optimizer.apply(gradients, [layer.embeddings])
    return float(np.abs(np.asarray(layer.embeddings) - before).max())


def test_first_step_on_a_table_of_two_rows() -> None:
    assert first_step(AdamW(0.1, weight_decay=0.0)) == pytest.approx(0.1, rel=1e-3)


def test_stock_keras_squares_each_slice_by_itself() -> None:
    stock = keras.optimizers.AdamW(0.1, weight_decay=0.0, epsilon=1e-6)
    assert first_step(stock) == pytest.approx(0.1 * np.sqrt(1024), rel=1e-3)
    stock = keras.optimizers.AdamW(0.05, weight_decay=0.1, epsilon=1e-6)
    stock.exclude_from_weight_decay(var_names=["layer_norm", "bias"])
    differences = differences_after(20, stock, reference())
    assert differences["table/embeddings"] > 1000 * TOLERANCE


def test_stock_keras_forgets_its_exclusions() -> None:
    stock = keras.optimizers.AdamW()
    stock.exclude_from_weight_decay(var_names=["bias"])
    restored = keras.optimizers.AdamW.from_config(stock.get_config())
    assert restored._use_weight_decay(tf.Variable(1.0, name="bias"))


# === Two replicas ===


@pytest.fixture(scope="module")
def mirrored() -> dict[str, list[float]]:
    script = Path(__file__).with_name("mirrored_steps.py")
    environment = os.environ | {"PYTHONPATH": str(script.parent.parent)}
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("kind", "expected"), [("global_clipnorm", [0.6, 0.8]), ("clipnorm", [0.6, 0.8]), ("clipvalue", [30.0, 35.0])]
)
def test_the_sum_over_replicas_is_clipped(kind: str, expected: list[float], mirrored: dict[str, list[float]]) -> None:
    np.testing.assert_allclose(mirrored[f"ours {kind}"], expected, rtol=1e-6)


def test_a_gradient_that_overflows_on_one_replica_is_left_out_on_all(mirrored: dict[str, list[float]]) -> None:
    """Of [infinite on the second replica, finite on both]: the weight, the loss scale, and the updates counted."""
    assert mirrored["ours overflow"] == [1.0, 0.5 * 2**15, 0.0]
    assert mirrored["ours no overflow"] == [0.75, 2**15, 1.0]


def test_stock_keras_asks_the_first_replica_alone(mirrored: dict[str, list[float]]) -> None:
    weight, scale, _ = mirrored["stock overflow"]
    assert not np.isfinite(weight) and scale == 2**15


def test_stock_keras_clips_each_replica(mirrored: dict[str, list[float]]) -> None:
    np.testing.assert_allclose(mirrored["stock global_clipnorm"], [1.0, 1.0], rtol=1e-6)
    np.testing.assert_allclose(mirrored["stock clipnorm"], [1.0, 1.0], rtol=1e-6)


def test_two_replicas_train_as_one_device(mirrored: dict[str, list[float]]) -> None:
    one, two = mirrored["losses on one device"], mirrored["losses on two replicas"]
    assert one[0] - one[-1] > 0.5
    np.testing.assert_allclose(two, one, rtol=1e-5)
