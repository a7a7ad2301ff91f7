"""`AlbertBackbone`: token ids in, contextual vectors out."""

from pathlib import Path
from typing import Any

import keras

from albert_tf.config import AlbertConfig
from albert_tf.conversion.assign import assign, unfilled
from albert_tf.data.schema import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from albert_tf.errors import InputError
from albert_tf.layers.configured import initial_matrices, matrix_initializer
from albert_tf.layers.dense import Dense
from albert_tf.layers.embeddings import AlbertEmbeddings
from albert_tf.layers.encoder import AlbertEncoder
from albert_tf.presets import load_checkpoint


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertBackbone(keras.Model):
    """The ALBERT encoder as a Keras functional model.

    Inputs, a dict of int (B, S): `token_ids`, `segment_ids` (0 first text, 1 second),
    `padding_mask` (1 token, 0 padding).

    Outputs, a dict: `sequence_output` (B, S, H); `pooled_output` (B, H), the tanh of a dense layer over the first
    position, unless `pooler` is false; with `all_layers`, `embedding_output` (B, S, H) and `layer_outputs`, a list of
    (B, S, H), one for each step of `config.block_schedule`.

    Args:
        config: the architecture.
        pooler: whether the model has the pooler.
        all_layers: whether it returns every layer.
        rematerialize: recompute each block in the backward pass to save memory; see `AlbertEncoder`.
        dtype: a Keras dtype policy, such as "mixed_bfloat16".
        trainable: whether its weights learn.
    """

    def __init__(
        self,
        config: AlbertConfig,
        *,
        pooler: bool = True,
        all_layers: bool = False,
        rematerialize: bool = False,
        dtype: Any = None,
        name: str = "backbone",
        trainable: bool = True,
    ) -> None:
        if not isinstance(config, AlbertConfig):
            raise InputError(f"config: expected an AlbertConfig, got {type(config).__name__}")
        # === Layers ===
        policy = keras.dtype_policies.get(dtype)
        embeddings = AlbertEmbeddings(config, dtype=policy, name="embeddings")
        encoder = AlbertEncoder(config, rematerialize=rematerialize, dtype=policy, name="encoder")
        initializer = matrix_initializer(config)
        pooler_layer = Dense(config.hidden_dim, "tanh", kernel_initializer=initializer, dtype=policy, name="pooler")

        # === Functional model ===
        inputs = {
            name: keras.Input((None,), dtype="int32", name=name) for name in (TOKEN_IDS, SEGMENT_IDS, PADDING_MASK)
        }
        embedding_output = embeddings(inputs[TOKEN_IDS], inputs[SEGMENT_IDS])
        layer_outputs = encoder(embedding_output, inputs[PADDING_MASK])
        outputs: dict[str, Any] = {"sequence_output": layer_outputs[-1]}
        if pooler:
            outputs["pooled_output"] = pooler_layer(layer_outputs[-1][:, 0])
        if all_layers:
            outputs |= {"embedding_output": embedding_output, "layer_outputs": layer_outputs}
        super().__init__(inputs, outputs, name=name, trainable=trainable)

        # === Config ===
        self.config = config
        self.pooler = pooler_layer if pooler else None
        self.all_layers = all_layers
        self.embeddings = embeddings
        self.encoder = encoder
        self.policy = policy

    @classmethod
    def from_pretrained(cls, source: str | Path, **kwargs: Any) -> "AlbertBackbone":
        """The encoder of any checkpoint that `albert_tf.presets.load_checkpoint` reads; its heads are left aside.

        Args:
            source: a path or name.
            **kwargs: arguments of the constructor other than the config. It has a pooler if the checkpoint has one.

        Raises:
            InputError: the source cannot be read, or a weight is missing, left over or of another shape.
        """
        checkpoint = load_checkpoint(source)
        backbone = cls.unfilled(checkpoint.config, **{"pooler": "pooler/kernel" in checkpoint.weights} | kwargs)
        weights = checkpoint.backbone_weights
        del checkpoint  # no second hold on the weights
        backbone.load_named_weights(weights, source=str(source), consume=True)
        return backbone

    @classmethod
    def unfilled(cls, config: AlbertConfig, **kwargs: Any) -> "AlbertBackbone":
        """An encoder whose matrices hold anything until its weights are loaded: neither time nor memory is spent on
        random values that are replaced at once."""
        with initial_matrices(unfilled):
            return cls(config, **kwargs)

    def pool(self, sequence_output: Any) -> Any:
        """`pooled_output` (B, H) of a `sequence_output` (B, S, H).

        Raises:
            InputError: this model has no pooler.
        """
        if self.pooler is None:
            raise InputError("this backbone has no pooler; build it with pooler=True")
        return self.pooler(sequence_output[:, 0])

    def load_named_weights(self, weights: dict[str, Any], *, source: str, consume: bool = False) -> None:
        """Assigns every weight by name; a pooler's weights are left aside where this model has no pooler.

        Args:
            weights: name → array.
            source: what to call them in an error message.
            consume: take them out of `weights` one by one; see `albert_tf.conversion.assign.assign`.

        Raises:
            InputError: missing, left-over or misshapen weights, listed.
        """
        unused = [] if self.pooler is not None else [name for name in weights if name.startswith("pooler/")]
        variables = {variable.path: variable for variable in self.weights}
        assign(variables, weights, source=source, optional=unused, consume=consume)

    def get_config(self) -> dict[str, Any]:
        return {
            "config": self.config.to_dict(),
            "pooler": self.pooler is not None,
            "all_layers": self.all_layers,
            "rematerialize": self.encoder.rematerialize,
            "dtype": keras.dtype_policies.serialize(self.policy),
            "name": self.name,
            "trainable": self.trainable,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "AlbertBackbone":
        fields = dict(config)
        fields["config"] = AlbertConfig.from_dict(fields["config"])
        return cls(**fields)
