"""TensorFlow 1 checkpoints of google-research/albert and brightmart/albert_zh, in and out.

Sources: the unpacked folder, the checkpoint prefix, any of the checkpoint's files, or the folder of a TF-Hub version 1
module. Every tensor in the file is read, the ignored ones too, for its checksum.
"""

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.conversion.assign import listing
from albert_tf.conversion.brightmart import BRIGHTMART, MARKS
from albert_tf.conversion.checkpoint import Checkpoint, Weights, answering_task, settings_in_weights, written_checkpoint
from albert_tf.conversion.stored import read_largest_first
from albert_tf.conversion.tf1_files import Files, Reader, locate, refuse_patterns, write_variables
from albert_tf.conversion.tf1_tables import AXES, GOOGLE, Variable, table_of_file, table_of_weights
from albert_tf.errors import InputError

if TYPE_CHECKING:
    from albert_tf.tokenization.tokenizer import AlbertTokenizer

CONFIG_FILE = "albert_config.json"
PREFIX = "model.ckpt-best"
# Name of the vocabulary file in the releases, by system and kind.
_VOCABULARY_FILES = {
    ("google", "sentencepiece"): "30k-clean.model",
    ("google", "wordpiece"): "vocab_chinese.txt",
    ("brightmart", "sentencepiece"): "30k-clean.model",
    ("brightmart", "wordpiece"): "vocab.txt",
}

# What a training run saves beside the weights; it is left behind. Two LAMB implementations differ in the names.
_TRAINING_STATE = re.compile(r"global_step|.+/(adam|lamb)_[mv]")
_HUB_PREFIX = "module/"
# Part of a name → the other kind of model that has it.
_FOREIGN = {
    "bert/encoder/layer_0/": "a BERT checkpoint, without shared layers; albert-tf reads ALBERT only",
    "_CHECKPOINTABLE_OBJECT_GRAPH": "a TensorFlow 2 object checkpoint; expected one of google-research/albert (TF1)",
}


def read_tf1(source: str | Path) -> Checkpoint:
    """Reads a TF1 checkpoint strictly: every variable is known and of the config's shape, or it is an error.

    Raises:
        InputError: files missing, ambiguous, damaged or truncated; tensors missing, unknown, not of the config's shape
            or not finite; BERT, or another layout of ALBERT.
    """
    files = locate(Path(source))
    reader = Reader(files.prefix)
    for mark, what in _FOREIGN.items():
        if any(mark in name for name in reader.shapes):
            raise InputError(f"{files.prefix}: {what}")
    layout = BRIGHTMART if any(mark in name for mark in MARKS for name in reader.shapes) else GOOGLE
    config = _config(files.config, layout.form)
    state = {name for name in reader.shapes if _TRAINING_STATE.fullmatch(name)}
    names = reader.shapes.keys() - state
    hub = _HUB_PREFIX if all(name.startswith(_HUB_PREFIX) for name in names) else ""
    found = {name.removeprefix(hub): reader.shapes[name] for name in names}
    table = table_of_file(layout, config, found.keys())
    _check_table(files, config, table, found)

    def ours_of(ours: str, values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(values.T) if table[ours].transposed else values

    weights = read_largest_first({ours: reader.stored(hub + table[ours].name) for ours in table}, ours_of)
    for name in sorted(state):
        reader.value(name)
    return Checkpoint(f"{layout.form} tf1", str(source), config, weights, files.tokenizer, task=answering_task(weights))


def write_tf1(
    folder: str | Path,
    config: AlbertConfig,
    weights: Weights,
    tokenizer: "AlbertTokenizer | None",
    *,
    task: dict[str, Any] | None = None,
    overwrite: bool = False,
) -> list[str]:
    """Writes a folder like the released ones: albert_config.json, model.ckpt-best and the vocabulary.

    Names and shapes are those of the variables in the graph of google-research/albert, or of brightmart/albert_zh where
    `config.factorization` is "words"; float32, with a global_step of 0.

    Args:
        folder: the folder to create; with `overwrite`, a folder with such a checkpoint is replaced, and nothing else is.
        config: the encoder's shape.
        weights: our names.
        tokenizer: its vocabulary file is written too; None writes the checkpoint alone.
        task: as in `Checkpoint`; its settings have no place there.

    Returns:
        What is otherwise in the original code than here, in words.

    Raises:
        InputError: the folder exists, or the architecture or a head has no form there.
    """
    folder = Path(folder)
    refuse_patterns(folder)
    layout = BRIGHTMART if config.factorization == "words" else GOOGLE
    config.to_published_dict()  # refuses what the original code cannot build
    table = table_of_weights(layout, config, weights.keys())
    missing, homeless = sorted(table.keys() - weights.keys()), sorted(weights.keys() - table.keys())
    if missing or homeless:
        raise InputError(
            f"weights for {folder}: a TF1 checkpoint of {layout.form} has no such head: no variable for "
            f"{listing(homeless) or 'none'}; missing {listing(missing) or 'none'}"
        )
    weights, left_out = settings_in_weights(weights, task, ("labels", "head"))
    differences = []
    if labels := (task or {}).get("settings", {}).get("labels"):
        differences.append(f"labels have no names; in their order they are {', '.join(labels)}")
    differences += left_out
    mark, what = f"{PREFIX}.index", "a TF1 checkpoint"
    with written_checkpoint(folder, mark, what, config, weights, overwrite=overwrite) as temporary:
        values = {variable.name: _theirs(weights[ours], variable) for ours, variable in table.items()}
        config.to_json(temporary / CONFIG_FILE, published=True)
        write_variables(temporary / PREFIX, values | {"global_step": np.array(0, np.int64)})
        if tokenizer is not None:
            differences += _write_vocabulary(temporary, tokenizer, layout.form)
    return differences


def _config(path: Path, form: str) -> AlbertConfig:
    """The config of the file, with the architecture that the variables' names say: not every file tells it."""
    config = AlbertConfig.from_json(path)
    if config.sharing != "all":
        raise InputError(f'{path}: a TF1 checkpoint has sharing="all", not {config.sharing!r}')
    if form == "brightmart" and config.num_groups * config.num_inner_repetitions > 1:
        raise InputError(f"{path}: a brightmart checkpoint has one layer; the config says several groups")
    return dataclasses.replace(config, factorization="words" if form == "brightmart" else "embeddings")


def _check_table(
    files: Files, config: AlbertConfig, table: Mapping[str, Variable], found: Mapping[str, tuple[int, ...]]
) -> None:
    """Compares the whole file with the config before any weight is read."""
    sizes = {axis: getattr(config, ours) for axis, (_, ours) in AXES.items()}
    labels = (found.get("output_bias") or found.get("output_weights") or (0,))[0]
    sizes |= {"1": 1, "2": 2, "C": 2 * config.hidden_dim, "L": labels}
    missing, misshapen = [], []
    fields: dict[str, None] = {}
    for ours, (name, axes, _) in table.items():
        expected = tuple(sizes[axis] for axis in axes)
        if name not in found:
            missing.append(f"{name} (our {ours})")
        elif found[name] != expected:
            misshapen.append(f"{name} is {found[name]}, expected {expected}")
            if len(found[name]) == len(expected):
                wrong = [axis for axis, got, size in zip(axes, found[name], expected, strict=True) if got != size]
                fields |= {AXES[axis][0]: None for axis in wrong if axis in AXES}
    known = {variable.name for variable in table.values()}
    unknown = sorted(f"{name} {found[name]}" for name in found if name not in known)
    problems = (("missing", missing), ("unknown", unknown), ("of another shape", misshapen))
    told = "; ".join(f"{len(items)} {what}: {listing(items)}" for what, items in problems if items)
    if told:
        hint = f" (disagreement in {', '.join(fields)})" if fields else ""
        raise InputError(
            f"{files.prefix}: the checkpoint is not of the model that {files.config.name} describes{hint}: {told}"
        )


def _theirs(weight: np.ndarray, variable: Variable) -> np.ndarray:
    return np.ascontiguousarray(weight.T if variable.transposed else weight, np.float32)


def _write_vocabulary(folder: Path, tokenizer: "AlbertTokenizer", form: str) -> list[str]:
    """The vocabulary file under its released name; returns what is otherwise in the original's text rules."""
    vocabulary = tokenizer.vocabulary
    path = folder / _VOCABULARY_FILES[form, vocabulary.kind]
    vocabulary.save(folder / "saved")
    (saved,) = (folder / "saved").iterdir()
    saved.rename(path)
    (folder / "saved").rmdir()
    theirs = type(tokenizer).from_pretrained(path).vocabulary.options()
    odd = [f"{rule}={str(value).lower()}" for rule, value in vocabulary.options().items() if value != theirs[rule]]
    return [f"the text rules {', '.join(odd)} are not recorded"] if odd else []
