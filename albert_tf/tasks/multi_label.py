"""Multi-label classification: any number of labels for a text or a pair of texts."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import keras
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.errors import InputError
from albert_tf.inference.multi_label import SIGMOID_PROBABILITIES, THRESHOLD, LabelSet, MultiLabelPipeline
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.heads import checked_labels, pooled_head, pooled_outputs
from albert_tf.tokenization.tokenizer import AlbertTokenizer


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertMultiLabelClassifier(AlbertTask):
    """pooled output → dropout → dense, and a sigmoid for each label by itself.

    A task of its own, with names of its own for weights and outputs: neither its head nor its probabilities can be taken
    for those of a softmax.

    Output: float32 logits (B, labels).

    Args:
        backbone: an encoder with pooler.
        tokenizer: of the encoder's vocabulary.
        labels: the labels' names, in the order of the logits; at least two, all different.
        threshold: a label is given where its probability is above this.
        classifier_dropout: rate before the dense layer.

    Raises:
        InputError: unusable labels or threshold, a backbone without pooler, or a tokenizer of another vocabulary.
    """

    task = "multi-label"
    head_settings = ("labels",)

    def __init__(
        self,
        backbone: AlbertBackbone,
        tokenizer: AlbertTokenizer | None = None,
        *,
        labels: Sequence[str] | None = None,
        threshold: float = THRESHOLD,
        classifier_dropout: float = 0.1,
        name: str = "multi_label_classifier",
    ) -> None:
        labels = checked_labels(labels)
        if not isinstance(threshold, Real) or not 0.0 < threshold < 1.0:
            raise InputError(f"threshold: expected a probability above 0 and below 1, got {threshold!r}")
        outputs, dense = pooled_head(backbone, len(labels), classifier_dropout, "multi_label")
        super().__init__(backbone, tokenizer, backbone.input, outputs, name=name)
        self.labels: tuple[str, ...] = labels
        self.threshold: float = threshold
        self.classifier_dropout: float = classifier_dropout
        self.multi_label: Any = dense

    def settings(self) -> dict[str, Any]:
        return {
            "labels": list(self.labels),
            "threshold": self.threshold,
            "classifier_dropout": self.classifier_dropout,
        }

    def device_outputs(self, sequence_output: Any, padding_mask: Any) -> dict[str, Any]:
        """`sigmoid_probabilities`, float32 (B, labels)."""
        return {SIGMOID_PROBABILITIES: ops.sigmoid(self.multi_label(self.backbone.pool(sequence_output)))}

    def head_outputs(self, sequence_output: Any, inputs: dict[str, Any], depth: int | None, training: bool) -> Any:
        return pooled_outputs(self, self.multi_label, sequence_output, len(self.labels), depth, training)

    def training_losses(self, targets: dict[str, Any], outputs: Any) -> Any:
        """Cross-entropy of each label by itself, in the mean over the labels: `labels`, float (B, labels), 0 or 1."""
        return keras.losses.binary_crossentropy(targets["labels"], outputs, from_logits=True)

    def classify(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[LabelSet]:
        """The labels of each text, or of each pair of texts.

        Raises:
            InputError: the model has no tokenizer, or `texts` and `pairs` differ in length.
        """
        return MultiLabelPipeline(self)(texts, pairs)
