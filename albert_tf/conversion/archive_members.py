"""The members of a tar or zip, one after the other; `albert_tf.conversion.archive` decides what becomes of them.

Nothing of the archive's choosing is held in memory as a whole: neither a header nor what a decoder asks for.
"""

import bz2
import functools
import gzip
import io
import lzma
import os
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import IO, NamedTuple, cast

from albert_tf.errors import InputError

# Files are copied in smaller pieces; more at once is asked for only to hold one header in memory.
_MAX_READ = 16 * 2**20
# What stands before a member may be a list of the holes in it, of which tarfile makes objects.
_MAX_HEADER = 2**20
# xz at its highest level needs 65 MiB to unpack.
_MAX_DECODER_BYTES = 128 * 2**20
_CHUNK = 2**20
_END_BLOCK = bytes(tarfile.BLOCKSIZE)
_ENCRYPTED = 0x41  # bits of a zip member's flags: encrypted, and strongly so
_END_RECORD = struct.Struct("<4s6xH10x")  # its mark, and the number of members
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)


class Member(NamedTuple):
    """A member of an archive.

    Attributes:
        name: with slashes; not to be trusted.
        size: bytes of its contents; of those that can be read never more, but fewer where the archive is damaged.
        kind: "a file", "a folder", or in words what else.
        open: gives its contents; to be called and read before the next member is asked for.
    """

    name: str
    size: int
    kind: str
    open: Callable[[], IO[bytes]]


def members_of(path: Path, refuse_bomb: Callable[[int], None]) -> Generator[Member, None, None]:
    """The members of an archive; of a compressed tar also what comes after them is read, for its checksum.

    Args:
        path: the archive.
        refuse_bomb: called with the number of bytes that a tar has been decompressed to so far; raises when that is
            too many.

    Raises:
        InputError: encrypted, compressed in a way that is not read, or without its end.
        Exception: what the modules tarfile, zipfile and those that decompress raise on damage.
    """
    with path.open("rb") as file:
        start = file.read(6)
        file.seek(0)
        if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
            yield from _zip_members(path)
        else:
            yield from _tar_members(path, _Forward(_decompressed(file, start), refuse_bomb))


# === tar ===


def _tar_members(path: Path, stream: "_Forward") -> Iterator[Member]:
    where = "at its first member"
    stream.header_left = _MAX_HEADER
    with tarfile.open(fileobj=stream, mode="r:") as archive:
        for member in archive:
            stream.header_left = None
            contents = cast(Callable[[], IO[bytes]], functools.partial(archive.extractfile, member))  # None for no file
            yield Member(member.name, member.size, _tar_kind(member), contents)
            where = f"after member {member.name!r}"
            stream.header_left = _MAX_HEADER
    stream.header_left = None
    if stream.last_block != _END_BLOCK:  # tarfile takes any unreadable header for the end
        raise InputError(f"{path}: the archive breaks off {where}; download it again")
    while stream.read(_CHUNK):  # a checksum is compared at the very end
        pass


def _tar_kind(member: tarfile.TarInfo) -> str:
    if member.isreg():
        return "a file"
    if member.isdir():
        return "a folder"
    return "a link" if member.issym() or member.islnk() else "neither a file nor a folder"


def _decompressed(file: IO[bytes], start: bytes) -> IO[bytes]:
    """What a file holds that begins with `start`."""
    if start.startswith(b"\x1f\x8b"):
        return cast(IO[bytes], gzip.GzipFile(fileobj=file))
    if start.startswith(b"BZh"):
        return cast(IO[bytes], bz2.BZ2File(file))
    if start.startswith(b"\xfd7zXZ\0"):
        return cast(IO[bytes], io.BufferedReader(_Xz(file)))
    return file


class _Xz(io.RawIOBase):
    """An .xz of one stream, as `lzma.open` reads it, but for a limit on the memory that its header may ask for."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MAX_DECODER_BYTES)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = b""
        while not data and not self._decoder.eof:
            more = self._file.read(_CHUNK) if self._decoder.needs_input else b""
            if self._decoder.needs_input and not more:
                raise EOFError("the xz stream breaks off")
            data = self._decoder.decompress(more, max_length=len(buffer))
        if not data and (self._decoder.unused_data + self._file.read(_CHUNK)).strip(b"\0"):
            raise lzma.LZMAError("data after the end of the xz stream")
        buffer[: len(data)] = data
        return len(data)


class _Forward(io.RawIOBase):
    """A tar, read from start to end: refuses to hold a huge header in memory, and remembers the last block read.

    Attributes:
        last_block: what was read last.
        header_left: how many bytes may still be read before the next member; None while it is not a header that is read.
    """

    def __init__(self, file: IO[bytes], refuse_bomb: Callable[[int], None]) -> None:
        self._file = file
        self._refuse_bomb = refuse_bomb
        self._position = 0
        self.last_block = b""
        self.header_left: int | None = None

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MAX_READ:
            raise tarfile.ReadError(f"a header of {size} bytes")
        if self.header_left is not None:
            self.header_left -= size
            if self.header_left < 0:
                raise tarfile.ReadError(f"a header of more than {_MAX_HEADER} bytes")
        return self._read(size)

    def _read(self, size: int) -> bytes:
        self.last_block = self._file.read(size)
        self._position += len(self.last_block)
        self._refuse_bomb(self._position)
        return self.last_block

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET or offset < self._position:
            raise tarfile.ReadError("members that do not follow one another")
        while self._position < offset and self._read(min(_CHUNK, offset - self._position)):
            pass
        return self._position

    def tell(self) -> int:
        return self._position


# === zip ===


def _zip_members(path: Path) -> Iterator[Member]:
    with _SmallReads(io.FileIO(path)) as file, zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        _check_end(file, archive)
        for member in members:
            if member.flag_bits & _ENCRYPTED:
                raise InputError(f"{path}: member {member.orig_filename!r} is encrypted; unpack it and give its folder")
            if member.compress_type not in _METHODS:
                raise InputError(
                    f"{path}: member {member.orig_filename!r} is compressed by method {member.compress_type}, which is "
                    "not read; unpack it and give its folder"
                )
        for member in members:
            name = member.orig_filename.replace("\\", "/")  # as some programs of Windows write it
            yield Member(name, member.file_size, _zip_kind(name, member), functools.partial(archive.open, member))


def _check_end(file: IO[bytes], archive: zipfile.ZipFile) -> None:
    """zipfile does not compare the number of members in the last record with those that it found."""
    file.seek(-_END_RECORD.size - len(archive.comment), os.SEEK_END)
    mark, count = _END_RECORD.unpack(file.read(_END_RECORD.size))
    if mark != b"PK\x05\x06" or count not in (len(archive.infolist()), 0xFFFF):  # that is: in another record
        raise zipfile.BadZipFile("the directory is not the one that the end of the file tells of")


def _zip_kind(name: str, member: zipfile.ZipInfo) -> str:
    mode = member.external_attr >> 16  # 0 where the archive was not made on Unix
    if stat.S_ISLNK(mode):
        return "a link"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "neither a file nor a folder"
    return "a folder" if name.endswith("/") or stat.S_ISDIR(mode) else "a file"


class _SmallReads(io.BufferedReader):
    """A file that refuses to be held in memory: zipfile reads a zip's whole directory at once."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            size = max(0, os.fstat(self.fileno()).st_size - self.tell())
        if size > _MAX_READ:
            raise zipfile.BadZipFile(f"a directory of {size} bytes")
        return super().read(size)
