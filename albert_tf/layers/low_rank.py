"""Low-rank additions to an encoder's matrices (LoRA, Hu et al., 2021): W + alpha / rank · A·B, where only A and B learn.

Keras's dense layers know them; here is which layers get them, and what is saved: the sum, under the matrix's name, so
that whoever reads the weights need not know of additions.
"""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from albert_tf.layers.encoder import AlbertEncoder


def dense_layers(encoder: AlbertEncoder, which: str) -> list[keras.layers.Dense]:
    """The dense layers of all blocks.

    Args:
        encoder: a built encoder.
        which: "query-value", "attention" (those, keys and outputs), or "all" (those and the feed-forward blocks').
    """
    layers = []
    for attention in encoder.attention_blocks:
        layers += [attention.query, attention.value]
        if which != "query-value":
            layers += [attention.key, attention.output_dense]
    if which == "all":
        for feed_forward in encoder.feed_forward_blocks:
            layers += [feed_forward.intermediate, feed_forward.output_dense]
    return layers


def stored_weights(variables: Mapping[str, Any], encoder: AlbertEncoder) -> dict[str, np.ndarray]:
    """The values of variables by their names, with low-rank additions added to their matrices."""
    weights = {name: np.asarray(variable) for name, variable in variables.items()}
    for layer in dense_layers(encoder, "all"):
        if layer.lora_enabled:
            first, second = weights.pop(f"{layer.path}/lora_kernel_a"), weights.pop(f"{layer.path}/lora_kernel_b")
            kernel = f"{layer.path}/kernel"
            weights[kernel] = weights[kernel] + np.float32(layer.lora_alpha / layer.lora_rank) * (first @ second)
    return weights
