"""`albert_tf.layers.low_rank`: additions compute what the paper says, and what is saved needs none."""

from typing import Any

import numpy as np
import pytest
from tiny_models import DROPPING, TINY, example_inputs, named_weights, randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.layers.low_rank import dense_layers, stored_weights


def with_additions(which: str = "all", **kwargs: Any) -> tuple[Any, dict[str, np.ndarray]]:
    """A backbone with additions of rank 2 that count 3 / 2 times, and what its matrices should be with them."""
    backbone = AlbertBackbone(TINY, **kwargs)
    randomize(backbone)
    for layer in dense_layers(backbone.encoder, which):
        layer.enable_lora(2, lora_alpha=3.0)
    weights = randomize(backbone)
    expected = {name: value for name, value in weights.items() if "lora" not in name}
    for name in weights:
        if name.endswith("lora_kernel_a"):
            layer = name.removesuffix("/lora_kernel_a")
            expected[f"{layer}/kernel"] = (
                weights[f"{layer}/kernel"] + 1.5 * weights[name] @ weights[f"{layer}/lora_kernel_b"]
            )
    return backbone, expected


@pytest.mark.parametrize("which", ["query-value", "attention", "all"])
def test_the_stored_weights_are_those_of_a_plain_encoder_with_the_same_answers(which: str) -> None:
    backbone, expected = with_additions(which)
    stored = stored_weights({variable.path: variable for variable in backbone.weights}, backbone.encoder)
    plain = AlbertBackbone(TINY)
    assert stored.keys() == named_weights(plain).keys()
    for name, value in stored.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-6, atol=1e-6, err_msg=name)
    plain.load_named_weights(stored, source="stored")
    ours, theirs = backbone(example_inputs())["sequence_output"], plain(example_inputs())["sequence_output"]
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_mixed_precision_stores_all_digits() -> None:
    backbone, expected = with_additions(dtype="mixed_bfloat16")
    stored = stored_weights({variable.path: variable for variable in backbone.weights}, backbone.encoder)
    for name, value in stored.items():
        assert value.dtype == np.float32
        np.testing.assert_allclose(value, expected[name], rtol=1e-6, atol=1e-6, err_msg=name)


def test_without_additions_weights_are_as_they_are() -> None:
    backbone = AlbertBackbone(DROPPING)
    weights = randomize(backbone)
    stored = stored_weights({variable.path: variable for variable in backbone.weights}, backbone.encoder)
    assert stored.keys() == weights.keys()
    for name, value in weights.items():
        np.testing.assert_array_equal(stored[name], value)
