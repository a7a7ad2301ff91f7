"""Writes checkpoints and SavedModels like the TF Model Garden's, without its code: the object paths were recorded there.

tf-models-official 2.20.0, AlbertEncoder(vocab_size=40, embedding_width=8, hidden_size=12, num_attention_heads=3, …), its
variables by the way that leads to them (tf.train.list_variables, without ".ATTRIBUTES/VARIABLE_VALUE").
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from bundle_writer import varint

from albert_tf.config import AlbertConfig

CONFIG = AlbertConfig(
    vocabulary_size=40,
    embedding_dim=8,
    hidden_dim=12,
    intermediate_dim=20,
    num_layers=3,
    num_heads=3,
    max_sequence_length=9,
)

# Way to the variable below the encoder → (our name, shape there).
_BLOCK = {
    "_attention_layer/_query_dense/kernel": ("encoder/attention_0/query/kernel", (12, 3, 4)),
    "_attention_layer/_query_dense/bias": ("encoder/attention_0/query/bias", (3, 4)),
    "_attention_layer/_key_dense/kernel": ("encoder/attention_0/key/kernel", (12, 3, 4)),
    "_attention_layer/_key_dense/bias": ("encoder/attention_0/key/bias", (3, 4)),
    "_attention_layer/_value_dense/kernel": ("encoder/attention_0/value/kernel", (12, 3, 4)),
    "_attention_layer/_value_dense/bias": ("encoder/attention_0/value/bias", (3, 4)),
    "_attention_layer/_output_dense/kernel": ("encoder/attention_0/output/kernel", (3, 4, 12)),
    "_attention_layer/_output_dense/bias": ("encoder/attention_0/output/bias", (12,)),
    "_attention_layer_norm/gamma": ("encoder/attention_0/layer_norm/gamma", (12,)),
    "_attention_layer_norm/beta": ("encoder/attention_0/layer_norm/beta", (12,)),
    "_intermediate_dense/kernel": ("encoder/feed_forward_0/intermediate/kernel", (12, 20)),
    "_intermediate_dense/bias": ("encoder/feed_forward_0/intermediate/bias", (20,)),
    "_output_dense/kernel": ("encoder/feed_forward_0/output/kernel", (20, 12)),
    "_output_dense/bias": ("encoder/feed_forward_0/output/bias", (12,)),
    "_output_layer_norm/gamma": ("encoder/feed_forward_0/layer_norm/gamma", (12,)),
    "_output_layer_norm/beta": ("encoder/feed_forward_0/layer_norm/beta", (12,)),
}
RECORDED = {
    "layer_with_weights-0/embeddings": ("embeddings/word_embedding/embeddings", (40, 8)),
    "layer_with_weights-1/embeddings": ("embeddings/position_embedding/embeddings", (9, 8)),
    "layer_with_weights-2/embeddings": ("embeddings/segment_embedding/embeddings", (2, 8)),
    "layer_with_weights-3/gamma": ("embeddings/layer_norm/gamma", (8,)),
    "layer_with_weights-3/beta": ("embeddings/layer_norm/beta", (8,)),
    "layer_with_weights-4/kernel": ("embeddings/projection/kernel", (8, 12)),
    "layer_with_weights-4/bias": ("embeddings/projection/bias", (12,)),
    **{f"layer_with_weights-5/{way}": found for way, found in _BLOCK.items()},
    "layer_with_weights-6/kernel": ("pooler/kernel", (12, 12)),
    "layer_with_weights-6/bias": ("pooler/bias", (12,)),
}
# Where embeddings and encoder are as wide, there is no projection, and the numbers move up.
RECORDED_WITHOUT_PROJECTION = {
    way.replace("weights-5", "weights-4").replace("weights-6", "weights-5"): (
        ours,
        tuple(12 if n == 8 else n for n in shape),
    )
    for way, (ours, shape) in RECORDED.items()
    if "weights-4" not in way
}
# Below MaskedLM ("bias" is also "output_bias/bias" there) and ClassificationHead.
RECORDED_MASKED_LM = {
    "dense/kernel": ("masked_lm/transform/kernel", (12, 8)),
    "dense/bias": ("masked_lm/transform/bias", (8,)),
    "layer_norm/gamma": ("masked_lm/layer_norm/gamma", (8,)),
    "layer_norm/beta": ("masked_lm/layer_norm/beta", (8,)),
    "bias": ("masked_lm/output_bias", (40,)),
}


def arrays(recorded: dict[str, tuple[str, tuple[int, ...]]], seed: int = 0) -> dict[str, np.ndarray]:
    """Way → seeded values."""
    random = np.random.default_rng(seed)
    return {way: random.standard_normal(shape).astype(np.float32) for way, (_, shape) in recorded.items()}


def dense(*shape: int, seed: int = 0) -> dict[str, np.ndarray]:
    """The object of a dense layer."""
    random = np.random.default_rng(seed)
    return {
        "kernel": random.standard_normal(shape).astype(np.float32),
        "bias": random.standard_normal(shape[-1:]).astype(np.float32),
    }


def objects(values: dict[str, np.ndarray]) -> dict[str, Any]:
    """The ways as a tree of dicts."""
    tree: dict[str, Any] = {}
    for way, value in values.items():
        *owners, last = way.split("/")
        at = tree
        for owner in owners:
            at = at.setdefault(owner, {})
        at[last] = value
    return tree


def trackable(tree: Any, made: dict[int, Any] | None = None) -> Any:
    """tf.train.Checkpoint for each dict, tf.Variable for each array, the same one for the same; others as they are."""
    import tensorflow as tf

    made = {} if made is None else made
    if isinstance(tree, (dict, np.ndarray)):
        if id(tree) not in made:
            made[id(tree)] = (
                tf.train.Checkpoint(**{name: trackable(child, made) for name, child in tree.items()})
                if isinstance(tree, dict)
                else tf.Variable(tree)
            )
        return made[id(tree)]
    return tree


def save(folder: Path, tree: dict[str, Any], config: AlbertConfig | None = CONFIG) -> Path:
    """A folder with ckpt-1, and albert_config.json beside it."""
    trackable(tree).save(str(folder / "ckpt"))
    if config is not None:
        config.to_json(folder / "albert_config.json", published=True, overwrite=True)
    return folder


def save_saved_model(folder: Path, tree: dict[str, Any], signatures: Any = None) -> Path:
    import tensorflow as tf

    tf.saved_model.save(trackable(tree), str(folder), signatures=signatures)
    return folder


ARGUMENTS = {
    "vocab_size": 40,
    "embedding_width": 8,
    "hidden_size": 12,
    "num_layers": 3,
    "num_attention_heads": 3,
    "max_sequence_length": 9,
    "type_vocab_size": 2,
    "intermediate_size": 20,
    "activation": {
        "module": "builtins",
        "class_name": "function",
        "config": "Text>gelu",
        "registered_name": "function",
    },
    "dropout_rate": 0.1,
    "attention_dropout_rate": 0.2,
    "initializer": {"module": "keras.initializers", "class_name": "TruncatedNormal", "config": {"stddev": 0.03}},
}


def metadata(*layers: dict[str, Any]) -> bytes:
    """A keras_metadata.pb, byte by byte: field 1, a message for each layer, with its JSON in field 5."""
    whole = b""
    for index, layer in enumerate(layers):
        text = json.dumps(layer).encode()
        node = b"\x10" + varint(index) + b"\x1a" + varint(4) + b"root" + b"\x2a" + varint(len(text)) + text
        whole += b"\x0a" + varint(len(node)) + node
    return whole


def encoder_layer(**changes: Any) -> dict[str, Any]:
    """What Keras says of an AlbertEncoder with `ARGUMENTS`."""
    return {"name": "albert_encoder", "class_name": "Text>AlbertEncoder", "config": ARGUMENTS | changes}
