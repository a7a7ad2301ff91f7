"""A classifier on labelled examples → metrics, whatever runs it."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from albert_tf.data.schema import TextExample
from albert_tf.data.tables import encode_labels
from albert_tf.evaluation.classification_metrics import classification_metrics


class Classifier(Protocol):
    """What a Keras classifier and a TFLite runner both answer."""

    labels: Sequence[str]

    def predict_probabilities(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> np.ndarray:
        """float32 (texts, labels)."""


def evaluate_classifier(model: Classifier, examples: Sequence[TextExample], *, source: str) -> dict[str, Any]:
    """Metrics of `model` on `examples`, which came from the file `source`.

    Raises:
        InputError: an example has a label that the model does not know.
    """
    label_ids = encode_labels(examples, model.labels, source)
    probabilities = model.predict_probabilities(*texts_and_pairs(examples))
    return classification_metrics(label_ids, probabilities.argmax(axis=-1), model.labels, probabilities)


def texts_and_pairs(examples: Sequence[TextExample]) -> tuple[list[str], list[str] | None]:
    """The two columns of texts; None for the second where no example has one."""
    texts = [example.text for example in examples]
    if all(example.pair is None for example in examples):
        return texts, None
    return texts, [example.pair or "" for example in examples]
