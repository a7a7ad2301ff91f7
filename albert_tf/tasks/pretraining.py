"""The pretraining model: masked words and sentence order (paper section 3.1)."""

from pathlib import Path
from typing import Any

import keras

from albert_tf.backbone import AlbertBackbone
from albert_tf.conversion.assign import assign
from albert_tf.layers.heads import MaskedLMHead
from albert_tf.presets import load_checkpoint


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertPretrainer(keras.Model):
    """A backbone with both pretraining heads.

    Inputs: the backbone's three and `masked_positions`, int (B, P).

    Outputs, a dict: `masked_lm_logits` float32 (B, P, V); `sentence_order_logits` float32 (B, 2), where 0 means the
    two texts are in their order and 1 that they are swapped (google-research/albert run_pretraining.py).
    """

    def __init__(self, backbone: AlbertBackbone, *, name: str = "pretrainer") -> None:
        # === Layers ===
        masked_lm = MaskedLMHead(backbone.config, dtype=backbone.policy, name="masked_lm")
        initializer = keras.initializers.TruncatedNormal(stddev=backbone.config.initializer_range)
        sentence_order = keras.layers.Dense(2, kernel_initializer=initializer, dtype="float32", name="sentence_order")
        # === Functional model ===
        positions = keras.Input((None,), dtype="int32", name="masked_positions")
        encoded = backbone(backbone.input)
        outputs = {
            "masked_lm_logits": masked_lm(
                encoded["sequence_output"], positions, *backbone.embeddings.output_matrices()
            ),
            "sentence_order_logits": sentence_order(encoded["pooled_output"]),
        }
        super().__init__(backbone.input | {"masked_positions": positions}, outputs, name=name)
        # === Config ===
        self.backbone = backbone

    @classmethod
    def from_pretrained(cls, source: str | Path, **backbone_options: Any) -> "AlbertPretrainer":
        """A checkpoint with its two pretraining heads.

        Raises:
            InputError: the source cannot be read or lacks a head.
        """
        checkpoint = load_checkpoint(source)
        model = cls(AlbertBackbone.unfilled(checkpoint.config, **backbone_options))
        variables = {variable.path: variable for variable in model.weights}
        assign(variables, checkpoint.weights, source=str(source), consume=True)
        return model

    def get_config(self) -> dict[str, Any]:
        return {"backbone": keras.saving.serialize_keras_object(self.backbone), "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "AlbertPretrainer":
        return cls(keras.saving.deserialize_keras_object(config["backbone"]), name=config["name"])
