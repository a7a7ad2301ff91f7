"""Fill-mask: the pieces that may stand in the place of [MASK], from the head for masked words."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.conversion.checkpoint import Checkpoint
from albert_tf.errors import InputError
from albert_tf.inference.fill_mask import TOKEN_PROBABILITIES, TOP_K, FilledText, FillMaskPipeline
from albert_tf.layers.heads import MaskedLMHead
from albert_tf.tasks.base import AlbertTask
from albert_tf.tokenization.tokenizer import AlbertTokenizer


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertMaskedLM(AlbertTask):
    """last layer → the pretraining head for masked words, for each token (google-research/albert run_pretraining.py).

    Output: float32 logits (B, S, V). `from_pretrained` takes any checkpoint with that head; the sentence-order head and
    the pooler are left aside. Trained by `albert-tf pretrain`, with both heads.

    Args:
        backbone: an encoder; a pooler is not used.
        tokenizer: of the encoder's vocabulary.

    Raises:
        InputError: a tokenizer of another vocabulary.
    """

    task = "fill-mask"
    head_settings = ()
    token_outputs = (TOKEN_PROBABILITIES,)
    uses_pooler = False
    left_aside = ("sentence_order/",)
    # In int8, a table that words are looked up in has one scale, a matrix to multiply by one for each of its rows.
    stored_twice = ("embeddings/word_embedding/embeddings", "embeddings/projection/kernel")

    def __init__(
        self, backbone: AlbertBackbone, tokenizer: AlbertTokenizer | None = None, *, name: str = "masked_language_model"
    ) -> None:
        if not isinstance(backbone, AlbertBackbone):
            raise InputError(f"backbone: expected an AlbertBackbone, got {type(backbone).__name__}")
        head = MaskedLMHead(backbone.config, dtype=backbone.policy, name="masked_lm")
        encoded = backbone(backbone.input)["sequence_output"]
        outputs = head(encoded, None, *backbone.embeddings.output_matrices())
        super().__init__(backbone, tokenizer, backbone.input, outputs, name=name)
        self.masked_lm = head

    def settings(self) -> dict[str, Any]:
        return {}

    def device_outputs(self, sequence_output: Any, padding_mask: Any) -> dict[str, Any]:
        """`token_probabilities`, float32 (B, S, V)."""
        return {TOKEN_PROBABILITIES: ops.softmax(self._logits(sequence_output), axis=-1)}

    def head_outputs(self, sequence_output: Any, inputs: dict[str, Any], depth: int | None, training: bool) -> Any:
        return self._logits(sequence_output)

    def training_losses(self, targets: dict[str, Any], outputs: Any) -> Any:
        """Cross-entropy in the mean over the masked tokens of a row: `labels` int (B, S), -1 where none is masked."""
        masked = ops.cast(targets["labels"] >= 0, "float32")
        labels = ops.maximum(targets["labels"], 0)
        losses = keras.losses.sparse_categorical_crossentropy(labels, outputs, from_logits=True)
        return ops.sum(losses * masked, axis=-1) / ops.maximum(ops.sum(masked, axis=-1), 1.0)

    def fill(self, texts: Sequence[str], *, top_k: int = TOP_K) -> list[FilledText]:
        """Candidates for every [MASK] in the texts; see `FillMaskPipeline`."""
        return FillMaskPipeline(self, top_k=top_k)(texts)

    def _logits(self, sequence_output: Any) -> Any:
        return self.masked_lm(sequence_output, None, *self.backbone.embeddings.output_matrices())

    @classmethod
    def _saved_settings(cls, checkpoint: Checkpoint) -> dict[str, Any] | None:
        """There are none; what is needed is the head."""
        if not any(name.startswith("masked_lm/") for name in checkpoint.weights):
            raise InputError(
                f"{checkpoint.source}: holds no head for masked words (its head: {checkpoint.head}); expected a run folder "
                "of albert-tf pretrain, or a checkpoint with the pretraining heads"
            )
        return {}
