"""What every task is: a backbone, a head, a tokenizer and the settings that belong to them, saved and loaded as one."""

import dataclasses
import functools
import inspect
import json
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Self

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.conversion.assign import assign
from albert_tf.conversion.checkpoint import Checkpoint, unnamed_labels
from albert_tf.data.batching import sorted_batches
from albert_tf.data.pipeline import SCALE
from albert_tf.data.schema import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS, is_label
from albert_tf.errors import InputError
from albert_tf.inference.runner import Outputs
from albert_tf.presets import load_checkpoint, load_tokenizer, save_preset
from albert_tf.tokenization.packing import Packed, pad_batch
from albert_tf.tokenization.tokenizer import AlbertTokenizer


class AlbertTask(keras.Model):
    """A functional Keras model with a backbone and a tokenizer.

    A subclass builds its head in the constructor and names the constructor's arguments in `settings`.

    Attributes:
        task: the task's name on the command line and in task.json.
        backbone: the encoder.
        tokenizer: None for a model that only takes token ids.
        head_settings: the settings that say what the head's outputs mean.
        token_outputs: those of `device_outputs` that have a value for each token.
        head_is_new: whether the head's weights are the initialiser's.
    """

    task: ClassVar[str]
    head_settings: ClassVar[tuple[str, ...]]
    token_outputs: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, backbone: AlbertBackbone, tokenizer: AlbertTokenizer | None, inputs: Any, outputs: Any, **kwargs: Any
    ) -> None:
        super().__init__(inputs, outputs, **kwargs)
        if tokenizer is not None and not isinstance(tokenizer, AlbertTokenizer):
            raise InputError(f"tokenizer: expected an AlbertTokenizer or None, got {type(tokenizer).__name__}")
        self.backbone = backbone
        self.tokenizer = tokenizer
        self.head_is_new = True
        if tokenizer is not None:
            self._check_tokenizer(tokenizer)

    # The three methods that raise NotImplementedError are a subclass's to write. Keras makes an instance of every base class
    # of a functional model, so abc.ABC cannot be one of them.
    def settings(self) -> dict[str, Any]:
        """Constructor arguments other than backbone and tokenizer, as JSON values."""
        raise NotImplementedError

    def device_outputs(self, sequence_output: Any, padding_mask: Any) -> dict[str, Any]:
        """What an exported file returns, by name, from the encoder's last layer (B, S, H) and the mask (B, S)."""
        raise NotImplementedError

    @classmethod
    def from_pretrained(
        cls,
        source: str | Path,
        *,
        config_changes: dict[str, Any] | None = None,
        backbone_options: dict[str, Any] | None = None,
        **settings: Any,
    ) -> Self:
        """The task on a checkpoint's encoder, with the checkpoint's head where it holds this task's.

        Args:
            source: a run folder, a preset folder or any checkpoint that `albert_tf.presets.load_checkpoint` reads.
            config_changes: fields of the checkpoint's config to replace, such as `hidden_dropout`.
            backbone_options: arguments of `AlbertBackbone` other than the config, such as `dtype`.
            **settings: the task's own arguments. Needed where the checkpoint does not say them: a checkpoint of
                another system with a fine-tuned head keeps it where names and shapes fit, such as as many labels.
                Settings that change what the head means, such as other labels, start a new head.

        Raises:
            InputError: the source cannot be read, a weight is missing, left over or misshapen, or a setting is needed.
        """
        checkpoint = load_checkpoint(source)
        saved_settings = cls._saved_settings(checkpoint)
        if saved_settings is None and not settings:
            raise InputError(
                f"{source}: holds no trained {cls.task} model; expected a run folder of albert-tf finetune, or (in Python) "
                f"the settings of a new head: {', '.join(cls.head_settings)}"
            )
        settings = (saved_settings or {}) | settings
        tokenizer = load_tokenizer(checkpoint)
        if tokenizer is None:
            raise InputError(
                f"{source}: holds no tokenizer (tokenizer.json, *.model or vocab*.txt); put the vocabulary file that the "
                "model was trained with there"
            )
        config = dataclasses.replace(checkpoint.config, **config_changes or {})
        backbone = AlbertBackbone.unfilled(config, **backbone_options or {})
        model = cls(backbone, tokenizer, **settings)
        model.head_is_new = not model._fits_head(checkpoint, saved_settings)
        if model.head_is_new:
            weights = checkpoint.backbone_weights
            del checkpoint  # no second hold on the weights
            backbone.load_named_weights(weights, source=str(source), consume=True)
        else:
            assign(model.named_weights(), checkpoint.weights, source=str(source), consume=True)
        return model

    def _fits_head(self, checkpoint: Checkpoint, saved_settings: dict[str, Any] | None) -> bool:
        """Whether the checkpoint's head is this model's: by the settings saved with it, else by names and shapes."""
        if saved_settings is not None:
            own = self.settings()
            return all(_same_meaning(saved_settings.get(name), own[name]) for name in self.head_settings)
        own_head = {n: tuple(v.shape) for n, v in self.named_weights().items() if n not in checkpoint.backbone_weights}
        return own_head == {name: weight.shape for name, weight in checkpoint.head_weights.items()}

    def save_pretrained(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Writes a folder that `from_pretrained` reads: config, weights, tokenizer and task.json."""
        weights = {name: np.asarray(variable) for name, variable in self.named_weights().items()}
        task = json.dumps({"task": self.task, "settings": self.settings()}, indent=2, ensure_ascii=False) + "\n"
        save_preset(
            folder,
            self.backbone.config,
            weights,
            self.tokenizer,
            extra_files={"task.json": task},
            overwrite=overwrite,
        )

    def named_weights(self) -> dict[str, Any]:
        """Every weight by its path, as in `albert_tf.parameters`."""
        return {variable.path: variable for variable in self.weights}

    def encode(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[Packed]:
        """Token ids and segment ids of each text or pair, with special tokens, cut to the tokenizer's length."""
        return self.required_tokenizer.encode_batch(texts, pairs)

    def run_rows(self, rows: Sequence[Packed], *, batch_size: int = 32) -> list[Outputs]:
        """`device_outputs` of each row of token ids and segment ids, in order, computed in batches of like length.

        Those in `token_outputs` are as long as the row.
        """
        pad_id = self.required_tokenizer.vocabulary.pad_id
        results: list[Any] = [None] * len(rows)
        for indices in sorted_batches([len(token_ids) for token_ids, _ in rows], batch_size):
            batch = self._infer(pad_batch([rows[i] for i in indices], pad_id))
            arrays = {name: np.asarray(output) for name, output in batch.items()}
            for place, index in enumerate(indices):
                length = len(rows[index][0])
                results[index] = {
                    name: array[place, :length] if name in self.token_outputs else array[place]
                    for name, array in arrays.items()
                }
        return results

    @functools.cached_property
    def _infer(self) -> Callable[[Any], Any]:
        """`device_outputs` without dropout, as one graph for all batch sizes and lengths (`predict` traces several)."""
        inputs = {name: tf.TensorSpec((None, None), tf.int32) for name in (TOKEN_IDS, SEGMENT_IDS, PADDING_MASK)}

        def infer(batch: dict[str, Any]) -> dict[str, Any]:
            return self.device_outputs(self.backbone(batch, training=False)["sequence_output"], batch[PADDING_MASK])

        return tf.function(infer).get_concrete_function(inputs)

    def training_losses(self, targets: dict[str, Any], outputs: Any) -> Any:
        """The published loss of each example (B,), from the targets of its name in `albert_tf.training.tasks`."""
        raise NotImplementedError

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """Keras hook: compiled without a loss, the task's own, in the mean over the whole batch.

        The batch may be a replica's part of a larger one, so each example's share comes with it as `scale`.
        """
        if self.loss is not None:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        return ops.sum(self.training_losses(y, y_pred) * y[SCALE])

    @property
    def task_settings(self) -> dict[str, Any]:
        """`settings`, as the pipelines of `albert_tf.inference` ask for them."""
        return self.settings()

    @property
    def required_tokenizer(self) -> AlbertTokenizer:
        """The tokenizer.

        Raises:
            InputError: this model has none.
        """
        if self.tokenizer is None:
            raise InputError("this model has no tokenizer; pass token ids to the model itself")
        return self.tokenizer

    def save_assets(self, dir_path: str) -> None:
        """Keras hook: the tokenizer goes into the `.keras` file."""
        if self.tokenizer is not None:
            self.tokenizer.save(dir_path, overwrite=True)

    def load_assets(self, dir_path: str) -> None:
        """Keras hook: see `save_assets`."""
        if any(Path(dir_path).iterdir()):
            self.tokenizer = AlbertTokenizer.from_pretrained(dir_path)

    def get_config(self) -> dict[str, Any]:
        return {"backbone": keras.saving.serialize_keras_object(self.backbone), "name": self.name} | self.settings()

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        fields = dict(config)
        fields["backbone"] = keras.saving.deserialize_keras_object(fields["backbone"])
        return cls(tokenizer=None, **fields)

    @classmethod
    def _saved_settings(cls, checkpoint: Checkpoint) -> dict[str, Any] | None:
        """The settings that the checkpoint says for this task; None where it says none."""
        saved = checkpoint.task
        if saved is None or saved["task"] != cls.task:
            return None
        known = inspect.signature(cls).parameters.keys() - {"backbone", "tokenizer", "name"}
        if unknown := sorted(saved["settings"].keys() - known):
            raise InputError(
                f"{checkpoint.source}: task.json has settings that this version does not know: {', '.join(unknown)}; "
                f"expected {', '.join(sorted(known))}"
            )
        return dict(saved["settings"])

    def _check_tokenizer(self, tokenizer: AlbertTokenizer) -> None:
        rows, pieces = self.backbone.config.vocabulary_size, tokenizer.vocabulary.size
        if pieces != rows:
            raise InputError(f"wrong vocabulary: the tokenizer has {pieces} pieces, the model's word table {rows} rows")


def pooled_head(
    backbone: AlbertBackbone, outputs: int, classifier_dropout: float, name: str
) -> tuple[Any, keras.layers.Dense]:
    """The published head of text tasks: pooled output → dropout → dense.

    Returns:
        The symbolic outputs, float32 (B, outputs), and the dense layer, called `name`.

    Raises:
        InputError: not a backbone with pooler, or not a rate in [0, 1).
    """
    if not isinstance(backbone, AlbertBackbone):
        raise InputError(f"backbone: expected an AlbertBackbone, got {type(backbone).__name__}")
    if backbone.pooler is None:
        raise InputError("expected a backbone with pooler=True, got one without")
    dropout = keras.layers.Dropout(checked_dropout(classifier_dropout), dtype=backbone.policy, name="head_dropout")
    dense = head_dense(backbone, outputs, name)
    return dense(dropout(backbone(backbone.input)["pooled_output"])), dense


def head_dense(backbone: AlbertBackbone, outputs: int, name: str) -> keras.layers.Dense:
    """A head's dense layer. In float32 also under mixed precision: the loss is taken on its outputs."""
    initializer = keras.initializers.TruncatedNormal(stddev=backbone.config.initializer_range)
    return keras.layers.Dense(outputs, kernel_initializer=initializer, dtype="float32", name=name)


def checked_dropout(rate: float) -> float:
    """`rate`, or InputError where it is none in [0, 1)."""
    if not isinstance(rate, Real) or not 0.0 <= rate < 1.0:
        raise InputError(f"classifier_dropout: expected a rate in [0, 1), got {rate!r}")
    return rate


def checked_labels(labels: Sequence[str] | None) -> tuple[str, ...]:
    """`labels`, or InputError where they cannot be those of a head."""
    if labels is None:
        raise InputError("labels: expected their names, two or more; there is no trained head that has them")
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


def _same_meaning(saved: Any, own: Any) -> bool:
    """Whether a setting says of the head what the saved one said: to name labels that had no names changes nothing."""
    return saved == own or (isinstance(own, list) and saved == unnamed_labels(len(own)))
