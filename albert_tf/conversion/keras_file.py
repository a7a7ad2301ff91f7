"""What `model.save("x.keras")` writes of this package's models: config.json, model.weights.h5 and assets/ in a zip, or in
a folder with `zipped=False`.

A weight's name here is the path of its Keras variable. The file has that path too: Keras writes the name of each layer
beside the layer's variables, which it numbers.
"""

import os
import re
from pathlib import Path
from typing import Any

from albert_tf.config import AlbertConfig
from albert_tf.conversion.assign import check_shapes
from albert_tf.conversion.checkpoint import Checkpoint, checked_task
from albert_tf.conversion.hdf5 import hdf5_tensors_in
from albert_tf.conversion.stored import StoredTensor, read_largest_first, refuse_pointer
from albert_tf.errors import InputError
from albert_tf.files import read_json
from albert_tf.parameters import Shapes, backbone_weight_shapes, pretraining_head_weight_shapes

FORM = "keras model"
SUFFIX = ".keras"
CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.weights.h5"
ASSETS_FOLDER = "assets"

_PACKAGE = "albert_tf>"
_BACKBONE = "AlbertBackbone"
_PRETRAINER = "AlbertPretrainer"
_ZIP = b"PK\x03\x04"
# Class → its task; None for the two that have no settings.
_TASKS = {
    _BACKBONE: None,
    _PRETRAINER: None,
    "AlbertTextClassifier": "classification",
    "AlbertTextRegressor": "regression",
    "AlbertTokenClassifier": "tagging",
    "AlbertMultipleChoice": "multiple-choice",
    "AlbertQuestionAnswerer": "question-answering",
    "AlbertTextEmbedder": "similarity",
    "AlbertMaskedLM": "fill-mask",
    "AlbertMultiLabelClassifier": "multi-label",
}
# Task → its head, with an output for each label.
_LABELLED = {"classification": "classifier", "multi-label": "multi_label", "tagging": "token_classification"}
# Where the encoder is in the file of a task.
_OWN_BACKBONE = "layers/albert_backbone"
# End of a layer's name → its variables, as Keras numbers them; of every other layer they are those of a dense one.
_VARIABLES = {"layer_norm": ("gamma", "beta"), "embedding": ("embeddings",), "masked_lm": ("output_bias",)}
_OF_DENSE = ("kernel", "bias")
# State of a training's optimizer and of random generators; it is left behind.
_STATE = re.compile(r"optimizer/vars/\d+|(.*/)?seed_generator(_\d+)?/vars/\d+")


def is_keras_folder(folder: Path) -> bool:
    """Whether it is a model of this package that was saved with `zipped=False`, or unzipped by hand."""
    if not (folder / CONFIG_FILE).is_file():
        return False
    try:
        saved = read_json(folder / CONFIG_FILE)
    except InputError:  # the reader will tell
        return False
    return isinstance(saved, dict) and str(saved.get("registered_name")).startswith(_PACKAGE)


def refuse_other_file(path: Path) -> None:
    """Raises InputError unless a file begins as those do that Keras 3 saves."""
    refuse_pointer(path)
    with path.open("rb") as file:
        if file.read(len(_ZIP)) != _ZIP:
            raise InputError(
                f"{path}: not a Keras model file: expected a zip, as Keras 3 saves it; it is of another kind or damaged"
            )


def read_keras(folder: str | Path) -> Checkpoint:
    """Reads an unzipped model.

    Raises:
        InputError: not a model of this package; files missing or damaged; variables missing, unknown, not of the
            config's shape or not finite.
    """
    folder = Path(folder)
    path = folder / CONFIG_FILE
    class_name, fields = _object(path, read_json(path), "the model")
    if class_name not in _TASKS:
        raise InputError(f"{path}: this version of albert-tf knows no {class_name}; expected {', '.join(_TASKS)}")
    kind, encoder, task = _TASKS[class_name], fields, None
    if class_name != _BACKBONE:
        within, encoder = _object(path, fields.get("backbone"), "backbone")
        if within != _BACKBONE:
            raise InputError(f"{path}: backbone: expected {_BACKBONE}, found {within}")
    if kind is not None:
        settings = {name: value for name, value in fields.items() if name not in ("backbone", "name")}
        task = checked_task({"task": kind, "settings": settings}, str(path))
    config = AlbertConfig.from_dict(encoder.get("config"), source=str(path))  # type: ignore[arg-type]  # checked there
    shapes = backbone_weight_shapes(config, pooler=_pooler(path, encoder))
    if class_name == _PRETRAINER:
        shapes |= pretraining_head_weight_shapes(config)
    elif kind == "fill-mask":
        heads = pretraining_head_weight_shapes(config)
        shapes |= {name: shape for name, shape in heads.items() if name.startswith("masked_lm/")}
    elif task is not None:
        shapes |= _head_shapes(config.hidden_dim, task["task"], task["settings"], path)
    stored = _stored(folder / WEIGHTS_FILE, "" if class_name == _BACKBONE else _OWN_BACKBONE)
    check_shapes(stored, shapes, source=str(folder / WEIGHTS_FILE))
    weights = read_largest_first({name: stored[name] for name in shapes}, lambda name, values: values)
    assets = folder / ASSETS_FOLDER
    if os.path.lexists(assets) and not assets.is_dir():
        raise InputError(f"{assets}: expected a folder with the tokenizer's files; it is none")
    tokenizer = assets if assets.is_dir() and any(assets.iterdir()) else None
    return Checkpoint(FORM, str(folder), config, weights, tokenizer, task=task)


def _object(path: Path, saved: Any, what: str) -> tuple[str, dict[str, Any]]:
    """Class and config of one of this package's objects."""
    fields = saved.get("config") if isinstance(saved, dict) else None
    name = saved.get("registered_name") if isinstance(saved, dict) else None
    if not isinstance(fields, dict):
        raise InputError(f'{path}: {what}: expected an object that Keras saved, with "config"')
    if not isinstance(name, str) or not name.startswith(_PACKAGE):
        found = name if isinstance(name, str) else saved.get("class_name")
        raise InputError(
            f"{path}: {what} is of the class {found!r}, not one of albert-tf's; to read a model of keras_hub, save it with "
            "save_to_preset; of a model of your own around an AlbertBackbone, save that"
        )
    return name.removeprefix(_PACKAGE), fields


def _pooler(path: Path, encoder: dict[str, Any]) -> bool:
    pooler = encoder.get("pooler", True)
    if not isinstance(pooler, bool):
        raise InputError(f"{path}: pooler: expected true or false, found {pooler!r}")
    return pooler


def _head_shapes(width: int, task: str, settings: dict[str, Any], path: Path) -> Shapes:
    """Name → shape of a task's head; the names are explained in `albert_tf.conversion.checkpoint`."""
    labels = settings.get("labels")
    if task in _LABELLED:
        if labels is None:
            raise InputError(f"{path}: expected the names of the labels, found none")
        return _dense(_LABELLED[task], width, len(labels))
    if task == "regression":
        return _dense("classifier", width, 1)
    if task == "multiple-choice":
        return _dense("multiple_choice", width, 1)
    if task == "similarity":
        length = settings.get("projection_dim")
        projection = {} if length is None else _dense("sentence_projection", width, length)
        return projection | (_dense("pair_classifier", 3 * (length or width), len(labels)) if labels else {})
    if settings.get("head", "span") == "span":
        return _dense("question_answering", width, 2)
    return {
        **_dense("question_answering/start", width, 1),
        **_dense("question_answering/end_hidden", 2 * width, width),
        **{f"question_answering/end_layer_norm/{part}": (width,) for part in ("gamma", "beta")},
        **_dense("question_answering/end", width, 1),
        **_dense("question_answering/no_answer_hidden", 2 * width, width),
        "question_answering/no_answer/kernel": (width, 1),
    }


def _dense(name: str, inputs: int, outputs: int) -> Shapes:
    return {f"{name}/kernel": (inputs, outputs), f"{name}/bias": (outputs,)}


def _stored(path: Path, backbone: str) -> dict[str, StoredTensor]:
    """Our name → variable, of every dataset in the file but a training's state."""
    listed = hdf5_tensors_in(path)
    found: dict[str, StoredTensor] = {}
    for place, tensor in listed.tensors.items():
        if _STATE.fullmatch(place):
            continue
        name = _name(place, listed.names, backbone)
        if found.setdefault(name, tensor) is not tensor:
            raise InputError(f"{path}: {place} is the second variable {name} in the file; expected one")
    return found


def _name(place: str, names: dict[str, str], backbone: str) -> str:
    """The path of a Keras variable: the names of the layers that it is in, and its own."""
    owner, _, number = place.rpartition("/vars/")
    segments = owner.split("/")
    within = ["/".join(segments[: end + 1]) for end in range(len(segments))]
    layers = [names.get(f"{group}/vars", "") for group in within if group != backbone]
    layer = "/".join(filter(None, layers))
    last = layer.rpartition("/")[2]
    variables = next((own for end, own in _VARIABLES.items() if last.endswith(end)), _OF_DENSE)
    if not layer or not number.isdecimal() or int(number) >= len(variables):
        return place
    return f"{layer}/{variables[int(number)]}"
