"""`albert_tf.layers.rows`: every mix of known and unknown sizes, and the constant shape that a device file is to have."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.layers.rows import unflattened


@pytest.mark.parametrize("known", [(2, 3), (2, None), (None, 3), (None, None)], ids=str)
def test_rows_come_back_to_their_places(known):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

    @tf.function(input_signature=[tf.TensorSpec((*known, 4))])
    def back(x):
        return unflattened(tf.reshape(x, (-1, 4)), x, 2, 2)

    np.testing.assert_array_equal(back(x), x.reshape(2, 3, 2, 2))


def test_the_shape_is_a_constant_where_the_batch_is_known():
    @tf.function(input_signature=[tf.TensorSpec((1, None, 4))])
    def back(x):
        return unflattened(tf.reshape(x, (-1, 4)), x, 4)

    [output] = back.get_concrete_function().outputs
    assert output.op.inputs[0].op.type == "Reshape"  # behind it, what returns
    assert output.op.inputs[0].op.inputs[1].op.type == "Const"
