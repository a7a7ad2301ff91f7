"""What the heads of tasks are made of, and checks of their settings."""

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import keras
import numpy as np

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import AlbertConfig
from albert_tf.data.schema import is_label
from albert_tf.errors import InputError
from albert_tf.inference.depth import ExitSettings
from albert_tf.layers.dense import Dense
from albert_tf.parameters import backbone_weight_shapes
from albert_tf.tasks.depth import DepthModel, at_depth


def new_pooler(config: AlbertConfig) -> dict[str, np.ndarray]:
    """The weights of a pooler as they are before any training."""
    kernel = keras.initializers.TruncatedNormal(stddev=config.initializer_range)
    shapes = backbone_weight_shapes(config)
    return {
        "pooler/kernel": np.asarray(kernel(shapes["pooler/kernel"], "float32")),
        "pooler/bias": np.zeros(shapes["pooler/bias"], np.float32),
    }


def pooled_head(
    backbone: AlbertBackbone, outputs: int, classifier_dropout: float, name: str, exits: ExitSettings | None = None
) -> tuple[Any, keras.layers.Dense]:
    """The published head of text tasks: pooled output → dropout → dense.

    With `exits` whose heads are "own", the dense layer holds those of all passes side by side.

    Returns:
        The symbolic outputs, float32 (B, outputs), and the dense layer, called `name`.

    Raises:
        InputError: not a backbone with pooler, or not a rate in [0, 1).
    """
    if not isinstance(backbone, AlbertBackbone):
        raise InputError(f"backbone: expected an AlbertBackbone, got {type(backbone).__name__}")
    if backbone.pooler is None:
        raise InputError("expected a backbone with pooler=True, got one without")
    dropout = keras.layers.Dropout(checked_dropout(classifier_dropout), dtype=backbone.policy, name="head_dropout")
    dense = head_dense(backbone, outputs * heads_of(backbone, exits), name)
    return at_depth(dense(dropout(backbone(backbone.input)["pooled_output"])), outputs, None), dense


def pooled_outputs(
    task: DepthModel, dense: keras.layers.Dense, sequence_output: Any, outputs: int, depth: int | None, training: bool
) -> Any:
    """What a `pooled_head` puts out, float32 (B, outputs), from the vectors (B, S, H) after pass number `depth`."""
    pooled = task.get_layer("head_dropout")(task.backbone.pool(sequence_output), training=training)
    return at_depth(dense(pooled), outputs, depth)


def heads_of(backbone: AlbertBackbone, exits: ExitSettings | None) -> int:
    """How many heads stand side by side in a dense layer: one, or one for each pass."""
    return int(backbone.config.num_layers) if exits is not None and exits.heads == "own" else 1


def head_dense(backbone: AlbertBackbone, outputs: int, name: str) -> keras.layers.Dense:
    """A head's dense layer. In float32 also under mixed precision: the loss is taken on its outputs."""
    initializer = keras.initializers.TruncatedNormal(stddev=backbone.config.initializer_range)
    return Dense(outputs, kernel_initializer=initializer, dtype="float32", name=name)


def checked_dropout(rate: float) -> float:
    """`rate`, or InputError where it is none in [0, 1)."""
    if not isinstance(rate, Real) or not 0.0 <= rate < 1.0:
        raise InputError(f"classifier_dropout: expected a rate in [0, 1), got {rate!r}")
    return rate


def checked_labels(labels: Sequence[str] | None) -> tuple[str, ...]:
    """`labels`, or InputError where they cannot be those of a head."""
    if labels is None:
        raise InputError("labels: expected their names, two or more; there is no trained head that has them")
    listed = isinstance(labels, Iterable) and not isinstance(labels, str)
    if not listed or not all(isinstance(label, str) for label in labels):
        raise InputError(f"labels: expected a list of names (strings), got {labels!r}")
    if len(labels) < 2 or len(set(labels)) != len(labels):
        raise InputError(f"labels: expected at least two different names, got {list(labels)}")
    for label in labels:
        if not is_label(label):
            raise InputError(
                f"labels: expected names of one line without control characters or spaces around them, got {label!r}"
            )
    return tuple(labels)
