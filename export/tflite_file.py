"""A `.tflite` file by anyone: its model, metadata and files, and what is wrong with it that does not make it unreadable."""

import dataclasses
import mmap
import struct
import zipfile
from pathlib import Path
from typing import Any

from albert_tf.errors import InputError
from albert_tf.files import checked_path, refuse_special
from export.flatbuffer import DamagedError
from export.metadata import SETTINGS_FILE, check_model, read_settings
from export.tflite_metadata import BUFFER_NAME
from export.tflite_metadata_reader import ModelMetadata, read_metadata
from export.tflite_model import Model, read_model

_LOCAL_HEADER = b"PK\x03\x04"
# Files that unpack to more than this many times the whole file are left packed.
_MOST_UNPACKED = 16


@dataclasses.dataclass(frozen=True)
class Archive:
    """The zip archive behind the model.

    Attributes:
        sizes: of each file, unpacked.
        compressed: whether there is a file that is packed, which readers of metadata do not take.
        start: where it begins, which is the size of the model; None where there is none.
        contents: of the files that could be read.
        problems: what is wrong with it.
    """

    sizes: dict[str, int]
    compressed: bool
    start: int | None
    contents: dict[str, bytes]
    problems: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class OpenedFile:
    """Attributes:
    size: of the whole file in bytes.
    model_bytes: without the archive behind it.
    metadata: TFLite Model Metadata; None where there is none that can be read.
    settings: of albert_tf.json; None where the file is not by albert-tf or they cannot be read.
    problems: what is wrong with metadata, archive and settings.
    """

    path: Path
    size: int
    model_bytes: int
    model: Model
    metadata: ModelMetadata | None
    archive: Archive
    settings: dict[str, Any] | None
    problems: tuple[str, ...]


def open_file(path: str | Path) -> OpenedFile:
    """Reads everything but the weights of a `.tflite` file; nothing of it is run.

    Raises:
        InputError: the file cannot be read, is no TFLite model, or the model in it is damaged.
    """
    path = checked_path(path, "path")
    data = _mapped(path)
    archive = _read_archive(path, data)
    model_bytes = len(data) if archive.start is None else archive.start
    try:
        model = read_model(data)
    except DamagedError as error:
        if data[4:8] != b"TFL3":
            raise InputError(f"{path}: expected a TFLite file, got something else ({error})") from error
        raise InputError(f"{path}: damaged: {error}; copy, download or export it again") from error
    problems = list(archive.problems)
    metadata = None
    if (found := model.metadata_buffer(BUFFER_NAME)) is not None:
        try:
            metadata = read_metadata(found)
        except DamagedError as error:
            problems.append(f"its metadata cannot be read: {error}")
    settings = None
    if SETTINGS_FILE in archive.contents:
        try:
            settings = read_settings(archive.contents, path)
            check_model(path, settings)
        except InputError as error:
            problems.append(str(error).removeprefix(f"{path}: "))
    return OpenedFile(path, len(data), model_bytes, model, metadata, archive, settings, tuple(problems))


def _mapped(path: Path) -> Any:
    """The file's bytes, which are read where they are used."""
    refuse_special(path)
    try:
        if path.is_dir():
            raise InputError(f"{path}: expected a .tflite file, got a folder")
        with path.open("rb") as file:
            if not path.stat().st_size:
                raise InputError(f"{path}: expected a TFLite file, got an empty one")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def _read_archive(path: Path, data: Any) -> Archive:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            sizes = {entry.filename: entry.file_size for entry in entries}
            start = min((entry.header_offset for entry in entries), default=None)
            compressed = any(entry.compress_type != zipfile.ZIP_STORED for entry in entries)
            if sum(entry.file_size for entry in entries) > _MOST_UNPACKED * len(data):
                too_large = f"the files in it would unpack to {sum(sizes.values()):,} bytes; they are not read"
                return Archive(sizes, compressed, start, {}, (too_large,))
            contents, problems = {}, []
            for entry in entries:
                try:
                    contents[entry.filename] = archive.read(entry)
                except Exception as error:  # a dozen types, see `export.metadata.read_files`
                    problems.append(f"the file {entry.filename!r} in it is damaged ({error})")
            return Archive(sizes, compressed, start, contents, tuple(problems))
    except Exception as error:
        if not _has_local_header(data):
            return Archive({}, False, None, {}, ())
        lost = f"the archive of tokenizer, labels and other files behind the model is damaged or cut off ({error})"
        return Archive({}, False, None, {}, (lost,))


def _has_local_header(data: Any) -> bool:
    """Whether there is what begins a file in a zip archive: its mark could stand in the weights by chance."""
    place = data.find(_LOCAL_HEADER)
    while place >= 0:
        header = data[place : place + 30]
        if len(header) == 30:
            version, method, length = struct.unpack_from("<H2xH16xH", header, 4)
            name = data[place + 30 : place + 30 + length]
            if version < 100 and method in (0, 8) and 0 < length == len(name) < 256 and name.isascii():
                return True
        place = data.find(_LOCAL_HEADER, place + 1)
    return False
