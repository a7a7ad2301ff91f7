"""What Hugging Face and KerasHub have in common, and the projection that they always have."""

import dataclasses

import numpy as np
import pytest
from peer_models import GROUPED, assert_same_weights, random_weights
from tiny_models import TINY

from albert_tf.conversion.grouped import grouped_config, projection_shapes, with_projection, without_identity
from albert_tf.errors import InputError
from albert_tf.parameters import backbone_weight_shapes

EQUAL = dataclasses.replace(TINY, embedding_dim=16)


@pytest.mark.parametrize("inner", [1, 2])
def test_layers_that_share_nothing_are_groups_of_one(inner: int) -> None:
    config = dataclasses.replace(TINY, sharing="none", num_inner_repetitions=inner)
    grouped = grouped_config(config, "x")
    assert (grouped.sharing, grouped.num_groups) == ("all", 3)
    assert grouped.block_schedule == config.block_schedule
    assert backbone_weight_shapes(grouped) == backbone_weight_shapes(config)
    assert grouped_config(GROUPED, "x") == GROUPED


@pytest.mark.parametrize(
    "change",
    [{"sharing": "attention"}, {"sharing": "ffn"}, {"factorization": "words"}, {"num_heads": 1, "attention_dim": 8}],
    ids=str,
)
def test_what_has_no_form(change: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"^KerasHub .*form for"):
        grouped_config(dataclasses.replace(TINY, **change), "KerasHub")


def test_the_projection_comes_and_goes_where_ours_has_none() -> None:
    weights = random_weights(EQUAL)
    assert not any(name.startswith("embeddings/projection") for name in weights)
    more = with_projection(EQUAL, weights)
    assert {name: more[name].shape for name in more.keys() - weights.keys()} == projection_shapes(EQUAL)
    x = weights["embeddings/word_embedding/embeddings"]
    same = x @ more["embeddings/projection/kernel"] + more["embeddings/projection/bias"]
    np.testing.assert_array_equal(same, x)
    assert_same_weights(without_identity(EQUAL, more, source="x"), weights)
    for name in projection_shapes(EQUAL):
        with pytest.raises(InputError, match="x: embeddings and encoder are both 16 wide, with a trained projection"):
            without_identity(EQUAL, more | {name: more[name] + 1e-6}, source="x")


def test_a_projection_between_different_widths_stays() -> None:
    weights = random_weights(TINY)
    assert with_projection(TINY, weights) is weights
    assert without_identity(TINY, weights, source="x") is weights
