"""TF Model Garden (official.nlp.modeling): object checkpoints and SavedModels of AlbertEncoder, in and out.

Sources: a checkpoint of AlbertEncoder alone, inside any other object, or in BertPretrainerV2, BertClassifier,
BertTokenClassifier or BertSpanLabeler; a SavedModel of one of them, among them TF-Hub's `tensorflow/albert_en_*/3` with
its `mlm`. The Garden's own code is not needed.

All layers share one object, so a checkpoint does not say how many there are, nor which activation they have: that comes
from a config given or lying beside it, or from a SavedModel's own description.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from albert_tf.config import CONFIGS, AlbertConfig
from albert_tf.conversion.assign import listing
from albert_tf.conversion.checkpoint import Checkpoint, Weights, answering_task, settings_in_weights, written_checkpoint
from albert_tf.conversion.model_garden_config import MASKED_LM_ACTIVATION, Fields, params_fields, saved_model_fields
from albert_tf.conversion.model_garden_tables import (
    AXES,
    CLASSIFIER,
    MASKED_LM,
    SENTENCE_ORDER,
    SPANS,
    TOKEN_CLASSIFIER,
    WORD_TABLE,
    Part,
    Table,
    encoder_table,
    find_parts,
)
from albert_tf.conversion.object_graph import GRAPH, ObjectGraph
from albert_tf.conversion.saved_model import FILE_NAME as SAVED_MODEL_FILE
from albert_tf.conversion.stored import read_largest_first
from albert_tf.conversion.tf1_files import (
    checkpoint_prefix,
    closest,
    errors_of_the_disk,
    prefix_in,
    refuse_patterns,
    vocabulary_in,
)
from albert_tf.errors import InputError
from albert_tf.parameters import backbone_weight_shapes

if TYPE_CHECKING:
    from albert_tf.tokenization.tokenizer import AlbertTokenizer

_LOG = logging.getLogger(__name__)

FORM = "model garden"
# Config files that are looked for beside a checkpoint.
_CONFIGS = ("*params*.yaml", "albert_config*.json", "config.json")
# What AlbertEncoder is, whatever its arguments.
_FIXED = {
    "factorization": "embeddings",
    "sharing": "all",
    "num_groups": 1,
    "num_inner_repetitions": 1,
    "layer_norm_epsilon": 1e-12,
    "attention_dim": None,
}
_NOT_IN_WEIGHTS = ("num_layers", "activation", "hidden_dropout", "attention_dropout", "initializer_range")
# Names on the way to what a training or a SavedModel keeps beside the weights; it is left behind.
_STATE = {".OPTIMIZER_SLOT", "optimizer", "save_counter", "global_step", "keras_api", "do_lower_case", GRAPH}
# Heads that the Garden's models have.
_HEADS: dict[str, Table] = {
    "masked_lm": MASKED_LM,
    "sentence_order": SENTENCE_ORDER,
    "classifier": CLASSIFIER,
    "token_classification": TOKEN_CLASSIFIER,
    "question_answering": SPANS,
}
_PRETRAINING = {"masked_lm", "sentence_order"}


def read_model_garden(source: str | Path, config: AlbertConfig | str | Path | None = None) -> Checkpoint:
    """Reads a checkpoint or SavedModel strictly: every variable is known and fits, or it is an error.

    Dimensions are those of the weights. What they do not tell (the number of layers, the activation, dropout) is
    `config`'s, else the SavedModel's, else that of the one config file beside the checkpoint.

    Where a head has a dense layer of its own in front (ClassificationHead with `inner_dim`), that is the pooler: the
    encoder's own got no gradient and is left behind, as with the Garden's `copy_pooler_dense_to_encoder`. A warning
    says so where they differ.

    Args:
        source: a checkpoint's folder, prefix or .index file, or a SavedModel's folder.
        config: a config, the name of a published one, or a config file (albert_config.json, ours, or params.yaml).

    Raises:
        InputError: files missing, ambiguous or damaged; no ALBERT encoder in them, or several; variables missing,
            unknown or misshapen; a config that is missing or disagrees with the weights.
    """
    path = Path(source)
    prefix = model_garden_prefix(path)
    graph = ObjectGraph(prefix)
    parts = find_parts(graph)
    keys, sizes = _matched(graph, parts)
    folder = path if path.is_dir() else prefix.parent
    fields = _found_fields(folder) if config is None else _given_fields(config)
    config = _fitting(fields, sizes, masked_lm="masked_lm" in parts, source=str(path))
    shapes = backbone_weight_shapes(config)
    weights = read_largest_first(
        {ours: graph.reader.stored(key) for ours, key in keys.items()},
        lambda ours, values: values.reshape(shapes.get(ours, values.shape)),
    )
    _read_rest(graph, parts, keys, weights, source=str(path))
    rules = _text_rules(graph)
    vocabulary = vocabulary_in(folder)
    return Checkpoint(FORM, str(path), config, weights, vocabulary, rules, answering_task(weights))


def _read_rest(
    graph: ObjectGraph, parts: Mapping[str, Part], keys: Mapping[str, str], weights: Weights, *, source: str
) -> None:
    """Reads what is left behind, for its checksum, and says so if that is a pooler with weights of its own."""
    encoder, head = parts["encoder"], parts.get("pooler")
    of_encoder = {graph.key(encoder.node, encoder.table[ours].path): ours for ours in (head.table if head else ())}
    differs = False
    for key in sorted(graph.reader.shapes.keys() - {GRAPH, *keys.values()}):
        value = graph.reader.value(key)
        differs |= key in of_encoder and not np.array_equal(value, weights[of_encoder[key]])
    if differs:
        _LOG.warning(
            "%s: the pooler is the head's own; the encoder's, which the head does not use, is left behind", source
        )


def model_garden_prefix(source: Path) -> Path:
    """The prefix of the checkpoint that a folder, a SavedModel, a prefix or one of a checkpoint's files means.

    Raises:
        InputError: none, or several.
    """
    if (source / SAVED_MODEL_FILE).is_file():
        return source / "variables" / "variables"
    prefix = prefix_in(source) if source.is_dir() else checkpoint_prefix(source)
    if prefix is None:
        raise InputError(f"{source}: expected a Model Garden checkpoint (folder, prefix or .index file) or SavedModel")
    return prefix


def write_model_garden(
    folder: str | Path,
    config: AlbertConfig,
    weights: Weights,
    tokenizer: "AlbertTokenizer | None",
    *,
    task: dict[str, Any] | None = None,
    overwrite: bool = False,
) -> list[str]:
    """Writes a folder with a checkpoint as the Garden's trainer saves one, the config and the vocabulary.

    `tf.train.Checkpoint(encoder=encoder).restore(tf.train.latest_checkpoint(folder))` restores it, where `encoder` is an
    AlbertEncoder of these dimensions. In the checkpoint, `model` is that encoder too, or with a head the whole model
    (BertPretrainerV2, BertClassifier, BertTokenClassifier, BertSpanLabeler); `masked_lm` and
    `next_sentence.pooler_dense` are BertPretrainerV2's further `checkpoint_items`.

    Args:
        folder: the folder to create; with `overwrite`, a checkpoint's folder there is replaced, and nothing else is.
        config: the encoder's shape; in albert_config.json, or where that has no form for it in our own config.json.
        weights: our names.
        tokenizer: its vocabulary file is written too, without its text rules, which have no place there.
        task: as in `Checkpoint`; a checkpoint has no place for it.

    Returns:
        What is otherwise in the Model Garden than here, in words.

    Raises:
        InputError: the folder exists, or the architecture or a head has no form there.
    """
    folder = Path(folder)
    refuse_patterns(folder)
    weights, left_out = settings_in_weights(weights, task, ("labels", "head"))
    what = "a Model Garden checkpoint"
    with written_checkpoint(folder, "checkpoint", what, config, weights, overwrite=overwrite) as temporary:
        objects = _objects(config, weights, source=f"weights for {folder}")
        with errors_of_the_disk():
            _trackable(objects, {}).save(str(temporary / "ckpt"))
        published = config.activation != "gelu_erf"
        config.to_json(temporary / ("albert_config.json" if published else "config.json"), published=published)
        if tokenizer is not None:
            tokenizer.vocabulary.save(temporary)
    differences = []
    if not published:
        differences.append('"gelu" is the tanh form; build AlbertEncoder with activation=tf_keras.activations.gelu')
    if labels := (task or {}).get("settings", {}).get("labels"):
        differences.append(f"labels have numbers only: {', '.join(labels)}")
    return differences + left_out


def _matched(graph: ObjectGraph, parts: Mapping[str, Part]) -> tuple[dict[str, str], dict[str, int]]:
    """Our name → name in the file, and axis → size, after comparing the whole file with the parts' tables."""
    shapes = graph.reader.shapes
    keys: dict[str, str] = {}
    known: set[str] = set()
    sizes = {"2": 2}
    missing, misshapen = [], []
    for part in parts.values():
        for ours, (path, axes) in part.table.items():
            key = graph.key(part.node, path)
            if key is None or key not in shapes:
                missing.append(f"{path} (our {ours})")
                continue
            if key in known and keys.get(ours) != key:
                raise InputError(f"{graph.reader.prefix}: {key} is the variable of two places, {ours} and another")
            known.add(key)
            keys[ours] = key
            expected = None
            if len(shapes[key]) == len(axes):
                expected = tuple(sizes.setdefault(axis, size) for axis, size in zip(axes, shapes[key], strict=True))
            if shapes[key] != expected:
                misshapen.append(f"{key} is {shapes[key]}, expected {expected or tuple(axes)}")
    if not missing and not misshapen and sizes["A"] * sizes["D"] != sizes["H"]:
        misshapen.append(f"{sizes['A']} heads of {sizes['D']} do not make the width {sizes['H']}")
    unknown = sorted(f"{key} {shapes[key]}" for key in shapes.keys() - known if not _STATE & set(key.split("/")))
    problems = (("missing", missing), ("unknown", unknown), ("of another shape", misshapen))
    told = "; ".join(f"{len(items)} {what}: {listing(items)}" for what, items in problems if items)
    if told:
        raise InputError(f"{graph.reader.prefix}: not the variables of an ALBERT of the TF Model Garden: {told}")
    return keys, sizes


def _fitting(fields: Fields, sizes: Mapping[str, int], *, masked_lm: bool, source: str) -> AlbertConfig:
    """The dimensions of the weights with the rest of `fields`, which must not disagree.

    The segment table may: AlbertEncoder's own default is 16 rows, where AlbertEncoderConfig's is 2.
    """
    dimensions: Fields = {field: sizes[axis] for axis, field in AXES.items()}
    wrong = [
        f"{field} is {fields[field]!r}, not {value!r}"
        for field, value in (dimensions | _FIXED).items()
        if field != "num_segments" and fields.get(field, value) != value
    ]
    if wrong:
        raise InputError(f"{source}: the config disagrees with the weights: {'; '.join(wrong)}")
    if "num_layers" not in fields:
        raise InputError(f"{source}: the config does not say how many layers share the weights (num_layers)")
    head = fields.get(MASKED_LM_ACTIVATION, fields["activation"])
    if masked_lm and head != fields["activation"]:
        raise InputError(
            f"{source}: the masked-word head has the activation {head}, the encoder {fields['activation']}; albert-tf "
            "has one for both"
        )
    try:
        return AlbertConfig(**dimensions, **{field: fields[field] for field in _NOT_IN_WEIGHTS if field in fields})
    except InputError as error:
        raise InputError(f"{source}: {error}") from error


def _given_fields(config: AlbertConfig | str | Path) -> Fields:
    if isinstance(config, AlbertConfig):
        return config.to_dict()
    if str(config) in CONFIGS:
        return CONFIGS[str(config)].to_dict()
    path = Path(config)
    return params_fields(path) if path.suffix in (".yaml", ".yml") else AlbertConfig.from_json(path).to_dict()


def _found_fields(folder: Path) -> Fields:
    """What a SavedModel says, else the one config file in the folder."""
    if (folder / SAVED_MODEL_FILE).is_file() and (fields := saved_model_fields(folder)):
        return fields
    files = closest(folder, *_CONFIGS)
    if len(files) == 1:
        return _given_fields(files[0])
    raise InputError(
        f"{folder}: a Model Garden checkpoint does not say how many layers share its weights, nor their activation: give "
        "the config (albert-tf convert --config FILE or NAME), or put one albert_config.json, or the training's "
        f"params.yaml, there; found {listing([path.name for path in files]) or 'none'}"
    )


def _text_rules(graph: ObjectGraph) -> dict[str, bool]:
    """Whether text is lower-cased, which a TF-Hub SavedModel with a WordPiece vocabulary says."""
    key = graph.key(0, "do_lower_case")
    return {} if key is None else {"lower": bool(graph.reader.value(key))}


def _objects(config: AlbertConfig, weights: Weights, *, source: str) -> dict[str, Any]:
    """The tree to save: attribute → object, or array; what is one object in it becomes one in the file."""
    odd = [f"{field}={getattr(config, field)!r}" for field, value in _FIXED.items() if getattr(config, field) != value]
    if config.masked_lm_layer_norm_epsilon not in (None, config.layer_norm_epsilon):
        odd.append(f"masked_lm_layer_norm_epsilon={config.masked_lm_layer_norm_epsilon}")
    if odd:
        raise InputError(f"{source}: the TF Model Garden's AlbertEncoder has no form for {', '.join(odd)}")
    tables = {name: table for name, table in _HEADS.items() if not weights.keys().isdisjoint(table)}
    encoder_variables = encoder_table(config.has_projection)
    expected = set(encoder_variables).union(*tables.values())
    missing, homeless = sorted(expected - weights.keys()), sorted(weights.keys() - expected)
    if missing or homeless or (len(tables) > 1 and tables.keys() != _PRETRAINING):
        raise InputError(
            f"{source}: the TF Model Garden has no such model of an AlbertEncoder: heads "
            f"{listing(sorted(tables)) or 'none'}; no variable for {listing(homeless) or 'none'}; missing "
            f"{listing(missing) or 'none'}"
        )
    encoder = _filled(encoder_variables, config, weights)
    heads = {name: _filled(table, config, weights) for name, table in tables.items()}
    if not heads:
        return {"encoder": encoder, "model": encoder}
    if not _PRETRAINING.isdisjoint(heads):
        return _pretrainer(encoder, heads)
    ((name, head),) = heads.items()
    attribute = "span_labeling" if name == "question_answering" else "classifier"
    model = {"layer_with_weights-0": encoder, "layer_with_weights-1": head, attribute: head}
    return {"encoder": encoder, "model": model}


def _pretrainer(encoder: dict[str, Any], heads: dict[str, Any]) -> dict[str, Any]:
    """BertPretrainerV2 and its `checkpoint_items`. Its sentence head has a pooler of its own: a copy of the encoder's."""
    model: dict[str, Any] = {"encoder_network": encoder}
    objects = {"encoder": encoder, "model": model}
    if "masked_lm" in heads:
        layer, table = WORD_TABLE.split("/")
        model["masked_lm"] = objects["masked_lm"] = heads["masked_lm"] | {"embedding_table": encoder[layer][table]}
    if "sentence_order" in heads:
        dense = {name: value.copy() for name, value in encoder[max(encoder)].items()}  # its last layer is the pooler
        model["classification_heads"] = {"0": heads["sentence_order"] | {"dense": dense}}
        objects["next_sentence.pooler_dense"] = dense
    return objects


def _filled(table: Table, config: AlbertConfig, weights: Weights) -> dict[str, Any]:
    sizes = {"H": config.hidden_dim, "A": config.num_heads, "D": config.head_dim}
    objects: dict[str, Any] = {}
    for ours, (path, axes) in table.items():
        *way, last = path.split("/")
        at = objects
        for name in way:
            at = at.setdefault(name, {})
        weight = np.asarray(weights[ours], np.float32)
        at[last] = weight.reshape([sizes[axis] for axis in axes]) if "A" in axes else weight
    return objects


def _trackable(value: Any, made: dict[int, Any]) -> Any:
    """What TensorFlow saves: a variable for each array, an object for each dict; the same one for the same."""
    import tensorflow as tf

    if id(value) not in made:
        if isinstance(value, dict):
            children = {name: _trackable(child, made) for name, child in value.items()}
            made[id(value)] = tf.train.Checkpoint(**children)
        else:
            made[id(value)] = tf.Variable(value)
    return made[id(value)]
