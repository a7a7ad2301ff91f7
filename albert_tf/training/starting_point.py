"""What fine-tuning and pretraining have in common: the encoder that a run starts from."""

import dataclasses
from typing import Any

from albert_tf.config import AlbertConfig
from albert_tf.training.pretrain_config import PretrainConfig
from albert_tf.training.run_config import RunConfig


def config_changes(run: RunConfig | PretrainConfig) -> dict[str, Any]:
    """The fields of the config that the run sets otherwise than its checkpoint or shape."""
    dropout = {"hidden_dropout": run.hidden_dropout, "attention_dropout": run.attention_dropout}
    shape = run.shape_changes if isinstance(run, RunConfig) else {}
    return {name: rate for name, rate in dropout.items() if rate is not None} | shape


def backbone_options(run: RunConfig | PretrainConfig) -> dict[str, Any]:
    """The arguments of `AlbertBackbone` other than the config."""
    return {"dtype": run.precision, "rematerialize": run.rematerialize}


def scratch_config(run: RunConfig | PretrainConfig, vocabulary_size: int) -> AlbertConfig:
    """The shape that `run.from_scratch` names, with the run's changes, for a vocabulary of that size.

    Raises:
        InputError: no such name or file.
    """
    shape = str(run.from_scratch)
    config = AlbertConfig.from_json(shape) if shape.endswith(".json") else AlbertConfig.from_name(shape)
    return dataclasses.replace(config, vocabulary_size=vocabulary_size, **config_changes(run))
