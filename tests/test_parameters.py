"""`albert_tf.parameters`: the published parameter counts, and equality with built models."""

import dataclasses
import math
from typing import Any

import pytest
from tiny_models import TINY

from albert_tf.config import CONFIGS, AlbertConfig
from albert_tf.parameters import (
    PARTS,
    backbone_weight_shapes,
    bert_counterpart,
    count_parameters,
    multiply_adds,
    pretraining_head_weight_shapes,
)


@pytest.mark.parametrize(
    ("name", "encoder", "with_heads"),
    [
        # Encoder with pooler: equal to keras-hub's `params` of its presets; with the two heads, from the variable
        # shapes of the released checkpoints.
        ("albert_base_v2", 11_683_584, 11_813_810),
        ("albert_large_v2", 17_683_968, 17_847_474),
        ("albert_xlarge_v2", 58_724_864, 59_021_490),
        ("albert_xxlarge_v2", 222_595_584, 223_158_450),
        ("albert_base_zh", 10_547_968, None),
        ("albert_large_zh", 16_548_352, None),
        ("albert_xlarge_zh", 57_589_248, None),
        ("albert_xxlarge_zh", 221_459_968, None),
        ("albert_tiny_zh", 4_080_520, None),
        ("albert_small_zh", 4_742_272, None),
        # bert-base-uncased and bert-large-uncased.
        ("bert_base", 109_482_240, None),
        ("bert_large", 335_141_888, None),
    ],
)
def test_published_counts(name: str, encoder: int, with_heads: int | None) -> None:
    assert count_parameters(CONFIGS[name]).total == encoder
    if with_heads is not None:
        assert count_parameters(CONFIGS[name], heads=True).total == with_heads


def test_parts_of_base() -> None:
    counts = count_parameters(CONFIGS["albert_base_v2"], heads=True)
    assert counts.parts == {
        "word_table": 3_840_000,
        "position_and_segment": 3_906_048 - 3_840_000,
        "projection": 99_072,
        "attention": 2_363_904,
        "feed_forward": 7_087_872 - 2_363_904,
        "pooler": 590_592,
        "heads": 128_688 + 1_538,
    }
    assert tuple(counts.parts) == PARTS
    assert counts.embedding == 3_906_048 + 99_072
    assert counts.encoder == 7_087_872
    assert counts.total == 11_813_810


def test_parts_of_brightmart_tiny() -> None:
    """17.2 MB of float32 with both heads, as its archive holds (brightmart/albert_zh issue 167)."""
    counts = count_parameters(CONFIGS["brightmart_tiny"], heads=True)
    assert counts.parts == {
        "word_table": 21128 * 128,
        "position_and_segment": (512 + 2) * 312 + 2 * 312,
        "projection": 128 * 312,
        "attention": 4 * (312 * 312 + 312) + 2 * 312,
        "feed_forward": 312 * 1248 + 1248 + 1248 * 312 + 312 + 2 * 312,
        "pooler": 312 * 312 + 312,
        "heads": 312 * 312 + 312 + 2 * 312 + 21128 + 312 * 2 + 2,
    }
    assert round(4 * counts.total / 1e6, 1) == 17.2


@pytest.mark.parametrize(("sharing", "millions"), [("all", 12), ("attention", 64), ("ffn", 38), ("none", 89)])
def test_sharing_ablation_of_the_paper(sharing: str, millions: int) -> None:
    config = dataclasses.replace(CONFIGS["albert_base_v2"], sharing=sharing)
    # The paper does not say how it rounds, nor whether it counts the pooler (0.6M).
    assert abs(count_parameters(config).total / 1e6 - millions) < 0.7


def test_bert_counterpart() -> None:
    xlarge = bert_counterpart(CONFIGS["albert_xlarge_v2"])
    assert (xlarge.embedding_dim, xlarge.sharing) == (2048, "none")
    assert count_parameters(xlarge).total == pytest.approx(1270e6, rel=0.005)  # "BERT-xlarge" of the paper
    assert bert_counterpart(CONFIGS["brightmart_base"]) == bert_counterpart(
        dataclasses.replace(CONFIGS["albert_base_zh"], activation="gelu_tanh")
    )
    grouped = dataclasses.replace(CONFIGS["albert_base_v2"], num_groups=3)
    assert bert_counterpart(grouped) == bert_counterpart(CONFIGS["albert_base_v2"])


def test_multiply_adds() -> None:
    base = CONFIGS["albert_base_v2"]
    matrices = 4 * 768 * 768 + 2 * 768 * 3072
    assert multiply_adds(base, 100) == 12 * (matrices + 2 * 100 * 768) + 128 * 768
    assert multiply_adds(dataclasses.replace(base, sharing="none"), 100) == multiply_adds(base, 100)
    halved = dataclasses.replace(base, num_heads=6, attention_dim=384, intermediate_dim=1536)
    assert multiply_adds(halved, 100) - 128 * 768 == (multiply_adds(base, 100) - 128 * 768) / 2


def test_without_pooler() -> None:
    # An ALBERT trained for speech synthesis: Kokoro-82M's PL-BERT has 5,701,888 parameters and no pooler.
    config = AlbertConfig(178, 768, 2048, 12, 12)
    assert count_parameters(config, pooler=False).total == 5_701_888
    assert count_parameters(config).total == 5_701_888 + 768 * 769
    assert count_parameters(config, pooler=False).parts["pooler"] == 0


BUILT = [
    {},
    {"num_heads": 3, "attention_dim": 24, "intermediate_dim": 20},
    {"embedding_dim": 16},
    {"num_layers": 4, "num_groups": 2},
    {"num_inner_repetitions": 2},
    {"num_layers": 4, "num_groups": 3, "num_inner_repetitions": 2},
    {"sharing": "attention"},
    {"sharing": "attention", "num_groups": 2, "num_inner_repetitions": 2},
    {"sharing": "ffn"},
    {"sharing": "ffn", "num_groups": 3},
    {"sharing": "none"},
    {"sharing": "none", "num_inner_repetitions": 2, "embedding_dim": 16, "num_segments": 3},
    {"factorization": "words"},
    {"factorization": "words", "embedding_dim": 16, "num_segments": 3},
]


@pytest.mark.parametrize("pooler", [True, False])
@pytest.mark.parametrize("fields", BUILT, ids=str)
def test_names_and_shapes_are_those_of_the_built_model(fields: dict[str, Any], pooler: bool) -> None:
    from albert_tf.backbone import AlbertBackbone

    config = dataclasses.replace(TINY, **fields)
    backbone = AlbertBackbone(config, pooler=pooler)
    built = {variable.path: tuple(variable.shape) for variable in backbone.weights}
    assert built == backbone_weight_shapes(config, pooler=pooler)
    assert backbone.count_params() == count_parameters(config, pooler=pooler).total


@pytest.mark.parametrize("fields", [*BUILT[:2], *BUILT[-2:]], ids=str)
def test_names_and_shapes_of_the_pretraining_heads(fields: dict[str, Any]) -> None:
    from albert_tf.backbone import AlbertBackbone
    from albert_tf.tasks.pretraining import AlbertPretrainer

    config = dataclasses.replace(TINY, **fields)
    pretrainer = AlbertPretrainer(AlbertBackbone(config))
    built = {variable.path: tuple(variable.shape) for variable in pretrainer.weights}
    assert built == backbone_weight_shapes(config) | pretraining_head_weight_shapes(config)
    assert pretrainer.count_params() == count_parameters(config, heads=True).total


def test_counts_of_a_full_size_model() -> None:
    from albert_tf.backbone import AlbertBackbone

    config = CONFIGS["albert_base_v2"]
    backbone = AlbertBackbone(config)
    assert sum(math.prod(variable.shape) for variable in backbone.weights) == 11_683_584
    assert {v.path: tuple(v.shape) for v in backbone.weights} == backbone_weight_shapes(config)
