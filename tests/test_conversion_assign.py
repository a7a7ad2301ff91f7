"""The strict assignment: everything by name and shape, or nothing at all."""

import re
import subprocess
import sys

import numpy as np
import pytest

from albert_tf.conversion.assign import assign, check_finite, check_shapes, listing, unfilled
from albert_tf.errors import InputError


class Variable:
    """What `assign` asks of a Keras variable."""

    def __init__(self, path, shape):
        self.path, self.shape, self.value = path, shape, None

    def assign(self, value):
        self.value = value


def two_variables():
    return [Variable("a/kernel", (2, 3)), Variable("a/bias", (3,))]


def weights(**changes):
    return {"a/kernel": np.ones((2, 3), np.float32), "a/bias": np.zeros(3, np.float32)} | changes


def test_every_variable_gets_its_weight():
    kernel, bias = two_variables()
    given = weights()
    assert assign([kernel, bias], given, source="file") == []
    assert kernel.value is given["a/kernel"]
    assert bias.value is given["a/bias"]


def test_keras_variables_by_path_and_by_mapping():
    import keras

    layer = keras.layers.Dense(3, name="a")
    layer.build((None, 2))
    assert sorted(variable.path for variable in layer.weights) == ["a/bias", "a/kernel"]
    assign(layer.weights, weights(), source="file")
    np.testing.assert_array_equal(layer.kernel, np.ones((2, 3)))
    renamed = {"x": layer.bias}
    assign(renamed, {"x": np.full(3, 2.0, np.float32)}, source="file")
    np.testing.assert_array_equal(layer.bias, np.full(3, 2.0))


def test_weights_are_taken_out_as_they_are_assigned():
    kernel, bias = two_variables()
    given, left = weights(), []
    kernel.assign = lambda value: left.append(set(given))
    bias.assign = lambda value: left.append(set(given))
    assert assign([kernel, bias], given, source="file", consume=True) == []
    assert left == [{"a/bias"}, set()]
    rest = weights(**{"b/kernel": np.ones(1, np.float32)})
    assert assign(two_variables(), rest, source="file", optional=["b/kernel"], consume=True) == ["b/kernel"]
    assert set(rest) == {"b/kernel"}


def test_nothing_is_taken_where_something_does_not_fit():
    given = weights(c=np.ones(1, np.float32))
    with pytest.raises(InputError, match="1 not in the model: c"):
        assign(two_variables(), given, source="file", consume=True)
    assert set(given) == {"a/kernel", "a/bias", "c"}


def test_an_unfilled_variable_takes_its_weight():
    import keras

    layer = keras.layers.Dense(3, kernel_initializer=unfilled, name="a")
    layer.build((None, 2))
    assert (tuple(layer.kernel.shape), layer.kernel.dtype) == ((2, 3), "float32")
    assign(layer.weights, weights(), source="file")
    np.testing.assert_array_equal(layer.kernel, np.ones((2, 3)))


def test_missing_left_over_and_misshapen_come_in_one_error_and_nothing_is_assigned():
    variables = [*two_variables(), Variable("b", (1,))]
    wrong = {"a/kernel": np.ones((3, 2)), "a/bias": np.zeros(3), "c": np.zeros((4, 5))}
    with pytest.raises(InputError) as error:
        assign(variables, wrong, source="some file")
    message = str(error.value)
    assert message.startswith("some file: ")
    assert "\n" not in message
    assert "1 missing: b (1,)" in message
    assert "1 not in the model: c (4, 5)" in message
    assert "1 of another shape: a/kernel is (3, 2), expected (2, 3)" in message
    assert all(variable.value is None for variable in variables)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_non_finite_weight_is_named_and_nothing_is_assigned(bad):
    variables = two_variables()
    bias = np.array([0, bad, 1], np.float32)
    with pytest.raises(InputError, match=re.escape("file: a/bias: 1 of 3 values are NaN or infinite")):
        assign(variables, weights(**{"a/bias": bias}), source="file")
    assert all(variable.value is None for variable in variables)


@pytest.mark.parametrize("dtype", [np.int32, np.bool_, object])
def test_weights_that_are_no_floats_are_refused(dtype):
    with pytest.raises(InputError, match="w: expected floating-point"):
        check_finite({"w": np.zeros(2, dtype)}, source="file")


def test_optional_names_may_be_on_either_side_only():
    variables = two_variables()
    given = weights(extra=np.zeros(1, np.float32))
    del given["a/bias"]
    assert assign(variables, given, source="file", optional=("a/bias", "extra")) == ["a/bias", "extra"]
    assert variables[1].value is None


def test_an_optional_name_on_both_sides_must_fit():
    with pytest.raises(InputError, match="a/bias is "):
        assign(two_variables(), weights(**{"a/bias": np.zeros(4, np.float32)}), source="file", optional=("a/bias",))


def test_two_variables_of_one_path_are_a_bug():
    with pytest.raises(ValueError, match="two variables have the path 'a/kernel'"):
        assign([*two_variables(), Variable("a/kernel", (2, 3))], weights(), source="file")


def test_check_shapes_needs_no_variables():
    check_shapes(weights(), {"a/kernel": (2, 3), "a/bias": (3,)}, source="file")
    with pytest.raises(InputError, match="1 missing"):
        check_shapes(weights(), {"a/kernel": (2, 3), "a/bias": (3,), "b": ()}, source="file")


def test_a_long_list_is_cut():
    assert listing(["a", "b"]) == "a, b"
    assert listing([str(i) for i in range(13)]) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 3 more"
    with pytest.raises(InputError, match=r"25 missing: .* and 15 more"):
        check_shapes({}, {f"w{i}": (1,) for i in range(25)}, source="file")


def test_conversion_modules_import_no_tensorflow():
    modules = "assign, archive, checkpoint, detect, tf1"
    code = f"import sys\nfrom albert_tf.conversion import {modules}\nimport albert_tf.presets, albert_tf.cli.convert\n"
    code += "assert not {'tensorflow', 'keras', 'rich'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
