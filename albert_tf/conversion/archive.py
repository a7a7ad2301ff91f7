"""Unpacks a downloaded archive into a temporary folder, and refuses one that is damaged or made to do harm.

A tar, as it is or compressed by gzip, bzip2 or xz, or a zip. Which of them it is, the file's first bytes say.
"""

import atexit
import contextlib
import errno
import lzma
import os
import shutil
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath

from albert_tf.conversion.archive_members import Member, members_of
from albert_tf.errors import InputError

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")

# albert_xxlarge with both optimizer slots takes 2.7 GB.
MAX_UNPACKED_BYTES = 8 * 2**30
# Weights hardly compress (a ratio of 1.1), and slots that are still zero at most as 3; only a bomb exceeds this.
MAX_RATIO = 100
RATIO_FREE_BYTES = 64 * 2**20
MAX_MEMBERS = 1_000
# A checkpoint has a few folders in one another; making thousands of them ends in an error of Python's.
_MAX_DEPTH = 32

_CHUNK = 2**20
# What macOS adds to an archive beside the files themselves.
_OF_MACOS = "__MACOSX"
# Whatever the modules that decompress raise on bytes that are not theirs: OSError of gzip and bzip2 (and of a full disk,
# told apart where it is caught), NotImplementedError of a packing that zipfile does not know.
_DAMAGED = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, OSError, ValueError, OverflowError, NotImplementedError),
)


def is_archive(path: str | Path) -> bool:
    """Whether the file name is that of an archive that can be unpacked."""
    return Path(path).name.lower().endswith(ARCHIVE_SUFFIXES)


def is_archive_file(path: str | Path) -> bool:
    """Whether there is a file of such a name; a folder may have one too."""
    return is_archive(path) and Path(path).is_file()


@contextlib.contextmanager
def unpacked(path: str | Path) -> Iterator[Path]:
    """Yields a temporary folder with the contents of an archive; it is removed when the block ends.

    Raises:
        InputError: a member that is not a plain file or folder or leads outside; more than `MAX_UNPACKED_BYTES`, or
            (beyond `RATIO_FREE_BYTES`) than `MAX_RATIO` times the archive; more than `MAX_MEMBERS`; a name that comes
            twice; a member that is encrypted or compressed in another way; an archive that is truncated or damaged
            (checksums are verified, where the kind has any).
    """
    with tempfile.TemporaryDirectory(prefix="albert-tf-") as folder:
        _unpack(Path(path), Path(folder))
        yield Path(folder)


@contextlib.contextmanager
def unpacked_model(path: str | Path) -> Iterator[Path]:
    """`unpacked`, at the folder that everything in it is in. An error about a file there tells of the archive."""
    with unpacked(path) as folder:
        try:
            yield _innermost(folder)
        except InputError as error:
            raise InputError(str(error).replace(str(folder), str(path))) from error


def folder_until_exit() -> Path:
    """A new folder that is removed when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="albert-tf-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def keep_until_exit(path: Path) -> Path:
    """Copies one file out of a folder that will be removed; the copy is removed when the process ends."""
    return Path(shutil.copy(path, folder_until_exit()))


def _innermost(folder: Path) -> Path:
    """Down from `folder` for as long as there is nothing in it but one folder."""
    while True:
        entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".") and entry.name != _OF_MACOS]
        if len(entries) != 1 or not entries[0].is_dir():
            return folder
        folder = entries[0]


def _unpack(path: Path, folder: Path) -> None:
    where = "at its first member"
    count = total = 0
    try:
        with path.open("rb") as file:
            packed = file.seek(0, os.SEEK_END)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    try:

        def refuse_bomb(size: int) -> None:
            _refuse_bomb(path, size, count, packed)

        with contextlib.closing(members_of(path, refuse_bomb)) as members:
            for member in members:
                where = f"at member {member.name!r}"
                _refuse_unsafe(path, folder, member)
                total += member.size
                count += 1
                refuse_bomb(total)
                _write(member, folder / member.name)
                where = f"after member {member.name!r}"
    except InputError:
        raise
    except _DAMAGED as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise InputError(
                f"{path}: no room to unpack it in {folder.parent}; set TMPDIR to a folder with more, or unpack it "
                "yourself and give its folder"
            ) from error
        raise InputError(f"{path}: cannot unpack, {where}: {error}; is the download complete?") from error


def _refuse_unsafe(path: Path, folder: Path, member: Member) -> None:
    name = member.name
    for flavour in (PurePosixPath(name), PureWindowsPath(name)):
        if flavour.anchor or ".." in flavour.parts:
            raise InputError(f"{path}: member {name!r} would be written outside the target folder; not unpacked")
    if len(PurePosixPath(name).parts) > _MAX_DEPTH:
        raise InputError(
            f"{path}: member '{name[:60]}…' is in more than {_MAX_DEPTH} folders, as no checkpoint's is; not unpacked"
        )
    if member.kind not in ("a file", "a folder"):
        raise InputError(
            f"{path}: member {name!r} is {member.kind}; a checkpoint has only files and folders; not unpacked"
        )
    if member.kind == "a file" and os.path.lexists(folder / name):
        raise InputError(f"{path}: member {name!r} comes twice; not unpacked")


def _refuse_bomb(path: Path, total: int, members: int, packed: int) -> None:
    if total > MAX_UNPACKED_BYTES or members > MAX_MEMBERS:
        raise InputError(
            f"{path}: holds more than {MAX_UNPACKED_BYTES / 2**30:g} GiB or {MAX_MEMBERS} members; not unpacked"
        )
    if total > RATIO_FREE_BYTES and total > MAX_RATIO * packed:
        raise InputError(f"{path}: unpacks to more than {MAX_RATIO} times its size, as no weights do; not unpacked")


def _write(member: Member, target: Path) -> None:
    if member.kind == "a folder":
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with member.open() as source, target.open("xb") as file:
        shutil.copyfileobj(source, file, _CHUNK)
        if file.tell() != member.size:
            raise EOFError(f"unexpected end of data: {file.tell()} bytes instead of {member.size}")
