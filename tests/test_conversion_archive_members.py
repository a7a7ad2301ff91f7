"""What is peculiar to zip and to xz; what all archives have in common is in test_conversion_archive."""

import io
import lzma
import stat
import struct
import tarfile
import tempfile
import warnings
import zipfile

import pytest
from archive_reading import CONTENTS, refuse_member, unpack

from albert_tf.conversion import archive, archive_members
from albert_tf.errors import InputError

METHODS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2]


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """Temporary folders are made where the tests can count them."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not list(folder.iterdir())


def member(name, contents=b"", *, mode=0, **fields):
    info = zipfile.ZipInfo("x")
    info.filename = info.orig_filename = name  # the constructor would make it harmless
    info.external_attr = mode << 16
    for field, value in fields.items():
        setattr(info, field, value)
    return info, contents


def write(path, members, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that come twice
        for info, contents in members:
            file.writestr(info, contents, method)
    return path


def good(path, method=zipfile.ZIP_DEFLATED):
    return write(path, [member(name, contents) for name, contents in CONTENTS.items()], method)


# === zip ===


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["a.zip", "A.ZIP", "a.tar.gz"])
def test_a_good_zip_is_unpacked_and_removed(tmp_path, name, method):
    assert unpack(good(tmp_path / name, method)) == CONTENTS


def test_a_zip_of_unix_with_folders(tmp_path):
    members = [member("model/", mode=stat.S_IFDIR | 0o755), member("model/x", b"1", mode=stat.S_IFREG | 0o644)]
    assert unpack(write(tmp_path / "a.zip", members)) == {"model/x": b"1"}


def test_backslashes_of_windows_part_folders(tmp_path):
    assert unpack(write(tmp_path / "a.zip", [member("model\\x", b"1")])) == {"model/x": b"1"}


def test_an_empty_zip_has_nothing(tmp_path):
    assert unpack(write(tmp_path / "a.zip", [])) == {}


@pytest.mark.parametrize(
    ("info", "message"),
    [
        (member("/etc/passwd", b"x"), "'/etc/passwd' would be written outside"),
        (member("../up", b"x"), r"'\.\./up' would be written outside"),
        (member("model/../../up", b"x"), "would be written outside"),
        (member("..\\up", b"x"), r"'\.\./up' would be written outside"),
        (member("model\\..\\..\\up", b"x"), "would be written outside"),
        (member("\\up", b"x"), "would be written outside"),
        (member("C:\\up", b"x"), "would be written outside"),
        (member("C:up", b"x"), "would be written outside"),
        (member("link", b"/etc", mode=stat.S_IFLNK | 0o777), "'link' is a link"),
        (member("pipe", mode=stat.S_IFIFO | 0o644), "'pipe' is neither a file nor a folder"),
        (member("null", mode=stat.S_IFCHR | 0o644), "'null' is neither a file nor a folder"),
        (member("model/data", b"again"), "'model/data' comes twice"),
        (member("model\\data", b"again"), "'model/data' comes twice"),
        (member("model/./data", b"again"), r"'model/\./data' comes twice"),
        (member("model/data/inside", b"x"), "cannot unpack, at member 'model/data/inside'"),
        (member("model/data/"), "cannot unpack, at member 'model/data/'"),
    ],
)
def test_a_hostile_member_is_refused(tmp_path, info, message):
    refuse_member(write(tmp_path / "bad.zip", [member("model/data", b"1"), info]), message)


def test_a_name_with_a_zero_byte_is_refused(tmp_path):
    raw = write(tmp_path / "a.zip", [member("harmless", b"x")]).read_bytes()
    (tmp_path / "a.zip").write_bytes(raw.replace(b"harmless", b"ha\0mless"))
    with pytest.raises(InputError, match=r"cannot unpack, at member 'ha\\x00mless'"):
        unpack(tmp_path / "a.zip")


@pytest.mark.parametrize("damage", [lambda raw: raw + b"more", lambda raw: raw[:-12] + b"\x03\0" + raw[-10:]])
def test_an_end_that_does_not_fit_is_refused(tmp_path, damage):
    (tmp_path / "a.zip").write_bytes(damage(good(tmp_path / "a.zip").read_bytes()))
    with pytest.raises(InputError, match="the directory is not the one that the end of the file tells of"):
        unpack(tmp_path / "a.zip")


def test_a_comment_at_the_end_is_fine(tmp_path):
    with zipfile.ZipFile(good(tmp_path / "a.zip"), "a") as file:
        file.comment = b"from somewhere"
    assert unpack(tmp_path / "a.zip") == CONTENTS


def test_an_encrypted_member_is_refused(tmp_path):
    raw = bytearray(good(tmp_path / "a.zip").read_bytes())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        raw[raw.index(mark) + flags] |= 1
    (tmp_path / "a.zip").write_bytes(raw)
    with pytest.raises(InputError, match=r"member 'model/config.json' is encrypted; unpack it and give its folder"):
        unpack(tmp_path / "a.zip")


def test_another_method_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"member 'model/config\.json' is compressed by method 14, which is not read"):
        unpack(good(tmp_path / "a.zip", zipfile.ZIP_LZMA))


def test_a_bomb_is_refused_by_its_ratio(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "RATIO_FREE_BYTES", 100_000)
    path = write(tmp_path / "bomb.zip", [member("zeros", bytes(8_000_000))])
    with pytest.raises(InputError, match="unpacks to more than 100 times its size"):
        unpack(path)


def test_a_bomb_of_members_that_share_their_bytes_is_refused(tmp_path, monkeypatch):
    """A directory that lists one member again and again."""
    monkeypatch.setattr(archive, "RATIO_FREE_BYTES", 100_000)
    raw = write(tmp_path / "a.zip", [member("f000", bytes(200_000))]).read_bytes()
    at, end = raw.index(b"PK\x01\x02"), raw.index(b"PK\x05\x06")
    entries = b"".join(raw[at:end].replace(b"f000", b"f%03d" % n) for n in range(500))
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 500, 500, len(entries), at, 0)
    (tmp_path / "a.zip").write_bytes(raw[:at] + entries + tail)
    with pytest.raises(InputError, match=r"unpacks to more than 100 times|cannot unpack"):
        unpack(tmp_path / "a.zip")


@pytest.mark.parametrize("size", [199, 201, 2**40])
def test_a_wrong_size_is_refused(tmp_path, size):
    raw = bytearray(write(tmp_path / "a.zip", [member("x", bytes(200))]).read_bytes())
    struct.pack_into("<L", raw, raw.index(b"PK\x01\x02") + 24, min(size, 2**32 - 2))
    (tmp_path / "a.zip").write_bytes(raw)
    with pytest.raises(InputError, match=r"cannot unpack, at member 'x'|100 times its size"):
        unpack(tmp_path / "a.zip")


def test_too_many_bytes_or_members_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MAX_MEMBERS", 1)
    with pytest.raises(InputError, match="or 1 members"):
        unpack(good(tmp_path / "a.zip"))
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 1)
    with pytest.raises(InputError, match="holds more than"):
        unpack(good(tmp_path / "a.zip"))


def test_a_huge_directory_is_not_held_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(archive_members, "_MAX_READ", 2**16 + 22)
    path = write(tmp_path / "a.zip", [member(f"{n}{'y' * 1000}") for n in range(100)])
    with pytest.raises(InputError, match=r"cannot unpack, at its first member: a directory of \d+ bytes"):
        unpack(path)


@pytest.mark.parametrize("method", METHODS)
def test_every_truncation_is_refused(tmp_path, method):
    raw = good(tmp_path / "a.zip", method).read_bytes()
    for length in {*range(0, len(raw), 97), len(raw) - 1}:
        (tmp_path / "a.zip").write_bytes(raw[:length])
        with pytest.raises(InputError, match=r"cannot unpack|breaks off"):
            unpack(tmp_path / "a.zip")


@pytest.mark.parametrize("method", METHODS)
def test_a_flipped_byte_gives_the_same_contents_or_an_error(tmp_path, method):
    """Names and contents have checksums or stand there twice; nothing but what a zip says of itself may change."""
    raw = good(tmp_path / "a.zip", method).read_bytes()
    for position in range(0, len(raw), 3 if method == zipfile.ZIP_DEFLATED else 41):
        (tmp_path / "a.zip").write_bytes(raw[:position] + bytes([raw[position] ^ 0x10]) + raw[position + 1 :])
        try:
            found = unpack(tmp_path / "a.zip")
        except InputError:
            continue
        assert sorted(found.values()) == sorted(CONTENTS.values())


# === xz ===


def tar(contents=b"1"):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as file:
        info = tarfile.TarInfo("x")
        info.size = len(contents)
        file.addfile(info, io.BytesIO(contents))
    return raw.getvalue()


@pytest.mark.parametrize("preset", [0, 6, 9 | lzma.PRESET_EXTREME])
def test_every_level_of_xz(tmp_path, preset):
    (tmp_path / "a.tar.xz").write_bytes(lzma.compress(tar(bytes(3_000_000)), preset=preset) + bytes(8))
    assert unpack(tmp_path / "a.tar.xz") == {"x": bytes(3_000_000)}


def test_an_xz_that_asks_for_much_memory_is_refused(tmp_path):
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 2**28}]
    (tmp_path / "a.tar.xz").write_bytes(lzma.compress(tar(), filters=filters))
    with pytest.raises(InputError, match="cannot unpack, at its first member: Memory usage limit exceeded"):
        unpack(tmp_path / "a.tar.xz")


def test_bytes_after_an_xz_are_refused(tmp_path):
    (tmp_path / "a.tar.xz").write_bytes(lzma.compress(tar()) + lzma.compress(b"more"))
    with pytest.raises(InputError, match="data after the end of the xz stream"):
        unpack(tmp_path / "a.tar.xz")
