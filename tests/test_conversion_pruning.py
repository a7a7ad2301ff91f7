"""`albert_tf.conversion.pruning`: what is cut out is what a mask of zeros silences, and nothing else."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from tiny_models import TINY, example_inputs, random_backbone, randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import AlbertConfig
from albert_tf.conversion.pruning import Importance, Kept, cut, magnitudes
from albert_tf.errors import InputError
from albert_tf.parameters import backbone_weight_shapes, count_parameters

SHARED = dataclasses.replace(TINY, num_heads=4)
OWN = dataclasses.replace(SHARED, sharing="none", num_layers=2)
GROUPS = dataclasses.replace(SHARED, num_layers=4, num_groups=2, num_inner_repetitions=2)


def some(config: AlbertConfig, heads: int, columns: int, seed: int = 0) -> Kept:
    """Another choice for each block."""
    random = np.random.default_rng(seed)

    def chosen(blocks: int, there: int, count: int) -> Any:
        return tuple(tuple(sorted(random.permutation(there)[:count].tolist())) for _ in range(blocks))

    attention, feed_forward = config.num_blocks
    return Kept(chosen(attention, config.num_heads, heads), chosen(feed_forward, config.intermediate_dim, columns))


def masks(config: AlbertConfig, kept: Kept, batch: int) -> Any:
    """1 for what is kept, 0 for the rest, by the number of a step."""

    def mask(numbers: tuple[int, ...], width: int) -> np.ndarray:
        return np.tile(np.isin(np.arange(width), numbers).astype(np.float32), (batch, 1))

    def of_step(number: int) -> tuple[np.ndarray, np.ndarray]:
        attention, feed_forward = config.block_schedule[number]
        heads, columns = kept.heads[attention], kept.columns[feed_forward]
        return mask(heads, config.num_heads), mask(columns, config.intermediate_dim)

    return of_step


@pytest.mark.parametrize("config", [SHARED, OWN, GROUPS], ids=["shared", "own", "groups"])
@pytest.mark.parametrize("shape", [(3, 24), (4, 10), (1, 1)], ids=str)
def test_the_narrower_encoder_is_the_masked_one(config: AlbertConfig, shape: tuple[int, int]) -> None:
    whole = random_backbone(config)
    inputs = example_inputs()
    kept = some(config, *shape)
    whole.encoder.masks = masks(config, kept, batch=3)
    expected = whole(inputs, training=False)
    whole.encoder.masks = None

    narrow_config, weights = cut(config, {v.path: np.asarray(v) for v in whole.weights}, kept)
    narrow = AlbertBackbone(narrow_config)
    narrow.load_named_weights(dict(weights), source="cut")
    found = narrow(inputs, training=False)
    for name in ("sequence_output", "pooled_output"):
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=2e-6)
    difference = np.abs(np.asarray(found["sequence_output"]) - whole(inputs, training=False)["sequence_output"])
    assert difference.max() > 1e-2


def test_the_shape_is_that_of_the_config() -> None:
    backbone = random_backbone(GROUPS)
    config, weights = cut(GROUPS, {v.path: np.asarray(v) for v in backbone.weights}, some(GROUPS, 3, 7))
    assert (config.num_heads, config.head_dim, config.intermediate_dim) == (3, GROUPS.head_dim, 7)
    assert {name: weight.shape for name, weight in weights.items()} == backbone_weight_shapes(config)
    # Of 4 blocks, a head has 3 × (H + 1) · D + D · H weights, and a column 2 · H + 1.
    gone = 4 * ((3 * 17 + 16) * 4 + 17 * (2 * 16 + 1))
    assert count_parameters(GROUPS).total - count_parameters(config).total == gone
    # Once more: numbers count what is left.
    again, _ = cut(config, weights, some(config, 1, 2))
    assert (again.num_heads, again.head_dim, again.intermediate_dim) == (1, GROUPS.head_dim, 2)


def test_to_keep_all_changes_nothing() -> None:
    weights = {v.path: np.asarray(v) for v in random_backbone(SHARED).weights}
    config, same = cut(SHARED, weights, Kept.all_of(SHARED))
    assert config == SHARED
    for name, weight in weights.items():
        np.testing.assert_array_equal(same[name], weight)


def test_magnitude_is_the_norm_of_what_would_be_cut() -> None:
    """Of every weight that differs between a model with a head or column and the same model without."""
    backbone = AlbertBackbone(OWN)
    weights = randomize(backbone)
    found = magnitudes(OWN, weights)
    for block in range(2):
        all_of = Kept.all_of(OWN)
        for head in range(OWN.num_heads):
            heads = tuple(tuple(n for n in numbers if n != head) for numbers in all_of.heads)
            _, less = cut(OWN, weights, dataclasses.replace(all_of, heads=heads))
            name = f"encoder/attention_{block}"
            gone = sum(
                float((value.astype(np.float64) ** 2).sum() - (less[path].astype(np.float64) ** 2).sum())
                for path, value in weights.items()
                if path.startswith(name)
            )
            assert found.heads[block][head] == pytest.approx(gone**0.5, rel=1e-5)
        column = found.columns[block][5]
        name = f"encoder/feed_forward_{block}"
        own = [
            weights[f"{name}/intermediate/kernel"][:, 5],
            weights[f"{name}/intermediate/bias"][5:6],
            weights[f"{name}/output/kernel"][5],
        ]
        assert column == pytest.approx(np.linalg.norm(np.concatenate(own)), rel=1e-6)


def test_the_best_are_the_largest_of_each_block() -> None:
    importance = Importance((np.array([1.0, 3.0, 2.0]), np.array([5.0, 5.0, 9.0])), (np.array([0.1, 0.0, 0.1, 0.3]),))
    assert importance.best(2, 2) == Kept(((1, 2), (0, 2)), ((0, 3),))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"heads": ((0, 1), (0,), (2,))}, "heads to keep: expected those of 2 attention blocks, got those of 3"),
        ({"heads": ((0, 1), (0,))}, "as many of each attention block, as a config has one number of them; got 2, 1"),
        ({"heads": ((), ())}, "attention block 0: expected at least one of 0 to 3, each once, rising; got none"),
        (
            {"heads": ((0, 4), (0, 1))},
            "attention block 0: expected at least one of 0 to 3, each once, rising; got 0, 4",
        ),
        ({"heads": ((0, 1), (-1, 1))}, "attention block 1: .* got -1, 1"),
        ({"heads": ((1, 0), (0, 1))}, "rising; got 1, 0"),
        ({"columns": ((0, 24), (0, 1))}, "columns to keep of feed-forward block 0: .* 0 to 23"),
        ({"columns": ((0, 0), (0, 1))}, "each once, rising; got 0, 0"),
    ],
)
def test_what_cannot_be_kept(fields: dict[str, Any], message: str) -> None:
    weights = {v.path: np.asarray(v) for v in random_backbone(OWN).weights}
    with pytest.raises(InputError, match=message):
        cut(OWN, weights, dataclasses.replace(Kept.all_of(OWN), **fields))
