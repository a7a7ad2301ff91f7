"""Text regression: a number for a text or a pair of texts."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.inference.regression import VALUE, RegressionPipeline
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.heads import pooled_head
from albert_tf.tokenization.tokenizer import AlbertTokenizer


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTextRegressor(AlbertTask):
    """pooled output → dropout → dense with one output (google-research/albert run_classifier.py, for STS-B).

    Output: float32 (B, 1), trained on the squared error.

    Args:
        backbone: an encoder with pooler.
        tokenizer: of the encoder's vocabulary.
        classifier_dropout: rate before the dense layer.

    Raises:
        InputError: a backbone without pooler, or a tokenizer of another vocabulary.
    """

    task = "regression"
    head_settings = ()

    def __init__(
        self,
        backbone: AlbertBackbone,
        tokenizer: AlbertTokenizer | None = None,
        *,
        classifier_dropout: float = 0.1,
        name: str = "text_regressor",
    ) -> None:
        # Named as checkpoints have it: a classifier with one output.
        outputs, classifier = pooled_head(backbone, 1, classifier_dropout, "classifier")
        super().__init__(backbone, tokenizer, backbone.input, outputs, name=name)
        self.classifier_dropout: float = classifier_dropout
        self.classifier = classifier

    def settings(self) -> dict[str, Any]:
        return {"classifier_dropout": self.classifier_dropout}

    def device_outputs(self, sequence_output: Any, padding_mask: Any) -> dict[str, Any]:
        """`value`, float32 (B, 1)."""
        return {VALUE: self.classifier(self.backbone.pool(sequence_output))}

    def training_losses(self, targets: dict[str, Any], outputs: Any) -> Any:
        """Squared error against `value`, float (B,)."""
        return ops.square(outputs[:, 0] - targets["value"])

    def predict_values(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> np.ndarray:
        """float32 (texts,)."""
        return np.array(RegressionPipeline(self)(texts, pairs), np.float32)
