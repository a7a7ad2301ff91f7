"""The pretraining model: masked words and sentence order (paper section 3.1)."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.conversion.assign import assign
from albert_tf.conversion.checkpoint import Checkpoint
from albert_tf.data.pretraining_examples import (
    MASKED_IDS,
    MASKED_POSITIONS,
    MASKED_WEIGHTS,
    SENTENCE_ORDER_LABELS,
)
from albert_tf.data.schema import PADDING_MASK
from albert_tf.layers.heads import MaskedLMHead
from albert_tf.presets import load_checkpoint, save_preset
from albert_tf.tasks.accumulation import AccumulatingModel
from albert_tf.tasks.heads import new_pooler
from albert_tf.tokenization.tokenizer import AlbertTokenizer

# Figures of `fit` and `evaluate` beside the loss, each over masked words or texts; and "tokens", counted.
FIGURES = ("masked_lm_loss", "masked_lm_accuracy", "sentence_order_loss", "sentence_order_accuracy")
# What a checkpoint may come without and pretraining needs, by the beginning of the weights' names.
PARTS = ("pooler/", "masked_lm/", "sentence_order/")
TARGETS = (MASKED_IDS, MASKED_WEIGHTS, SENTENCE_ORDER_LABELS, "word_scale", "text_scale")


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertPretrainer(AccumulatingModel):
    """A backbone with both pretraining heads.

    Inputs: the backbone's three and `masked_positions`, int (B, P).

    Outputs, a dict: `masked_lm_logits` float32 (B, P, V); `sentence_order_logits` float32 (B, 2), where 0 means the
    two texts are in their order and 1 that they are swapped (google-research/albert run_pretraining.py).

    Compiled without a loss it trains on the published one: the mean over masked words plus the mean over texts, both of
    cross-entropy. `fit` then takes as targets `TARGETS`, a dict: `masked_ids` int (B, P), `masked_weights` (B, P), 1 for
    a masked word and 0 for padding, `sentence_order_labels` int (B,), and what makes the two sums means, `word_scale`
    (B,) and `text_scale` (B,). These come with the batch because the batch may be a replica's or worker's part of a
    larger one: the means are those of the whole.
    """

    def __init__(self, backbone: AlbertBackbone, *, name: str = "pretrainer") -> None:
        # === Layers ===
        masked_lm = MaskedLMHead(backbone.config, dtype=backbone.policy, name="masked_lm")
        initializer = keras.initializers.TruncatedNormal(stddev=backbone.config.initializer_range)
        sentence_order = keras.layers.Dense(2, kernel_initializer=initializer, dtype="float32", name="sentence_order")
        # === Functional model ===
        positions = keras.Input((None,), dtype="int32", name=MASKED_POSITIONS)
        encoded = backbone(backbone.input)
        outputs = {
            "masked_lm_logits": masked_lm(
                encoded["sequence_output"], positions, *backbone.embeddings.output_matrices()
            ),
            "sentence_order_logits": sentence_order(encoded["pooled_output"]),
        }
        super().__init__(backbone.input | {MASKED_POSITIONS: positions}, outputs, name=name)
        # === Config ===
        self.backbone = backbone
        self.new_parts: tuple[str, ...] = ()
        self._figures = {name: keras.metrics.Mean(name) for name in FIGURES}
        self._tokens = keras.metrics.Sum("tokens")

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """The published loss, unless `compile` was given another."""
        if self.loss is not None:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        words, texts = y_pred["masked_lm_logits"], y_pred["sentence_order_logits"]
        word_losses = _cross_entropy(y[MASKED_IDS], words)
        text_losses = _cross_entropy(y[SENTENCE_ORDER_LABELS], texts)
        self._update_figures("masked_lm", word_losses, y[MASKED_IDS], words, y[MASKED_WEIGHTS])
        self._update_figures("sentence_order", text_losses, y[SENTENCE_ORDER_LABELS], texts, None)
        self._tokens.update_state(x[PADDING_MASK])
        word_loss = ops.sum(word_losses * y[MASKED_WEIGHTS] * y["word_scale"][:, None])
        return word_loss + ops.sum(text_losses * y["text_scale"])

    def loss_share(self, y: Any) -> Any:
        return ops.sum(y["text_scale"])

    def _update_figures(self, head: str, losses: Any, labels: Any, logits: Any, weights: Any) -> None:
        right = ops.cast(ops.argmax(logits, axis=-1) == labels, "float32")
        self._figures[f"{head}_loss"].update_state(losses, weights)
        self._figures[f"{head}_accuracy"].update_state(right, weights)

    @classmethod
    def from_pretrained(
        cls, source: str | Path, *, config_changes: Mapping[str, Any] | None = None, **backbone_options: Any
    ) -> "AlbertPretrainer":
        """A checkpoint with its two pretraining heads.

        Args:
            source: any checkpoint that `albert_tf.presets.load_checkpoint` reads.
            config_changes: fields of the checkpoint's config to replace, such as `hidden_dropout`.
            **backbone_options: arguments of `AlbertBackbone` other than the config.

        Raises:
            InputError: the source cannot be read or lacks a head.
        """
        return cls.from_checkpoint(load_checkpoint(source), config_changes=config_changes, **backbone_options)

    @classmethod
    def from_checkpoint(
        cls,
        checkpoint: Checkpoint,
        *,
        new_heads: bool = False,
        config_changes: Mapping[str, Any] | None = None,
        **backbone_options: Any,
    ) -> "AlbertPretrainer":
        """`from_pretrained` of a checkpoint that is read already; its weights are taken out of it one by one.

        With `new_heads`, to train on: a head or pooler that the checkpoint lacks is a new one, named in the model's
        `new_parts`, and heads of other tasks are left aside.
        """
        source, weights = checkpoint.source, checkpoint.weights
        config = dataclasses.replace(checkpoint.config, **config_changes or {})
        parts = () if not new_heads else tuple(part for part in PARTS if not any(n.startswith(part) for n in weights))
        if new_heads:
            for name in [name for name in checkpoint.head_weights if not name.startswith(PARTS)]:
                del weights[name]
        if "pooler/" in parts:
            weights |= new_pooler(config)
        model = cls(AlbertBackbone.unfilled(config, **backbone_options))
        variables = model.named_weights()
        new = [name for name in variables if parts and name.startswith(parts)]
        assign(variables, weights, source=source, optional=new, consume=True)
        model.new_parts = tuple(part.strip("/") for part in parts)
        return model

    def save_pretrained(
        self, folder: str | Path, tokenizer: AlbertTokenizer | None, *, overwrite: bool = False
    ) -> None:
        """Writes a preset folder: encoder, both heads and tokenizer."""
        weights = {name: np.asarray(variable) for name, variable in self.named_weights().items()}
        save_preset(folder, self.backbone.config, weights, tokenizer, overwrite=overwrite)

    def named_weights(self) -> dict[str, Any]:
        """Every weight by its path, as in `albert_tf.parameters`."""
        return {variable.path: variable for variable in self.weights}

    def get_config(self) -> dict[str, Any]:
        return {"backbone": keras.saving.serialize_keras_object(self.backbone), "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "AlbertPretrainer":
        return cls(keras.saving.deserialize_keras_object(config["backbone"]), name=config["name"])


def _cross_entropy(labels: Any, logits: Any) -> Any:
    return keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
