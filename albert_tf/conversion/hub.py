"""Models by name: those of the package, and others fetched into the cache of Hugging Face's or Kaggle's own client, which
work offline from there.

    albert_tiny_en                                      comes with the package (albert_tf/bundled.py)
    owner/name, hf://owner/name                         Hugging Face, as in albert/albert-base-v2
    albert-base-v2 and its like                         Hugging Face's first names of Google's models
    kaggle://owner/model/framework/variation[/version]  Kaggle, as in kaggle://keras/albert/keras/albert_base_en_uncased
    albert_base_en_uncased and its like                 KerasHub's names of its presets on Kaggle

Both clients come with the extra "hub". Hugging Face's uses no network where HF_HUB_OFFLINE=1 is set, Kaggle's none for
a version that is in its cache.
"""

import re
from pathlib import Path

from albert_tf.bundled import bundled_model
from albert_tf.conversion.archive import is_archive
from albert_tf.errors import InputError

_HUGGING_FACE_SCHEME = "hf://"
_KAGGLE_SCHEME = "kaggle://"
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_FIRST_NAMES = re.compile(r"albert-(base|large|xlarge|xxlarge)-v[12]")
_KAGGLE_HANDLE = re.compile(r"[\w-]+/[\w-]+/[\w-]+/[\w.-]+(/\d+)?")
# Names of KerasHub (albert_presets.py) → Kaggle handles, in the versions that keras-hub 0.32 takes.
_KERAS_HUB_PRESETS = {
    "albert_base_en_uncased": "keras/albert/keras/albert_base_en_uncased/5",
    "albert_large_en_uncased": "keras/albert/keras/albert_large_en_uncased/3",
    "albert_extra_large_en_uncased": "keras/albert/keras/albert_extra_large_en_uncased/3",
    "albert_extra_extra_large_en_uncased": "keras/albert/keras/albert_extra_extra_large_en_uncased/3",
}
# Names that end like a file are files that are not there.
_FILE_SUFFIXES = (".bin", ".h5", ".index", ".json", ".keras", ".meta", ".pb", ".safetensors", ".tflite")
# What is read of a Hugging Face repository, or of a KerasHub preset in one; the weights in the first form that it has.
_SMALL_FILES = ["*.json", "*.model", "*.spm", "vocab.txt"]
_WEIGHT_FILES = (["model*.safetensors", "*.weights.h5"], ["pytorch_model*.bin"])


def fetched(source: str | Path) -> str | Path:
    """`source` as it is, if it is a path; else the folder of the model of that name, downloaded if need be.

    Raises:
        InputError: the client is not installed, or the model is not there, not open to the user, or out of reach.
    """
    name = str(source)
    if (folder := bundled_model(source)) is not None:
        return folder
    if isinstance(source, Path) or not (repository := _hugging_face_name(name) or _kaggle_name(name)):
        return source
    if _hugging_face_name(name):
        return _from_hugging_face(repository, name)
    return _from_kaggle(repository, name)


def _hugging_face_name(name: str) -> str | None:
    """The repository that `name` means: with the scheme always, else only if no path can be meant."""
    if name.startswith(_HUGGING_FACE_SCHEME):
        repository = name.removeprefix(_HUGGING_FACE_SCHEME)
        if not _REPOSITORY.fullmatch(repository):
            raise InputError(f"{name}: expected hf://owner/name, as in hf://albert/albert-base-v2")
        return repository
    if Path(name).exists():
        return None
    if _FIRST_NAMES.fullmatch(name):
        return f"albert/{name}"
    owner = name.partition("/")[0]
    a_path = Path(owner).exists() or is_archive(name) or name.endswith(_FILE_SUFFIXES) or ".ckpt" in name
    return name if _REPOSITORY.fullmatch(name) and not a_path else None


def _kaggle_name(name: str) -> str | None:
    """The Kaggle handle that `name` means."""
    if name.startswith(_KAGGLE_SCHEME):
        handle = name.removeprefix(_KAGGLE_SCHEME)
        if not _KAGGLE_HANDLE.fullmatch(handle):
            raise InputError(
                f"{name}: expected kaggle://owner/model/framework/variation, with /version or without, as in "
                "kaggle://keras/albert/keras/albert_base_en_uncased"
            )
        return handle
    return None if Path(name).exists() else _KERAS_HUB_PRESETS.get(name)


def _from_hugging_face(repository: str, name: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise InputError(_missing_client(name, "huggingface_hub")) from error
    for weight_files in _WEIGHT_FILES:
        try:
            folder = Path(snapshot_download(repository, allow_patterns=[*_SMALL_FILES, *weight_files]))
        except Exception as error:  # the client's own types and those of the HTTP library under it, which change
            raise InputError(_out_of_reach(name, f"the Hugging Face repository {repository}", error)) from error
        if any(path for pattern in weight_files for path in folder.glob(pattern)):
            break
    return folder


def _from_kaggle(handle: str, name: str) -> Path:
    try:
        import kagglehub
    except ImportError as error:
        raise InputError(_missing_client(name, "kagglehub")) from error
    try:
        return Path(kagglehub.model_download(handle))
    except Exception as error:  # as above
        raise InputError(_out_of_reach(name, f"the Kaggle model {handle}", error)) from error


def _missing_client(name: str, package: str) -> str:
    return (
        f"{name}: no such file or folder; as the name of a model to download it needs {package}: "
        "pip install 'albert-tf[hub]'"
    )


def _out_of_reach(name: str, what: str, error: Exception) -> str:
    told = " ".join(str(error).split()) or type(error).__name__
    return f"{name}: no such file or folder, and {what} cannot be had: {told[:300]}"
