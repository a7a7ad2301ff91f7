"""albert_config.json, the config file of google-research/albert and of brightmart/albert_zh, in and out.

Everything is returned under the names of `AlbertConfig`'s fields.
"""

from typing import TYPE_CHECKING, Any

from albert_tf.errors import InputError

if TYPE_CHECKING:
    from albert_tf.config import AlbertConfig

# albert_config.json of google-research/albert ↔ our names.
_PUBLISHED_NAMES = {
    "vocab_size": "vocabulary_size",
    "embedding_size": "embedding_dim",
    "hidden_size": "hidden_dim",
    "intermediate_size": "intermediate_dim",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "num_hidden_groups": "num_groups",
    "inner_group_num": "num_inner_repetitions",
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "num_segments",
    "hidden_act": "activation",
    "hidden_dropout_prob": "hidden_dropout",
    "attention_probs_dropout_prob": "attention_dropout",
    "initializer_range": "initializer_range",
}
# The original calls its tanh approximation "gelu" (google-research/albert modeling.py, get_activation).
_PUBLISHED_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu", "linear": "linear"}
# Published keys that no public code acts on, with the only values that mean "not used".
_PUBLISHED_UNUSED = {
    "net_structure_type": (0,),
    "gap_size": (0,),
    "num_memory_blocks": (0,),
    "down_scale_factor": (1,),
    "layers_to_keep": ([],),
}
# Keys of BERT's config that brightmart/albert_zh kept, and its own ln_type; no published ALBERT of another kind has
# any. Its code reads ln_type only. None: any value.
_ALBERT_ZH_KEYS: dict[str, str | None] = {
    "directionality": "bidi",
    "ln_type": "postln",
    "pooler_type": "first_token_transform",
    "pooler_fc_size": None,
    "pooler_num_attention_heads": None,
    "pooler_num_fc_layers": None,
    "pooler_size_per_head": None,
}


def fields_from_published(fields: dict[str, Any], source: str) -> dict[str, Any]:
    """Renames the keys of an albert_config.json, or says which one cannot be used."""
    renamed = {}
    for key, value in fields.items():
        if key in _PUBLISHED_UNUSED:
            if value not in _PUBLISHED_UNUSED[key]:
                raise InputError(f"{source}: {key} = {value!r}: no published code says what that does")
        elif key in _ALBERT_ZH_KEYS:
            renamed["factorization"] = "words"
            if _ALBERT_ZH_KEYS[key] not in (None, value):
                raise InputError(
                    f"{source}: {key} = {value!r} is another encoder than ALBERT's; of brightmart/albert_zh's models "
                    f"those with {key} = {_ALBERT_ZH_KEYS[key]!r} are supported"
                )
        elif key not in _PUBLISHED_NAMES:
            known = ", ".join((*_PUBLISHED_NAMES, *_PUBLISHED_UNUSED, *_ALBERT_ZH_KEYS))
            raise InputError(f"{source}: unknown key {key!r}; known keys: {known}")
        else:
            renamed[_PUBLISHED_NAMES[key]] = value
    activation = renamed.get("activation", "gelu")
    if activation not in tuple(_PUBLISHED_ACTIVATIONS):  # a tuple takes what cannot be hashed, too
        raise InputError(
            f"{source}: hidden_act: expected one of {', '.join(_PUBLISHED_ACTIVATIONS)}; got {activation!r}"
        )
    renamed["activation"] = _PUBLISHED_ACTIVATIONS[activation]
    return renamed


def published_fields(config: "AlbertConfig") -> dict[str, Any]:
    """See `AlbertConfig.to_published_dict`."""
    activations = {ours: theirs for theirs, ours in _PUBLISHED_ACTIVATIONS.items()}
    possible = {
        "sharing": ("all",),
        "activation": tuple(activations),
        "layer_norm_epsilon": (1e-12,),
        "masked_lm_layer_norm_epsilon": (None, 1e-12),
        "attention_dim": (None,),
    }
    if config.factorization == "words":
        possible |= {"num_groups": (1,), "num_inner_repetitions": (1,)}
    for name, allowed in possible.items():
        if getattr(config, name) not in allowed:
            raise InputError(f"albert_config.json has no form for {name}={getattr(config, name)!r}")
    published = {theirs: getattr(config, ours) for theirs, ours in _PUBLISHED_NAMES.items()}
    published["hidden_act"] = activations[config.activation]
    if config.factorization == "words":
        del published["num_hidden_groups"], published["inner_group_num"]
        return published | {"directionality": "bidi", "ln_type": "postln"}
    return published | {"down_scale_factor": 1, "gap_size": 0, "net_structure_type": 0, "num_memory_blocks": 0}
