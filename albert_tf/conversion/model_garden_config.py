"""What a TF Model Garden model says of its shape outside its weights: a training's params.yaml, or a SavedModel.

Everything is returned under the names of `AlbertConfig`'s fields, and `masked_lm_activation`, which is the head's own.
"""

import json
import reprlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from albert_tf.conversion.saved_model import read_saved_model
from albert_tf.errors import InputError
from albert_tf.files import read_text, refuse_special

Fields = dict[str, Any]

MASKED_LM_ACTIVATION = "masked_lm_activation"
_METADATA_FILE = "keras_metadata.pb"
_MAX_YAML = 2**20
_LAYER = "layer"
_DEFAULT_RANGE = 0.02
# Arguments of AlbertEncoder, and the fields of AlbertEncoderConfig where those differ → ours.
_NAMES = {
    "vocab_size": "vocabulary_size",
    "embedding_width": "embedding_dim",
    "hidden_size": "hidden_dim",
    "intermediate_size": "intermediate_dim",
    "num_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "max_sequence_length": "max_sequence_length",
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "num_segments",
    "dropout_rate": "hidden_dropout",
    "attention_dropout_rate": "attention_dropout",
    "initializer_range": "initializer_range",
}
# In a params.yaml, official.modeling.tf_utils.get_activation knows "gelu" as the tanh form.
_CONFIGURED_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu", "linear": "linear", "identity": "linear"}
# In a SavedModel it is the function's registered name: the Garden's gelu is the tanh form, that of Keras is not.
_SAVED_ACTIVATIONS = {"Text>gelu": "gelu_tanh", "gelu": "gelu_erf", "relu": "relu", "linear": "linear"}
_ACTIVATION_OPS = {"Tanh": "gelu_tanh", "Erf": "gelu_erf", "Erfc": "gelu_erf", "Relu": "relu"}


def params_fields(path: Path) -> Fields:
    """The encoder in a params.yaml, as the Garden's trainer writes it beside its checkpoints.

    Raises:
        InputError: not such a file, another encoder than ALBERT, or PyYAML is not installed.
    """
    try:
        model = _read_yaml(path)["task"]["model"]
        encoder = model["encoder"]
        kind, fields = encoder["type"], encoder.get("albert")
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: expected a Model Garden params.yaml with task: model: encoder: albert") from error
    if kind != "albert" or not isinstance(fields, dict):
        found = reprlib.repr(kind)
        raise InputError(f"{path}: expected an encoder of type albert, found {found}; albert-tf reads ALBERT only")
    if unknown := sorted(str(name)[:50] for name in fields.keys() - {*_NAMES, "hidden_activation"}):
        raise InputError(f"{path}: encoder: albert: unknown keys {', '.join(unknown)}: no AlbertEncoder has them")
    if odd := [
        str(name)[:50] for name, value in fields.items() if not isinstance(value, (str, int, float, type(None)))
    ]:
        raise InputError(f"{path}: encoder: albert: {odd[0]}: expected a number or a name")
    ours = {_NAMES[name]: value for name, value in fields.items() if name in _NAMES}
    ours["activation"] = _known(fields.get("hidden_activation"), _CONFIGURED_ACTIVATIONS, path, "hidden_activation")
    if "mlm_activation" in model:
        known = _known(model["mlm_activation"], _CONFIGURED_ACTIVATIONS, path, "mlm_activation")
        ours[MASKED_LM_ACTIVATION] = known
    return ours


def _read_yaml(path: Path) -> Any:
    """The contents of a small YAML file; `<<`, which doubles what it merges again and again, is not taken.

    Raises:
        InputError: not readable, not YAML, too large, or PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError as error:
        raise InputError(f"reading {path} needs PyYAML: pip install pyyaml") from error

    class Loader(yaml.SafeLoader):
        def flatten_mapping(self, node: Any) -> None:
            if any(key.tag.endswith(":merge") for key, _ in node.value):
                raise yaml.YAMLError("<< is not taken")

    refuse_special(path)
    text = read_text(path)
    if len(text) > _MAX_YAML:
        raise InputError(f"{path}: expected a Model Garden params.yaml, which is small; found {len(text)} characters")
    try:
        return yaml.load(text, Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date with a month 13
        raise InputError(
            f"{path}: expected a Model Garden params.yaml, found no YAML that can be read: {error}"
        ) from error


def saved_model_fields(folder: Path) -> Fields:
    """The encoder in a SavedModel: from Keras's metadata, or where there is none, from the operations of its graph.

    Empty where neither tells.

    Raises:
        InputError: a damaged file, or an activation that is not ours.
    """
    from google.protobuf.message import DecodeError

    path = folder / _METADATA_FILE
    graph = read_saved_model(folder)
    metadata = [node.user_object.metadata for node in graph.object_graph_def.nodes]  # where TensorFlow 2.4 has it
    try:
        if path.is_file():
            metadata += [node.metadata for node in _metadata_class().FromString(path.read_bytes()).nodes]
        layers = [json.loads(text) for text in metadata if text]
    except (DecodeError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: damaged: {error}; copy the folder again") from error
    encoders = [layer["config"] for layer in layers if _is_encoder(layer)]
    if any(encoder != encoders[0] for encoder in encoders):
        raise InputError(f"{folder}: expected one ALBERT encoder, found {len(encoders)} different ones")
    try:
        return _argument_fields(encoders[0], folder) if encoders else _graph_fields(graph)
    except RecursionError as error:
        raise InputError(f"{folder}: functions that call functions, a thousand deep; this is no encoder") from error


def _is_encoder(layer: Any) -> bool:
    """AlbertEncoder, or its name of 2020, AlbertTransformerEncoder; the package before it has changed too."""
    names = ("AlbertEncoder", "AlbertTransformerEncoder")
    found = isinstance(layer, dict) and isinstance(layer.get("config"), dict)
    return found and str(layer.get("class_name")).endswith(names)


def _argument_fields(arguments: dict[str, Any], path: Path) -> Fields:
    """The constructor's arguments as Keras serialised them."""
    ours = {_NAMES[name]: value for name, value in arguments.items() if name in _NAMES}
    activation = arguments.get("activation")
    if isinstance(activation, dict):
        activation = activation.get("config")
    ours["activation"] = _known(activation, _SAVED_ACTIVATIONS, path, "activation")
    initializer = arguments.get("initializer")
    if isinstance(initializer, dict) and isinstance(initializer.get("config"), dict):
        ours["initializer_range"] = initializer["config"].get("stddev", _DEFAULT_RANGE)
    return ours


def _graph_fields(graph: Any) -> Fields:
    """Counts what one run of the served function does: each layer has one softmax over attention scores."""
    functions = {function.signature.name: function.node_def for function in graph.graph_def.library.function}
    nodes = {node.name: node for node in graph.graph_def.node}
    signature = graph.signature_def.get("serving_default")
    if signature is None or not signature.outputs:
        return {}
    starts = {tensor.name.partition(":")[0] for tensor in signature.outputs.values()}
    counts = _counts([nodes[name] for name in sorted(starts) if name in nodes], functions, {})
    layers = counts.pop(_LAYER, 0)
    return {"num_layers": layers, "activation": counts.popitem()[0]} if layers and len(counts) == 1 else {}


def _counts(nodes: Iterable[Any], functions: Mapping[str, Any], known: dict[str, Counter[str]]) -> Counter[str]:
    """How often a run of the nodes, and of the functions that they call, does what tells of the encoder.

    Args:
        nodes: of a graph or function.
        functions: name → nodes.
        known: name → counts of functions, filled on the way. A function that calls itself, which no encoder does, and
            one that calls another twice, that one a third twice, and so on, take no time.
    """
    found: Counter[str] = Counter()
    for node in nodes:
        if node.op == "Softmax" and "self_attention" in node.name:
            found[_LAYER] += 1
        if node.op in _ACTIVATION_OPS and "/transformer/activation" in node.name:
            found[_ACTIVATION_OPS[node.op]] += 1
        for value in node.attr.values():
            name = value.func.name if value.WhichOneof("value") == "func" else ""
            if name in functions:
                if name not in known:
                    known[name] = Counter()  # until it is counted
                    known[name] = _counts(functions[name], functions, known)
                found += known[name]
    return found


def _known(name: Any, activations: dict[str, str], path: Path, key: str) -> str:
    if name not in tuple(activations):
        raise InputError(f"{path}: {key}: expected one of {', '.join(activations)}; found {reprlib.repr(name)}")
    return activations[name]


def _metadata_class() -> Any:
    """The message in keras_metadata.pb (keras/protobuf/saved_metadata.proto); TensorFlow no longer has its class."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="albert_tf/metadata.proto", package="albert_tf", syntax="proto3")
    node = file.message_type.add(name="SavedObject")
    node.field.add(name="metadata", number=5, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    whole = file.message_type.add(name="SavedMetadata")
    whole.field.add(
        name="nodes",
        number=1,
        type=field.TYPE_MESSAGE,
        type_name=".albert_tf.SavedObject",
        label=field.LABEL_REPEATED,
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("albert_tf.SavedMetadata"))
