"""ALBERT of Hugging Face's transformers, in and out: config.json, weights, tokenizer files.

What transformers has otherwise than the original:

- The meaning of "gelu" (huggingface_config.py) and details of the tokenizer (huggingface_tokenizer.py).
- Its encoder layer has no dropout after the feed-forward half. That shows in training only; ours has it.
- Before 2022 its masked-word head had a layer norm with epsilon 1e-5. Like transformers now, we take layer_norm_eps.

Sentence-order labels mean the same: 0 in order, 1 swapped.
"""

import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.conversion.assign import check_shapes, listing
from albert_tf.conversion.checkpoint import Checkpoint, Weights, settings_in_weights, written_checkpoint
from albert_tf.conversion.grouped import grouped_config, projection_shapes, with_projection, without_identity
from albert_tf.conversion.huggingface_config import (
    CONFIG_NAME,
    config_of,
    fields_of,
    labels_of,
    read_fields,
)
from albert_tf.conversion.huggingface_heads import HEADS, Head, head_of, label_fields, task_of
from albert_tf.conversion.huggingface_tokenizer import read_tokenizer_files, write_tokenizer_files
from albert_tf.conversion.stored import StoredTensor, read_largest_first, safetensors_in, sharded, write_safetensors
from albert_tf.conversion.torch_file import torch_tensors_in
from albert_tf.errors import InputError
from albert_tf.files import is_there
from albert_tf.parameters import Shapes, backbone_weight_shapes, pretraining_head_weight_shapes

if TYPE_CHECKING:
    from albert_tf.tokenization.tokenizer import AlbertTokenizer

FORM = "hugging face"
WEIGHTS_FILE = "model.safetensors"
# File → how its tensors are listed, in the order of preference. A .json is the index of the shards of such a file.
WEIGHT_FILES = {
    WEIGHTS_FILE: safetensors_in,
    "model.safetensors.index.json": safetensors_in,
    "pytorch_model.bin": torch_tensors_in,
    "pytorch_model.bin.index.json": torch_tensors_in,
}


class _Tensor(NamedTuple):
    """A tensor of the state dict, without the prefix "albert."; PyTorch's linear layers hold our kernels transposed."""

    name: str
    transposed: bool = False


def _linear(ours: str, theirs: str) -> dict[str, _Tensor]:
    return {f"{ours}/kernel": _Tensor(f"{theirs}.weight", transposed=True), f"{ours}/bias": _Tensor(f"{theirs}.bias")}


def _layer_norm(ours: str, theirs: str) -> dict[str, _Tensor]:
    return {f"{ours}/gamma": _Tensor(f"{theirs}.weight"), f"{ours}/beta": _Tensor(f"{theirs}.bias")}


# Our name → tensor, as modeling_albert.py of transformers creates it.
_TABLE = {
    "embeddings/word_embedding/embeddings": _Tensor("embeddings.word_embeddings.weight"),
    "embeddings/segment_embedding/embeddings": _Tensor("embeddings.token_type_embeddings.weight"),
    "embeddings/position_embedding/embeddings": _Tensor("embeddings.position_embeddings.weight"),
    **_layer_norm("embeddings/layer_norm", "embeddings.LayerNorm"),
    **_linear("embeddings/projection", "encoder.embedding_hidden_mapping_in"),
    **_linear("pooler", "pooler"),
    **_linear("masked_lm/transform", "predictions.dense"),
    **_layer_norm("masked_lm/layer_norm", "predictions.LayerNorm"),
    "masked_lm/output_bias": _Tensor("predictions.bias"),
    **_linear("sentence_order", "sop_classifier.classifier"),
    # Three classes call their head "classifier"; config.json says which of them it is, and what it was trained for.
    **_linear("classifier", "classifier"),
    **_linear("multi_label", "classifier"),
    **_linear("token_classification", "classifier"),
    **_linear("multiple_choice", "classifier"),
    **_linear("question_answering", "qa_outputs"),
}
# {n} counts the blocks: n = g · inner_group_num + i.
_LAYER = "encoder.albert_layer_groups.{g}.albert_layers.{i}"
_BLOCK = {
    **_linear("encoder/attention_{n}/query", f"{_LAYER}.attention.query"),
    **_linear("encoder/attention_{n}/key", f"{_LAYER}.attention.key"),
    **_linear("encoder/attention_{n}/value", f"{_LAYER}.attention.value"),
    **_linear("encoder/attention_{n}/output", f"{_LAYER}.attention.dense"),
    **_layer_norm("encoder/attention_{n}/layer_norm", f"{_LAYER}.attention.LayerNorm"),
    **_linear("encoder/feed_forward_{n}/intermediate", f"{_LAYER}.ffn"),
    **_linear("encoder/feed_forward_{n}/output", f"{_LAYER}.ffn_output"),
    **_layer_norm("encoder/feed_forward_{n}/layer_norm", f"{_LAYER}.full_layer_layer_norm"),
}
_ENCODER_PREFIX = "albert."
_ENCODER_PARTS = ("embeddings.", "encoder.", "pooler.")
# Tied weights under their second name: a file has either name, or both with the same values.
_TIED = {
    "predictions.decoder.weight": "embeddings.word_embeddings.weight",
    "predictions.decoder.bias": "predictions.bias",
}
# A buffer that old releases saved: 0, 1, 2, …
_POSITION_IDS = "embeddings.position_ids"


def read_huggingface(folder: str | Path) -> Checkpoint:
    """Reads a folder that transformers saved. No code in a .bin file is run.

    Raises:
        InputError: a model of another type; files missing or damaged; tensors missing, unknown, not of the config's
            shape or not finite; tied weights that differ; something in config.json that ALBERT has not.
    """
    folder = Path(folder)
    path = folder / CONFIG_NAME
    fields = read_fields(path)
    tensors = _without_copies(folder, _stored(folder))
    head = head_of(fields, path, tensors)
    config = config_of(fields, path, has_task_head=head is not None)
    shapes = _expected(config, tensors, head, labels_of(fields, path))
    table = _table(config, shapes)
    expected = {table[ours].name: shape[::-1] if table[ours].transposed else shape for ours, shape in shapes.items()}
    check_shapes(tensors, expected, source=f"{folder}: names of transformers", optional=[_POSITION_IDS])
    _check_position_ids(folder, tensors)

    def ours_of(name: str, values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(values.T) if table[name].transposed else values

    weights = read_largest_first({ours: tensors[table[ours].name] for ours in shapes}, ours_of)
    weights = without_identity(config, weights, source=str(folder))
    tokenizer, rules = read_tokenizer_files(folder)
    return Checkpoint(FORM, str(folder), config, weights, tokenizer, rules, task_of(fields, path, head))


def write_huggingface(
    folder: str | Path,
    config: AlbertConfig,
    weights: Weights,
    tokenizer: "AlbertTokenizer | None",
    *,
    task: dict[str, Any] | None = None,
    overwrite: bool = False,
) -> list[str]:
    """Writes a folder that `from_pretrained` of transformers reads: of AlbertModel, or the class of the weights' head.

    Args:
        folder: the folder to create; with `overwrite`, a Hugging Face checkpoint there is replaced, and nothing else.
        config: the encoder's shape.
        weights: our names.
        tokenizer: its files are written too; None writes the model alone.
        task: as in `Checkpoint`: the labels of a fine-tuned head.

    Returns:
        What is otherwise in transformers than here, in words.

    Raises:
        InputError: the folder exists, or transformers has no form for the architecture or the head.
    """
    folder = Path(folder)
    grouped = grouped_config(config, "Hugging Face")
    weights, left_out = settings_in_weights(weights, task, ("labels", "classifier_dropout", "head"))
    architecture = _architecture(weights)
    settings = (task or {}).get("settings", {})
    fields = fields_of(grouped, architecture, settings.get("classifier_dropout"))
    fields |= label_fields(architecture, weights, task)
    if tokenizer is not None:
        vocabulary = tokenizer.vocabulary
        fields |= {
            "pad_token_id": vocabulary.pad_id,
            "bos_token_id": vocabulary.cls_id,
            "eos_token_id": vocabulary.sep_id,
        }
    differences = ["no dropout after the feed-forward half of a layer"] if config.hidden_dropout else []
    if architecture == "AlbertModel" and "pooler/kernel" not in weights:
        differences.append("AlbertModel makes a pooler of its own, which is untrained: pooler_output means nothing")
    differences += left_out
    what = "a Hugging Face checkpoint"
    with written_checkpoint(folder, WEIGHTS_FILE, what, config, weights, overwrite=overwrite) as temporary:
        text = json.dumps(fields, indent=2, ensure_ascii=False) + "\n"
        (temporary / CONFIG_NAME).write_text(text, encoding="utf-8")
        tensors = _tensors(grouped, with_projection(config, weights), prefixed=architecture != "AlbertModel")
        write_safetensors(temporary / WEIGHTS_FILE, tensors, {"format": "pt"})
        if tokenizer is not None:
            differences += write_tokenizer_files(temporary, tokenizer)
    return differences


# === In ===


def _stored(folder: Path) -> dict[str, StoredTensor]:
    """The tensors without the encoder's prefix, which a file of AlbertModel alone does not have."""
    found = [name for name in WEIGHT_FILES if is_there(folder / name)]
    if not found:
        raise InputError(f"{folder}: expected one of {', '.join(WEIGHT_FILES)}; there is none")
    open_file = WEIGHT_FILES[found[0]]
    path = folder / found[0]
    stored = sharded(path, open_file) if path.suffix == ".json" else open_file(path)
    tensors = {name.removeprefix(_ENCODER_PREFIX): tensor for name, tensor in stored.items()}
    if len(tensors) < len(stored):
        twice = [name for name in stored if f"{_ENCODER_PREFIX}{name}" in stored]
        raise InputError(f"{path}: {listing(twice)} also with {_ENCODER_PREFIX!r} before it; expected one encoder")
    return tensors


def _without_copies(folder: Path, tensors: dict[str, StoredTensor]) -> dict[str, StoredTensor]:
    """Tied weights under their first name alone."""
    tensors = dict(tensors)
    for copy, original in _TIED.items():
        if copy not in tensors:
            continue
        second = tensors.pop(copy)
        first = tensors.setdefault(original, second)
        if first is not second and not (first.shape == second.shape and np.array_equal(first.read(), second.read())):
            raise InputError(
                f"{folder}: {copy} is not {original}: the masked-word head is not tied to the word table, as ALBERT's is"
            )
    return tensors


def _expected(config: AlbertConfig, tensors: Collection[str], head: Head | None, labels: list[str]) -> Shapes:
    """Our name → shape: the encoder, and the heads that the file has anything of."""

    def has(prefix: str) -> bool:
        return any(name.startswith(prefix) for name in tensors)

    shapes = backbone_weight_shapes(config, pooler=has("pooler.")) | projection_shapes(config)
    parts = [part for part, prefix in (("masked_lm/", "predictions."), ("sentence_order/", "sop_")) if has(prefix)]
    pretraining = pretraining_head_weight_shapes(config)
    shapes |= {name: shape for name, shape in pretraining.items() if name.startswith(tuple(parts))}
    if head is not None:
        outputs = len(labels) if head.outputs is None else head.outputs
        shapes |= {f"{head.name}/kernel": (config.hidden_dim, outputs), f"{head.name}/bias": (outputs,)}
    return shapes


def _table(config: AlbertConfig, names: Collection[str]) -> dict[str, _Tensor]:
    """Our name → tensor, for these names of ours."""
    table = dict(_TABLE)
    for n in range(config.num_groups * config.num_inner_repetitions):
        g, i = divmod(n, config.num_inner_repetitions)
        table |= {ours.format(n=n): t._replace(name=t.name.format(g=g, i=i)) for ours, t in _BLOCK.items()}
    return {name: table[name] for name in names}


def _check_position_ids(folder: Path, tensors: dict[str, StoredTensor]) -> None:
    if _POSITION_IDS in tensors:
        ids = tensors[_POSITION_IDS].read().ravel()
        if not np.array_equal(ids, np.arange(ids.size)):
            raise InputError(f"{folder}: {_POSITION_IDS} is not 0, 1, 2, …; ALBERT has no other order of positions")


# === Out ===


def _architecture(weights: Weights) -> str:
    """The class of transformers that has these heads."""
    parts = {name.partition("/")[0] for name in weights} - {"embeddings", "encoder"}
    with_pooler = {"AlbertModel": set(), "AlbertForPreTraining": {"masked_lm", "sentence_order"}} | {
        name: {head.name} for name, head in HEADS.items()
    }
    without_pooler = {"AlbertForMaskedLM": {"masked_lm"}} | {
        name: with_pooler[name]
        for name in ("AlbertModel", "AlbertForTokenClassification", "AlbertForQuestionAnswering")
    }
    heads = {"classifier" if part == "multi_label" else part for part in parts - {"pooler"}}
    found = [name for name, wanted in (with_pooler | without_pooler).items() if wanted == heads]
    homeless = sorted(name for name in weights if name not in _TABLE and not name.startswith("encoder/"))
    if not found or homeless:
        weights_of_them = f"; no tensor for {listing(homeless)}" if homeless else ""
        raise InputError(
            f"Hugging Face has no class with the heads {', '.join(sorted(heads))} of this checkpoint{weights_of_them}"
        )
    if "pooler" not in parts and found[0] not in without_pooler:
        raise InputError(f"{found[0]} of Hugging Face needs a pooler, which this checkpoint has not")
    return found[0]


def _tensors(config: AlbertConfig, weights: Weights, *, prefixed: bool) -> Weights:
    tensors = {}
    for ours, (theirs, transposed) in _table(config, weights).items():
        name = _ENCODER_PREFIX + theirs if prefixed and theirs.startswith(_ENCODER_PARTS) else theirs
        tensors[name] = np.ascontiguousarray(weights[ours].T if transposed else weights[ours])
    return tensors
