"""Tagging: a label for each word of a text, such as the parts of named entities."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.errors import InputError
from albert_tf.inference.depth import ExitSettings
from albert_tf.inference.tagging import LABEL_PROBABILITIES
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.depth import at_depth, exit_settings
from albert_tf.tasks.exit_rules import Choice
from albert_tf.tasks.heads import checked_dropout, checked_labels, head_dense, heads_of
from albert_tf.tokenization.tokenizer import AlbertTokenizer


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTokenClassifier(AlbertTask):
    """last layer → dropout → dense, for each token; a word's label is that of its first piece (as in BERT, Devlin et
    al., 2019, section 5.3).

    Output: float32 logits (B, S, labels).

    Args:
        backbone: an encoder, with or without pooler.
        tokenizer: of the encoder's vocabulary.
        labels: the labels' names in IOB2, in the order of the logits; at least two, all different.
        classifier_dropout: rate before the dense layer.
        exits: when the labels of a row are settled before the last pass; the head is then trained after every pass.

    Raises:
        InputError: unusable labels or exits, or a tokenizer of another vocabulary.
    """

    task = "tagging"
    head_settings = ("labels",)
    token_outputs = (LABEL_PROBABILITIES,)
    uses_pooler = False
    exit_rules = ("patience", "confidence", "entropy")

    def __init__(
        self,
        backbone: AlbertBackbone,
        tokenizer: AlbertTokenizer | None = None,
        *,
        labels: Sequence[str] | None = None,
        classifier_dropout: float = 0.1,
        exits: ExitSettings | dict[str, Any] | None = None,
        name: str = "token_classifier",
    ) -> None:
        labels = checked_labels(labels)
        exits = exit_settings(exits, type(self))
        if not isinstance(backbone, AlbertBackbone):
            raise InputError(f"backbone: expected an AlbertBackbone, got {type(backbone).__name__}")
        dropout = keras.layers.Dropout(checked_dropout(classifier_dropout), dtype=backbone.policy, name="head_dropout")
        dense = head_dense(backbone, len(labels) * heads_of(backbone, exits), "token_classification")
        outputs = at_depth(dense(dropout(backbone(backbone.input)["sequence_output"])), len(labels), None)
        super().__init__(backbone, tokenizer, backbone.input, outputs, name=name)
        self.labels: tuple[str, ...] = labels
        self.classifier_dropout: float = classifier_dropout
        self.token_classification = dense
        self.exits = exits

    def settings(self) -> dict[str, Any]:
        own: dict[str, Any] = {"labels": list(self.labels), "classifier_dropout": self.classifier_dropout}
        return own if self.exits is None else own | {"exits": self.saved_exits}

    def device_outputs(self, sequence_output: Any, padding_mask: Any, depth: Any = None) -> dict[str, Any]:
        """`label_probabilities`, float32 (B, S, labels), from the vectors after pass number `depth`; None: the last."""
        logits = at_depth(self.token_classification(sequence_output), len(self.labels), depth)
        return {LABEL_PROBABILITIES: ops.softmax(logits, axis=-1)}

    def head_outputs(self, sequence_output: Any, inputs: dict[str, Any], depth: int | None, training: bool) -> Any:
        kept = self.get_layer("head_dropout")(sequence_output, training=training)
        return at_depth(self.token_classification(kept), len(self.labels), depth)

    def choices(self, outputs: dict[str, Any], segment_ids: Any, padding_mask: Any) -> list[Choice]:
        """A label for each token but the first, [CLS], and the last that is no padding, [SEP].

        A model is not told which tokens begin words, so those count too whose labels are not looked at; they can only
        make a row go deeper.
        """
        has_one_behind = ops.concatenate([padding_mask[:, 1:], ops.zeros_like(padding_mask[:, :1])], axis=1)
        counts = ops.concatenate([ops.zeros_like(padding_mask[:, :1]), has_one_behind[:, 1:]], axis=1) > 0
        return [Choice(outputs[LABEL_PROBABILITIES], counts)]

    def training_losses(self, targets: dict[str, Any], outputs: Any) -> Any:
        """Cross-entropy in the mean over the labelled tokens of a row: `labels` int (B, S), -1 where there is none."""
        labelled = ops.cast(targets["labels"] >= 0, "float32")
        labels = ops.maximum(targets["labels"], 0)
        losses = keras.losses.sparse_categorical_crossentropy(labels, outputs, from_logits=True)
        return ops.sum(losses * labelled, axis=-1) / ops.maximum(ops.sum(labelled, axis=-1), 1.0)
