"""`albert_tf.config`: validation, both JSON forms, sharing, the published shapes."""

import dataclasses
import json
import subprocess
import sys
from typing import Any

import pytest

from albert_tf.config import ACTIVATIONS, CONFIGS, SHARING_MODES, AlbertConfig
from albert_tf.errors import InputError

SMALL = AlbertConfig(vocabulary_size=50, hidden_dim=12, intermediate_dim=20, num_layers=4, num_heads=3)

# albert_config.json of the released albert_base_v2, written out.
PUBLISHED_BASE = {
    "attention_probs_dropout_prob": 0,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0,
    "embedding_size": 128,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "num_hidden_groups": 1,
    "net_structure_type": 0,
    "gap_size": 0,
    "num_memory_blocks": 0,
    "inner_group_num": 1,
    "down_scale_factor": 1,
    "type_vocab_size": 2,
    "vocab_size": 30000,
}


# === Validation ===

INTEGER_FIELDS = [field.name for field in dataclasses.fields(AlbertConfig) if field.type is int]
FLOAT_FIELDS = [field.name for field in dataclasses.fields(AlbertConfig) if field.type is float]


def test_every_field_is_checked() -> None:
    assert len(INTEGER_FIELDS) == 10 and len(FLOAT_FIELDS) == 4
    assert {field.name for field in dataclasses.fields(AlbertConfig)} == {
        *INTEGER_FIELDS,
        *FLOAT_FIELDS,
        "sharing",
        "activation",
    }


@pytest.mark.parametrize("name", INTEGER_FIELDS)
@pytest.mark.parametrize("value", [0, -1, 2.0, True, "2", None, [2]])
def test_whole_number_fields_refuse(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"^{name}: expected a whole number of at least 1, got "):
        dataclasses.replace(SMALL, **{name: value})


@pytest.mark.parametrize("name", FLOAT_FIELDS)
@pytest.mark.parametrize("value", ["0.1", None, True, float("nan"), float("inf"), [0.1]])
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
        ({"num_heads": 5}, "hidden_dim: expected a multiple of num_heads; got 12 with 5 heads"),
        ({"activation": "gelu"}, "activation: expected one of gelu_tanh, gelu_erf, relu, linear; got 'gelu'"),
        ({"activation": ["relu"]}, "activation: expected one of"),
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


def test_derived_values() -> None:
    assert SMALL.head_dim == 4
    assert SMALL.has_projection
    assert not dataclasses.replace(SMALL, embedding_dim=12).has_projection


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


# === JSON ===


def test_own_form_round_trip(tmp_path) -> None:
    config = dataclasses.replace(SMALL, sharing="ffn", activation="gelu_erf", num_groups=2, hidden_dropout=0.1)
    config.to_json(tmp_path / "config.json")
    assert AlbertConfig.from_json(tmp_path / "config.json") == config
    written = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    assert set(written) == {field.name for field in dataclasses.fields(AlbertConfig)}


def test_published_form_is_read(tmp_path) -> None:
    (tmp_path / "albert_config.json").write_text(json.dumps(PUBLISHED_BASE), encoding="utf-8")
    assert AlbertConfig.from_json(tmp_path / "albert_config.json") == AlbertConfig(
        vocabulary_size=30000,
        embedding_dim=128,
        hidden_dim=768,
        intermediate_dim=3072,
        num_layers=12,
        num_heads=12,
        num_groups=1,
        num_inner_repetitions=1,
        sharing="all",
        max_sequence_length=512,
        num_segments=2,
        activation="gelu_tanh",
        hidden_dropout=0.0,
        attention_dropout=0.0,
        initializer_range=0.02,
        layer_norm_epsilon=1e-12,
    )


def test_published_keys_reach_their_fields() -> None:
    values = {
        "attention_probs_dropout_prob": 0.2,
        "hidden_dropout_prob": 0.1,
        "embedding_size": 3,
        "hidden_size": 8,
        "initializer_range": 0.05,
        "intermediate_size": 7,
        "max_position_embeddings": 9,
        "num_attention_heads": 4,
        "num_hidden_layers": 6,
        "num_hidden_groups": 2,
        "inner_group_num": 5,
        "type_vocab_size": 3,
        "vocab_size": 11,
        "layers_to_keep": [],
    }
    assert AlbertConfig.from_dict(values | {"hidden_act": "relu"}) == AlbertConfig(
        vocabulary_size=11,
        embedding_dim=3,
        hidden_dim=8,
        intermediate_dim=7,
        num_layers=6,
        num_heads=4,
        num_groups=2,
        num_inner_repetitions=5,
        max_sequence_length=9,
        num_segments=3,
        activation="relu",
        hidden_dropout=0.1,
        attention_dropout=0.2,
        initializer_range=0.05,
    )


def test_published_form_round_trip(tmp_path) -> None:
    config = dataclasses.replace(SMALL, activation="relu", num_groups=2, num_inner_repetitions=3, hidden_dropout=0.1)
    config.to_json(tmp_path / "albert_config.json", published=True)
    assert AlbertConfig.from_json(tmp_path / "albert_config.json") == config


def test_published_form_of_base_is_the_published_file() -> None:
    assert CONFIGS["albert_base_v2"].to_published_dict() == PUBLISHED_BASE


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sharing": "none"}, "albert_config.json has no form for sharing='none'"),
        ({"activation": "gelu_erf"}, "no form for activation='gelu_erf'"),
        ({"layer_norm_epsilon": 1e-6}, "no form for layer_norm_epsilon=1e-06"),
    ],
)
def test_what_has_no_published_form_is_refused(fields: dict[str, Any], message: str, tmp_path) -> None:
    with pytest.raises(InputError, match=message):
        dataclasses.replace(SMALL, **fields).to_json(tmp_path / "albert_config.json", published=True)
    assert not list(tmp_path.iterdir())


def test_files_are_not_overwritten_unasked(tmp_path) -> None:
    path = tmp_path / "config.json"
    SMALL.to_json(path)
    with pytest.raises(InputError, match="exists already"):
        CONFIGS["albert_base_v2"].to_json(path)
    assert AlbertConfig.from_json(path) == SMALL
    CONFIGS["albert_base_v2"].to_json(path, overwrite=True)
    assert AlbertConfig.from_json(path) == CONFIGS["albert_base_v2"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"net_structure_type": 1}, "c.json: net_structure_type = 1: no published code says what that does"),
        ({"gap_size": 2}, "gap_size = 2"),
        ({"num_memory_blocks": 1}, "num_memory_blocks = 1"),
        ({"down_scale_factor": 2}, "down_scale_factor = 2"),
        ({"layers_to_keep": [0, 1]}, r"layers_to_keep = \[0, 1\]"),
        ({"hidden_act": "tanh"}, "c.json: hidden_act: expected one of gelu, relu, linear; got 'tanh'"),
        ({"hidden_act": ["gelu"]}, "c.json: hidden_act: expected one of"),
        ({"hidden_act": None}, "c.json: hidden_act: expected one of"),
        ({"ln_type": "preln"}, "c.json: unknown key 'ln_type'; known keys: vocab_size, "),
        ({"vocabulary_size": 5}, "c.json: unknown key 'vocabulary_size'"),
        ({"num_attention_heads": 7}, "c.json: hidden_dim: expected a multiple of num_heads; got 768 with 7 heads"),
        ({"vocab_size": 30000.0}, "c.json: vocabulary_size: expected a whole number of at least 1, got 30000.0"),
        ({"num_hidden_groups": 13}, "c.json: num_groups: expected at most num_layers = 12, got 13"),
    ],
)
def test_published_keys_and_values_that_cannot_be_used(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        AlbertConfig.from_dict(PUBLISHED_BASE | change, source="c.json")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({**SMALL.to_dict(), "hidden_size": 5}, "c.json: unknown key 'vocabulary_size'"),  # a mixture of both forms
        (
            {**SMALL.to_dict(), "dropout": 0.1},
            r"c.json: unknown keys \['dropout'\], missing keys \[\]; known keys: voc",
        ),
        ({"vocabulary_size": 5, "num_heads": 1}, r"missing keys \['hidden_dim', 'intermediate_dim', 'num_layers'\]"),
        ({}, "missing keys"),
        ({"vocab_size": 5}, r"missing keys \['hidden_dim'"),
        ({**SMALL.to_dict(), "num_layers": 0}, "c.json: num_layers: expected a whole number of at least 1, got 0"),
        ([1, 2], "c.json: expected a JSON object with model dimensions, got list"),
        (None, "c.json: expected a JSON object with model dimensions, got NoneType"),
    ],
)
def test_unusable_objects(fields: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        AlbertConfig.from_dict(fields, source="c.json")


def test_unusable_files(tmp_path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text('{\n "vocab_size": 5,\n}', encoding="utf-8")
    with pytest.raises(InputError, match=r"broken.json, line 3: not JSON"):
        AlbertConfig.from_json(broken)
    with pytest.raises(InputError, match="cannot read .*absent.json"):
        AlbertConfig.from_json(tmp_path / "absent.json")
    broken.write_text('{"vocab_size": 5}', encoding="utf-8")
    with pytest.raises(InputError, match=r"broken.json: unknown keys \[\], missing keys"):
        AlbertConfig.from_json(broken)


# === The published shapes ===


def test_names() -> None:
    published = [f"albert_{size}_{v}" for v in ("v1", "v2", "zh") for size in ("base", "large", "xlarge", "xxlarge")]
    others = ["albert_tiny_zh", "albert_small_zh", "albert_tiny_en", "albert_small_en", "bert_base", "bert_large"]
    assert list(CONFIGS) == published + others
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
