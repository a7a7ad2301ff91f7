"""What every task is: a backbone, a head, a tokenizer and the settings that belong to them, saved and loaded as one."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import keras
import numpy as np

from albert_tf.backbone import AlbertBackbone
from albert_tf.conversion.assign import assign
from albert_tf.data.batching import sorted_batches
from albert_tf.errors import InputError
from albert_tf.parameters import backbone_weight_shapes
from albert_tf.presets import load_checkpoint, read_task_settings, save_preset
from albert_tf.tokenization.packing import pad_batch
from albert_tf.tokenization.tokenizer import AlbertTokenizer

# Token ids and segment ids of one text or pair.
Encoded = tuple[list[int], list[int]]


class AlbertTask(keras.Model):
    """A functional Keras model with a backbone and a tokenizer.

    A subclass builds its head in the constructor and names the constructor's arguments in `settings`.

    Attributes:
        task: the task's name on the command line and in task.json.
        backbone: the encoder.
        tokenizer: None for a model that only takes token ids.
    """

    task: ClassVar[str]

    def __init__(
        self, backbone: AlbertBackbone, tokenizer: AlbertTokenizer | None, inputs: Any, outputs: Any, **kwargs: Any
    ) -> None:
        super().__init__(inputs, outputs, **kwargs)
        self.backbone = backbone
        self.tokenizer = tokenizer
        if tokenizer is not None:
            self._check_tokenizer(tokenizer)

    # Keras makes an instance of every base class of a functional model, so abc.ABC cannot be one of them.
    def settings(self) -> dict[str, Any]:
        """Constructor arguments other than backbone and tokenizer, as JSON values."""
        raise NotImplementedError

    def device_outputs(self, sequence_output: Any) -> dict[str, Any]:
        """What an exported file returns, by name, from the encoder's last layer (B, S, H)."""
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
            **settings: the task's own arguments. Needed where the checkpoint holds no head of this task; where it
                does, giving different ones starts a new head.

        Raises:
            InputError: the source cannot be read, a weight is missing, left over or misshapen, or a setting is needed.
        """
        checkpoint = load_checkpoint(source)
        saved = read_task_settings(source)
        saved_settings = saved["settings"] if saved is not None and saved["task"] == cls.task else None
        keep_head = saved_settings is not None and all(saved_settings.get(k) == v for k, v in _plain(settings).items())
        if saved_settings is not None:
            settings = saved_settings | settings
        if checkpoint.tokenizer_path is None:
            raise InputError(f"{source}: holds no tokenizer (vocabulary.spm, *.model or vocab.txt)")
        tokenizer = AlbertTokenizer.from_pretrained(checkpoint.tokenizer_path)
        config = dataclasses.replace(checkpoint.config, **config_changes or {})
        backbone = AlbertBackbone(config, **backbone_options or {})
        model = cls(backbone, tokenizer, **settings)
        if keep_head:
            assign(model.named_weights(), checkpoint.weights, source=str(source))
        else:
            names = backbone_weight_shapes(checkpoint.config)
            kept = {name: value for name, value in checkpoint.weights.items() if name in names}
            backbone.load_named_weights(kept, source=str(source))
        return model

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

    def encode(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[Encoded]:
        """Token ids and segment ids of each text or pair, with special tokens, cut to the tokenizer's length."""
        return self.required_tokenizer.encode_batch(texts, pairs)

    def raw_outputs(self, encoded: Sequence[Encoded], *, batch_size: int = 32) -> np.ndarray:
        """The head's output for each encoded text, in order, computed in batches of like length."""
        pad_id = self.required_tokenizer.vocabulary.pad_id
        outputs: list[Any] = [None] * len(encoded)
        for indices in sorted_batches([len(token_ids) for token_ids, _ in encoded], batch_size):
            batch = pad_batch([encoded[i] for i in indices], pad_id)
            for index, output in zip(indices, self.predict_on_batch(batch), strict=True):
                outputs[index] = output
        return np.asarray(outputs)

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

    def _check_tokenizer(self, tokenizer: AlbertTokenizer) -> None:
        rows, pieces = self.backbone.config.vocabulary_size, tokenizer.vocabulary.size
        if pieces != rows:
            raise InputError(f"wrong vocabulary: the tokenizer has {pieces} pieces, the model's word table {rows} rows")


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as JSON would give them back, for comparing with saved ones."""
    return json.loads(json.dumps(settings))
