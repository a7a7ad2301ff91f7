"""The JSON files of a KerasHub preset: objects as `keras.saving.serialize_keras_object` writes them."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.files import read_json

if TYPE_CHECKING:
    from albert_tf.tokenization.tokenizer import AlbertTokenizer

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.weights.h5"
SHARDS_FILE = "model.weights.json"
TASK_FILE = "task.json"
TASK_WEIGHTS_FILE = "task.weights.h5"
TOKENIZER_FILE = "tokenizer.json"
VOCABULARY_FILE = "assets/tokenizer/vocabulary.spm"

BACKBONE = "AlbertBackbone"
TEXT_CLASSIFIER = "AlbertTextClassifier"
MASKED_LM = "AlbertMaskedLM"
_CLASSES = {TEXT_CLASSIFIER: TEXT_CLASSIFIER, "AlbertClassifier": TEXT_CLASSIFIER, MASKED_LM: MASKED_LM}

# Fields of AlbertBackbone that are ours too, name and meaning.
_FIELDS = (
    "vocabulary_size",
    "num_layers",
    "num_heads",
    "num_groups",
    "num_inner_repetitions",
    "embedding_dim",
    "hidden_dim",
    "intermediate_dim",
    "max_sequence_length",
    "num_segments",
)
_OF_KERAS = ("name", "trainable", "dtype")
_DEFAULTS = {"num_groups": 1, "num_inner_repetitions": 1, "dropout": 0.0, "max_sequence_length": 512, "num_segments": 2}
_FLOAT_POLICIES = ("float32", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16")


class Task(NamedTuple):
    """A head of a preset.

    Attributes:
        class_name: `TEXT_CLASSIFIER` or `MASKED_LM`.
        num_classes: outputs of a classifier.
        dropout: rate before its dense layer.
    """

    class_name: str
    num_classes: int
    dropout: float


def read_config(path: Path, masked_lm_epsilon: float | None) -> AlbertConfig:
    """The backbone's config.

    Raises:
        InputError: no such file, the preset of another model, unknown or missing fields, quantised weights.
    """
    saved = _object(path)
    if saved["class_name"] != BACKBONE:
        raise InputError(f"{path}: a preset of {saved['class_name']}; albert-tf reads those of {BACKBONE} only")
    fields = _DEFAULTS | saved["config"]
    missing = [name for name in (*_FIELDS, "dropout") if name not in fields]
    unknown = sorted(fields.keys() - {*_FIELDS, *_OF_KERAS, "dropout"})
    if missing or unknown:
        raise InputError(f"{path}: {BACKBONE} with unknown fields {unknown} and missing fields {missing}")
    _refuse_quantised(path, fields.get("dtype"))
    try:
        config = AlbertConfig(
            **{name: fields[name] for name in _FIELDS},
            hidden_dropout=fields["dropout"],
            attention_dropout=fields["dropout"],
            masked_lm_layer_norm_epsilon=masked_lm_epsilon,
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    if config.num_layers % config.num_groups:
        raise InputError(
            f"{path}: num_layers = {config.num_layers}: KerasHub takes multiples of num_groups only, which is "
            f"{config.num_groups}"
        )
    return config


def _refuse_quantised(path: Path, policy: Any) -> None:
    if (
        isinstance(policy, dict)
        and policy.get("class_name") == "DTypePolicy"
        and isinstance(policy.get("config"), dict)
    ):
        policy = policy["config"].get("name")
    if policy not in (None, *_FLOAT_POLICIES):
        raise InputError(f"{path}: quantised weights (dtype {json.dumps(policy)[:80]}…); take the preset before that")


def read_task(folder: Path) -> Task | None:
    """The head of the preset; None where it has none, that is, no weights of one.

    Raises:
        InputError: weights without task.json, or of a task that albert-tf does not know.
    """
    path = folder / TASK_FILE
    if (folder / SHARDS_FILE).exists():
        raise InputError(f"{folder}: weights in shards ({SHARDS_FILE}); save the preset with max_shard_size=None")
    if not (folder / TASK_WEIGHTS_FILE).exists():
        return None
    saved = _object(path)
    class_name = _CLASSES.get(saved["class_name"])
    if class_name is None:
        raise InputError(f"{path}: a head of {saved['class_name']}; albert-tf knows {', '.join(_CLASSES)}")
    if class_name == MASKED_LM:
        return Task(class_name, 0, 0.0)
    num_classes, dropout = saved["config"].get("num_classes"), saved["config"].get("dropout", 0.1)
    numbers = not isinstance(num_classes, bool) and isinstance(num_classes, int) and isinstance(dropout, (int, float))
    if not numbers or num_classes < 1 or not 0 <= dropout < 1:
        raise InputError(
            f"{path}: expected num_classes, at least 1, and dropout in [0, 1); got {num_classes!r} and {dropout!r}"
        )
    activation = saved["config"].get("activation")
    if activation not in (None, "linear", "softmax"):
        raise InputError(f"{path}: activation = {activation!r}: albert-tf's classifier ends in a softmax")
    if num_classes == 1 and activation == "softmax":
        raise InputError(
            f"{path}: a softmax over num_classes = 1 is 1 whatever the text; a regression has no activation"
        )
    return Task(class_name, num_classes, float(dropout))


def write_json_files(
    folder: Path,
    config: AlbertConfig,
    class_name: str | None,
    num_classes: int,
    dropout: float,
    tokenizer: "AlbertTokenizer | None",
) -> None:
    """Writes config.json, and where there are such, tokenizer.json and task.json.

    Args:
        folder: the preset, there already.
        config: with sharing="all".
        class_name: of the head; None for none.
        num_classes: outputs of a classifier, whose dropout rate is `dropout`.
        tokenizer: None for none.
    """
    backbone = _saved(
        "albert_backbone",
        BACKBONE,
        {name: getattr(config, name) for name in _FIELDS} | {"dropout": config.hidden_dropout, **_keras("float32")},
    )
    _write(folder / CONFIG_FILE, backbone)
    vocabulary = None
    if tokenizer is not None:
        settings: dict[str, Any] = {"config_file": TOKENIZER_FILE, "proto": None, "sequence_length": None}
        settings |= {"add_bos": False, "add_eos": False}
        vocabulary = _saved("albert_tokenizer", "AlbertTokenizer", settings | _keras("int32"))
        _write(folder / TOKENIZER_FILE, vocabulary)
    if class_name is None:
        return
    module = "albert_text_classifier" if class_name == TEXT_CLASSIFIER else "albert_masked_lm"
    preprocessor = None
    if vocabulary is not None:
        settings = {"config_file": "preprocessor.json", "sequence_length": config.max_sequence_length}
        settings |= {"truncate": "round_robin", "tokenizer": vocabulary}
        if class_name == MASKED_LM:
            settings |= {"mask_selection_rate": 0.15, "mask_selection_length": 96}
        preprocessor = _saved(f"{module}_preprocessor", f"{class_name}Preprocessor", settings | _keras("float32"))
    head: dict[str, Any] = {"backbone": backbone, "preprocessor": preprocessor}
    if class_name == TEXT_CLASSIFIER:
        head |= {"num_classes": num_classes, "activation": "linear", "dropout": dropout}
    _write(folder / TASK_FILE, _saved(module, class_name, head))


def _object(path: Path) -> dict[str, Any]:
    """A serialised Keras object."""
    saved = read_json(path)
    if not (
        isinstance(saved, dict) and isinstance(saved.get("class_name"), str) and isinstance(saved.get("config"), dict)
    ):
        raise InputError(f'{path}: expected an object that Keras saved, with "class_name" and "config"')
    return saved


def _saved(module: str, class_name: str, config: dict[str, Any]) -> dict[str, Any]:
    return {
        "module": f"keras_hub.src.models.albert.{module}",
        "class_name": class_name,
        "config": config,
        "registered_name": f"keras_hub>{class_name}",
    }


def _keras(dtype: str) -> dict[str, Any]:
    policy = {"module": "keras", "class_name": "DTypePolicy", "config": {"name": dtype}, "registered_name": None}
    return {"trainable": True, "dtype": policy}


def _write(path: Path, saved: dict[str, Any]) -> None:
    path.write_text(json.dumps(saved, indent=4) + "\n", encoding="utf-8")
