"""Writes what KerasHub saves, for tests: groups and shapes written out from a preset of keras-hub 0.32, values seeded."""

import json
from pathlib import Path
from typing import Any

import numpy as np

CONFIG: dict[str, Any] = {
    "name": "albert_backbone",
    "trainable": True,
    "dtype": {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}, "registered_name": None},
    "vocabulary_size": 11,
    "num_layers": 4,
    "num_heads": 2,
    "num_groups": 1,
    "num_inner_repetitions": 1,
    "embedding_dim": 4,
    "hidden_dim": 6,
    "intermediate_dim": 10,
    "dropout": 0.0,
    "max_sequence_length": 7,
    "num_segments": 2,
}


def variables(config: dict[str, Any] | None = None, *, seed: int = 0) -> dict[str, np.ndarray]:
    """Path in model.weights.h5 → value."""
    config = CONFIG if config is None else config
    V, E, H, F, N = (
        config[key] for key in ("vocabulary_size", "embedding_dim", "hidden_dim", "intermediate_dim", "num_heads")
    )
    D = H // N
    shapes: dict[str, tuple[int, ...]] = {
        "layers/reversible_embedding/vars/0": (V, E),
        "layers/position_embedding/vars/0": (config["max_sequence_length"], E),
        "layers/embedding/vars/0": (config["num_segments"], E),
        "layers/layer_normalization/vars/0": (E,),
        "layers/layer_normalization/vars/1": (E,),
        "layers/dense/vars/0": (E, H),
        "layers/dense/vars/1": (H,),
        "layers/dense_1/vars/0": (H, H),
        "layers/dense_1/vars/1": (H,),
    }
    for n in range(config["num_groups"] * config["num_inner_repetitions"]):
        layer = f"layers/transformer_encoder_{n}" if n else "layers/transformer_encoder"
        attention = f"{layer}/_self_attention_layer"
        for name in ("query", "key", "value"):
            shapes |= {f"{attention}/{name}_dense/vars/0": (H, N, D), f"{attention}/{name}_dense/vars/1": (N, D)}
        shapes |= {f"{attention}/output_dense/vars/0": (N, D, H), f"{attention}/output_dense/vars/1": (H,)}
        shapes |= {f"{layer}/_feedforward_intermediate_dense/vars/{i}": s for i, s in enumerate([(H, F), (F,)])}
        shapes |= {f"{layer}/_feedforward_output_dense/vars/{i}": s for i, s in enumerate([(F, H), (H,)])}
        for norm in ("_self_attention_layer_norm", "_feedforward_layer_norm"):
            shapes |= {f"{layer}/{norm}/vars/{i}": (H,) for i in (0, 1)}
    random = np.random.default_rng(seed)
    return {path: random.standard_normal(shape).astype(np.float32) for path, shape in shapes.items()}


def write_h5(path: Path, values: dict[str, np.ndarray], names: dict[str, str] | None = None) -> Path:
    """`names`: group in the file → name of the layer, which Keras writes since 3.4."""
    import h5py

    with h5py.File(path, "w") as file:
        for place, value in values.items():
            file[place] = value
        for group, name in (names or {}).items():
            file.require_group(f"layers/{group}/vars").attrs["name"] = name
    return path


def save(
    folder: Path, values: dict[str, np.ndarray] | None = None, config: dict[str, Any] | None = None, **changes: Any
) -> Path:
    """A preset of the backbone; `changes` of the config's fields, None takes one away."""
    folder.mkdir(parents=True, exist_ok=True)
    fields = {name: value for name, value in ((config or CONFIG) | changes).items() if value is not None}
    save_object(folder / "config.json", "AlbertBackbone", fields)
    write_h5(folder / "model.weights.h5", variables() if values is None else values)
    return folder


def save_object(path: Path, class_name: str, config: dict[str, Any]) -> None:
    saved = {"module": "m", "class_name": class_name, "config": config, "registered_name": f"keras_hub>{class_name}"}
    path.write_text(json.dumps(saved))
