"""What a TFLite file carries beside its graph: settings, labels and tokenizer, in a zip archive after the model.

The layout is that of TFLite Metadata's associated files: a stored (uncompressed) zip appended to the flatbuffer. Every
TFLite runtime reads the model and passes over what follows it; `unzip FILE.tflite` shows what is there.
"""

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

from albert_tf.errors import InputError
from albert_tf.files import refuse_special

SETTINGS_FILE = "albert_tf.json"
FORMAT = 1
# What a runner needs of the settings.
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "task": str,
    "settings": dict,
    "config": dict,
    "length": (int, list, type(None)),
    "model_bytes": int,
    "model_sha256": str,
}
_CHUNK = 1 << 20


def model_record(model: bytes) -> dict[str, Any]:
    """The settings by which `check_model` knows the model again."""
    return {"model_bytes": len(model), "model_sha256": hashlib.sha256(model).hexdigest()}


def append_files(model: bytes, files: dict[str, bytes]) -> bytes:
    """The model followed by the files; the same input gives the same bytes."""
    stream = io.BytesIO(model)
    with zipfile.ZipFile(stream, "a", zipfile.ZIP_STORED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name), content)
    return stream.getvalue()


def read_files(path: str | Path) -> dict[str, bytes]:
    """The files that a TFLite file carries.

    Raises:
        InputError: not a TFLite file, or none that albert-tf wrote.
    """
    path = Path(path)
    refuse_special(path)
    try:
        with path.open("rb") as file:
            header = file.read(8)
            if header[4:8] != b"TFL3":
                raise InputError(f"{path}: expected a TFLite file, got something else (no TFL3 mark at byte 4)")
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            # They are stored as they are; what is packed could unpack to more than there is memory.
            if sum(entry.file_size for entry in entries) > path.stat().st_size:
                raise ValueError("its files are packed, or larger than the whole")
            return {entry.filename: archive.read(entry) for entry in entries}
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except Exception as error:  # on damaged archives zipfile raises a dozen types, from BadZipFile to struct.error
        raise InputError(
            f"{path}: holds no tokenizer and labels that can be read ({error}); expected a whole file by albert-tf "
            "export tflite"
        ) from error


def read_settings(files: dict[str, bytes], path: str | Path) -> dict[str, Any]:
    """The settings among the files of `path`.

    Raises:
        InputError: absent, damaged, incomplete, or of a newer format.
    """
    if SETTINGS_FILE not in files:
        raise InputError(f"{path}: has no {SETTINGS_FILE}; expected a file written by albert-tf export tflite")
    try:
        settings = json.loads(files[SETTINGS_FILE])
        json.dumps(settings, ensure_ascii=False).encode()  # half of a character (\ud800) cannot be written anywhere
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits; thousands of brackets
        raise InputError(f"{path}: {SETTINGS_FILE} is damaged ({error})") from error
    if not isinstance(settings, dict) or settings.get("format") != FORMAT:
        raise InputError(f"{path}: {SETTINGS_FILE}: expected format {FORMAT}; use the albert-tf that wrote the file")
    wrong = [name for name, kind in _FIELDS.items() if name not in settings or not isinstance(settings[name], kind)]
    if not _is_length(settings.get("length")):
        wrong = sorted({*wrong, "length"})
    if wrong:
        raise InputError(
            f"{path}: {SETTINGS_FILE}: missing or of a wrong type: {', '.join(wrong)}; export the file again"
        )
    return settings


def _is_length(length: Any) -> bool:
    """Whether it is nothing, a number of tokens, or several such numbers from the least on."""
    if length is None:
        return True
    several = length if isinstance(length, list) else [length]
    whole = all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in several)
    return bool(several) and whole and several == sorted(set(several))


def check_model(path: str | Path, settings: dict[str, Any]) -> None:
    """Compares the model in `path` with the sum in its settings, reading it in pieces.

    The native runtime trusts what it is given: a damaged model can end the whole process.

    Raises:
        InputError: they differ.
    """
    digest = hashlib.sha256()
    left = settings["model_bytes"]
    try:
        with Path(path).open("rb") as file:
            while left > 0 and (chunk := file.read(min(left, _CHUNK))):
                digest.update(chunk)
                left -= len(chunk)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    if left or digest.hexdigest() != settings["model_sha256"]:
        raise InputError(f"{path}: damaged: the model's sha256 differs from the one recorded; copy or export it again")
