"""A `Checkpoint` cannot exist with weights that do not fit its config."""

import dataclasses

import numpy as np
import pytest

from albert_tf.config import AlbertConfig
from albert_tf.conversion.checkpoint import Checkpoint
from albert_tf.errors import InputError
from albert_tf.parameters import backbone_weight_shapes, pretraining_head_weight_shapes

CONFIG = AlbertConfig(11, 6, 10, 4, 2, embedding_dim=4, max_sequence_length=7)


def zeros(shapes):
    return {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}


BACKBONE = zeros(backbone_weight_shapes(CONFIG))
PRETRAINING = zeros(pretraining_head_weight_shapes(CONFIG))
MASKED_LM = {name: weight for name, weight in PRETRAINING.items() if name.startswith("masked_lm")}
CLASSIFIER = zeros({"classifier/kernel": (6, 3), "classifier/bias": (3,)})


def checkpoint(weights):
    return Checkpoint("form", "file", CONFIG, weights)


@pytest.mark.parametrize(
    ("head", "name"),
    [({}, "none"), (PRETRAINING, "pretraining"), (MASKED_LM, "masked_lm"), (CLASSIFIER, "classifier")],
)
def test_the_head_is_told_apart(head, name):
    read = checkpoint(BACKBONE | head)
    assert read.head == name
    assert read.backbone_weights == BACKBONE
    assert read.head_weights == head


def test_the_pooler_may_be_absent_as_a_whole_only():
    without = zeros(backbone_weight_shapes(CONFIG, pooler=False))
    assert checkpoint(without).head == "none"
    with pytest.raises(InputError, match=r"1 missing: pooler/bias \(6,\)"):
        checkpoint(without | {"pooler/kernel": np.zeros((6, 6), np.float32)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"embeddings/word_embedding/embeddings": np.zeros((12, 4), np.float32)}, r"is \(12, 4\), expected \(11, 4\)"),
        ({"encoder/attention_1/query/bias": np.zeros(6, np.float32)}, "1 not in the model: encoder/attention_1/query"),
        ({"masked_lm/output_bias": np.zeros(11, np.float32)}, "4 missing: masked_lm/transform/kernel"),
        ({"classifier/bias": np.full(3, np.nan, np.float32)}, "classifier/bias: 3 of 3 values are NaN"),
    ],
)
def test_weights_that_do_not_fit_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        checkpoint(BACKBONE | change)


def test_it_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        checkpoint(BACKBONE).source = "other"
