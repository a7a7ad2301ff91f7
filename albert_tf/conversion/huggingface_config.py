"""The config.json of transformers' ALBERT, in and out.

hidden_act "gelu" means the erf form there. Google's v1 weights were trained with the tanh form, yet the config.json that
Hugging Face published with them says "gelu". For those weights, and only as they were published, gelu_tanh is taken and
a warning says so; a model that transformers trained on and saved again was trained with the erf form, and keeps it.
"""

import dataclasses
import logging
import re
from pathlib import Path
from typing import Any

from albert_tf.config import CONFIGS, AlbertConfig
from albert_tf.conversion.checkpoint import unnamed_labels
from albert_tf.errors import InputError
from albert_tf.files import read_json

CONFIG_NAME = "config.json"

_LOG = logging.getLogger(__name__)

# Key → our field, and what transformers takes where the key is missing (None: it must be there).
_FIELDS: dict[str, tuple[str, Any]] = {
    "vocab_size": ("vocabulary_size", None),
    "embedding_size": ("embedding_dim", None),
    "hidden_size": ("hidden_dim", None),
    "intermediate_size": ("intermediate_dim", None),
    "num_hidden_layers": ("num_layers", None),
    "num_attention_heads": ("num_heads", None),
    "num_hidden_groups": ("num_groups", 1),
    "inner_group_num": ("num_inner_repetitions", 1),
    "max_position_embeddings": ("max_sequence_length", 512),
    "type_vocab_size": ("num_segments", 2),
    "hidden_dropout_prob": ("hidden_dropout", 0.0),
    "attention_probs_dropout_prob": ("attention_dropout", 0.0),
    "initializer_range": ("initializer_range", 0.02),
    "layer_norm_eps": ("layer_norm_epsilon", 1e-12),
}
_ACTIVATIONS = {
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
    "linear": "linear",
}
_WRITTEN_ACTIVATIONS = {"gelu_erf": "gelu", "gelu_tanh": "gelu_new", "relu": "relu", "linear": "linear"}
# Keys that would change what the model computes → the values that change nothing.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "net_structure_type": (0,),
    "gap_size": (0,),
    "num_memory_blocks": (0,),
    "down_scale_factor": (1,),
    "position_embedding_type": ("absolute",),
    "pruned_heads": ({},),
    "quantization_config": (None,),
}
# Google's keys, which the published configs of Google's models have, and what transformers 4 adds to what it saves.
_OF_GOOGLE = ("net_structure_type", "gap_size", "num_memory_blocks", "down_scale_factor")
_OF_SAVING = ("transformers_version", "_name_or_path")
# The name of the repository, as a folder or in the cache of huggingface_hub.
_V1_FOLDER = re.compile(r"(^|/|--)albert-(base|large|xlarge|xxlarge)-v1(/snapshots/[^/]+)?/?$")
_DEFAULT_CLASSIFIER_DROPOUT = 0.1
_MOST_LABELS = 100_000


def read_fields(path: Path) -> dict[str, Any]:
    """The JSON object of a config.json of an ALBERT.

    Raises:
        InputError: no such file, not JSON, another type of model, or an option that ALBERT has not.
    """
    fields = read_json(path)
    if not isinstance(fields, dict) or "model_type" not in fields:
        raise InputError(f'{path}: expected a config.json of transformers with "model_type": "albert"; it has none')
    if fields["model_type"] != "albert":
        raise InputError(
            f"{path}: a model of type {fields['model_type']!r}; albert-tf reads ALBERT only (model_type 'albert')"
        )
    named = fields.get("architectures")
    if named is not None and not (isinstance(named, list) and all(isinstance(name, str) for name in named)):
        raise InputError(f"{path}: architectures: expected a list with the name of the model's class, got {named!r}")
    for key, neutral in _NEUTRAL.items():
        if key in fields and fields[key] not in neutral:
            raise InputError(f"{path}: {key} = {fields[key]!r}: no public ALBERT has that, nor has albert-tf")
    return fields


def config_of(fields: dict[str, Any], path: Path, *, has_task_head: bool) -> AlbertConfig:
    """Our config; see the module for the activation of the published v1 models.

    Args:
        fields: of `read_fields`.
        path: the config.json, for messages.
        has_task_head: whether somebody fine-tuned the model.
    """
    missing = [key for key, (_, default) in _FIELDS.items() if default is None and key not in fields]
    if missing:
        raise InputError(f"{path}: missing keys {', '.join(missing)}: the model's dimensions")
    activation = fields.get("hidden_act", "gelu_new")
    if activation not in tuple(_ACTIVATIONS):  # a tuple takes what cannot be hashed, too
        raise InputError(f"{path}: hidden_act: expected one of {', '.join(_ACTIVATIONS)}; got {activation!r}")
    ours = {name: fields.get(key, default) for key, (name, default) in _FIELDS.items()}
    try:
        config = AlbertConfig(**ours, activation=_ACTIVATIONS[activation])
        as_google = AlbertConfig(**ours)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    _check_groups(config, path)
    if activation == "gelu" and not has_task_head and _published_v1(fields, path, as_google):
        _LOG.warning(
            '%s says "gelu", the erf form, but these are Google\'s v1 weights, trained with the tanh form: gelu_tanh is '
            "used. To have it otherwise, set activation to gelu_erf",
            path,
        )
        return as_google
    return config


def fields_of(config: AlbertConfig, architecture: str, classifier_dropout: float | None) -> dict[str, Any]:
    """The keys of config.json that depend on the model alone.

    Raises:
        InputError: transformers would group the layers in another way, or has another epsilon in the masked-word head.
    """
    _check_groups(config, Path(CONFIG_NAME))
    if config.masked_lm_layer_norm_epsilon not in (None, config.layer_norm_epsilon):
        raise InputError(
            f"{CONFIG_NAME} of transformers has one layer_norm_eps; it has no form for masked_lm_layer_norm_epsilon="
            f"{config.masked_lm_layer_norm_epsilon} beside layer_norm_epsilon={config.layer_norm_epsilon}"
        )
    dropout = _DEFAULT_CLASSIFIER_DROPOUT if classifier_dropout is None else classifier_dropout
    return {
        "architectures": [architecture],
        "model_type": "albert",
        **{key: getattr(config, name) for key, (name, _) in _FIELDS.items()},
        "hidden_act": _WRITTEN_ACTIVATIONS[config.activation],
        "classifier_dropout_prob": dropout,
    }


def labels_of(fields: dict[str, Any], path: Path) -> list[str]:
    """The labels in order: "id2label", and without it the two that transformers takes.

    Raises:
        InputError: not the ids 0, 1, 2, …, each with a name.
    """
    named = fields.get("id2label")
    if named is None:
        count = fields.get("num_labels", 2)
        if not isinstance(count, int) or not 1 <= count <= _MOST_LABELS:
            raise InputError(f"{path}: num_labels: expected a whole number, 1 to {_MOST_LABELS}, got {count!r}")
        return unnamed_labels(count)
    ids = [str(index) for index in range(len(named))] if isinstance(named, dict) else []
    if not ids or set(named) != set(ids) or not all(isinstance(name, str) for name in named.values()):
        raise InputError(f'{path}: id2label: expected {{"0": name, "1": name, …}}, got {named!r}')
    return [named[index] for index in ids]


def classifier_dropout_of(fields: dict[str, Any], path: Path) -> float:
    """Rate before a classifier's dense layer.

    Raises:
        InputError: not a rate.
    """
    rate = fields.get("classifier_dropout_prob")
    if rate is None:
        return _DEFAULT_CLASSIFIER_DROPOUT
    if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 <= rate < 1:
        raise InputError(f"{path}: classifier_dropout_prob: expected a rate in [0, 1), got {rate!r}")
    return float(rate)


def _published_v1(fields: dict[str, Any], path: Path, config: AlbertConfig) -> bool:
    """Whether this is the config.json of a v1 model as Hugging Face published it."""
    known = all(key in fields for key in _OF_GOOGLE) or _V1_FOLDER.search(path.parent.as_posix()) is not None
    saved_again = any(key in fields for key in _OF_SAVING)
    without_dropout = dataclasses.replace(config, hidden_dropout=0.0, attention_dropout=0.0)
    size_of_v1 = without_dropout in [CONFIGS[name] for name in CONFIGS if name.endswith("_v2")]  # those have no dropout
    return known and not saved_again and size_of_v1


def _check_groups(config: AlbertConfig, path: Path) -> None:
    """transformers computes a layer's group in floating point, and comes out wrong for odd numbers such as 18 and 14."""
    per_group = config.num_layers / config.num_groups
    theirs = [int(layer / per_group) for layer in range(config.num_layers)]
    if theirs != [layer * config.num_groups // config.num_layers for layer in range(config.num_layers)]:
        raise InputError(
            f"{path}: transformers does not divide {config.num_layers} layers evenly into {config.num_groups} groups; "
            "albert-tf has no form for what it does instead"
        )
