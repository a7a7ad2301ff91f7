"""`albert_tf.config`: validation, sharing, the published shapes."""

import dataclasses
import subprocess
import sys
from typing import Any

import pytest

from albert_tf.config import ACTIVATIONS, CONFIGS, SHARING_MODES, AlbertConfig
from albert_tf.errors import InputError

SMALL = AlbertConfig(vocabulary_size=50, hidden_dim=12, intermediate_dim=20, num_layers=4, num_heads=3)


# === Validation ===

INTEGER_FIELDS = [field.name for field in dataclasses.fields(AlbertConfig) if field.type is int]
FLOAT_FIELDS = [field.name for field in dataclasses.fields(AlbertConfig) if field.type is float]
MASKED_LM_EPSILON = "masked_lm_layer_norm_epsilon"  # a number or None
ATTENTION_DIM = "attention_dim"  # a whole number or None


def test_every_field_is_checked() -> None:
    assert len(INTEGER_FIELDS) == 10 and len(FLOAT_FIELDS) == 4
    assert {field.name for field in dataclasses.fields(AlbertConfig)} == {
        *INTEGER_FIELDS,
        *FLOAT_FIELDS,
        MASKED_LM_EPSILON,
        ATTENTION_DIM,
        "factorization",
        "sharing",
        "activation",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (name, value)
        for name in (*INTEGER_FIELDS, ATTENTION_DIM)
        for value in (0, -1, 2.0, True, "2", None, [2])
        if name != ATTENTION_DIM or value is not None
    ],
)
def test_whole_number_fields_refuse(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"^{name}: expected a whole number of at least 1, got "):
        dataclasses.replace(SMALL, **{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (name, value)
        for name in (*FLOAT_FIELDS, MASKED_LM_EPSILON)
        for value in ("0.1", None, True, float("nan"), float("inf"), [0.1])
        if name != MASKED_LM_EPSILON or value is not None
    ],
)
def test_number_fields_refuse(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"^{name}: expected a number, got "):
        dataclasses.replace(SMALL, **{name: value})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"hidden_dropout": 1.0}, r"hidden_dropout: expected a rate in \[0, 1\), got 1.0"),
        ({"hidden_dropout": -0.1}, r"hidden_dropout: expected a rate in \[0, 1\), got -0.1"),
        ({"attention_dropout": 1}, r"attention_dropout: expected a rate in \[0, 1\), got 1.0"),
        ({"initializer_range": 0}, "initializer_range: expected a number above 0, got 0.0"),
        ({"layer_norm_epsilon": -1e-12}, "layer_norm_epsilon: expected a number above 0"),
        ({MASKED_LM_EPSILON: 0}, "masked_lm_layer_norm_epsilon: expected a number above 0, got 0.0"),
        ({"num_heads": 5}, "hidden_dim: expected a multiple of num_heads; got 12 with 5 heads"),
        ({"attention_dim": 10}, "attention_dim: expected a multiple of num_heads; got 10 with 3 heads"),
        ({"attention_dim": 20, "num_heads": 8}, "attention_dim: expected a multiple of num_heads; got 20 with 8"),
        ({"activation": "gelu"}, "activation: expected one of gelu_tanh, gelu_erf, relu, linear; got 'gelu'"),
        ({"activation": ["relu"]}, "activation: expected one of"),
        ({"factorization": "word"}, "factorization: expected one of embeddings, words; got 'word'"),
        ({"factorization": ["words"]}, "factorization: expected one of"),
        ({"sharing": "ALL"}, "sharing: expected one of all, attention, ffn, none; got 'ALL'"),
        ({"sharing": None}, "sharing: expected one of"),
        ({"num_groups": 5}, "num_groups: expected at most num_layers = 4, got 5"),
        ({"sharing": "none", "num_groups": 2}, 'groups share weights, so sharing="none" takes num_groups=1'),
    ],
)
def test_unusable_combinations(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        dataclasses.replace(SMALL, **fields)


def test_whole_numbers_are_accepted_as_rates() -> None:
    rate = dataclasses.replace(SMALL, hidden_dropout=0).hidden_dropout
    assert isinstance(rate, float) and rate == 0.0


def test_config_cannot_be_changed_and_is_hashable() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        SMALL.num_layers = 5  # type: ignore[misc]
    assert hash(SMALL) == hash(dataclasses.replace(SMALL))


def test_attention_may_be_narrower_than_the_encoder() -> None:
    assert (SMALL.head_dim, SMALL.heads_dim) == (4, 12)
    narrow = dataclasses.replace(SMALL, num_heads=5, attention_dim=20)
    assert (narrow.hidden_dim, narrow.head_dim, narrow.heads_dim) == (12, 4, 20)
    # What hidden_dim says already is not said twice: equal models have equal configs.
    assert dataclasses.replace(SMALL, attention_dim=12) == SMALL


def test_derived_values() -> None:
    assert SMALL.head_dim == 4
    assert SMALL.num_blocks == (1, 1)
    assert dataclasses.replace(SMALL, sharing="attention", num_inner_repetitions=2).num_blocks == (2, 8)
    assert SMALL.has_projection
    assert not dataclasses.replace(SMALL, embedding_dim=12).has_projection
    assert (SMALL.embedding_dim, SMALL.summed_dim) == (128, 128)
    words = dataclasses.replace(SMALL, factorization="words")
    assert words.has_projection and words.summed_dim == 12
    assert dataclasses.replace(words, embedding_dim=12).has_projection


# === Sharing ===


@pytest.mark.parametrize(
    ("fields", "schedule"),
    [
        # One group.
        ({"sharing": "all"}, [(0, 0), (0, 0), (0, 0), (0, 0)]),
        ({"sharing": "attention"}, [(0, 0), (0, 1), (0, 2), (0, 3)]),
        ({"sharing": "ffn"}, [(0, 0), (1, 0), (2, 0), (3, 0)]),
        ({"sharing": "none"}, [(0, 0), (1, 1), (2, 2), (3, 3)]),
        # Two groups of two layers.
        ({"sharing": "all", "num_groups": 2}, [(0, 0), (0, 0), (1, 1), (1, 1)]),
        ({"sharing": "attention", "num_groups": 2}, [(0, 0), (0, 1), (1, 2), (1, 3)]),
        ({"sharing": "ffn", "num_groups": 2}, [(0, 0), (1, 0), (2, 1), (3, 1)]),
        # Groups that do not divide the layers; as many groups as layers.
        ({"sharing": "all", "num_groups": 3}, [(0, 0), (0, 0), (1, 1), (2, 2)]),
        ({"sharing": "all", "num_layers": 5, "num_groups": 3}, [(0, 0), (0, 0), (1, 1), (1, 1), (2, 2)]),
        ({"sharing": "all", "num_groups": 4}, [(0, 0), (1, 1), (2, 2), (3, 3)]),
        # Two blocks in place of each layer.
        (
            {"sharing": "all", "num_layers": 2, "num_inner_repetitions": 2},
            [(0, 0), (1, 1), (0, 0), (1, 1)],
        ),
        (
            {"sharing": "attention", "num_layers": 2, "num_inner_repetitions": 2},
            [(0, 0), (1, 1), (0, 2), (1, 3)],
        ),
        (
            {"sharing": "ffn", "num_layers": 2, "num_inner_repetitions": 2},
            [(0, 0), (1, 1), (2, 0), (3, 1)],
        ),
        (
            {"sharing": "none", "num_layers": 2, "num_inner_repetitions": 2},
            [(0, 0), (1, 1), (2, 2), (3, 3)],
        ),
        # Both.
        (
            {"sharing": "all", "num_groups": 2, "num_inner_repetitions": 2},
            [(0, 0), (1, 1), (0, 0), (1, 1), (2, 2), (3, 3), (2, 2), (3, 3)],
        ),
        (
            {"sharing": "attention", "num_layers": 3, "num_groups": 2, "num_inner_repetitions": 2},
            [(0, 0), (1, 1), (0, 2), (1, 3), (2, 4), (3, 5)],
        ),
    ],
)
def test_block_schedule(fields: dict[str, Any], schedule: list[tuple[int, int]]) -> None:
    assert list(dataclasses.replace(SMALL, **fields).block_schedule) == schedule


@pytest.mark.parametrize("sharing", SHARING_MODES)
def test_block_indices_have_no_gaps(sharing: str) -> None:
    for num_layers in range(1, 8):
        for num_groups in range(1, num_layers + 1 if sharing != "none" else 2):
            config = dataclasses.replace(
                SMALL, sharing=sharing, num_layers=num_layers, num_groups=num_groups, num_inner_repetitions=2
            )
            assert len(config.block_schedule) == 2 * num_layers
            for indices in zip(*config.block_schedule, strict=True):
                assert set(indices) == set(range(1 + max(indices)))


# === The published shapes ===


def test_names() -> None:
    published = [f"albert_{size}_{v}" for v in ("v1", "v2", "zh") for size in ("base", "large", "xlarge", "xxlarge")]
    small = ["albert_tiny_zh", "albert_small_zh"]
    brightmart = [f"brightmart_{size}" for size in ("tiny", "base", "large", "xlarge")]
    others = ["albert_tiny_en", "albert_small_en", "bert_base", "bert_large"]
    assert list(CONFIGS) == published + small + brightmart + others
    assert AlbertConfig.from_name("albert_large_v1") is CONFIGS["albert_large_v1"]
    with pytest.raises(InputError, match="no config is called 'albert-base'; there are albert_base_v1, "):
        AlbertConfig.from_name("albert-base")


@pytest.mark.parametrize(
    ("size", "hidden", "layers", "heads"),
    [("base", 768, 12, 12), ("large", 1024, 24, 16), ("xlarge", 2048, 24, 16), ("xxlarge", 4096, 12, 64)],
)
def test_published_sizes(size: str, hidden: int, layers: int, heads: int) -> None:
    for version, vocabulary, activation in (
        ("v1", 30000, "gelu_tanh"),
        ("v2", 30000, "gelu_tanh"),
        ("zh", 21128, "relu"),
    ):
        dropout = 0.1 if version == "v1" and size != "xxlarge" else 0.0
        assert CONFIGS[f"albert_{size}_{version}"] == AlbertConfig(
            vocabulary_size=vocabulary,
            hidden_dim=hidden,
            intermediate_dim=4 * hidden,
            num_layers=layers,
            num_heads=heads,
            activation=activation,
            hidden_dropout=dropout,
            attention_dropout=dropout,
        )


def test_other_shapes() -> None:
    tiny = CONFIGS["albert_tiny_zh"]
    assert (tiny.hidden_dim, tiny.intermediate_dim, tiny.num_layers, tiny.num_heads) == (312, 1248, 4, 12)
    small = CONFIGS["albert_small_zh"]
    assert (small.hidden_dim, small.intermediate_dim, small.num_layers, small.num_heads) == (384, 1536, 6, 12)
    for size, hidden, layers, heads in (
        ("tiny", 312, 4, 12),
        ("base", 768, 12, 12),
        ("large", 1024, 24, 16),
        ("xlarge", 2048, 24, 32),
    ):
        assert CONFIGS[f"brightmart_{size}"] == AlbertConfig(
            21128, hidden, 4 * hidden, layers, heads, factorization="words"
        )
    for size, hidden, layers, heads in (("base", 768, 12, 12), ("large", 1024, 24, 16)):
        bert = CONFIGS[f"bert_{size}"]
        assert (bert.vocabulary_size, bert.embedding_dim, bert.hidden_dim) == (30522, hidden, hidden)
        assert (bert.num_layers, bert.num_heads, bert.sharing, bert.activation) == (layers, heads, "none", "gelu_erf")


@pytest.mark.parametrize("name", CONFIGS)
def test_every_named_shape_survives_json(name: str, tmp_path) -> None:
    CONFIGS[name].to_json(tmp_path / "config.json")
    assert AlbertConfig.from_json(tmp_path / "config.json") == CONFIGS[name]
    assert CONFIGS[name].activation in ACTIVATIONS


def test_config_needs_no_tensorflow() -> None:
    code = "import sys, albert_tf.config, albert_tf.parameters; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
