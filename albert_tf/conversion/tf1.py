"""Reads a checkpoint of google-research/albert: TensorFlow 1 variables beside an albert_config.json.

Sources: the unpacked folder, the checkpoint prefix, any of the checkpoint's files, the released .tar.gz, or the folder
of a TF-Hub version 1 module. Every tensor in the file is read, the ignored ones too: each carries a checksum that
TensorFlow compares.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.conversion.archive import is_archive, keep_until_exit, unpacked
from albert_tf.conversion.assign import listing
from albert_tf.conversion.checkpoint import Checkpoint
from albert_tf.errors import InputError
from albert_tf.files import read_text


class _Tensor(NamedTuple):
    """A variable of the checkpoint: its name, its axes (letters of `_AXES`, digits), and whether ours is transposed."""

    name: str
    axes: str
    transposed: bool = False


def _dense(ours: str, theirs: str, axes: str) -> dict[str, _Tensor]:
    return {f"{ours}/kernel": _Tensor(f"{theirs}/kernel", axes), f"{ours}/bias": _Tensor(f"{theirs}/bias", axes[-1])}


def _layer_norm(ours: str, theirs: str, axis: str) -> dict[str, _Tensor]:
    return {f"{ours}/{part}": _Tensor(f"{theirs}/{part}", axis) for part in ("gamma", "beta")}


# Axis letter → (field of albert_config.json, our field).
_AXES = {
    "V": ("vocab_size", "vocabulary_size"),
    "E": ("embedding_size", "embedding_dim"),
    "H": ("hidden_size", "hidden_dim"),
    "I": ("intermediate_size", "intermediate_dim"),
    "P": ("max_position_embeddings", "max_sequence_length"),
    "T": ("type_vocab_size", "num_segments"),
}

# Our name → variable, as modeling.py of google-research/albert creates it.
_EMBEDDINGS = {
    "embeddings/word_embedding/embeddings": _Tensor("bert/embeddings/word_embeddings", "VE"),
    "embeddings/segment_embedding/embeddings": _Tensor("bert/embeddings/token_type_embeddings", "TE"),
    "embeddings/position_embedding/embeddings": _Tensor("bert/embeddings/position_embeddings", "PE"),
    **_layer_norm("embeddings/layer_norm", "bert/embeddings/LayerNorm", "E"),
}
_PROJECTION = _dense("embeddings/projection", "bert/encoder/embedding_hidden_mapping_in", "EH")
# {n} counts the blocks: n = g · inner_group_num + i.
_GROUP = "bert/encoder/transformer/group_{g}/inner_group_{i}"
_BLOCK = {
    **_dense("encoder/attention_{n}/query", f"{_GROUP}/attention_1/self/query", "HH"),
    **_dense("encoder/attention_{n}/key", f"{_GROUP}/attention_1/self/key", "HH"),
    **_dense("encoder/attention_{n}/value", f"{_GROUP}/attention_1/self/value", "HH"),
    **_dense("encoder/attention_{n}/output", f"{_GROUP}/attention_1/output/dense", "HH"),
    **_layer_norm("encoder/attention_{n}/layer_norm", f"{_GROUP}/LayerNorm", "H"),
    **_dense("encoder/feed_forward_{n}/intermediate", f"{_GROUP}/ffn_1/intermediate/dense", "HI"),
    # The original opens the scope of the output inside that of the intermediate layer.
    **_dense("encoder/feed_forward_{n}/output", f"{_GROUP}/ffn_1/intermediate/output/dense", "IH"),
    **_layer_norm("encoder/feed_forward_{n}/layer_norm", f"{_GROUP}/LayerNorm_1", "H"),
}
# Each of these is in a file as a whole or not at all. L is the number of labels.
_OPTIONAL = {
    "pooler": _dense("pooler", "bert/pooler/dense", "HH"),
    "masked-word head": {
        **_dense("masked_lm/transform", "cls/predictions/transform/dense", "HE"),
        **_layer_norm("masked_lm/layer_norm", "cls/predictions/transform/LayerNorm", "E"),
        "masked_lm/output_bias": _Tensor("cls/predictions/output_bias", "V"),
    },
    "sentence-order head": {
        "sentence_order/kernel": _Tensor("cls/seq_relationship/output_weights", "2H", transposed=True),
        "sentence_order/bias": _Tensor("cls/seq_relationship/output_bias", "2"),
    },
    "classifier head": {  # of run_classifier.py and run_race.py
        "classifier/kernel": _Tensor("output_weights", "LH", transposed=True),
        "classifier/bias": _Tensor("output_bias", "L"),
    },
}

# What a training run saves beside the weights; it is left behind.
_TRAINING_STATE = re.compile(r"global_step|.+/adam_[mv]")
_HUB_PREFIX = "module/"
# Part of a name → the other kind of model that has it.
_FOREIGN = {
    "bert/embeddings/word_embeddings_2": "brightmart albert_zh checkpoint: not supported yet",
    "bert/encoder/layer_shared": "brightmart albert_zh checkpoint: not supported yet",
    "bert/encoder/layer_0/": "a BERT checkpoint, without shared layers; albert-tf reads ALBERT only",
    "_CHECKPOINTABLE_OBJECT_GRAPH": "a TensorFlow 2 object checkpoint; expected one of google-research/albert (TF1)",
}
_DATA_FILE = re.compile(r"(.+)\.data-\d{5}-of-(\d{5})")
_VOCABULARIES = ("*.model", "*.spm", "vocab*.txt")
# How far below the given folder files are looked for: the released archives hold one folder, a TF-Hub module two.
_MAX_DEPTH = 2


class _Files(NamedTuple):
    prefix: Path
    config: Path
    tokenizer: Path | None


def read_tf1(source: str | Path) -> Checkpoint:
    """Reads a TF1 checkpoint strictly: every variable is known and of the config's shape, or it is an error.

    Raises:
        InputError: files missing, ambiguous, damaged or truncated; tensors missing, unknown, not of the config's shape
            or not finite; another layout of ALBERT, or BERT.
    """
    path = Path(source)
    if not is_archive(path):
        return _read(_locate(path), form="google tf1", source=str(path))
    with unpacked(path) as folder:
        try:
            files = _locate(folder)
            if files.tokenizer is not None:
                files = files._replace(tokenizer=keep_until_exit(files.tokenizer))
            return _read(files, form="google tf1 archive", source=str(path))
        except InputError as error:  # tell of the archive, not of a folder that is about to vanish
            raise InputError(str(error).replace(str(folder), str(path))) from error


def closest(folder: Path, pattern: str) -> list[Path]:
    """The files that match, sorted, from the nearest level below `folder` that has any; hidden files do not count."""
    for depth in range(_MAX_DEPTH + 1):
        found = sorted(folder.glob("*/" * depth + pattern))
        if found := [path for path in found if path.is_file() and not path.name.startswith(".")]:
            return found
    return []


def checkpoint_prefix(path: Path) -> Path | None:
    """The prefix of a checkpoint, given that or one of its files; None if `path` is neither."""
    if data := _DATA_FILE.fullmatch(path.name):
        return path.with_name(data[1])
    if path.suffix in (".index", ".meta"):
        return path.with_suffix("")
    return path if path.with_name(f"{path.name}.index").is_file() else None


def _locate(path: Path) -> _Files:
    if path.is_dir():
        folder, prefix = path, _prefix_in(path)
    else:
        folder, given = path.parent, checkpoint_prefix(path)
        if given is None:
            raise InputError(f"{path}: expected a TF1 checkpoint (prefix, .index file or folder); found none")
        prefix = given
    configs = closest(folder, "albert_config*.json")
    if len(configs) != 1:
        found = f"found {_relative(configs, folder)}" if configs else "there is none"
        raise InputError(f"{folder}: expected one albert_config.json with the checkpoint; {found}")
    vocabularies = [path for pattern in _VOCABULARIES for path in closest(folder, pattern)]
    if len(vocabularies) > 1:
        raise InputError(
            f"{folder}: expected one vocabulary file ({', '.join(_VOCABULARIES)}), "
            f"found {_relative(vocabularies, folder)}; leave only the one that the model was trained with"
        )
    return _Files(prefix, configs[0], vocabularies[0] if vocabularies else None)


def _prefix_in(folder: Path) -> Path:
    """The only checkpoint in a folder, or the one that its `checkpoint` file calls the latest."""
    indexes = closest(folder, "*.index")
    if len(indexes) > 1:
        state = indexes[0].with_name("checkpoint")
        latest = re.search(r'^model_checkpoint_path: "([^"]+)"', read_text(state), re.M) if state.is_file() else None
        named = f"{Path(latest[1]).name}.index" if latest else None
        if chosen := [index for index in indexes if index.name == named]:
            return chosen[0].with_suffix("")
        raise InputError(f"{folder}: several checkpoints, {_relative(indexes, folder)}; give the prefix of one of them")
    if not indexes:
        held = listing(sorted(entry.name for entry in folder.rglob("*") if entry.is_file())) or "nothing"
        raise InputError(f"{folder}: expected a TF1 checkpoint (*.index), found {held}")
    return indexes[0].with_suffix("")


def _relative(paths: list[Path], folder: Path) -> str:
    return listing([str(path.relative_to(folder)) for path in paths])


def _read(files: _Files, *, form: str, source: str) -> Checkpoint:
    _check_files(files.prefix)
    reader = _open(files.prefix)
    shapes = {name: tuple(shape) for name, shape in reader.get_variable_to_shape_map().items()}
    for mark, what in _FOREIGN.items():
        if any(mark in name for name in shapes):
            raise InputError(f"{files.prefix}: {what}")
    config = AlbertConfig.from_json(files.config)
    if config.sharing != "all":
        raise InputError(f'{files.config}: a TF1 checkpoint has sharing="all", not {config.sharing!r}')
    state = {name for name in shapes if _TRAINING_STATE.fullmatch(name)}
    hub = _HUB_PREFIX if all(name.startswith(_HUB_PREFIX) for name in shapes.keys() - state) else ""
    table = _table(config, {name.removeprefix(hub) for name in shapes})
    _check_table(files, config, table, {name.removeprefix(hub): shapes[name] for name in shapes.keys() - state})
    weights = {}
    for ours, tensor in table.items():
        weight = _get(reader, files.prefix, hub + tensor.name)
        weights[ours] = np.ascontiguousarray(weight.T) if tensor.transposed else weight
    for name in sorted(state):
        _get(reader, files.prefix, name, weight=False)
    return Checkpoint(form, source, config, weights, files.tokenizer)


def _table(config: AlbertConfig, names: set[str]) -> dict[str, _Tensor]:
    """Our name → variable, for this config and the optional parts that `names` has anything of."""
    table = dict(_EMBEDDINGS)
    if config.has_projection:
        table |= _PROJECTION
    for n in range(config.num_groups * config.num_inner_repetitions):
        g, i = divmod(n, config.num_inner_repetitions)
        table |= {ours.format(n=n): t._replace(name=t.name.format(g=g, i=i)) for ours, t in _BLOCK.items()}
    for part in _OPTIONAL.values():
        if any(tensor.name in names for tensor in part.values()):
            table |= part
    return table


def _check_table(
    files: _Files, config: AlbertConfig, table: dict[str, _Tensor], found: Mapping[str, tuple[int, ...]]
) -> None:
    """Compares the whole file with the config before any weight is read."""
    sizes = {axis: getattr(config, ours) for axis, (_, ours) in _AXES.items()}
    sizes |= {"2": 2, "L": (found.get("output_bias") or found.get("output_weights") or (0,))[0]}
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
                fields |= {_AXES[axis][0]: None for axis in wrong if axis in _AXES}
    known = {tensor.name for tensor in table.values()}
    unknown = sorted(f"{name} {found[name]}" for name in found if name not in known)
    problems = (("missing", missing), ("unknown", unknown), ("of another shape", misshapen))
    told = "; ".join(f"{len(items)} {what}: {listing(items)}" for what, items in problems if items)
    if told:
        hint = f" (disagreement in {', '.join(fields)})" if fields else ""
        raise InputError(
            f"{files.prefix}: the checkpoint is not of the model that {files.config.name} describes{hint}: {told}"
        )


def _check_files(prefix: Path) -> None:
    """The index and all data files are there under a usable name, before TensorFlow says so in its own words."""
    if odd := sorted(set(str(prefix)) & set("*?[\\")):
        raise InputError(
            f"{prefix}: TensorFlow takes {' '.join(odd)} in a path for a pattern; rename the folder or file"
        )
    if not prefix.with_name(f"{prefix.name}.index").is_file():
        raise InputError(f"{prefix}.index: no such file; a TF1 checkpoint is an .index and a .data file together")
    matches = [_DATA_FILE.fullmatch(path.name) for path in prefix.parent.iterdir()]
    shards = [match for match in matches if match and match[1] == prefix.name]
    if not shards or len(shards) != int(shards[0][2]):
        held = f"found {listing(sorted(match[0] for match in shards))}" if shards else "there is none"
        raise InputError(f"{prefix}: the weights belong in {prefix.name}.data-00000-of-00001 beside the .index; {held}")


def _open(prefix: Path) -> Any:
    import tensorflow as tf

    try:
        return tf.train.load_checkpoint(str(prefix))
    except (tf.errors.OpError, IndexError, RuntimeError, ValueError) as error:
        raise InputError(f"{prefix}.index: damaged or not a TF1 checkpoint: {_first_line(error)}") from error


def _get(reader: Any, prefix: Path, name: str, *, weight: bool = True) -> np.ndarray:
    import tensorflow as tf

    if weight and not reader.get_variable_to_dtype_map()[name].is_floating:
        raise InputError(f"{prefix}: {name}: expected floating-point weights")
    try:
        value = np.asarray(reader.get_tensor(name))
    except (tf.errors.OpError, IndexError, RuntimeError, ValueError) as error:
        raise InputError(
            f"{prefix}: cannot read tensor {name}: {_first_line(error)}; the file is damaged or cut off: copy it again"
        ) from error
    return value.astype(np.float32) if weight else value


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
