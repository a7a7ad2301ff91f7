"""Writes what transformers saves, for tests: names and shapes written out from modeling_albert.py, values seeded."""

import json
from pathlib import Path
from typing import Any

import numpy as np

CONFIG: dict[str, Any] = {
    "architectures": ["AlbertForPreTraining"],
    "model_type": "albert",
    "vocab_size": 11,
    "embedding_size": 4,
    "hidden_size": 6,
    "intermediate_size": 10,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "num_hidden_groups": 1,
    "inner_group_num": 1,
    "max_position_embeddings": 7,
    "type_vocab_size": 2,
    "hidden_act": "gelu_new",
    "hidden_dropout_prob": 0,
    "attention_probs_dropout_prob": 0,
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-12,
    "classifier_dropout_prob": 0.1,
    "pad_token_id": 0,
    "transformers_version": "5.24.0",
}


def tensors(config: dict[str, Any] | None = None, *, seed: int = 0, **heads: tuple[int, int]) -> dict[str, np.ndarray]:
    """The state dict of AlbertForPreTraining without its tied copies; `heads`: more linear layers, name → shape."""
    config = CONFIG if config is None else config
    V, E, H, F = (config[k] for k in ("vocab_size", "embedding_size", "hidden_size", "intermediate_size"))
    shapes: dict[str, tuple[int, ...]] = {
        "albert.embeddings.word_embeddings.weight": (V, E),
        "albert.embeddings.position_embeddings.weight": (config["max_position_embeddings"], E),
        "albert.embeddings.token_type_embeddings.weight": (config["type_vocab_size"], E),
        "albert.embeddings.LayerNorm.weight": (E,),
        "albert.embeddings.LayerNorm.bias": (E,),
        "predictions.bias": (V,),
        "predictions.LayerNorm.weight": (E,),
        "predictions.LayerNorm.bias": (E,),
    }
    linear = {
        "albert.encoder.embedding_hidden_mapping_in": (H, E),
        "albert.pooler": (H, H),
        "predictions.dense": (E, H),
        "sop_classifier.classifier": (2, H),
        **heads,
    }
    for group in range(config["num_hidden_groups"]):
        for inner in range(config["inner_group_num"]):
            layer = f"albert.encoder.albert_layer_groups.{group}.albert_layers.{inner}"
            for name in ("query", "key", "value", "dense"):
                linear[f"{layer}.attention.{name}"] = (H, H)
            linear |= {f"{layer}.ffn": (F, H), f"{layer}.ffn_output": (H, F)}
            for norm in ("attention.LayerNorm", "full_layer_layer_norm"):
                shapes |= {f"{layer}.{norm}.weight": (H,), f"{layer}.{norm}.bias": (H,)}
    for name, shape in linear.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    random = np.random.default_rng(seed)
    return {name: random.standard_normal(shapes[name]).astype(np.float32) for name in sorted(shapes)}


def without_heads(state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: tensor for name, tensor in state.items() if name.startswith("albert.")}


def save(
    folder: Path, state: dict[str, np.ndarray] | None = None, config: dict[str, Any] | None = None, **changes: Any
) -> Path:
    """A folder with config.json and model.safetensors; `changes` of the config's keys, None takes one away."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    fields = {key: value for key, value in ((config or CONFIG) | changes).items() if value is not None}
    (folder / "config.json").write_text(json.dumps(fields))
    save_file(tensors() if state is None else state, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def same_block(weights: dict[str, np.ndarray], state: dict[str, np.ndarray], ours: int, group: int, inner: int) -> None:
    """Compares the block number `ours` with the names written out."""
    layer = f"albert.encoder.albert_layer_groups.{group}.albert_layers.{inner}"
    linear = {
        f"encoder/attention_{ours}/query": f"{layer}.attention.query",
        f"encoder/attention_{ours}/key": f"{layer}.attention.key",
        f"encoder/attention_{ours}/value": f"{layer}.attention.value",
        f"encoder/attention_{ours}/output": f"{layer}.attention.dense",
        f"encoder/feed_forward_{ours}/intermediate": f"{layer}.ffn",
        f"encoder/feed_forward_{ours}/output": f"{layer}.ffn_output",
    }
    norms = {
        f"encoder/attention_{ours}/layer_norm": f"{layer}.attention.LayerNorm",
        f"encoder/feed_forward_{ours}/layer_norm": f"{layer}.full_layer_layer_norm",
    }
    same_linear(weights, state, linear)
    for name, theirs in norms.items():
        np.testing.assert_array_equal(weights[f"{name}/gamma"], state[f"{theirs}.weight"])
        np.testing.assert_array_equal(weights[f"{name}/beta"], state[f"{theirs}.bias"])


def same_linear(weights: dict[str, np.ndarray], state: dict[str, np.ndarray], pairs: dict[str, str]) -> None:
    for name, theirs in pairs.items():
        np.testing.assert_array_equal(weights[f"{name}/kernel"], state[f"{theirs}.weight"].T, name)
        np.testing.assert_array_equal(weights[f"{name}/bias"], state[f"{theirs}.bias"], name)
