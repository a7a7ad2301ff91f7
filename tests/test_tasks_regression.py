"""`albert_tf.tasks.regression`: the head against NumPy, its loss, saving."""

from pathlib import Path

import numpy as np
import pytest
from references import numpy_albert
from small_vocabularies import sentencepiece_vocabulary
from tiny_models import example_inputs, randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.inference.regression import RegressionPipeline
from albert_tf.tasks.regression import AlbertTextRegressor
from albert_tf.tokenization.tokenizer import AlbertTokenizer

# float32 against float64: measured at most 1e-6.
TOLERANCE = 5e-6
CONFIG = AlbertConfig(140, 16, 32, 2, 2, embedding_dim=8, max_sequence_length=24)
TEXTS, PAIRS = ["the mill", "the river by the old mill", ""], ["the river", "", "a mill"]


@pytest.fixture(scope="module")
def regressor() -> AlbertTextRegressor:
    tokenizer = AlbertTokenizer(sentencepiece_vocabulary(), max_length=24)
    model = AlbertTextRegressor(AlbertBackbone(CONFIG), tokenizer)
    randomize(model)
    return model


def test_against_numpy(regressor: AlbertTextRegressor) -> None:
    weights = {name: np.asarray(variable, np.float64) for name, variable in regressor.named_weights().items()}
    inputs = example_inputs()
    pooled = numpy_albert.encode(weights, CONFIG, **inputs)["pooled_output"]
    expected = pooled @ weights["classifier/kernel"] + weights["classifier/bias"]
    assert np.ptp(expected) > 0.01
    np.testing.assert_allclose(regressor(inputs), expected, rtol=0, atol=TOLERANCE)


def test_values_are_the_models_own(regressor: AlbertTextRegressor) -> None:
    inputs = regressor.required_tokenizer(TEXTS, PAIRS)
    values = regressor.predict_values(TEXTS, PAIRS)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, np.asarray(regressor(inputs))[:, 0], rtol=0, atol=TOLERANCE)
    assert regressor.predict_values([]).shape == (0,)
    assert RegressionPipeline(regressor)(TEXTS, PAIRS) == pytest.approx(values.tolist())


def test_the_loss_is_the_mean_squared_error(regressor: AlbertTextRegressor) -> None:
    inputs = regressor.required_tokenizer(TEXTS, PAIRS)
    goal = {"value": np.float32([0.0, 2.5, 5.0]), "scale": np.full(3, 1 / 3, np.float32)}
    regressor.compile("sgd")
    found = regressor.evaluate(inputs, goal, batch_size=3, verbose=0, return_dict=True)
    expected = np.mean((regressor.predict_values(TEXTS, PAIRS) - goal["value"]) ** 2)
    assert found["loss"] == pytest.approx(expected, rel=1e-5)


def test_round_trip(regressor: AlbertTextRegressor, tmp_path: Path) -> None:
    regressor.save_pretrained(tmp_path / "regressor")
    restored = AlbertTextRegressor.from_pretrained(tmp_path / "regressor")
    assert not restored.head_is_new and restored.settings() == {"classifier_dropout": 0.1}
    np.testing.assert_array_equal(restored.predict_values(TEXTS), regressor.predict_values(TEXTS))


def test_a_backbone_that_cannot_be_used() -> None:
    with pytest.raises(InputError, match="expected a backbone with pooler=True"):
        AlbertTextRegressor(AlbertBackbone(CONFIG, pooler=False))
    with pytest.raises(InputError, match="expected an AlbertBackbone, got str"):
        AlbertTextRegressor("backbone")
    with pytest.raises(InputError, match=r"classifier_dropout: expected a rate in \[0, 1\), got 1.0"):
        AlbertTextRegressor(AlbertBackbone(CONFIG), classifier_dropout=1.0)
