"""Hostile and damaged archives: each is refused with its reason, and nothing is left behind."""

import bz2
import errno
import gzip
import io
import lzma
import shutil
import tarfile
import tempfile
from pathlib import Path

import pytest
from archive_reading import CONTENTS, refuse_member, unpack

from albert_tf.conversion import archive, archive_members
from albert_tf.conversion.archive import is_archive, is_archive_file, keep_until_exit, unpacked, unpacked_model
from albert_tf.errors import InputError

MODES = ["w", "w:gz", "w:bz2", "w:xz"]


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """Temporary folders are made where the tests can count them."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not list(folder.iterdir())


def member(name, contents=b"", **fields):
    info = tarfile.TarInfo(name)
    info.size = len(contents)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, contents


def write(path, members, mode="w:gz"):
    with tarfile.open(path, mode) as file:
        for info, contents in members:
            file.addfile(info, io.BytesIO(contents))
    return path


def good(path, mode="w:gz"):
    return write(path, [member(name, contents) for name, contents in CONTENTS.items()], mode)


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        *[("a.tar.gz", "w:gz"), ("a.tgz", "w:gz"), ("a.tar", "w"), ("A.TAR", "w:gz"), ("a.zip", "w:gz")],
        *[("a.tar.bz2", "w:bz2"), ("a.tbz2", "w:bz2"), ("a.tar.xz", "w:xz"), ("a.txz", "w:xz")],
    ],
)
def test_a_good_archive_is_unpacked_and_removed(tmp_path, name, mode):
    path = good(tmp_path / name, mode)
    assert is_archive(path)
    assert unpack(path) == CONTENTS


def test_a_folder_is_no_archive_file(tmp_path):
    (tmp_path / "a.zip").mkdir()
    assert not is_archive_file(tmp_path / "a.zip") and not is_archive_file(tmp_path / "b.zip")
    assert is_archive_file(good(tmp_path / "a.tar"))


@pytest.mark.parametrize("name", ["a.zipx", "a.gz", "tar", "a.xz", "zip"])
def test_other_names_are_no_archives(name):
    assert not is_archive(name)


def test_folders_are_fine_and_contents_go_when_the_block_raises(tmp_path):
    path = write(tmp_path / "a.tar", [member("model", type=tarfile.DIRTYPE), member("model/x", b"1")], "w")
    with pytest.raises(RuntimeError), unpacked(path):
        raise RuntimeError  # the fixture sees that the folder is gone
    assert unpack(path) == {"model/x": b"1"}


@pytest.mark.parametrize(
    ("info", "message"),
    [
        (member("/etc/passwd", b"x"), "'/etc/passwd' would be written outside"),
        (member("../up", b"x"), r"'\.\./up' would be written outside"),
        (member("model/../../up", b"x"), "would be written outside"),
        (member("C:\\up", b"x"), "would be written outside"),
        (member("C:up", b"x"), "would be written outside"),
        (member("a\\..\\..\\up", b"x"), "would be written outside"),
        (member("link", type=tarfile.SYMTYPE, linkname="/etc"), "'link' is a link"),
        (member("link", type=tarfile.LNKTYPE, linkname="config.json"), "'link' is a link"),
        (member("null", type=tarfile.CHRTYPE, devmajor=1, devminor=3), "'null' is neither a file nor a folder"),
        (member("disk", type=tarfile.BLKTYPE), "'disk' is neither"),
        (member("pipe", type=tarfile.FIFOTYPE), "'pipe' is neither"),
        (member("model/data", b"again"), "'model/data' comes twice"),
        (member("model/data/inside", b"x"), "cannot unpack, at member 'model/data/inside'"),
    ],
)
def test_a_hostile_member_is_refused(tmp_path, info, message):
    refuse_member(write(tmp_path / "bad.tar.gz", [member("model/data", b"1"), info]), message)


def test_a_link_cannot_lead_a_later_file_outside(tmp_path):
    link = member("out", type=tarfile.SYMTYPE, linkname=str(tmp_path))
    with pytest.raises(InputError, match="'out' is a link"):
        unpack(write(tmp_path / "bad.tar", [link, member("out/escaped", b"x")], "w"))
    assert not (tmp_path / "escaped").exists()


def test_too_many_bytes_are_refused_before_they_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 5000)
    with pytest.raises(InputError, match="holds more than"):
        unpack(good(tmp_path / "a.tar.gz"))


def test_too_many_members_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MAX_MEMBERS", 3)
    with pytest.raises(InputError, match="or 3 members"):
        unpack(write(tmp_path / "a.tar", [member(f"f{i}", b"") for i in range(4)], "w"))


def large_header(path, size):
    info = tarfile.TarInfo("x")
    info.pax_headers = {"comment": "y" * size}
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as file:
        file.addfile(info)
    return path


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("where", ["member", "header", "after the end"])
def test_a_bomb_is_refused_by_its_ratio(tmp_path, monkeypatch, where, compress):
    monkeypatch.setattr(archive, "RATIO_FREE_BYTES", 100_000)
    monkeypatch.setattr(archive_members, "_MAX_HEADER", 10_000_000)
    path, size = tmp_path / "bomb.tar.gz", 8_000_000
    if where == "header":
        plain = large_header(path, size).read_bytes()
    else:
        plain = write(path, [member("x", bytes(size if where == "member" else 1))], "w").read_bytes()
    path.write_bytes(compress(plain + bytes(size if where == "after the end" else 0)))
    with pytest.raises(InputError, match="unpacks to more than 100 times its size"):
        unpack(path)


def test_a_huge_header_is_not_held_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(archive_members, "_MAX_READ", 2**16)
    path = large_header(tmp_path / "pax.tar", 2**17)
    with pytest.raises(InputError, match=r"cannot unpack, at its first member: a header of \d+ bytes"):
        unpack(path)


def test_a_list_of_holes_is_not_made_in_memory(tmp_path):
    """A member with holes says how many there are: here three million, in a file of some kilobytes."""
    info, count = tarfile.TarInfo("weights"), 3_000_000
    info.pax_headers = {f"GNU.sparse.{key}": value for key, value in {"major": "1", "minor": "0"}.items()}
    info.pax_headers |= {"GNU.sparse.name": "weights", "GNU.sparse.realsize": "9"}
    holes = f"{count}\n".encode() + b"0\n0\n" * count
    path = tmp_path / "holes.tar.gz"
    path.write_bytes(gzip.compress(info.tobuf(tarfile.PAX_FORMAT) + holes + bytes(1024 - len(holes) % 512)))
    assert path.stat().st_size < 100_000
    with pytest.raises(InputError, match="cannot unpack, at its first member: a header of more than 1048576 bytes"):
        unpack(path)


def test_a_file_without_permission_is_not_called_damaged(tmp_path, monkeypatch):
    def refuse(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / "a.zip").touch()
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=r"^cannot read .*a\.zip: Permission denied$"), unpacked(tmp_path / "a.zip"):
        pass


def test_a_full_disk_is_told(tmp_path, monkeypatch):
    def copy(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", copy)
    with pytest.raises(InputError, match=r"no room to unpack it in .*scratch; set TMPDIR to a folder with more"):
        unpack(good(tmp_path / "a.tar.gz"))


@pytest.mark.parametrize("mode", MODES)
def test_every_truncation_is_refused(tmp_path, mode):
    raw = good(tmp_path / "good", mode).read_bytes()
    end = len(raw.rstrip(b"\0")) if mode == "w" else len(raw)  # a plain tar ends in more zero blocks than it needs
    path = tmp_path / "cut.tar"
    for length in {*range(0, end, 97), 512, 1024, 1536, end - 1}:
        path.write_bytes(raw[: min(length, end - 1)])
        with pytest.raises(InputError, match=r"cannot unpack|breaks off"):
            unpack(path)


def test_a_tar_without_its_end_mark_is_refused(tmp_path):
    raw = good(tmp_path / "good", "w").read_bytes()
    path = tmp_path / "cut.tar"
    path.write_bytes(raw[: 2 * 512 + 512 + 5120])  # both members, whole
    with pytest.raises(InputError, match="breaks off after member 'model/data'"):
        unpack(path)


def test_a_truncation_names_the_member(tmp_path):
    raw = good(tmp_path / "good", "w").read_bytes()
    path = tmp_path / "cut.tar"
    path.write_bytes(raw[:3000])
    with pytest.raises(InputError, match="cannot unpack, at member 'model/data': unexpected end of data"):
        unpack(path)


@pytest.mark.parametrize("mode", MODES[1:])
def test_a_flipped_byte_gives_the_same_contents_or_an_error(tmp_path, mode):
    raw = good(tmp_path / "good", mode).read_bytes()
    path = tmp_path / "flipped.tar.gz"
    refused = 0
    positions = range(0, len(raw), 1 if mode == "w:gz" else 7)
    for position in positions:
        path.write_bytes(raw[:position] + bytes([raw[position] ^ 0x10]) + raw[position + 1 :])
        try:
            assert unpack(path) == CONTENTS
        except InputError:
            refused += 1
    assert refused >= len(positions) - 20  # the gzip header holds a time and a name that nothing depends on


@pytest.mark.parametrize("contents", [b"", b"\x1f\x8b", b"not an archive at all" * 100])
def test_what_is_no_archive_is_refused(tmp_path, contents):
    path = tmp_path / "a.tar.gz"
    path.write_bytes(contents)
    with pytest.raises(InputError, match="cannot unpack, at its first member"):
        unpack(path)
    with pytest.raises(InputError, match=r"cannot read .*absent\.tar: No such file or directory"):
        unpack(tmp_path / "absent.tar")


def test_a_kept_file_outlives_the_folder(tmp_path, scratch, monkeypatch):
    removals = []
    monkeypatch.setattr(archive.atexit, "register", lambda *call, **options: removals.append((call, options)))
    with unpacked(good(tmp_path / "a.tar")) as folder:
        kept = keep_until_exit(folder / "model" / "config.json")
    assert kept.name == "config.json"
    assert kept.read_bytes() == b"{}"
    [((remove, target), options)] = removals
    assert Path(target) == kept.parent
    remove(target, **options)
    assert not kept.exists()


@pytest.mark.parametrize("folders", [("",), ("a",), ("a", "a/b")])
def test_everything_in_one_folder(tmp_path, folders):
    members = [member(f"{folders[-1]}/{name}".lstrip("/"), b"1") for name in ("x", "y")]
    members += [member("__MACOSX/a/._x", b""), member(".DS_Store", b"")]
    with unpacked_model(write(tmp_path / "a.tar", members, "w")) as folder:
        assert {path.name for path in folder.iterdir() if not path.name.startswith(".")} - {"__MACOSX"} == {"x", "y"}


def test_an_error_tells_of_the_archive(tmp_path):
    path = good(tmp_path / "a.tar")
    with pytest.raises(InputError) as error, unpacked_model(path) as folder:
        raise InputError(f"{folder / 'config.json'}: wrong")
    assert str(error.value) == f"{path}/model/config.json: wrong"
