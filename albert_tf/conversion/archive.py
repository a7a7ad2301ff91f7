"""Unpacks a downloaded archive into a temporary folder, and refuses one that is damaged or made to do harm."""

import atexit
import contextlib
import gzip
import io
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, cast

from albert_tf.errors import InputError

ARCHIVE_SUFFIXES = (".tar.gz", ".tgz", ".tar")

# albert_xxlarge with both optimizer slots takes 2.7 GB.
MAX_UNPACKED_BYTES = 8 * 2**30
# Weights hardly compress (a ratio of 1.1), and slots that are still zero at most as 3; only a bomb exceeds this.
MAX_RATIO = 100
RATIO_FREE_BYTES = 64 * 2**20
MAX_MEMBERS = 10_000

_CHUNK = 2**20
# tarfile copies files in small pieces; it asks for more at once only to hold one header in memory.
_MAX_READ = 16 * 2**20
_END_BLOCK = bytes(tarfile.BLOCKSIZE)


def is_archive(path: str | Path) -> bool:
    """Whether the file name is that of an archive that can be unpacked."""
    return Path(path).name.lower().endswith(ARCHIVE_SUFFIXES)


@contextlib.contextmanager
def unpacked(path: str | Path) -> Iterator[Path]:
    """Yields a temporary folder with the contents of a .tar.gz, .tgz or .tar; it is removed when the block ends.

    Raises:
        InputError: a member that is not a plain file or folder or leads outside; more than `MAX_UNPACKED_BYTES`, or
            (beyond `RATIO_FREE_BYTES`) than `MAX_RATIO` times the archive; more than `MAX_MEMBERS`; a name that comes
            twice; an archive that is truncated or damaged (the checksum of a .tar.gz is verified).
    """
    with tempfile.TemporaryDirectory(prefix="albert-tf-") as folder:
        _unpack(Path(path), Path(folder))
        yield Path(folder)


def keep_until_exit(path: Path) -> Path:
    """Copies one file out of a folder that will be removed; the copy is removed when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="albert-tf-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(shutil.copy(path, folder))


def _unpack(path: Path, folder: Path) -> None:
    where = "at its first member"
    members = total = 0
    try:
        packed = path.stat().st_size
        with _decompressed(path) as file, _Guard(file) as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
            for member in archive:
                where = f"at member {member.name!r}"
                _refuse_unsafe(path, folder, member)
                total += member.size
                members += 1
                _refuse_bomb(path, total, members, packed)
                archive.extract(member, folder, set_attrs=False, filter="data")
                where = f"after member {member.name!r}"
            if stream.last_block != _END_BLOCK:  # tarfile takes any unreadable header for the end
                raise InputError(f"{path}: the archive breaks off {where}; download it again")
            while stream.read(_CHUNK):  # gzip compares its checksum at the very end
                _refuse_bomb(path, stream.tell(), members, packed)
    except InputError:
        raise
    except (tarfile.TarError, EOFError, zlib.error, OSError, ValueError, OverflowError) as error:
        raise InputError(f"{path}: cannot unpack, {where}: {error}; is the download complete?") from error


def _refuse_unsafe(path: Path, folder: Path, member: tarfile.TarInfo) -> None:
    name = member.name
    for flavour in (PurePosixPath(name), PureWindowsPath(name)):
        if flavour.anchor or ".." in flavour.parts:
            raise InputError(f"{path}: member {name!r} would be written outside the target folder; not unpacked")
    if not (member.isreg() or member.isdir()):
        kind = "a link" if member.issym() or member.islnk() else "neither a file nor a folder"
        raise InputError(f"{path}: member {name!r} is {kind}; a checkpoint has only files and folders; not unpacked")
    if member.isreg() and os.path.lexists(folder / name):
        raise InputError(f"{path}: member {name!r} comes twice; not unpacked")


def _refuse_bomb(path: Path, total: int, members: int, packed: int) -> None:
    if total > MAX_UNPACKED_BYTES or members > MAX_MEMBERS:
        raise InputError(
            f"{path}: holds more than {MAX_UNPACKED_BYTES / 2**30:g} GiB or {MAX_MEMBERS} members; not unpacked"
        )
    if total > RATIO_FREE_BYTES and total > MAX_RATIO * packed:
        raise InputError(f"{path}: unpacks to more than {MAX_RATIO} times its size, as no weights do; not unpacked")


def _decompressed(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(path)) if compressed else path.open("rb")


class _Guard(io.RawIOBase):
    """A tar to read: refuses to hold a huge header in memory, and remembers the last block read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.last_block = b""

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MAX_READ:
            raise tarfile.ReadError(f"a header of {size} bytes")
        self.last_block = self._file.read(size)
        return self.last_block

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()
