"""Text classification: one label out of several for a text or a pair of texts."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.data.schema import Prediction
from albert_tf.inference.classification import PROBABILITIES, ClassificationPipeline
from albert_tf.tasks.base import AlbertTask, checked_labels, pooled_head
from albert_tf.tokenization.tokenizer import AlbertTokenizer


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTextClassifier(AlbertTask):
    """pooled output → dropout → dense (google-research/albert run_classifier.py, create_model).

    Output: float32 logits (B, labels).

    Args:
        backbone: an encoder with pooler.
        tokenizer: of the encoder's vocabulary.
        labels: the labels' names, in the order of the logits; at least two, all different.
        classifier_dropout: rate before the dense layer; the published recipe has 0.1 whatever the encoder's own.

    Raises:
        InputError: unusable labels, a backbone without pooler, or a tokenizer of another vocabulary.
    """

    task = "classification"
    head_settings = ("labels",)

    def __init__(
        self,
        backbone: AlbertBackbone,
        tokenizer: AlbertTokenizer | None = None,
        *,
        labels: Sequence[str] | None = None,
        classifier_dropout: float = 0.1,
        name: str = "text_classifier",
    ) -> None:
        labels = checked_labels(labels)
        outputs, classifier = pooled_head(backbone, len(labels), classifier_dropout, "classifier")
        super().__init__(backbone, tokenizer, backbone.input, outputs, name=name)
        self.labels: tuple[str, ...] = labels
        self.classifier_dropout: float = classifier_dropout
        self.classifier = classifier
        self._accuracy: Any = keras.metrics.SparseCategoricalAccuracy("accuracy")

    def settings(self) -> dict[str, Any]:
        return {"labels": list(self.labels), "classifier_dropout": self.classifier_dropout}

    def device_outputs(self, sequence_output: Any, padding_mask: Any) -> dict[str, Any]:
        """`probabilities`, float32 (B, labels)."""
        return {PROBABILITIES: ops.softmax(self.classifier(self.backbone.pool(sequence_output)), axis=-1)}

    def training_losses(self, targets: dict[str, Any], outputs: Any) -> Any:
        """Cross-entropy with `label`, int (B,)."""
        self._accuracy.update_state(targets["label"], outputs)
        return keras.losses.sparse_categorical_crossentropy(targets["label"], outputs, from_logits=True)

    def predict_probabilities(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> np.ndarray:
        """float32 (texts, labels), each row summing to 1."""
        return ClassificationPipeline(self).predict_probabilities(texts, pairs)

    def classify(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[Prediction]:
        """The label of each text, or of each pair of texts.

        Raises:
            InputError: the model has no tokenizer, or `texts` and `pairs` differ in length.
        """
        return ClassificationPipeline(self)(texts, pairs)
