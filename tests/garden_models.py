"""Models of the TF Model Garden with random weights, and whether ours agree with them."""

from pathlib import Path
from typing import Any

import numpy as np
from peer_models import largest_difference

from albert_tf.config import AlbertConfig
from albert_tf.conversion.checkpoint import Checkpoint

# float32 on both sides; hidden values up to 6.
TOLERANCE = 2e-5


def their_batch(batch: dict[str, np.ndarray]) -> dict[str, Any]:
    names = {"input_word_ids": "token_ids", "input_mask": "padding_mask", "input_type_ids": "segment_ids"}
    return {theirs: batch[ours] for theirs, ours in names.items()}


def their_encoder(config: AlbertConfig, activation: Any = None) -> Any:
    from official.modeling import tf_utils
    from official.nlp.modeling import networks

    names = {"gelu_tanh": "gelu", "relu": "relu"}
    return networks.AlbertEncoder(
        vocab_size=config.vocabulary_size,
        embedding_width=config.embedding_dim,
        hidden_size=config.hidden_dim,
        num_layers=config.num_layers,
        num_attention_heads=config.num_heads,
        max_sequence_length=config.max_sequence_length,
        type_vocab_size=config.num_segments,
        intermediate_size=config.intermediate_dim,
        activation=activation or tf_utils.get_activation(names[config.activation]),
        dict_outputs=True,
    )


def randomized(model: Any, std: float = 0.3) -> Any:
    """Gives every variable of theirs its own random value."""
    random = np.random.default_rng(2)
    for variable in model.variables:
        mean = 1.0 if "gamma" in variable.name else 0.0
        variable.assign(mean + std * random.standard_normal(variable.shape))
    return model


def our_encoder(checkpoint: Checkpoint) -> Any:
    from albert_tf.backbone import AlbertBackbone

    backbone = AlbertBackbone(checkpoint.config, all_layers=True)
    backbone.load_named_weights(checkpoint.backbone_weights, source="test")
    return backbone


def agree(ours: Any, theirs: Any, mask: np.ndarray | None = None) -> None:
    """Wherever `mask` says that there is a token, or everywhere."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    if mask is not None:
        ours, theirs = ours[mask == 1], theirs[mask == 1]
    assert np.std(theirs) > 1e-3
    assert largest_difference(ours, theirs) <= TOLERANCE


def encoders_agree(backbone: Any, outputs: dict[str, Any], batch: dict[str, np.ndarray]) -> None:
    ours, mask = backbone(batch), batch["padding_mask"]
    assert len(outputs["encoder_outputs"]) == len(ours["layer_outputs"])
    for layer, theirs in zip(ours["layer_outputs"], outputs["encoder_outputs"], strict=True):
        agree(layer, theirs, mask)
    agree(ours["sequence_output"], outputs["sequence_output"], mask)
    agree(ours["pooled_output"], outputs["pooled_output"])


def save(folder: Path, **objects: Any) -> Path:
    import tensorflow as tf

    tf.train.Checkpoint(**objects).save(str(folder / "ckpt"))
    return folder
