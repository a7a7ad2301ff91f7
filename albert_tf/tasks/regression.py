"""Text regression: a number for a text or a pair of texts."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.inference.depth import ExitSettings
from albert_tf.inference.regression import VALUE, RegressionPipeline
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.depth import at_depth, exit_settings
from albert_tf.tasks.heads import pooled_head, pooled_outputs
from albert_tf.tokenization.tokenizer import AlbertTokenizer


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTextRegressor(AlbertTask):
    """pooled output → dropout → dense with one output (google-research/albert run_classifier.py, for STS-B).

    Output: float32 (B, 1), trained on the squared error.

    Args:
        backbone: an encoder with pooler.
        tokenizer: of the encoder's vocabulary.
        classifier_dropout: rate before the dense layer.
        exits: when the answer is settled before the last pass; the head is then trained after every pass.

    Raises:
        InputError: unusable exits, a backbone without pooler, or a tokenizer of another vocabulary.
    """

    task = "regression"
    head_settings = ()
    exit_rules = ("tolerance",)

    def __init__(
        self,
        backbone: AlbertBackbone,
        tokenizer: AlbertTokenizer | None = None,
        *,
        classifier_dropout: float = 0.1,
        exits: ExitSettings | dict[str, Any] | None = None,
        name: str = "text_regressor",
    ) -> None:
        # Named as checkpoints have it: a classifier with one output.
        exits = exit_settings(exits, type(self))
        outputs, classifier = pooled_head(backbone, 1, classifier_dropout, "classifier", exits)
        super().__init__(backbone, tokenizer, backbone.input, outputs, name=name)
        self.classifier_dropout: float = classifier_dropout
        self.classifier = classifier
        self.exits = exits

    def settings(self) -> dict[str, Any]:
        own: dict[str, Any] = {"classifier_dropout": self.classifier_dropout}
        return own if self.exits is None else own | {"exits": self.saved_exits}

    def device_outputs(self, sequence_output: Any, padding_mask: Any, depth: Any = None) -> dict[str, Any]:
        """`value`, float32 (B, 1), from the vectors after pass number `depth`; None: the last."""
        return {VALUE: at_depth(self.classifier(self.backbone.pool(sequence_output)), 1, depth)}

    def head_outputs(self, sequence_output: Any, inputs: dict[str, Any], depth: int | None, training: bool) -> Any:
        return pooled_outputs(self, self.classifier, sequence_output, 1, depth, training)

    def change(self, outputs: dict[str, Any], before: dict[str, Any]) -> Any:
        """The difference of the values, absolute."""
        return ops.abs(outputs[VALUE] - before[VALUE])[:, 0]

    def training_losses(self, targets: dict[str, Any], outputs: Any) -> Any:
        """Squared error against `value`, float (B,)."""
        return ops.square(outputs[:, 0] - targets["value"])

    def predict_values(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> np.ndarray:
        """float32 (texts,)."""
        return np.array(RegressionPipeline(self)(texts, pairs), np.float32)
