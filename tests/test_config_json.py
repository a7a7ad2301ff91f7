"""`albert_tf.config`: our JSON form, and the published albert_config.json."""

import dataclasses
import json
from typing import Any

import pytest

from albert_tf.config import CONFIGS, AlbertConfig
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


# albert_config_tiny.json of brightmart/albert_zh, written out.
BRIGHTMART_TINY = {
    "attention_probs_dropout_prob": 0.0,
    "directionality": "bidi",
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0,
    "hidden_size": 312,
    "embedding_size": 128,
    "initializer_range": 0.02,
    "intermediate_size": 1248,
    "max_position_embeddings": 512,
    "num_attention_heads": 12,
    "num_hidden_layers": 4,
    "pooler_fc_size": 768,
    "pooler_num_attention_heads": 12,
    "pooler_num_fc_layers": 3,
    "pooler_size_per_head": 128,
    "pooler_type": "first_token_transform",
    "type_vocab_size": 2,
    "vocab_size": 21128,
    "ln_type": "postln",
}


def test_own_form_round_trip(tmp_path) -> None:
    config = dataclasses.replace(SMALL, sharing="ffn", activation="gelu_erf", num_groups=2, hidden_dropout=0.1)
    config.to_json(tmp_path / "config.json")
    assert AlbertConfig.from_json(tmp_path / "config.json") == config
    written = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    assert set(written) == {field.name for field in dataclasses.fields(AlbertConfig)} - {"attention_dim"}
    narrow = dataclasses.replace(SMALL, num_heads=2, attention_dim=8)
    narrow.to_json(tmp_path / "narrow.json")
    assert AlbertConfig.from_json(tmp_path / "narrow.json") == narrow
    assert json.loads((tmp_path / "narrow.json").read_text(encoding="utf-8"))["attention_dim"] == 8


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


@pytest.mark.parametrize("size", ["tiny", "base"])
def test_the_files_of_brightmart(shared_data, size: str) -> None:
    path = shared_data / "albert_vocab_zh" / f"albert_config_{size}.json"
    assert AlbertConfig.from_json(path) == CONFIGS[f"brightmart_{size}"]


def test_the_form_of_brightmart() -> None:
    tiny = CONFIGS["brightmart_tiny"]
    assert AlbertConfig.from_dict(BRIGHTMART_TINY) == tiny
    for key in ("ln_type", "directionality", "pooler_size_per_head"):  # each tells
        rest = {name: value for name, value in BRIGHTMART_TINY.items() if not name.startswith(("ln", "dir", "pool"))}
        assert AlbertConfig.from_dict(rest | {key: BRIGHTMART_TINY[key]}) == tiny
        assert AlbertConfig.from_dict(rest).factorization == "embeddings"
    written = tiny.to_published_dict()
    assert AlbertConfig.from_dict(written) == tiny
    assert written == {name: value for name, value in BRIGHTMART_TINY.items() if not name.startswith("pool")}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"factorization": "words", "num_groups": 2}, "albert_config.json has no form for num_groups=2"),
        ({"factorization": "words", "num_inner_repetitions": 2}, "no form for num_inner_repetitions=2"),
        ({"sharing": "none"}, "albert_config.json has no form for sharing='none'"),
        ({"activation": "gelu_erf"}, "no form for activation='gelu_erf'"),
        ({"layer_norm_epsilon": 1e-6}, "no form for layer_norm_epsilon=1e-06"),
        ({"masked_lm_layer_norm_epsilon": 1e-5}, "no form for masked_lm_layer_norm_epsilon=1e-05"),
        ({"num_heads": 2, "attention_dim": 8}, "no form for attention_dim=8"),
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
        (
            {"ln_type": "preln"},
            "c.json: ln_type = 'preln' is another encoder than ALBERT's; of brightmart/albert_zh's ",
        ),
        ({"ln_type": ["postln"]}, r"those with ln_type = 'postln' are supported"),
        ({"directionality": "left"}, "c.json: directionality = 'left' is another encoder"),
        ({"hidden": 5}, "c.json: unknown key 'hidden'; known keys: vocab_size, "),
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
    with pytest.raises(InputError, match=r"cannot read .*absent\.json"):
        AlbertConfig.from_json(tmp_path / "absent.json")
    broken.write_text('{"vocab_size": 5}', encoding="utf-8")
    with pytest.raises(InputError, match=r"broken.json: unknown keys \[\], missing keys"):
        AlbertConfig.from_json(broken)
