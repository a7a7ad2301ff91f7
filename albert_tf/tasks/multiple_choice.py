"""Multiple choice: one of several answers to a question, with or without a passage."""

from typing import Any

import keras
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.inference.multiple_choice import SCORE
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.heads import pooled_head, pooled_outputs
from albert_tf.tokenization.tokenizer import AlbertTokenizer

_ABSENT = -1e9  # the logit of an option that a question does not have


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertMultipleChoice(AlbertTask):
    """pooled output → dropout → dense with one output, for each option; softmax over the options of a question
    (google-research/albert run_race.py; paper section 4.2.1).

    Output: float32 (rows, 1), a row for each option.

    Args:
        backbone: an encoder with pooler.
        tokenizer: of the encoder's vocabulary.
        classifier_dropout: rate before the dense layer.

    Raises:
        InputError: a backbone without pooler, or a tokenizer of another vocabulary.
    """

    task = "multiple-choice"
    head_settings = ()

    def __init__(
        self,
        backbone: AlbertBackbone,
        tokenizer: AlbertTokenizer | None = None,
        *,
        classifier_dropout: float = 0.1,
        name: str = "multiple_choice_model",
    ) -> None:
        outputs, scorer = pooled_head(backbone, 1, classifier_dropout, "multiple_choice")
        super().__init__(backbone, tokenizer, backbone.input, outputs, name=name)
        self.classifier_dropout: float = classifier_dropout
        self.multiple_choice = scorer
        self._accuracy: Any = keras.metrics.SparseCategoricalAccuracy("accuracy")

    def settings(self) -> dict[str, Any]:
        return {"classifier_dropout": self.classifier_dropout}

    def device_outputs(self, sequence_output: Any, padding_mask: Any) -> dict[str, Any]:
        """`score`, float32 (B, 1), of an option."""
        return {SCORE: self.multiple_choice(self.backbone.pool(sequence_output))}

    def head_outputs(self, sequence_output: Any, inputs: dict[str, Any], depth: int | None, training: bool) -> Any:
        return pooled_outputs(self, self.multiple_choice, sequence_output, 1, depth, training)

    def training_losses(self, targets: dict[str, Any], outputs: Any) -> Any:
        """Cross-entropy over the options.

        Args:
            targets: `answer`, int (B,); `options`, float (B, O), 1 for an option and 0 for a row that fills up.
            outputs: (B · O, 1).
        """
        logits = option_logits(targets, outputs)
        return keras.losses.sparse_categorical_crossentropy(targets["answer"], logits, from_logits=True)

    def note_figures(self, targets: dict[str, Any], outputs: Any) -> None:
        self._accuracy.update_state(targets["answer"], option_logits(targets, outputs))


def option_logits(targets: dict[str, Any], outputs: Any) -> Any:
    """The model's outputs (B · O, 1) as logits of each question's options, (B, O), very low for those it does not have."""
    present = ops.cast(targets["options"], outputs.dtype)
    return ops.reshape(outputs, ops.shape(present)) + (1.0 - present) * _ABSENT
