"""Which form of checkpoint a path holds."""

from collections.abc import Collection
from pathlib import Path

from albert_tf.config import CONFIGS
from albert_tf.conversion.archive import is_archive_file
from albert_tf.conversion.assign import listing
from albert_tf.conversion.huggingface import FORM as HUGGING_FACE
from albert_tf.conversion.huggingface import WEIGHT_FILES
from albert_tf.conversion.keras_file import FORM as KERAS
from albert_tf.conversion.keras_file import SUFFIX as KERAS_SUFFIX
from albert_tf.conversion.keras_file import is_keras_folder
from albert_tf.conversion.keras_hub import FORM as KERAS_HUB
from albert_tf.conversion.keras_hub_files import SHARDS_FILE, WEIGHTS_FILE
from albert_tf.conversion.model_garden import FORM as MODEL_GARDEN
from albert_tf.conversion.object_graph import is_object_checkpoint
from albert_tf.conversion.saved_model import FILE_NAME as SAVED_MODEL_FILE
from albert_tf.conversion.tf1_files import checkpoint_prefix, closest
from albert_tf.errors import InputError

PRESET = "albert-tf preset"
PRESET_WEIGHTS = "weights.safetensors"
TF_HUB_1 = "tfhub_module.pb"
TF1 = "tf1"  # of Google or of brightmart, which only the names of the variables tell
ARCHIVE = "archive"

READABLE = (
    "an albert-tf preset folder (config.json, weights.safetensors) or .keras file, or a TF1 checkpoint of Google or of "
    "brightmart's albert_zh: its folder with albert_config.json, its prefix or .index file, or a Hugging "
    "Face folder (config.json, model.safetensors or pytorch_model.bin), or a KerasHub preset folder (config.json, "
    "model.weights.h5), or a TF Model Garden checkpoint (its folder, prefix or .index file) or SavedModel, or a "
    ".zip, .tar, .tar.gz, .tar.bz2 or .tar.xz of one of these folders"
)

# What other systems' folders and files are known by; there is no reader for them.
_OTHER_FOLDERS = {
    "a Hugging Face checkpoint in its TensorFlow or Flax form alone": ("tf_model.h5", "flax_model.msgpack"),
}
_OTHER_FILES = {
    ".safetensors": "a safetensors file alone (give its folder)",
    ".bin": "a PyTorch file",
    ".pt": "a PyTorch file",
    ".pth": "a PyTorch file",
    ".h5": "a Keras HDF5 file",
    ".pb": "a TensorFlow graph (give its folder)",
    ".tflite": "a TFLite file, whose weights are final",
    ".onnx": "an ONNX file",
    ".npz": "a NumPy archive",
    ".json": "a JSON file alone (give its folder)",
}


def detect(source: str | Path) -> str:
    """The form of a checkpoint: one of the constants of this module.

    Only names of files are looked at; the readers look inside.

    Raises:
        InputError: nothing is there, or nothing that there is a reader for; the message says what was found.
    """
    path = Path(source)
    if path.is_dir():
        return _detect_folder(path)
    if (prefix := checkpoint_prefix(path)) is not None:
        return MODEL_GARDEN if is_object_checkpoint(prefix.with_name(f"{prefix.name}.index")) else TF1
    if not path.exists():
        if str(source) in CONFIGS:
            raise InputError(f"{source} is the name of a config, which has no weights here; expected {READABLE}")
        what = "a link to nothing" if path.is_symlink() else "no such file or folder"
        raise InputError(f"{path}: {what}; expected {READABLE}")
    if is_archive_file(path):
        return ARCHIVE
    if path.suffix.lower() == KERAS_SUFFIX:
        return KERAS
    found = _OTHER_FILES.get(path.suffix.lower(), "a file of unknown form")
    raise InputError(f"{path}: found {found}; expected {READABLE}")


def _detect_folder(folder: Path) -> str:
    try:
        names = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise InputError(f"cannot read {folder}: {error.strerror or error}") from error
    _refuse_several(folder, names)
    if PRESET_WEIGHTS in names:
        return PRESET
    if any(name in names for name in WEIGHT_FILES):
        return HUGGING_FACE
    if is_keras_folder(folder):
        return KERAS
    if any(name in names for name in (WEIGHTS_FILE, SHARDS_FILE)):
        return KERAS_HUB
    if SAVED_MODEL_FILE in names and TF_HUB_1 not in names:  # a TF-Hub version 1 module is a TF1 checkpoint
        if is_object_checkpoint(folder / "variables" / "variables.index"):
            return MODEL_GARDEN
        raise InputError(f"{folder}: found a SavedModel of TensorFlow 1, which has no reader; expected {READABLE}")
    if indexes := closest(folder, "*.index"):
        return MODEL_GARDEN if any(map(is_object_checkpoint, indexes)) else TF1
    for form, marks in _OTHER_FOLDERS.items():
        if found := [mark for mark in marks if mark in names]:
            raise InputError(f"{folder}: found {form} ({found[0]}), which has no reader; expected {READABLE}")
    if saved := [name for name in names if name.lower().endswith(KERAS_SUFFIX)]:
        raise InputError(f"{folder}: found {listing(saved)}; give the path of that file, not of the folder it is in")
    held = f"found only {listing(names)}" if names else "the folder is empty"
    if lost := [name for name in names if not (folder / name).exists()]:
        held += f" ({listing(lost)}: a link to nothing)"
    raise InputError(f"{folder}: {held}; expected {READABLE}")


def _refuse_several(folder: Path, names: Collection[str]) -> None:
    """Raises InputError where several forms have weights in the folder: which of them is meant, nothing says."""
    found = {
        "an albert-tf preset": [name for name in names if name == PRESET_WEIGHTS],
        "a Hugging Face checkpoint": [name for name in names if name in WEIGHT_FILES],
        "weights of Keras or KerasHub": [name for name in names if name in (WEIGHTS_FILE, SHARDS_FILE)],
        "a SavedModel": [name for name in names if name == SAVED_MODEL_FILE and TF_HUB_1 not in names],
        "a TensorFlow checkpoint": [name for name in names if name.endswith(".index")],
    }
    told = [f"{form} ({listing(files)})" for form, files in found.items() if files]
    if len(told) > 1:
        prefix = ", or give the prefix of the checkpoint" if found["a TensorFlow checkpoint"] else ""
        raise InputError(
            f"{folder}: expected one checkpoint, found {' and '.join(told)}; move what is not meant elsewhere{prefix}"
        )
