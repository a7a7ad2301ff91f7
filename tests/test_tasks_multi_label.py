"""`AlbertMultiLabelClassifier`: loss and probabilities against NumPy, and what it refuses."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from tiny_exports import new_classifier

from albert_tf.errors import InputError
from albert_tf.tasks.multi_label import AlbertMultiLabelClassifier


def test_loss_and_probabilities_are_those_of_numpy() -> None:
    plain = new_classifier()
    task = AlbertMultiLabelClassifier(plain.backbone, plain.tokenizer, labels=["a", "b", "c"])
    logits = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32) * 4
    wanted = np.random.default_rng(1).integers(0, 2, (5, 3)).astype(np.float32)
    p = expit(logits.astype(np.float64))
    expected = -(wanted * np.log(p) + (1 - wanted) * np.log(1 - p)).mean(axis=1)
    np.testing.assert_allclose(task.training_losses({"labels": wanted}, logits), expected, rtol=1e-4)
    ids, segments = task.encode(["the people turning"])[0]
    inputs = {"token_ids": [ids], "segment_ids": [segments], "padding_mask": [[1] * len(ids)]}
    own = np.asarray(task({name: np.array(value, np.int32) for name, value in inputs.items()}, training=False))[0]
    (answer,) = task.classify(["the people turning"])
    np.testing.assert_allclose(list(answer.probabilities.values()), expit(own), atol=1e-5)


def test_settings_come_back(tmp_path: Path) -> None:
    plain = new_classifier()
    task = AlbertMultiLabelClassifier(plain.backbone, plain.tokenizer, labels=["a", "b"], threshold=0.2)
    task.save_pretrained(tmp_path / "saved")
    again = AlbertMultiLabelClassifier.from_pretrained(tmp_path / "saved")
    assert again.settings() == task.settings() and not again.head_is_new
    assert AlbertMultiLabelClassifier.from_config(task.get_config()).settings() == task.settings()
    task.save(tmp_path / "saved.keras")
    assert [answer.labels for answer in again.classify(["the people"])] == [
        answer.labels for answer in task.classify(["the people"])
    ]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"labels": ["a"]}, "labels: expected at least two different names"),
        ({"labels": None}, "labels: expected their names"),
        ({"labels": ["a", "b"], "threshold": 0.0}, "threshold: expected a probability above 0 and below 1, got"),
        ({"labels": ["a", "b"], "threshold": "0.5"}, "threshold: expected a probability above 0 and below 1, got"),
    ],
)
def test_what_it_refuses(settings: dict[str, object], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        AlbertMultiLabelClassifier(new_classifier().backbone, **settings)
