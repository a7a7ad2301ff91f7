"""Hostile and damaged archives: each is refused with its reason, and nothing is left behind."""

import gzip
import io
import tarfile
import tempfile
from pathlib import Path

import pytest

from albert_tf.conversion import archive
from albert_tf.conversion.archive import is_archive, keep_until_exit, unpacked
from albert_tf.errors import InputError

CONTENTS = {"model/config.json": b"{}", "model/data": bytes(range(256)) * 20}


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


def unpack(path):
    with unpacked(path) as folder:
        return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(("name", "mode"), [("a.tar.gz", "w:gz"), ("a.tgz", "w:gz"), ("a.tar", "w"), ("A.TAR", "w:gz")])
def test_a_good_archive_is_unpacked_and_removed(tmp_path, name, mode):
    path = good(tmp_path / name, mode)
    assert is_archive(path)
    assert unpack(path) == CONTENTS


@pytest.mark.parametrize("name", ["a.zip", "a.gz", "tar", "a.tar.xz"])
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
    path = write(tmp_path / "bad.tar.gz", [member("model/data", b"1"), info])
    with pytest.raises(InputError, match=message) as error:
        unpack(path)
    assert str(path) in str(error.value)
    assert not (tmp_path / "up").exists()


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


@pytest.mark.parametrize("where", ["member", "after the end"])
def test_a_bomb_is_refused_by_its_ratio(tmp_path, monkeypatch, where):
    monkeypatch.setattr(archive, "RATIO_FREE_BYTES", 100_000)
    path = tmp_path / "bomb.tar.gz"
    zeros = bytes(8_000_000)
    if where == "member":
        write(path, [member("zeros", zeros)])
    else:
        plain = write(tmp_path / "plain.tar", [member("x", b"1")], "w").read_bytes()
        path.write_bytes(gzip.compress(plain + zeros))
    with pytest.raises(InputError, match="unpacks to more than 100 times its size"):
        unpack(path)


def test_a_huge_header_is_not_held_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "_MAX_READ", 2**16)
    info = tarfile.TarInfo("x")
    info.pax_headers = {"comment": "y" * 2**17}
    path = tmp_path / "pax.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as file:
        file.addfile(info)
    with pytest.raises(InputError, match=r"cannot unpack, at its first member: a header of \d+ bytes"):
        unpack(path)


@pytest.mark.parametrize("mode", ["w", "w:gz"])
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


def test_a_flipped_byte_gives_the_same_contents_or_an_error(tmp_path):
    raw = good(tmp_path / "good").read_bytes()
    path = tmp_path / "flipped.tar.gz"
    refused = 0
    for position in range(len(raw)):
        path.write_bytes(raw[:position] + bytes([raw[position] ^ 0x10]) + raw[position + 1 :])
        try:
            assert unpack(path) == CONTENTS
        except InputError:
            refused += 1
    assert refused >= len(raw) - 20  # the gzip header holds a time and a name that nothing depends on


@pytest.mark.parametrize("contents", [b"", b"\x1f\x8b", b"not an archive at all" * 100])
def test_what_is_no_archive_is_refused(tmp_path, contents):
    path = tmp_path / "a.tar.gz"
    path.write_bytes(contents)
    with pytest.raises(InputError, match="cannot unpack, at its first member"):
        unpack(path)
    with pytest.raises(InputError, match="cannot unpack"):
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
