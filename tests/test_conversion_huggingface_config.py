"""transformers' config.json: every key reaches its field, and what "gelu" means is decided and told."""

import logging
from pathlib import Path
from typing import Any

import pytest
from huggingface_writer import CONFIG

from albert_tf.config import CONFIGS, AlbertConfig
from albert_tf.conversion.huggingface_config import (
    classifier_dropout_of,
    config_of,
    fields_of,
    labels_of,
    read_fields,
)
from albert_tf.errors import InputError

PATH = Path("folder/config.json")
# As Hugging Face published it: Google's albert_config.json with a few keys more.
PUBLISHED_V1 = {
    "architectures": ["AlbertForMaskedLM"],
    "attention_probs_dropout_prob": 0.1,
    "bos_token_id": 2,
    "classifier_dropout_prob": 0.1,
    "down_scale_factor": 1,
    "embedding_size": 128,
    "eos_token_id": 3,
    "gap_size": 0,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "inner_group_num": 1,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512,
    "model_type": "albert",
    "net_structure_type": 0,
    "num_attention_heads": 12,
    "num_hidden_groups": 1,
    "num_hidden_layers": 12,
    "num_memory_blocks": 0,
    "pad_token_id": 0,
    "type_vocab_size": 2,
    "vocab_size": 30000,
}


def read(path: Path = PATH, *, has_task_head: bool = False, **changes: Any) -> AlbertConfig:
    fields = {key: value for key, value in (CONFIG | changes).items() if value is not None}
    return config_of(fields, path, has_task_head=has_task_head)


def test_every_key_reaches_its_field() -> None:
    values = {
        "vocab_size": 13,
        "embedding_size": 3,
        "hidden_size": 8,
        "intermediate_size": 7,
        "num_hidden_layers": 6,
        "num_attention_heads": 4,
        "num_hidden_groups": 3,
        "inner_group_num": 2,
        "max_position_embeddings": 9,
        "type_vocab_size": 5,
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.2,
        "initializer_range": 0.05,
        "layer_norm_eps": 1e-6,
        "hidden_act": "relu",
    }
    config = read(**values)
    assert config == AlbertConfig(
        vocabulary_size=13,
        embedding_dim=3,
        hidden_dim=8,
        intermediate_dim=7,
        num_layers=6,
        num_heads=4,
        num_groups=3,
        num_inner_repetitions=2,
        max_sequence_length=9,
        num_segments=5,
        hidden_dropout=0.1,
        attention_dropout=0.2,
        initializer_range=0.05,
        layer_norm_epsilon=1e-6,
        activation="relu",
    )
    written = fields_of(config, "AlbertModel", 0.4)
    assert {key: written[key] for key in values} == values
    assert (written["architectures"], written["classifier_dropout_prob"]) == (["AlbertModel"], 0.4)
    assert config_of(written, PATH, has_task_head=False) == config


def test_keys_that_may_be_missing_have_the_defaults_of_transformers() -> None:
    optional = ("num_hidden_groups", "inner_group_num", "max_position_embeddings", "type_vocab_size", "hidden_act")
    optional += ("hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range", "layer_norm_eps")
    config = read(**dict.fromkeys(optional))
    assert config == AlbertConfig(11, 6, 10, 4, 2, embedding_dim=4)
    assert (config.activation, config.max_sequence_length) == ("gelu_tanh", 512)
    with pytest.raises(InputError, match="missing keys embedding_size, hidden_size: the model's dimensions"):
        read(embedding_size=None, hidden_size=None)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("gelu", "gelu_erf"),
        ("gelu_python", "gelu_erf"),
        ("gelu_new", "gelu_tanh"),
        ("gelu_pytorch_tanh", "gelu_tanh"),
        ("gelu_fast", "gelu_tanh"),
        ("relu", "relu"),
        ("linear", "linear"),
    ],
)
def test_activations(theirs: str, ours: str) -> None:
    config = read(hidden_act=theirs)
    assert config.activation == ours
    assert read(hidden_act=fields_of(config, "AlbertModel", None)["hidden_act"]) == config


@pytest.mark.parametrize("name", ["silu", ["gelu"], 1])
def test_unknown_activations(name: Any) -> None:
    with pytest.raises(InputError, match=r"config\.json: hidden_act: expected one of gelu, gelu_python"):
        read(hidden_act=name)


# === The published v1 models ===


@pytest.mark.parametrize("size", ["base", "large", "xlarge", "xxlarge"])
def test_the_published_v1_models_are_tanh(size: str, caplog: pytest.LogCaptureFixture) -> None:
    expected = CONFIGS[f"albert_{size}_v1"]
    dimensions = fields_of(expected, "AlbertForMaskedLM", None)
    fields = PUBLISHED_V1 | dimensions | {"hidden_act": "gelu"}
    with caplog.at_level(logging.WARNING):
        assert config_of(fields, PATH, has_task_head=False) == expected
    assert "Google's v1 weights, trained with the tanh form: gelu_tanh is used" in caplog.text


@pytest.mark.parametrize(
    "folder",
    [
        "albert-base-v1",
        "/home/me/models/albert-base-v1",
        "hub/models--albert--albert-base-v1/snapshots/0123456789abcdef",
        "hub/models--albert-base-v1/snapshots/0123456789abcdef",
    ],
)
def test_a_v1_model_is_known_by_its_name_too(folder: str, caplog: pytest.LogCaptureFixture) -> None:
    of_google = ("net_structure_type", "gap_size", "num_memory_blocks", "down_scale_factor")
    fields = {key: value for key, value in PUBLISHED_V1.items() if key not in of_google}
    assert config_of(fields, Path(folder) / "config.json", has_task_head=False).activation == "gelu_tanh"
    assert len(caplog.records) == 1
    assert config_of(fields, Path(folder) / "config.json", has_task_head=True).activation == "gelu_erf"
    assert config_of(fields, Path("mine/config.json"), has_task_head=False).activation == "gelu_erf"
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"transformers_version": "4.30.0"},
        {"_name_or_path": "albert-base-v1"},
        {"hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 6},
        {"vocab_size": 21128},
    ],
    ids=str,
)
def test_models_that_transformers_trained_are_erf(change: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    assert config_of(PUBLISHED_V1 | change, PATH, has_task_head=False).activation == "gelu_erf"
    assert caplog.records == []


def test_v2_and_chinese_models_are_as_they_say(caplog: pytest.LogCaptureFixture) -> None:
    v2 = PUBLISHED_V1 | {"hidden_act": "gelu_new", "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0}
    assert config_of(v2, PATH, has_task_head=False) == CONFIGS["albert_base_v2"]
    zh = v2 | {"hidden_act": "relu", "vocab_size": 21128}
    assert config_of(zh, PATH, has_task_head=False) == CONFIGS["albert_base_zh"]
    assert caplog.records == []


# === What is refused ===


def fields_in(folder: Path, text: str) -> dict[str, Any]:
    (folder / "config.json").write_text(text)
    return read_fields(folder / "config.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"model_type": "bert", "hidden_size": 768}', "a model of type 'bert'; albert-tf reads ALBERT only"),
        ('{"hidden_size": 768}', 'expected a config.json of transformers with "model_type": "albert"; it has none'),
        ("[]", 'with "model_type": "albert"'),
        ('{"model_type": "albert"', r"config\.json, line 1: not JSON"),
        ('{"model_type": "albert", "net_structure_type": 1}', "net_structure_type = 1: no public ALBERT has that"),
        ('{"model_type": "albert", "position_embedding_type": "relative_key"}', "position_embedding_type = 'relative"),
        ('{"model_type": "albert", "pruned_heads": {"0": [1]}}', "pruned_heads"),
        ('{"model_type": "albert", "quantization_config": {"bits": 4}}', "quantization_config"),
        ('{"model_type": "albert", "architectures": 3}', "architectures: expected a list with the name"),
        (
            '{"model_type": "albert", "architectures": [["AlbertModel"]]}',
            "architectures: expected a list with the name",
        ),
        ('{"model_type": ["albert"]}', "a model of type "),
        ('{"model_type": "albert", "vocab_size": 1, "vocab_size": 2}', "the key 'vocab_size' comes twice"),
        ('{"model_type": "albert", "vocab_size": ' + "9" * 5000 + "}", "not JSON that can be read"),
        ('{"model_type": ' + "[" * 200_000, "not JSON that can be read"),
    ],
)
def test_other_models(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fields_in(tmp_path, text)


def test_neutral_values_are_accepted(tmp_path: Path) -> None:
    text = (
        '{"model_type": "albert", "net_structure_type": 0, "pruned_heads": {}, "position_embedding_type": "absolute"}'
    )
    assert fields_in(tmp_path, text)["model_type"] == "albert"


def test_values_that_our_config_refuses() -> None:
    with pytest.raises(InputError, match=r"config\.json: hidden_dim: expected a multiple of num_heads"):
        read(num_attention_heads=4)
    with pytest.raises(InputError, match=r"config\.json: num_layers: expected a whole number"):
        read(num_hidden_layers="4")


def test_groups_that_transformers_divides_otherwise() -> None:
    """int(9 / (18 / 14)) is 6 there, 9 · 14 // 18 is 7."""
    with pytest.raises(InputError, match="transformers does not divide 18 layers evenly into 14 groups"):
        read(num_hidden_layers=18, num_hidden_groups=14)
    with pytest.raises(InputError, match="transformers does not divide 18 layers evenly into 14 groups"):
        fields_of(AlbertConfig(11, 6, 10, 18, 2, num_groups=14), "AlbertModel", None)
    assert read(num_hidden_layers=5, num_hidden_groups=3).num_groups == 3


def test_another_epsilon_in_the_masked_word_head_has_no_form() -> None:
    config = AlbertConfig(11, 6, 10, 4, 2, masked_lm_layer_norm_epsilon=1e-5)
    with pytest.raises(
        InputError, match="no form for masked_lm_layer_norm_epsilon=1e-05 beside layer_norm_epsilon=1e-12"
    ):
        fields_of(config, "AlbertForMaskedLM", None)


def test_labels() -> None:
    assert labels_of({"id2label": {"1": "b", "0": "a"}}, PATH) == ["a", "b"]
    assert labels_of({}, PATH) == ["LABEL_0", "LABEL_1"]
    assert labels_of({"num_labels": 1}, PATH) == ["LABEL_0"]
    for count in (0, -1, 10**12, 2.0, "2"):
        with pytest.raises(InputError, match=r"config\.json: num_labels: expected a whole number, 1 to 100000, got"):
            labels_of({"num_labels": count}, PATH)


def test_dropout_before_a_classifier() -> None:
    assert classifier_dropout_of({"classifier_dropout_prob": 0}, PATH) == 0.0
    assert classifier_dropout_of({"classifier_dropout_prob": None}, PATH) == classifier_dropout_of({}, PATH) == 0.1
    for rate in ("0.1", [0.1], True, 1, -0.1, float("nan")):
        with pytest.raises(InputError, match=r"classifier_dropout_prob: expected a rate in \[0, 1\), got"):
            classifier_dropout_of({"classifier_dropout_prob": rate}, PATH)
