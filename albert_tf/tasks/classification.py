"""Text classification: one label out of several for a text or a pair of texts."""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import keras
import numpy as np
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.data.schema import Prediction
from albert_tf.errors import InputError
from albert_tf.inference.classification import PROBABILITIES, ClassificationPipeline
from albert_tf.inference.depth import ExitSettings
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.depth import at_depth, exit_settings
from albert_tf.tasks.heads import checked_labels, pooled_head, pooled_outputs
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
        class_weights: what an example of each label counts in the loss; default: all the same.
        label_smoothing: share of the wanted probability that is spread over all labels in the loss (Szegedy et al., 2016).
        temperature: what logits are divided by before the softmax (Guo et al., 2017); see
            `albert_tf.evaluation.calibration`.
        exits: when the answer is settled before the last pass; the head is then trained after every pass.

    Raises:
        InputError: unusable labels, weights, smoothing, temperature or exits, a backbone without pooler, or a tokenizer of
            another vocabulary.
    """

    task = "classification"
    head_settings = ("labels",)
    exit_rules = ("patience", "confidence", "entropy")

    def __init__(
        self,
        backbone: AlbertBackbone,
        tokenizer: AlbertTokenizer | None = None,
        *,
        labels: Sequence[str] | None = None,
        classifier_dropout: float = 0.1,
        class_weights: Sequence[float] | None = None,
        label_smoothing: float = 0.0,
        temperature: float = 1.0,
        exits: ExitSettings | dict[str, Any] | None = None,
        name: str = "text_classifier",
    ) -> None:
        labels = checked_labels(labels)
        exits = exit_settings(exits, type(self))
        outputs, classifier = pooled_head(backbone, len(labels), classifier_dropout, "classifier", exits)
        super().__init__(backbone, tokenizer, backbone.input, outputs, name=name)
        self.labels: tuple[str, ...] = labels
        self.classifier_dropout: float = classifier_dropout
        self.class_weights = _checked_weights(class_weights, labels)
        self.label_smoothing = checked_number("label_smoothing", label_smoothing, 0.0, 1.0)
        self.temperature = checked_number("temperature", temperature, 1e-6, math.inf)
        self.classifier = classifier
        self.exits = exits
        self._accuracy: Any = keras.metrics.SparseCategoricalAccuracy("accuracy")

    def settings(self) -> dict[str, Any]:
        usual: dict[str, Any] = {"class_weights": None, "label_smoothing": 0.0, "temperature": 1.0, "exits": None}
        own: dict[str, Any] = {"class_weights": self.class_weights and list(self.class_weights)}
        own |= {"label_smoothing": self.label_smoothing, "temperature": self.temperature, "exits": self.saved_exits}
        # What is as usual is left out, so that earlier versions read what they can read.
        chosen = {name: value for name, value in own.items() if value != usual[name]}
        return {"labels": list(self.labels), "classifier_dropout": self.classifier_dropout} | chosen

    def device_outputs(self, sequence_output: Any, padding_mask: Any, depth: Any = None) -> dict[str, Any]:
        """`probabilities`, float32 (B, labels), from the vectors after pass number `depth`; None: the last."""
        logits = at_depth(self.classifier(self.backbone.pool(sequence_output)), len(self.labels), depth)
        if self.temperature != 1.0:
            logits = logits / self.temperature
        return {PROBABILITIES: ops.softmax(logits, axis=-1)}

    def head_outputs(self, sequence_output: Any, inputs: dict[str, Any], depth: int | None, training: bool) -> Any:
        return pooled_outputs(self, self.classifier, sequence_output, len(self.labels), depth, training)

    def note_figures(self, targets: dict[str, Any], outputs: Any) -> None:
        self._accuracy.update_state(targets["label"], outputs)

    def training_losses(self, targets: dict[str, Any], outputs: Any) -> Any:
        """Cross-entropy with `label`, int (B,), smoothed and weighted as the settings say."""
        label = targets["label"]
        losses = keras.losses.sparse_categorical_crossentropy(label, outputs, from_logits=True)
        if self.label_smoothing:
            evenly = -ops.mean(ops.log_softmax(outputs, axis=-1), axis=-1)
            losses = (1.0 - self.label_smoothing) * losses + self.label_smoothing * evenly
        return losses if self.class_weights is None else losses * ops.take(self.class_weights, label)

    def predict_probabilities(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> np.ndarray:
        """float32 (texts, labels), each row summing to 1."""
        return ClassificationPipeline(self).predict_probabilities(texts, pairs)

    def classify(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[Prediction]:
        """The label of each text, or of each pair of texts.

        Raises:
            InputError: the model has no tokenizer, or `texts` and `pairs` differ in length.
        """
        return ClassificationPipeline(self)(texts, pairs)


def checked_number(name: str, value: float, low: float, high: float) -> float:
    """`value`, or InputError where it is no number in [low, high)."""
    if not isinstance(value, Real) or isinstance(value, bool) or not low <= value < high:
        raise InputError(f"{name}: expected a number of at least {low} and below {high}, got {value!r}")
    return float(value)


def _checked_weights(weights: Sequence[float] | None, labels: Sequence[str]) -> tuple[float, ...] | None:
    if weights is None:
        return None
    if isinstance(weights, str) or not isinstance(weights, Sequence) or len(weights) != len(labels):
        raise InputError(f"class_weights: expected a number for each of {len(labels)} labels, got {weights!r}")
    return tuple(checked_number("class_weights", weight, 1e-9, math.inf) for weight in weights)
