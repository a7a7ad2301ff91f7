"""What every reader of a checkpoint returns, checked against its config."""

import dataclasses
from pathlib import Path

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.conversion.assign import check_finite, check_shapes
from albert_tf.parameters import backbone_weight_shapes, pretraining_head_weight_shapes

Weights = dict[str, np.ndarray]

_BACKBONE_PARTS = {"embeddings", "encoder", "pooler"}
_PRETRAINING_PARTS = {"masked_lm", "sentence_order"}


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """Weights under our names, with the config they fit.

    Attributes:
        form: the file form it was read from, as `detect` names it.
        source: the file or folder.
        config: the encoder's shape.
        weights: name → array: the whole encoder, and the heads that the source has.
        tokenizer_path: vocabulary file, or the folder with our tokenizer files; None where the source has none.

    Raises:
        InputError: the weights do not fit the config (see `check_weights`).
    """

    form: str
    source: str
    config: AlbertConfig
    weights: Weights
    tokenizer_path: Path | None = None

    def __post_init__(self) -> None:
        check_weights(self.config, self.weights, source=self.source)

    @property
    def backbone_weights(self) -> Weights:
        """The encoder's weights, and the pooler's where there is one."""
        return {name: weight for name, weight in self.weights.items() if _part(name) in _BACKBONE_PARTS}

    @property
    def head_weights(self) -> Weights:
        """The other weights."""
        return {name: weight for name, weight in self.weights.items() if _part(name) not in _BACKBONE_PARTS}

    @property
    def head(self) -> str:
        """What is on the encoder: "none", "pretraining" (both heads), or the names' first segments: "classifier"."""
        parts = {_part(name) for name in self.head_weights}
        return "pretraining" if parts == _PRETRAINING_PARTS else "+".join(sorted(parts)) or "none"


def check_weights(config: AlbertConfig, weights: Weights, *, source: str) -> None:
    """Raises InputError unless the encoder is complete, finite and of the config's shapes; the pretraining heads too.

    The pooler and each pretraining head may be absent, as a whole. Only the task that owns another head knows its
    shapes: they are compared when its weights are assigned.
    """
    present = {_part(name) for name in weights}
    shapes = backbone_weight_shapes(config, pooler="pooler" in present)
    heads = pretraining_head_weight_shapes(config)
    shapes |= {name: shape for name, shape in heads.items() if _part(name) in present}
    ours = _BACKBONE_PARTS | _PRETRAINING_PARTS
    check_shapes({name: w for name, w in weights.items() if _part(name) in ours}, shapes, source=source)
    check_finite(weights, source=source)


def _part(name: str) -> str:
    return name.partition("/")[0]
