"""Writes TF1 checkpoints for tests: the variables that the original graph creates, with seeded values."""

import json
from pathlib import Path

import numpy as np

PUBLISHED = {
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
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0,
    "attention_probs_dropout_prob": 0,
    "initializer_range": 0.02,
}


def variables(config: dict, *, seed: int = 0) -> dict[str, np.ndarray]:
    """Name → value of a pretraining checkpoint, pooler and both heads included."""
    V, E, H, F = (config[k] for k in ("vocab_size", "embedding_size", "hidden_size", "intermediate_size"))
    shapes = {
        "bert/embeddings/word_embeddings": (V, E),
        "bert/embeddings/token_type_embeddings": (config["type_vocab_size"], E),
        "bert/embeddings/position_embeddings": (config["max_position_embeddings"], E),
        "bert/embeddings/LayerNorm/beta": (E,),
        "bert/embeddings/LayerNorm/gamma": (E,),
        "bert/pooler/dense/kernel": (H, H),
        "bert/pooler/dense/bias": (H,),
        "cls/predictions/transform/dense/kernel": (H, E),
        "cls/predictions/transform/dense/bias": (E,),
        "cls/predictions/transform/LayerNorm/beta": (E,),
        "cls/predictions/transform/LayerNorm/gamma": (E,),
        "cls/predictions/output_bias": (V,),
        "cls/seq_relationship/output_weights": (2, H),
        "cls/seq_relationship/output_bias": (2,),
    }
    if E != H:
        shapes["bert/encoder/embedding_hidden_mapping_in/kernel"] = (E, H)
        shapes["bert/encoder/embedding_hidden_mapping_in/bias"] = (H,)
    for group in range(config["num_hidden_groups"]):
        for inner in range(config["inner_group_num"]):
            block = f"bert/encoder/transformer/group_{group}/inner_group_{inner}"
            for dense in ("self/query", "self/key", "self/value", "output/dense"):
                shapes[f"{block}/attention_1/{dense}/kernel"] = (H, H)
                shapes[f"{block}/attention_1/{dense}/bias"] = (H,)
            shapes[f"{block}/ffn_1/intermediate/dense/kernel"] = (H, F)
            shapes[f"{block}/ffn_1/intermediate/dense/bias"] = (F,)
            shapes[f"{block}/ffn_1/intermediate/output/dense/kernel"] = (F, H)
            shapes[f"{block}/ffn_1/intermediate/output/dense/bias"] = (H,)
            for norm in ("LayerNorm", "LayerNorm_1"):
                shapes[f"{block}/{norm}/beta"] = (H,)
                shapes[f"{block}/{norm}/gamma"] = (H,)
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shapes[name]).astype(np.float32) for name in sorted(shapes)}


def encoder(config: dict = PUBLISHED) -> dict[str, np.ndarray]:
    """`variables` without the pretraining heads."""
    return {name: value for name, value in variables(config).items() if not name.startswith("cls/")}


def squad_1(kernel: np.ndarray) -> dict[str, np.ndarray]:
    """The head of run_squad_v1.py."""
    return {"cls/squad/output_weights": kernel, "cls/squad/output_bias": np.array([1, 2], np.float32)}


# Our name after "question_answering/" → variable of run_squad_v2.py.
SQUAD_2_NAMES = {
    "start/kernel": "start_logits/dense/kernel",
    "start/bias": "start_logits/dense/bias",
    "end_hidden/kernel": "end_logits/dense_0/kernel",
    "end_hidden/bias": "end_logits/dense_0/bias",
    "end_layer_norm/gamma": "end_logits/LayerNorm/gamma",
    "end_layer_norm/beta": "end_logits/LayerNorm/beta",
    "end/kernel": "end_logits/dense_1/kernel",
    "end/bias": "end_logits/dense_1/bias",
    "no_answer_hidden/kernel": "answer_class/dense_0/kernel",
    "no_answer_hidden/bias": "answer_class/dense_0/bias",
    "no_answer/kernel": "answer_class/dense_1/kernel",
}


def squad_2(hidden: int) -> dict[str, np.ndarray]:
    """The head of run_squad_v2.py (squad_utils.py, create_v2_model)."""
    shapes = {
        "start_logits/dense/kernel": (hidden, 1),
        "start_logits/dense/bias": (1,),
        "end_logits/dense_0/kernel": (2 * hidden, hidden),
        "end_logits/dense_0/bias": (hidden,),
        "end_logits/LayerNorm/gamma": (hidden,),
        "end_logits/LayerNorm/beta": (hidden,),
        "end_logits/dense_1/kernel": (hidden, 1),
        "end_logits/dense_1/bias": (1,),
        "answer_class/dense_0/kernel": (2 * hidden, hidden),
        "answer_class/dense_0/bias": (hidden,),
        "answer_class/dense_1/kernel": (hidden, 1),
    }
    rng = np.random.default_rng(1)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def save(prefix: Path, values: dict[str, np.ndarray]) -> Path:
    """Writes `prefix`.index and `prefix`.data-00000-of-00001."""
    import tensorflow as tf

    prefix.parent.mkdir(parents=True, exist_ok=True)
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(values),
        shape_and_slices=[""] * len(values),
        tensors=[tf.constant(value) for value in values.values()],
    )
    return prefix


def save_folder(folder: Path, config: dict | None = None, values: dict[str, np.ndarray] | None = None) -> Path:
    """A folder like the released ones: albert_config.json and model.ckpt-best; a new one, with tiny defaults."""
    config = PUBLISHED if config is None else config
    save(folder / "model.ckpt-best", variables(config) if values is None else values)
    (folder / "albert_config.json").write_text(json.dumps(config))
    return folder


def save_published(folder: Path, published: Path) -> dict[str, np.ndarray]:
    """A checkpoint with the variables that a published .index lists, of seeded values, and the published config.

    The seed and its order are those of the outputs recorded beside the .index.
    """
    import tensorflow as tf

    shapes = tf.train.load_checkpoint(str(published / "model.ckpt-best")).get_variable_to_shape_map()
    rng = np.random.default_rng(0)
    values = {}
    for name in sorted(shapes.keys() - {"global_step"}):
        noise = rng.standard_normal(shapes[name])
        values[name] = (1 + 0.1 * noise if name.endswith("gamma") else 0.05 * noise).astype(np.float32)
    save(folder / "model.ckpt-best", values | {"global_step": np.int64(125000)})
    (folder / "albert_config.json").write_bytes((published / "albert_config.json").read_bytes())
    return values
