"""The encoder in the order in which integers can compute it, against the Keras one."""

import numpy as np
import pytest
import tensorflow as tf
from tiny_exports import BASE, CONFIGS, keras_probabilities, new_classifier, random_inputs
from tiny_tasks import tiny_task

from export.integer_graph import IntegerEncoder, head_computed_by, integer_weights


@pytest.mark.parametrize("name", CONFIGS)
def test_the_encoder_in_another_order_is_the_same(name):
    task = new_classifier(CONFIGS[name])
    rows = [random_inputs(length, seed=length) for length in (5, 16)]
    for measured in ([], rows):  # without and with factors
        changed = integer_weights(task, measured)
        assert any(path.endswith("/out") for path in changed) == bool(measured)
        for token_ids, segment_ids in rows:
            inputs = [tf.constant([row], tf.int32) for row in (token_ids, segment_ids, [1] * len(token_ids))]
            wanted = task.backbone(
                dict(zip(("token_ids", "segment_ids", "padding_mask"), inputs, strict=True)), training=False
            )["sequence_output"]
            found = IntegerEncoder(CONFIGS[name], changed)(*inputs)
            np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-4)


@pytest.mark.parametrize("name", ["all", "words"])
def test_the_head_has_factors_too_and_answers_as_before(name):
    task = new_classifier(CONFIGS[name])
    rows = [random_inputs(length, seed=length) for length in (5, 16)]
    weights = integer_weights(task, rows)
    assert {"pooler/in", "pooler/out", "classifier/in", "classifier/out"} <= weights.keys()
    encode = IntegerEncoder(CONFIGS[name], weights)
    for token_ids, segment_ids in rows:
        inputs = [tf.constant([row], tf.int32) for row in (token_ids, segment_ids, [1] * len(token_ids))]
        with head_computed_by(encode, task):
            assert all(layer.computation == encode.compute for layer in (task.backbone.pooler, task.classifier))
            found = task.row_outputs(encode(*inputs), *inputs[1:])["probabilities"]
        np.testing.assert_allclose(found[0], keras_probabilities(task, token_ids, segment_ids), atol=1e-4)
    assert task.backbone.pooler.computation is None


@pytest.mark.parametrize(
    "name", ["tagging", "similarity", "multi-label", "multiple-choice", "fill-mask", "question-answering"]
)
def test_every_head_answers_as_before(name):
    task = tiny_task(name)
    row = random_inputs(12)
    encode = IntegerEncoder(BASE, integer_weights(task, [row]))
    inputs = [tf.constant([values], tf.int32) for values in (*row, [1] * 12)]
    x = encode(*inputs)
    wanted = task.row_outputs(x, *inputs[1:])
    with head_computed_by(encode, task):
        found = task.row_outputs(x, *inputs[1:])
    assert found.keys() == wanted.keys()
    for output, values in found.items():
        np.testing.assert_allclose(values, wanted[output], rtol=1e-3, atol=1e-3, err_msg=output)
