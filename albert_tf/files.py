"""Files and folders that appear whole or not at all."""

import contextlib
import errno
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from albert_tf.errors import InputError

_SCRATCH_SUFFIX = ".unfinished"
# How often to try, where another process is putting its own in the same place, and what tells that.
_TRIES = 20
_UTF_16 = "it is in UTF-16, convert it to UTF-8"
# How files begin that are taken for text, and what to do about it.
_OTHER_FILES = {
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
    b"\x1f\x8b": "it is packed by gzip, unpack it first",
    b"\xfd7zXZ": "it is packed by xz, unpack it first",
    b"BZh": "it is packed by bzip2, unpack it first",
    b"PK\x03\x04": "it is a zip archive (also .xlsx is), give the text in it",
}
_SOMEBODY_ELSE = (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EISDIR)


@contextlib.contextmanager
def written_whole(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Yields a temporary path beside `path` to write to; renames it to `path` when the block ends without error.

    The block may create a file or a folder there. If the block raises, what it wrote is removed and `path` is as it
    was before. What a process left that was killed while it wrote `path` is removed first.

    Raises:
        InputError: `path` exists and `overwrite` is false, or its parent folder cannot be created.
    """
    path = Path(path)
    _remove_unfinished(path)
    refuse_existing(path, overwrite=overwrite)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch, lock = _new_scratch(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error} ({error.filename})") from error
    try:
        temporary = scratch / path.name
        yield temporary
        _put(temporary, path, aside=scratch / _aside_name(path), overwrite=overwrite)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _new_scratch(path: Path) -> tuple[Path, int | None]:
    """A new hidden folder beside `path`, and what locks it for as long as this process lives; see `_locked`."""
    while True:
        scratch = Path(tempfile.mkdtemp(prefix=_scratch_prefix(path), suffix=_SCRATCH_SUFFIX, dir=path.parent))
        try:
            lock = _locked(scratch)
        except (BlockingIOError, FileNotFoundError):  # another process took it for one that was left
            continue
        if scratch.is_dir():
            return scratch, lock
        if lock is not None:
            os.close(lock)


def _locked(folder: Path) -> int | None:
    """A file descriptor that locks a folder, until it is closed or the process ends, however it ends.

    None where there are no locks, on this system or for this folder.

    Raises:
        BlockingIOError: another process holds the lock.
        FileNotFoundError: the folder is gone.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    descriptor = None
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor
    except OSError as error:
        if descriptor is not None:
            os.close(descriptor)
        if isinstance(error, (BlockingIOError, FileNotFoundError)):
            raise
        return None


def _remove_unfinished(path: Path) -> None:
    """Removes the scratch folders of `path` whose process is gone; what one had moved aside is put back."""
    try:
        left = [entry for entry in path.parent.iterdir() if entry.name.startswith(_scratch_prefix(path))]
    except (OSError, ValueError):  # no such folder yet; a zero byte in its name
        return
    for scratch in left:
        lock = None
        try:
            lock = _locked(scratch) if scratch.suffix == _SCRATCH_SUFFIX else None
            held = None if lock is None else _own(scratch, path)
            if held is None:  # in use, or of another path that begins alike
                continue
            if {path.name, _aside_name(path)} <= held and not os.path.lexists(path):  # killed between the two renames
                (scratch / _aside_name(path)).rename(path)
            shutil.rmtree(scratch, ignore_errors=True)
        except OSError:
            pass  # in use, or somebody else's
        finally:
            if lock is not None:
                os.close(lock)


def _own(scratch: Path, path: Path) -> set[str] | None:
    """The names of what a scratch folder holds; None where something in it is not of `path`."""
    held = {entry.name for entry in scratch.iterdir()}
    # Whoever writes a folder at the temporary path by `written_whole` has a scratch folder in this one.
    nested = re.compile(re.escape(_scratch_prefix(path)) + f"[^.]*{re.escape(_SCRATCH_SUFFIX)}")
    others = {name for name in held - {path.name, _aside_name(path)} if not nested.fullmatch(name)}
    return None if others else held


def _scratch_prefix(path: Path) -> str:
    return f".{path.name[:40]}."  # names may have 255 bytes


def _aside_name(path: Path) -> str:
    return f"replaced.{path.name[:40]}"


def _put(new: Path, path: Path, *, aside: Path, overwrite: bool) -> None:
    """Renames `new` to `path`. A folder cannot be replaced, nor replace anything, so what is there steps aside first.

    Another process may have written `path` meanwhile, and may be at it now: it counts as what was there before.
    """
    refuse_existing(path, overwrite=overwrite, file=new.is_file())
    for left in reversed(range(_TRIES)):
        try:
            if os.path.lexists(path) and (path.is_dir() or new.is_dir()):
                path.rename(aside)
            new.replace(path)
            return
        except BaseException as error:
            if os.path.lexists(aside):
                _put_back(aside, path)
            if not left or not isinstance(error, OSError) or error.errno not in _SOMEBODY_ELSE:
                raise


def _put_back(aside: Path, path: Path) -> None:
    """Undoes the first step of `_put`, unless another process has put its own there, which is the newer."""
    try:
        aside.rename(path)
    except OSError:
        if not os.path.lexists(path):
            raise
        shutil.rmtree(aside, ignore_errors=True)


def refuse_existing(path: str | Path, *, overwrite: bool, file: bool = False) -> None:
    """Raises InputError when `path` exists and may not be overwritten: a device never, nor a folder by a file (`file`)."""
    if Path(path).name in ("", ".."):
        raise InputError(f"{path}: a folder that the working directory is in; give a name of its own")
    try:
        os.lstat(path)
        special = _is_special(path)
    except (FileNotFoundError, NotADirectoryError):
        _refuse_place(Path(path))
        return
    except (OSError, ValueError) as error:  # no permission, a name that is too long, a zero byte in it
        raise InputError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from error
    if special:  # who may would put a file in the place of /dev/null
        raise InputError(f"cannot write {path}: it is a pipe or a device, which is not replaced; give a file's name")
    if file:
        _refuse_folder(Path(path))
    if not overwrite:
        raise InputError(f"{path} exists already; pass --overwrite to replace it, or choose another name")


def _refuse_place(path: Path) -> None:
    """Known before the work: nothing can be made in a file, nor in a folder that may not be written to."""
    above = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
    if not above.is_dir():
        raise InputError(f"cannot write {path}: {above} is no folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise InputError(f"cannot write {path}: {above} may not be written to")


def refuse_other_folder(folder: Path, mark: str, what: str, *, overwrite: bool) -> None:
    """`--overwrite` with a wrong path must not delete somebody's folder: one without the file `mark` is not replaced.

    Args:
        folder: where a folder is to be written.
        mark: the file that tells a folder of this kind; an empty folder may be replaced as well.
        what: what to call this kind: "a preset".
        overwrite: whether the user wants to replace it.

    Raises:
        InputError: there is a file or another folder, or something at all without `overwrite`.
    """
    refuse_existing(folder, overwrite=overwrite)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give the name of a folder to create")
    try:
        held = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror or error}") from error
    if held and mark not in held:
        more = f" and {len(held) - 10} more" if len(held) > 10 else ""
        raise InputError(
            f"{folder} is not {what} ({', '.join(held[:10])}{more}), so it is not replaced; choose another name"
        )


def _refuse_folder(path: Path) -> None:
    """A mistyped name must not cost anyone a folder."""
    if path.is_dir() and not path.is_symlink():
        raise InputError(f"{path} is a folder, so no file is written in its place; give a file's name")


def read_text(path: str | Path) -> str:
    """Reads a UTF-8 text file (a byte order mark is dropped).

    Raises:
        InputError: the file is missing, a folder, not readable, or not UTF-8 (the message names the line).
    """
    path = Path(path)
    try:
        raw = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        hint = next(
            (hint for start, hint in _OTHER_FILES.items() if raw.startswith(start)), "convert the file to UTF-8"
        )
        raise InputError(
            f"{path}, line {line}: expected UTF-8 text, found byte 0x{raw[error.start]:02x}; {hint}"
        ) from error


def read_json(path: str | Path) -> Any:
    """Reads a UTF-8 JSON file.

    Raises:
        InputError: not a readable file, not JSON (the message names the line), a key that comes twice in an object, or
            beyond what Python's reader takes.
    """
    refuse_special(path)
    text = read_text(path)
    try:
        held = json.loads(text, object_pairs_hook=_object)
        if "\\u" in text:
            json.dumps(held, ensure_ascii=False).encode()  # half of a character (\ud800) cannot be written anywhere
        return held
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: not JSON ({error.msg})") from error
    except _TwiceError as error:
        raise InputError(
            f"{path}: the key {error.args[0]!r} comes twice in one object; leave the one that is meant"
        ) from error
    except UnicodeEncodeError as error:
        line, escape = _half_of_a_character(text)
        raise InputError(f"{path}, line {line}: {escape} is half of a character, without its other half") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; thousands of brackets
        raise InputError(f"{path}: not JSON that can be read ({error})") from error


def _half_of_a_character(text: str) -> tuple[int, str]:
    """The line and the escape of the first half of a surrogate pair that stands alone in a JSON text."""
    whole, half = r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..", r"\\u[dD][89a-fA-F].."
    for found in re.finditer(rf"{whole}|({half})|\\.", text, re.DOTALL):
        if found[1]:
            return text.count("\n", 0, found.start()) + 1, found[1]
    return 1, "a character"


class _TwiceError(Exception):
    """A key comes twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held: dict[str, Any] = {}
    for key, value in pairs:
        if key in held:
            raise _TwiceError(key)
        held[key] = value
    return held


def refuse_special(path: str | Path) -> None:
    """Raises InputError for what is neither a file nor a folder: a pipe that nobody writes to, a device without end."""
    try:
        special = _is_special(path)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    if special:
        raise InputError(f"cannot read {path}: neither a file nor a folder, but a pipe or a device; copy it to a file")


def _is_special(path: str | Path) -> bool:
    return Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir()


def is_there(path: Path) -> bool:
    """Whether there is a file that need not be.

    Raises:
        InputError: there is something of its name that is no file, such as a link to a file that is gone.
    """
    if path.is_file():
        return True
    if os.path.lexists(path):
        what = "a folder" if path.is_dir() else "a link to nothing" if path.is_symlink() else "a pipe or a device"
        raise InputError(f"{path}: expected a file, found {what}; copy the file there, or remove that")
    return False


def checked_path(path: Any, name: str) -> Path:
    """`path` as a Path.

    Raises:
        InputError: not a path, or an empty one (which would mean the current folder).
    """
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise InputError(f"{name}: expected a path, got {path!r}")
    return Path(path)


def resolved(path: str | Path) -> Path:
    """The path from the root on, with links followed; what it leads to need not be there.

    Raises:
        InputError: links in a circle, or a zero byte in a name.
    """
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: the circle
        raise InputError(f"cannot use the path {path}: {error}") from error
