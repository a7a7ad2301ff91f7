"""Which weights of a model a run trains, and how fast: frozen parts, low-rank additions, decay from layer to layer."""

from collections.abc import Iterable
from typing import Any

import keras

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.layers.low_rank import dense_layers
from albert_tf.training.run_config import RunConfig


def choose_trained_parts(run: RunConfig, backbone: AlbertBackbone) -> None:
    """Freezes what `run.freeze` names; with `run.lora_rank`, embeddings and encoder, which get low-rank additions.

    Heads always learn. So does the pooler, which stands between encoder and head, unless the whole backbone is frozen.

    Raises:
        InputError: some layers of a model whose layers share their weights.
    """
    with_encoder = run.lora_rank is not None or run.freeze in ("encoder", "backbone")
    if run.freeze is not None or run.lora_rank is not None:
        _freeze([backbone.embeddings])
    if with_encoder:
        _freeze([backbone.encoder])
    elif run.freeze is not None and run.freeze.isdigit():
        _freeze(_blocks_of_first_layers(backbone, int(run.freeze)))
    if run.freeze == "backbone" and backbone.pooler is not None:
        _freeze([backbone.pooler])
    if run.lora_rank is not None:
        for layer in dense_layers(backbone.encoder, run.lora_layers):
            layer.enable_lora(run.lora_rank, lora_alpha=run.lora_alpha or run.lora_rank)


def rate_factors(config: AlbertConfig, decay: float) -> dict[str, float]:
    """The start of a weight's name → the factor of its learning rate, for `AdamW`.

    Heads and pooler have 1. Going down from them, each place where blocks are used for the last time multiplies by `decay`
    once more, and so do the embeddings. With layers of their own (`sharing="none"`) that is every layer (Clark et al.,
    2020, appendix); ALBERT's one block is one place, so there are three rates: heads, encoder and embeddings.
    """
    last_use: dict[str, int] = {}
    for step, (attention, feed_forward) in enumerate(config.block_schedule):
        last_use[f"encoder/attention_{attention}/"] = step
        last_use[f"encoder/feed_forward_{feed_forward}/"] = step
    places = sorted(set(last_use.values()), reverse=True)
    factors = {block: decay ** (1 + places.index(step)) for block, step in last_use.items()}
    return factors | {"embeddings/": decay ** (1 + len(places))}


def _freeze(layers: Iterable[keras.layers.Layer]) -> None:
    # Weights, not layers: additions to a layer whose own weights are frozen do learn.
    for layer in layers:
        for variable in layer.weights:
            variable.trainable = False


def _blocks_of_first_layers(backbone: AlbertBackbone, count: int) -> list[Any]:
    schedule = backbone.config.block_schedule
    if count > len(schedule):
        raise InputError(f"--freeze {count}: the model has {len(schedule)} layers")
    attention, feed_forward = ({pair[half] for pair in schedule[:count]} for half in (0, 1))
    if any(pair[0] in attention or pair[1] in feed_forward for pair in schedule[count:]):
        raise InputError(
            f"--freeze {count}: layers of this model share their weights (sharing={backbone.config.sharing!r}), so the "
            f"first {count} cannot stay as they are while the others learn; choose embeddings, encoder or backbone"
        )
    encoder = backbone.encoder
    return [encoder.attention_blocks[i] for i in attention] + [encoder.feed_forward_blocks[i] for i in feed_forward]
