"""What every task is: a backbone, a head, a tokenizer and the settings that belong to them, saved and loaded as one."""

import dataclasses
import inspect
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import AlbertConfig
from albert_tf.conversion.assign import assign
from albert_tf.conversion.checkpoint import Checkpoint, unnamed_labels
from albert_tf.data.batching import sorted_batches
from albert_tf.data.pipeline import SCALE
from albert_tf.errors import InputError
from albert_tf.inference.runner import Outputs
from albert_tf.layers.dense import Dense
from albert_tf.layers.low_rank import stored_weights
from albert_tf.presets import load_checkpoint, load_tokenizer, save_preset
from albert_tf.tasks.accumulation import refuse_weights
from albert_tf.tasks.depth import DepthModel, depth_weighted
from albert_tf.tasks.heads import new_pooler
from albert_tf.tokenization.packing import Packed, pad_batch
from albert_tf.tokenization.tokenizer import AlbertTokenizer

_LOG = logging.getLogger(__name__)


class AlbertTask(DepthModel):
    """A functional Keras model with a backbone and a tokenizer.

    A subclass builds its head in the constructor and names the constructor's arguments in `settings`.

    Attributes:
        task: the task's name on the command line and in task.json.
        backbone: the encoder.
        tokenizer: None for a model that only takes token ids.
        head_settings: the settings that say what the head's outputs mean.
        token_outputs: those of `device_outputs` that have a value for each token.
        left_aside: how the names of weights begin that this model leaves aside where a checkpoint has them.
        stored_twice: the weights that a device file may hold in two forms.
        takes_pairs: whether every row is of two texts.
        head_is_new: whether the head's weights are the initialiser's.
        uses_pooler: whether the head is on the pooled output; else a checkpoint's pooler is left aside too.
        source_config: of the checkpoint that the model is from, without changes.
        source_settings: those that the checkpoint says for this task.
        pooler_is_new: whether the pooler's weights are the initialiser's: the checkpoint had none, and the head needs it.
    """

    task: ClassVar[str]
    head_settings: ClassVar[tuple[str, ...]]
    token_outputs: ClassVar[tuple[str, ...]] = ()
    uses_pooler: ClassVar[bool] = True
    left_aside: ClassVar[tuple[str, ...]] = ()
    takes_pairs: ClassVar[bool] = False
    stored_twice: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, backbone: AlbertBackbone, tokenizer: AlbertTokenizer | None, inputs: Any, outputs: Any, **kwargs: Any
    ) -> None:
        super().__init__(inputs, outputs, **kwargs)
        if tokenizer is not None and not isinstance(tokenizer, AlbertTokenizer):
            raise InputError(f"tokenizer: expected an AlbertTokenizer or None, got {type(tokenizer).__name__}")
        self.backbone = backbone
        self.tokenizer = tokenizer
        self.head_is_new = True
        self.pooler_is_new = True
        self.source_config: AlbertConfig | None = None
        self.source_settings: dict[str, Any] | None = None
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

    def row_outputs(
        self, sequence_output: Any, segment_ids: Any, padding_mask: Any, depth: Any = None
    ) -> dict[str, Any]:
        """`device_outputs`, for a head that also asks which text a token is of: `segment_ids` (B, S).

        Args:
            depth: number of the pass that the vectors are of, from 0, of a model with early exits; None: the last.
        """
        own = {} if depth is None else {"depth": depth}
        return self.device_outputs(sequence_output, padding_mask, **own)

    def adopt(self, metrics: dict[str, Any]) -> dict[str, Any]:
        """Takes from a validation's figures what the model keeps, such as a threshold; returns the figures with it."""
        return metrics

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
            backbone_options: arguments of `AlbertBackbone` other than the config, such as `dtype`. The backbone has a
                pooler where the head needs one; where the checkpoint has none, it gets a new one, which a warning tells.
            **settings: the task's own arguments. Needed where the checkpoint does not say them: a checkpoint of
                another system with a fine-tuned head keeps it where names and shapes fit, such as as many labels.
                Settings that change what the head means, such as other labels, start a new head.

        Raises:
            InputError: the source cannot be read, a weight is missing, left over or misshapen, or a setting is needed.
        """
        return cls.from_checkpoint(
            load_checkpoint(source), config_changes=config_changes, backbone_options=backbone_options, **settings
        )

    @classmethod
    def from_checkpoint(
        cls,
        checkpoint: Checkpoint,
        *,
        config_changes: dict[str, Any] | None = None,
        backbone_options: dict[str, Any] | None = None,
        **settings: Any,
    ) -> Self:
        """`from_pretrained` of a checkpoint that is read already; its weights are taken out of it one by one."""
        source, weights = checkpoint.source, checkpoint.weights
        saved_settings = cls._saved_settings(checkpoint)
        if saved_settings is None and not settings:
            held = "no trained" if checkpoint.task is None else f"a model for {checkpoint.task['task']}, no"
            raise InputError(
                f"{source}: holds {held} {cls.task} model; expected a run folder of albert-tf finetune, or (in Python) "
                f"the settings of a new head: {', '.join(cls.head_settings) or 'classifier_dropout'}"
            )
        settings = (saved_settings or {}) | settings
        tokenizer = load_tokenizer(checkpoint)
        if tokenizer is None:
            raise InputError(
                f"{source}: holds no tokenizer (tokenizer.json, *.model or vocab*.txt); put the vocabulary file that the "
                "model was trained with there, or name it to albert-tf convert with --tokenizer"
            )
        aside = cls.left_aside if cls.uses_pooler else (*cls.left_aside, "pooler/")
        for name in [name for name in weights if name.startswith(aside)]:
            del weights[name]
        config = dataclasses.replace(checkpoint.config, **config_changes or {})
        pooler_is_new = cls.uses_pooler and "pooler/kernel" not in weights
        if pooler_is_new:
            weights |= new_pooler(config)
        options = {"pooler": "pooler/kernel" in weights} | (backbone_options or {})
        backbone = AlbertBackbone.unfilled(config, **options)
        model = cls(backbone, tokenizer, **settings)
        model.head_is_new = not model._fits_head(checkpoint, saved_settings)
        model.pooler_is_new = pooler_is_new
        model.source_config, model.source_settings = checkpoint.config, saved_settings
        if pooler_is_new:  # beside a new head, which has to be trained anyway, no news
            _LOG.log(
                logging.INFO if model.head_is_new else logging.WARNING,
                "%s has no pooler, on whose output this task's head stands: a new one is made, which is good for nothing "
                "before it is trained",
                source,
            )
        if model.head_is_new:
            for name in checkpoint.head_weights:
                del weights[name]
            backbone.load_named_weights(weights, source=source, consume=True)
        else:
            assign(model.named_weights(), weights, source=source, consume=True)
        return model

    def _fits_head(self, checkpoint: Checkpoint, saved_settings: dict[str, Any] | None) -> bool:
        """Whether the checkpoint's head is this model's: by what is saved with it, else by names and shapes."""
        if saved_settings is not None:
            own = self.settings()
            heads = [(settings.get("exits") or {}).get("heads", "shared") for settings in (saved_settings, own)]
            same = [_same_meaning(saved_settings.get(name), own[name]) for name in self.head_settings]
            return all(same) and heads[0] == heads[1]
        if checkpoint.task is not None:  # another task's, whatever its shape
            return False
        own_head = {n: tuple(v.shape) for n, v in self.named_weights().items() if n not in checkpoint.backbone_weights}
        return own_head == {name: weight.shape for name, weight in checkpoint.head_weights.items()}

    def save_pretrained(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Writes a folder that `from_pretrained` reads: config, weights, tokenizer and task.json."""
        weights = stored_weights(self.named_weights(), self.backbone.encoder)
        task = json.dumps({"task": self.task, "settings": self.settings()}, indent=2, ensure_ascii=False) + "\n"
        save_preset(
            folder,
            self.backbone.config,
            weights,
            self.tokenizer,
            extra_files={"task.json": task},
            overwrite=overwrite,
        )

    @property
    def head_layers(self) -> list[Dense]:
        """The dense layers behind the encoder; those of an `AnswerHead` are its own."""
        pooler = [] if self.backbone.pooler is None else [self.backbone.pooler]
        return pooler + [layer for layer in self.layers if isinstance(layer, Dense)]

    def named_weights(self) -> dict[str, Any]:
        """Every weight by its path, as in `albert_tf.parameters`."""
        return {variable.path: variable for variable in self.weights}

    def encode(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[Packed]:
        """Token ids and segment ids of each text or pair, with special tokens, cut to the tokenizer's length."""
        return self.required_tokenizer.encode_batch(texts, pairs)

    def run_rows(self, rows: Sequence[Packed], *, batch_size: int = 32) -> list[Outputs]:
        """`device_outputs` of each row of token ids and segment ids, in order, computed in batches of like length; as
        deep as `choose_depth` was told, with `depth` among them where the model exits early.

        Those in `token_outputs` are as long as the row.
        """
        pad_id = self.required_tokenizer.vocabulary.pad_id
        results: list[Any] = [None] * len(rows)
        for indices in sorted_batches([len(token_ids) for token_ids, _ in rows], batch_size):
            batch = self.infer_batch(pad_batch([rows[i] for i in indices], pad_id))
            arrays = {name: np.asarray(output) for name, output in batch.items()}
            for place, index in enumerate(indices):
                length = len(rows[index][0])
                results[index] = {
                    name: array[place, :length] if name in self.token_outputs else array[place]
                    for name, array in arrays.items()
                }
        return results

    def training_losses(self, targets: dict[str, Any], outputs: Any) -> Any:
        """The published loss of each example (B,), from the targets of its name in `albert_tf.training.tasks`."""
        raise NotImplementedError

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """Keras hook: compiled without a loss, the task's own, in the mean over the whole batch.

        The batch may be a part of a larger one, so each example's share comes with it as `scale`; without it, a batch is
        whole.

        Raises:
            InputError: not the targets by name that `training_losses` takes, or weights, which it does not take.
        """
        if self.loss is not None:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        refuse_weights(sample_weight)
        if not isinstance(y, Mapping):
            raise InputError(
                "this model is compiled without a loss, so its own is taken, which needs targets by name: see "
                f"{type(self).__name__}.training_losses; or compile with a loss"
            )
        try:
            losses = self.losses_of(dict(y), y_pred)
        except KeyError as error:
            raise InputError(f"targets: expected {error.args[0]!r} among them, got {', '.join(map(str, y))}") from error
        if SCALE in y:
            return ops.sum(losses * y[SCALE])
        if self.accumulated_parts > 1 or tf.distribute.get_strategy().num_replicas_in_sync > 1:
            raise InputError(f"targets: expected {SCALE!r} among them, each example's share in the whole batch")
        return ops.mean(losses)

    def losses_of(self, targets: dict[str, Any], outputs: Any) -> Any:
        """`training_losses`, of all depths together where the outputs of each are there."""
        self.note_figures(targets, outputs[-1] if isinstance(outputs, list) else outputs)
        if not isinstance(outputs, list):
            return self.training_losses(targets, outputs)
        return depth_weighted([self.training_losses(targets, one) for one in outputs])

    def note_figures(self, targets: dict[str, Any], outputs: Any) -> None:
        """Updates what is shown of a training beside its loss."""

    def loss_share(self, y: Any) -> Any:
        return ops.sum(y[SCALE]) if SCALE in y else ops.ones(())

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
                f"{checkpoint.source}: the task has settings that this version does not know: {', '.join(unknown)}; "
                f"expected {', '.join(sorted(known))}"
            )
        return dict(saved["settings"])

    def _check_tokenizer(self, tokenizer: AlbertTokenizer) -> None:
        rows, pieces = self.backbone.config.vocabulary_size, tokenizer.vocabulary.size
        if pieces != rows:
            raise InputError(f"wrong vocabulary: the tokenizer has {pieces} pieces, the model's word table {rows} rows")


def _same_meaning(saved: Any, own: Any) -> bool:
    """Whether a setting says of the head what the saved one said: to name labels that had no names changes nothing."""
    return saved == own or (isinstance(own, list) and saved == unnamed_labels(len(own)))
