"""Checkpoints in and out: `load_checkpoint` reads every form there is a reader for, `save_preset` writes our own.

A preset is a folder with `config.json` (our `AlbertConfig`), `weights.safetensors` (our names, float32 or float16), the
tokenizer's files (`tokenizer.json` and `vocabulary.spm` or `vocab.txt`), and whatever else a task puts there, first of
all `task.json`.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.conversion.archive import folder_until_exit, is_archive_file, keep_until_exit, unpacked_model
from albert_tf.conversion.checkpoint import Checkpoint, Weights, checked_task, written_checkpoint
from albert_tf.conversion.detect import ARCHIVE, HUGGING_FACE, KERAS, KERAS_HUB, MODEL_GARDEN, PRESET, TF1, detect
from albert_tf.conversion.hub import fetched
from albert_tf.conversion.huggingface import read_huggingface
from albert_tf.conversion.keras_file import read_keras, refuse_other_file
from albert_tf.conversion.keras_hub import read_keras_hub
from albert_tf.conversion.model_garden import read_model_garden
from albert_tf.conversion.saved_model import FILE_NAME as SAVED_MODEL_FILE
from albert_tf.conversion.saved_model import saved_model_vocabulary
from albert_tf.conversion.stored import read_largest_first, safetensors_in, write_safetensors
from albert_tf.conversion.tf1 import read_tf1
from albert_tf.conversion.tf1_files import vocabulary_in
from albert_tf.errors import InputError
from albert_tf.files import checked_path, is_there, read_json

if TYPE_CHECKING:
    from albert_tf.tokenization.tokenizer import AlbertTokenizer

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "weights.safetensors"
TOKENIZER_FILE = "tokenizer.json"
TASK_FILE = "task.json"

_SHORTEST_INPUT = 3
_STORED_TYPES = (np.float16, np.float32)


def load_checkpoint(
    source: str | Path,
    *,
    config: AlbertConfig | str | Path | None = None,
    tokenizer: str | Path | None = None,
) -> Checkpoint:
    """Reads a checkpoint of any supported form; its weights are complete, finite, float32 and of the config's shapes.

    Args:
        source: a path, or the name of a model on Hugging Face or Kaggle (see `albert_tf.conversion.hub`).
        config: for a TF Model Garden checkpoint, which has none; see `read_model_garden`.
        tokenizer: a vocabulary file, a tokenizer's folder, the SavedModel of a preprocessing model, or an archive of one
            of these, instead of what the source has.

    Raises:
        InputError: nothing readable there, a damaged or unfitting file, or a vocabulary of another size.
    """
    try:
        checkpoint = _read(
            fetched(source if isinstance(source, str) and source else checked_path(source, "source")), config
        )
        if tokenizer is not None:
            chosen = _chosen_tokenizer(checked_path(tokenizer, "tokenizer"))
            checkpoint = dataclasses.replace(checkpoint, tokenizer_path=chosen, tokenizer_options={})
        loaded = load_tokenizer(checkpoint)
    except OSError as error:  # no permission, a name that is too long, a disk that fails
        raise InputError(f"cannot read {error.filename or source}: {error.strerror or error}") from error
    if loaded is not None:
        _check_vocabulary(checkpoint.config, loaded, source=checkpoint.source)
    return checkpoint


def load_tokenizer(checkpoint: Checkpoint) -> "AlbertTokenizer | None":
    """The tokenizer that a checkpoint came with, None where it has none.

    Its longest input is the length of the model's position table, or what a preset or Keras file says, if that is less.
    """
    if checkpoint.tokenizer_path is None:
        return None
    from albert_tf.tokenization.tokenizer import AlbertTokenizer

    positions = checkpoint.config.max_sequence_length
    if positions < _SHORTEST_INPUT:
        raise InputError(
            f"{checkpoint.source}: max_sequence_length = {positions}: the special tokens of a pair of texts take "
            f"{_SHORTEST_INPUT} positions"
        )
    longest = None if checkpoint.form in (PRESET, KERAS) else positions
    tokenizer = AlbertTokenizer.from_pretrained(
        checkpoint.tokenizer_path, max_length=longest, **checkpoint.tokenizer_options
    )
    return AlbertTokenizer(tokenizer.vocabulary, positions) if tokenizer.max_length > positions else tokenizer


def _read(path: str | Path, config: AlbertConfig | str | Path | None) -> Checkpoint:
    readers: dict[str, Callable[[str | Path], Checkpoint]] = {
        PRESET: read_preset,
        TF1: read_tf1,
        HUGGING_FACE: read_huggingface,
        KERAS: read_keras,
        KERAS_HUB: read_keras_hub,
        MODEL_GARDEN: functools.partial(read_model_garden, config=config),
    }
    form = detect(path)
    if config is not None and form not in (ARCHIVE, MODEL_GARDEN):
        raise InputError(f"{path}: of the form {form}, which has a config of its own; leave out the one given")
    if form == ARCHIVE or (form == KERAS and not Path(path).is_dir()):
        if form == KERAS:
            refuse_other_file(Path(path))
        with unpacked_model(path) as folder:
            checkpoint = _read(folder, config) if form == ARCHIVE else read_keras(folder)
            kept = None if checkpoint.tokenizer_path is None else _kept_tokenizer(checkpoint.tokenizer_path, folder)
        return dataclasses.replace(checkpoint, source=str(path), tokenizer_path=kept)
    return readers[form](path)


def _chosen_tokenizer(path: Path) -> Path:
    """Where the tokenizer is that the user named."""
    if is_archive_file(path):
        with unpacked_model(path) as folder:
            return _kept_tokenizer(_chosen_tokenizer(folder), folder)
    return saved_model_vocabulary(path) if (path / SAVED_MODEL_FILE).is_file() else path


def _kept_tokenizer(path: Path, folder: Path) -> Path:
    """A tokenizer that outlives `folder`, which is about to be removed; `path` itself if it is not in there."""
    if not path.is_relative_to(folder):
        return path
    if path.is_file():
        return keep_until_exit(path)
    from albert_tf.tokenization.tokenizer import AlbertTokenizer

    kept = folder_until_exit()
    AlbertTokenizer.from_pretrained(path).save(kept)
    return kept


def read_preset(folder: str | Path) -> Checkpoint:
    """Reads a folder that `save_preset` wrote.

    Raises:
        InputError: a file is missing or damaged, or the weights do not fit the config.
    """
    folder = Path(folder)
    config = AlbertConfig.from_json(folder / CONFIG_FILE)
    weights = read_weights(folder / WEIGHTS_FILE)
    tokenizer = folder if is_there(folder / TOKENIZER_FILE) else vocabulary_in(folder)
    return Checkpoint(PRESET, str(folder), config, weights, tokenizer, task=read_task_settings(folder))


def read_task_settings(source: str | Path) -> dict[str, Any] | None:
    """What a task wrote to `task.json` in its preset: "task", its name, and "settings", its constructor's arguments.

    None where the source is not a preset folder, or a preset of an encoder alone.

    Raises:
        InputError: the file is not of that form.
    """
    path = Path(source) / TASK_FILE
    if not (Path(source) / WEIGHTS_FILE).is_file() or not is_there(path):  # KerasHub has a task.json of its own
        return None
    return checked_task(read_json(path), str(path))


def read_weights(path: Path) -> Weights:
    """Reads a safetensors file into float32.

    Raises:
        InputError: no such file, not a whole safetensors file, or a tensor that is not float32, float16 or bfloat16.
    """

    def in_float32(name: str, values: np.ndarray) -> np.ndarray:
        if values.dtype != np.float32:
            raise InputError(f"{path}: {name}: expected float32, float16 or bfloat16, got {values.dtype}")
        return values

    return read_largest_first(safetensors_in(path), in_float32)


def save_preset(
    folder: str | Path,
    config: AlbertConfig,
    weights: Weights,
    tokenizer: "AlbertTokenizer | None",
    *,
    extra_files: Mapping[str, bytes | str] | None = None,
    overwrite: bool = False,
) -> None:
    """Writes a preset folder, whole or not at all.

    Args:
        folder: the folder to create; with `overwrite`, a preset there is replaced, and nothing else is.
        config: the encoder's shape.
        weights: our names; stored in the type they have, float32 or float16.
        tokenizer: its files are written too; None writes a preset that takes token ids only.
        extra_files: file name → contents, for what a task keeps beside its weights (labels, a model card).

    Raises:
        InputError: the folder exists, the weights do not fit the config, or the tokenizer has a vocabulary of another
            size.
        ValueError: an extra file's name is a path or that of a preset's own file.
    """
    folder = Path(folder)
    for name, weight in weights.items():
        if weight.dtype not in _STORED_TYPES:
            raise InputError(f"weights for {folder}: {name}: expected float16 or float32, got {weight.dtype}")
    if tokenizer is not None:
        _check_vocabulary(config, tokenizer, source=str(folder))
    with written_checkpoint(folder, WEIGHTS_FILE, "a preset", config, weights, overwrite=overwrite) as temporary:
        config.to_json(temporary / CONFIG_FILE)
        write_safetensors(temporary / WEIGHTS_FILE, {name: np.ascontiguousarray(w) for name, w in weights.items()})
        if tokenizer is not None:
            tokenizer.save(temporary)
        for name, contents in (extra_files or {}).items():
            if Path(name).name != name or (temporary / name).exists():
                raise ValueError(f"extra file {name!r}: expected a plain file name that the preset does not use")
            (temporary / name).write_bytes(contents.encode() if isinstance(contents, str) else contents)


def _check_vocabulary(config: AlbertConfig, tokenizer: "AlbertTokenizer", *, source: str) -> None:
    size = tokenizer.vocabulary.size
    if size != config.vocabulary_size:
        raise InputError(
            f"{source}: wrong vocabulary: the tokenizer has {size} entries, the model's word table "
            f"{config.vocabulary_size}; use the vocabulary file that the model was trained with"
        )
