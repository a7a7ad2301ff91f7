"""A task cut short: the same weights with fewer passes, as a plain model that always makes them."""

import dataclasses

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import AlbertConfig
from albert_tf.conversion.assign import assign
from albert_tf.errors import InputError
from albert_tf.tasks.base import AlbertTask


def shortened_config(config: AlbertConfig, num_passes: int) -> AlbertConfig | None:
    """The config whose steps are the first ones of this; None where there is none, as groups divide layers evenly."""
    wanted = config.block_schedule[: num_passes * config.num_inner_repetitions]
    for groups in range(1, min(config.num_groups, num_passes) + 1):
        shorter = dataclasses.replace(config, num_layers=num_passes, num_groups=groups)
        if shorter.block_schedule == wanted:
            return shorter
    return None


def at_fixed_depth(task: AlbertTask, num_passes: int) -> AlbertTask:
    """A model that always makes so many passes, without early exits; of heads for each pass it has that of the last one.

    Raises:
        InputError: no config has the first passes of this model.
    """
    config = task.backbone.config
    if num_passes == config.num_layers and task.exits is None:
        return task
    shorter = shortened_config(config, num_passes)
    if shorter is None:
        raise InputError(f"num_passes: {config.num_groups} groups do not divide {num_passes} layers as they do all")
    backbone = AlbertBackbone.unfilled(shorter, pooler=task.backbone.pooler is not None, dtype="float32")
    settings = {name: value for name, value in task.settings().items() if name != "exits"}
    short = type(task)(backbone, task.required_tokenizer, **settings)
    weights = {name: variable.numpy() for name, variable in task.named_weights().items()}
    found = {}
    for name, variable in short.named_weights().items():
        size = variable.shape[-1]
        # Heads for each pass stand side by side in one dense layer.
        own_heads = weights[name].shape[-1] != size
        found[name] = weights[name][..., (num_passes - 1) * size : num_passes * size] if own_heads else weights[name]
    assign(short.named_weights(), found, source=task.name)
    return short
