"""Text classification: one label out of several for a text or a pair of texts."""

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import keras
import numpy as np
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.data.schema import Prediction, is_label
from albert_tf.errors import InputError
from albert_tf.tasks.base import AlbertTask
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
        labels = _checked_labels(labels)
        if not isinstance(backbone, AlbertBackbone):
            raise InputError(f"backbone: expected an AlbertBackbone, got {type(backbone).__name__}")
        if not isinstance(classifier_dropout, Real) or not 0.0 <= classifier_dropout < 1.0:
            raise InputError(f"classifier_dropout: expected a rate in [0, 1), got {classifier_dropout!r}")
        if backbone.pooler is None:
            raise InputError("a text classifier needs a backbone with pooler=True")
        # === Layers ===
        dropout = keras.layers.Dropout(classifier_dropout, dtype=backbone.policy, name="classifier_dropout")
        initializer = keras.initializers.TruncatedNormal(stddev=backbone.config.initializer_range)
        # float32 also under mixed precision: the loss is taken on these.
        classifier = keras.layers.Dense(len(labels), kernel_initializer=initializer, dtype="float32", name="classifier")
        # === Functional model ===
        outputs = classifier(dropout(backbone(backbone.input)["pooled_output"]))
        super().__init__(backbone, tokenizer, backbone.input, outputs, name=name)
        # === Config ===
        self.labels: tuple[str, ...] = labels
        self.classifier_dropout: float = classifier_dropout
        self.classifier: keras.layers.Dense = classifier

    def settings(self) -> dict[str, Any]:
        return {"labels": list(self.labels), "classifier_dropout": self.classifier_dropout}

    def device_outputs(self, sequence_output: Any) -> dict[str, Any]:
        """`probabilities`, float32 (B, labels)."""
        return {"probabilities": ops.softmax(self.classifier(self.backbone.pool(sequence_output)), axis=-1)}

    def predict_probabilities(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None, *, batch_size: int = 32
    ) -> np.ndarray:
        """float32 (texts, labels), each row summing to 1."""
        encoded = self.encode(texts, pairs)
        if not encoded:
            return np.zeros((0, len(self.labels)), np.float32)
        return softmax(self.raw_outputs(encoded, batch_size=batch_size))

    def classify(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None, *, batch_size: int = 32
    ) -> list[Prediction]:
        """The label of each text, or of each pair of texts.

        Raises:
            InputError: the model has no tokenizer, or `texts` and `pairs` differ in length.
        """
        probabilities = self.predict_probabilities(texts, pairs, batch_size=batch_size)
        return [Prediction.from_probabilities(row, self.labels) for row in probabilities]


def _checked_labels(labels: Sequence[str] | None) -> tuple[str, ...]:
    if labels is None:
        raise InputError("labels: expected their names, two or more; there is no trained classifier that has them")
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


def softmax(logits: np.ndarray) -> np.ndarray:
    """Over the last axis, in float32."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)
