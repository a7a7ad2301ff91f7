"""Training for full-integer files: dense layers compute in floats what the file computes in 8 bits.

Of the encoder, pooler and head; what the file computes in 16 bits (residual stream, layer norms, softmax, tables) is left
as it is, and so are the parts of a question answering head.
"""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from albert_tf.data.batching import sorted_batches
from albert_tf.data.schema import PADDING_MASK, SEGMENT_IDS
from albert_tf.layers.dense import Dense
from albert_tf.layers.fake_quantization import ChannelRanges, FakeQuantization
from albert_tf.layers.low_rank import dense_layers
from albert_tf.tasks.base import AlbertTask
from albert_tf.tokenization.packing import Packed, pad_batch

_ROWS = 256  # from which the first ranges are taken
_BATCH_SIZE = 16


def quantize_in_training(
    model: AlbertTask, rows: list[Packed], seed: int, report: Callable[[str], None] = print
) -> int:
    """Makes a model's dense layers compute as in a full-integer file from now on, in training and in evaluation.

    The first ranges, and the factors of channels, are those of some of the training rows, drawn by `seed`. Weights and
    their names stay as they are.

    Returns:
        How many dense layers there are.
    """
    drawn = np.random.default_rng(seed).permutation(len(rows))[:_ROWS]
    chosen = [rows[index] for index in np.sort(drawn)]
    layers = _quantized_layers(model)
    found = {layer: ChannelRanges() for layer in layers}
    for layer, channels in found.items():
        layer.computation = channels
    pad_id = model.required_tokenizer.vocabulary.pad_id
    for indices in sorted_batches([len(token_ids) for token_ids, _ in chosen], _BATCH_SIZE):
        batch = pad_batch([chosen[index] for index in indices], pad_id)
        sequence_output = model.backbone(batch, training=False)["sequence_output"]
        model.row_outputs(sequence_output, batch[SEGMENT_IDS], batch[PADDING_MASK])
    for layer, channels in found.items():  # some are for training alone, and in no file
        layer.computation = FakeQuantization(layer, channels) if channels.found else None
    count = sum(layer.computation is not None for layer in layers)
    report(f"{count} dense layers are rounded to 8 bits in training and its validations")
    return count


def quantization_variables(model: keras.Model) -> dict[str, Any]:
    """What `quantize_in_training` added to a model, by name: state of a training, and no weights."""
    if not isinstance(model, AlbertTask):
        return {}
    named: dict[str, Any] = {}
    for layer in _quantized_layers(model):
        if isinstance(layer.computation, FakeQuantization):
            named |= {f"{layer.path}/{name}": variable for name, variable in layer.computation.variables.items()}
    return named


def _quantized_layers(model: AlbertTask) -> list[Dense]:
    projection = model.backbone.embeddings.projection
    layers = [*dense_layers(model.backbone.encoder, "all"), *model.head_layers]
    return layers if projection is None else [projection, *layers]
