"""KerasHub preset folders, in and out: config.json, model.weights.h5, the vocabulary, task.json and task.weights.h5.

KerasHub is not needed. What it has otherwise than the original:

- The activation is gelu in the tanh form, always, and layer norms have epsilon 1e-12, but for 1e-5 in the masked-word
  head (`masked_lm_layer_norm_epsilon` of our config).
- One dropout rate for everything; no sentence-order head; labels have no names.
- Its tokenizer gives the text to the SentencePiece model as it is: neither lower case nor the digit-comma rule. The
  models were trained with both, so what we read gets the original's rules.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert_tf.config import AlbertConfig
from albert_tf.conversion.assign import check_shapes
from albert_tf.conversion.checkpoint import Checkpoint, Weights, settings_in_weights, unnamed_labels, written_checkpoint
from albert_tf.conversion.grouped import grouped_config, projection_shapes, with_projection, without_identity
from albert_tf.conversion.hdf5 import hdf5_tensors_in, hdf5_written
from albert_tf.conversion.keras_hub_files import (
    CONFIG_FILE,
    MASKED_LM,
    TASK_WEIGHTS_FILE,
    TEXT_CLASSIFIER,
    VOCABULARY_FILE,
    WEIGHTS_FILE,
    read_config,
    read_task,
    write_json_files,
)
from albert_tf.conversion.stored import StoredTensor, read_largest_first
from albert_tf.errors import InputError
from albert_tf.files import is_there
from albert_tf.parameters import Shapes, backbone_weight_shapes, pretraining_head_weight_shapes

if TYPE_CHECKING:
    from albert_tf.tokenization.tokenizer import AlbertTokenizer

FORM = "keras-hub preset"
MASKED_LM_EPSILON = 1e-5


def _pair(ours: str, theirs: str, parts: tuple[str, str]) -> dict[str, str]:
    return {f"{ours}/{part}": f"{theirs}/{index}" for index, part in enumerate(parts)}


def _dense(ours: str, theirs: str) -> dict[str, str]:
    return _pair(ours, theirs, ("kernel", "bias"))


def _layer_norm(ours: str, theirs: str) -> dict[str, str]:
    return _pair(ours, theirs, ("gamma", "beta"))


# Our name → name of KerasHub's layer, way to the variable's owner in it, and number of the variable.
_BACKBONE = {
    "embeddings/word_embedding/embeddings": "token_embedding/0",
    "embeddings/segment_embedding/embeddings": "segment_embedding/0",
    "embeddings/position_embedding/embeddings": "position_embedding/0",
    **_layer_norm("embeddings/layer_norm", "embeddings_layer_norm"),
    **_dense("embeddings/projection", "embedding_projection"),
    **_dense("pooler", "pooled_dense"),
}
# {n} counts the blocks: n = g · num_inner_repetitions + i.
_LAYER = "group_{g}_inner_layer_{i}"
_BLOCK = {
    **_dense("encoder/attention_{n}/query", f"{_LAYER}/self_attention_layer/query_dense"),
    **_dense("encoder/attention_{n}/key", f"{_LAYER}/self_attention_layer/key_dense"),
    **_dense("encoder/attention_{n}/value", f"{_LAYER}/self_attention_layer/value_dense"),
    **_dense("encoder/attention_{n}/output", f"{_LAYER}/self_attention_layer/output_dense"),
    **_layer_norm("encoder/attention_{n}/layer_norm", f"{_LAYER}/self_attention_layer_norm"),
    **_dense("encoder/feed_forward_{n}/intermediate", f"{_LAYER}/feedforward_intermediate_dense"),
    **_dense("encoder/feed_forward_{n}/output", f"{_LAYER}/feedforward_output_dense"),
    **_layer_norm("encoder/feed_forward_{n}/layer_norm", f"{_LAYER}/feedforward_layer_norm"),
}
# Class of the task → its head.
_HEADS = {
    TEXT_CLASSIFIER: _dense("classifier", "logits"),
    MASKED_LM: {
        **_dense("masked_lm/transform", "mlm_head/intermediate_dense"),
        **_layer_norm("masked_lm/layer_norm", "mlm_head/intermediate_layer_norm"),
        "masked_lm/output_bias": "mlm_head/0",
    },
}
# Name of the layer → the group of the file that holds it, as Keras names it: after its class, numbered within the class.
_GROUPS = {
    "token_embedding": "reversible_embedding",
    "segment_embedding": "embedding",
    "position_embedding": "position_embedding",
    "embeddings_layer_norm": "layer_normalization",
    "embedding_projection": "dense",
    "pooled_dense": "dense_1",
}
_TASK_GROUPS = {"logits": "dense", "mlm_head": "masked_lm_head"}
# Names of owners that Keras writes with an underscore before them.
_PLAIN_OWNERS = ("query_dense", "key_dense", "value_dense", "output_dense")
# State of random generators and of a training's optimizer; it is left behind.
_STATE = re.compile(r".*/?seed_generator(_\d+)?/\d+|optimizer/.*")


def read_keras_hub(folder: str | Path) -> Checkpoint:
    """Reads a preset folder of AlbertBackbone, with the head of AlbertTextClassifier or AlbertMaskedLM if it has one.

    Raises:
        InputError: another model's preset; files missing or damaged; variables missing, unknown, not of the config's
            shape or not finite; quantised weights; a classifier with another activation than softmax.
    """
    folder = Path(folder)
    task = read_task(folder)
    masked_lm = task is not None and task.class_name == MASKED_LM
    config = read_config(folder / CONFIG_FILE, MASKED_LM_EPSILON if masked_lm else None)
    shapes = backbone_weight_shapes(config) | projection_shapes(config)
    weights = _read(folder / WEIGHTS_FILE, config, shapes, _table(config), _groups(config))
    saved = None
    if task is not None:
        head = _head_shapes(config, task.class_name, task.num_classes)
        weights |= _read(folder / TASK_WEIGHTS_FILE, config, head, _HEADS[task.class_name], _TASK_GROUPS)
        if task.class_name == TEXT_CLASSIFIER:
            settings: dict[str, Any] = {"classifier_dropout": task.dropout}
            if task.num_classes > 1:
                settings["labels"] = unnamed_labels(task.num_classes)
            saved = {"task": "classification" if task.num_classes > 1 else "regression", "settings": settings}
    weights = without_identity(config, weights, source=str(folder))
    vocabulary = folder / VOCABULARY_FILE
    return Checkpoint(FORM, str(folder), config, weights, vocabulary if is_there(vocabulary) else None, task=saved)


def write_keras_hub(
    folder: str | Path,
    config: AlbertConfig,
    weights: Weights,
    tokenizer: "AlbertTokenizer | None",
    *,
    task: dict[str, Any] | None = None,
    overwrite: bool = False,
) -> list[str]:
    """Writes a preset folder that `from_preset` of keras_hub's AlbertBackbone, AlbertTokenizer and tasks read.

    Args:
        folder: the folder to create; with `overwrite`, a KerasHub preset there is replaced, and nothing else is.
        config: the encoder's shape.
        weights: our names.
        tokenizer: its SentencePiece model is written too; None writes the model alone.
        task: as in `Checkpoint`; of it the dropout rate of a classifier is written.

    Returns:
        What KerasHub has no form for and was left out, and what it does otherwise, in words.

    Raises:
        InputError: the folder exists, or KerasHub has no form for the architecture.
    """
    folder = Path(folder)
    grouped = _expressible(config, weights)
    class_name, notes = _task_of(config, weights)
    weights, left_out = settings_in_weights(weights, task, ("labels", "classifier_dropout", "head"))
    settings = (task or {}).get("settings", {})
    if settings.get("labels") and class_name == TEXT_CLASSIFIER:
        notes.append("the labels' names are left out: KerasHub has no place for them")
    notes += left_out
    if tokenizer is not None and tokenizer.vocabulary.kind != "sentencepiece":
        notes.append("the tokenizer is left out: KerasHub's AlbertTokenizer has SentencePiece models only")
        tokenizer = None
    elif tokenizer is not None:
        notes.append("KerasHub's AlbertTokenizer neither lower-cases the text nor takes a comma off a digit")
    labels = weights["classifier/bias"].shape[0] if class_name == TEXT_CLASSIFIER else 0
    what = "a KerasHub preset"
    with written_checkpoint(folder, WEIGHTS_FILE, what, config, weights, overwrite=overwrite) as temporary:
        write_json_files(temporary, grouped, class_name, labels, settings.get("classifier_dropout", 0.1), tokenizer)
        backbone, table = with_projection(config, weights), _table(grouped)
        _write(temporary / WEIGHTS_FILE, grouped, {n: backbone[n] for n in table}, table, _groups(grouped))
        if class_name is not None:
            head = _HEADS[class_name]
            _write(temporary / TASK_WEIGHTS_FILE, grouped, {n: weights[n] for n in head}, head, _TASK_GROUPS)
        if tokenizer is not None:
            (temporary / VOCABULARY_FILE).parent.mkdir(parents=True)
            (temporary / VOCABULARY_FILE).write_bytes(tokenizer.vocabulary.model)  # type: ignore[attr-defined]
    return notes


# === Tables ===


def _table(config: AlbertConfig) -> dict[str, str]:
    """Our name → theirs, for the whole backbone."""
    table = dict(_BACKBONE)
    for n in range(config.num_groups * config.num_inner_repetitions):
        g, i = divmod(n, config.num_inner_repetitions)
        table |= {ours.format(n=n): theirs.format(g=g, i=i) for ours, theirs in _BLOCK.items()}
    return table


def _groups(config: AlbertConfig) -> dict[str, str]:
    """Name of the layer → its group in the file, for the whole backbone."""
    groups = dict(_GROUPS)
    for n in range(config.num_groups * config.num_inner_repetitions):
        g, i = divmod(n, config.num_inner_repetitions)
        groups[_LAYER.format(g=g, i=i)] = f"transformer_encoder_{n}" if n else "transformer_encoder"
    return groups


def _head_shapes(config: AlbertConfig, class_name: str, num_classes: int) -> Shapes:
    if class_name == TEXT_CLASSIFIER:
        return {"classifier/kernel": (config.hidden_dim, num_classes), "classifier/bias": (num_classes,)}
    shapes = pretraining_head_weight_shapes(config)
    return {name: shape for name, shape in shapes.items() if name.startswith("masked_lm/")}


def _their_shape(name: str, shape: tuple[int, ...], config: AlbertConfig) -> tuple[int, ...]:
    """KerasHub's attention has an axis for the heads: kernels (H, N, D), biases (N, D), the output's kernel (N, D, H)."""
    if "/self_attention_layer/" not in name or name.endswith("output_dense/1"):
        return shape
    heads = (config.num_heads, config.head_dim)
    if name.endswith("/1"):
        return heads
    return (*heads, shape[1]) if name.endswith("output_dense/0") else (shape[0], *heads)


# === In ===


def _read(
    path: Path, config: AlbertConfig, shapes: Shapes, table: Mapping[str, str], groups: Mapping[str, str]
) -> Weights:
    """The variables of one file, all of which are known, under our names."""
    stored = _stored(path, groups)
    expected = {table[ours]: _their_shape(table[ours], shape, config) for ours, shape in shapes.items()}
    known = {name: tensor for name, tensor in stored.items() if name in expected or not _STATE.fullmatch(name)}
    check_shapes(known, expected, source=f"{path}: names of KerasHub")
    return read_largest_first(
        {ours: stored[table[ours]] for ours in shapes}, lambda ours, values: values.reshape(shapes[ours])
    )


def _stored(path: Path, groups: Mapping[str, str]) -> dict[str, StoredTensor]:
    """Name as in the tables → variable, of every dataset in the file."""
    listed = hdf5_tensors_in(path)
    layers = {group: layer for layer, group in groups.items()}
    found: dict[str, StoredTensor] = {}
    for place, tensor in listed.tensors.items():
        owner, _, number = place.rpartition("/vars/")
        root, _, inside = owner.partition("/")
        if root in ("layers", "_layer_checkpoint_dependencies"):  # the second in files of Keras before 2.13
            group, _, inside = inside.partition("/")
            label = listed.names.get(f"{root}/{group}/vars", "")
            layer = label if label in groups else layers.get(group, group)
            owner = "/".join(part.removeprefix("_") for part in (layer, *inside.split("/")) if part)
        if found.setdefault(f"{owner}/{number}", tensor) is not tensor:
            raise InputError(f"{path}: {place} is the second variable {owner}/{number} in the file; expected one")
    return found


# === Out ===


def _expressible(config: AlbertConfig, weights: Weights) -> AlbertConfig:
    """The config with every layer in a group, or why KerasHub cannot have it."""
    grouped = grouped_config(config, "KerasHub")
    for name, only in (("activation", "gelu_tanh"), ("layer_norm_epsilon", 1e-12)):
        if getattr(config, name) != only:
            raise InputError(
                f"KerasHub's AlbertBackbone has {name}={only} only; this model has {getattr(config, name)}"
            )
    if config.hidden_dropout != config.attention_dropout:
        raise InputError(
            f"KerasHub has one dropout rate; this model has hidden_dropout={config.hidden_dropout} and "
            f"attention_dropout={config.attention_dropout}: make them equal first"
        )
    if grouped.num_layers % grouped.num_groups:
        raise InputError(
            f"KerasHub wants num_layers to be a multiple of num_groups; got {grouped.num_layers} and {grouped.num_groups}"
        )
    if "pooler/kernel" not in weights:
        raise InputError("KerasHub's AlbertBackbone has a pooler; this checkpoint has none")
    return grouped


def _task_of(config: AlbertConfig, weights: Weights) -> tuple[str | None, list[str]]:
    """The class of KerasHub that has the head, and which heads are left out and why."""
    parts = {name.partition("/")[0] for name in weights} - {"embeddings", "encoder", "pooler"}
    if parts == {"classifier"}:
        return TEXT_CLASSIFIER, []
    fits = config.masked_lm_layer_norm_epsilon == MASKED_LM_EPSILON
    kept = MASKED_LM if "masked_lm" in parts and fits else None
    notes = [f"the head {part} is left out: KerasHub has none of its kind" for part in sorted(parts - {"masked_lm"})]
    if "masked_lm" in parts and not fits:
        notes.append(f"the head masked_lm is left out: KerasHub's has a layer norm with epsilon {MASKED_LM_EPSILON:g}")
    return kept, notes


def _write(
    path: Path, config: AlbertConfig, weights: Weights, table: Mapping[str, str], groups: Mapping[str, str]
) -> None:
    with hdf5_written(path) as file:
        for ours, weight in weights.items():
            name = table[ours]
            layer, *owners, number = name.split("/")
            marked = [owner if owner in _PLAIN_OWNERS else f"_{owner}" for owner in owners]
            group = "/".join(("layers", groups[layer], *marked, "vars"))
            file.require_group(f"layers/{groups[layer]}/vars").attrs["name"] = layer
            file.require_group(group)[number] = weight.reshape(_their_shape(name, weight.shape, config))
