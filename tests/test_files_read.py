"""Reading of `albert_tf.files`: text and JSON, and what is none."""

import bz2
import gzip
import lzma
import os
from pathlib import Path

import pytest

from albert_tf.errors import InputError
from albert_tf.files import is_there, read_json, read_text


def test_read_text_drops_the_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for raw in ("häß 中文\n".encode(), "häß 中文\n".encode("utf-8-sig")):
        path.write_bytes(raw)
        assert read_text(path) == "häß 中文\n"
    assert read_text(str(path)) == "häß 中文\n"


def test_read_text_names_the_line_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes("good\nstill good\ncaf\xe9\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin\.txt, line 3: expected UTF-8 text, found byte 0xe9; convert"):
        read_text(path)


@pytest.mark.parametrize(
    ("raw", "hint"),
    [
        ("häß\n".encode("utf-16"), "it is in UTF-16, convert it to UTF-8"),
        (b"\xfe\xff\0a", "it is in UTF-16"),
        (gzip.compress(b"text"), "it is packed by gzip, unpack it first"),
        (lzma.compress(b"text"), "it is packed by xz"),
        (bz2.compress(b"text"), "it is packed by bzip2"),
    ],
    ids=[
        "UTF-16",
        "UTF-16, big end first",
        "gzip",
        "xz",
        "bzip2",
    ],  # gzip writes the time: other bytes in every process
)
def test_read_text_says_what_else_it_is(raw: bytes, hint: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(raw)
    with pytest.raises(InputError, match=f"line 1: expected UTF-8 text, found byte 0x..; {hint}"):
        read_text(tmp_path / "a.txt")


def test_read_text_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*absent\.txt: No such file or directory"):
        read_text(tmp_path / "absent.txt")
    with pytest.raises(InputError, match=f"cannot read {tmp_path}: Is a directory"):
        read_text(tmp_path)


def test_read_json(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for text, message in (
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' comes twice in one object"),
        ('{"a": "\\ud800"}', r"line 1: \\ud800 is half of a character"),
        ('{"a": "\\\\ud800 \\ud83d\\ude00",\n"b": "\\uDC01\\ud83d"}', r"line 2: \\uDC01 is half of a character"),
        ('{"a": ' + "9" * 5000 + "}", "not JSON that can be read"),
        ("[" * 200_000, "not JSON that can be read"),
        ('{"a":\n}', "line 2: not JSON"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=f"{path}.*{message}"):
            read_json(path)
    path.write_text('{"a": "\\u00fc", "b": {"a": 1}}', encoding="utf-8")
    assert read_json(path) == {"a": "ü", "b": {"a": 1}}


def test_pipes_and_devices_are_not_read(tmp_path: Path) -> None:
    """One would wait forever, the other never end."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    for name in ("pipe", "zeros"):
        with pytest.raises(InputError, match=f"cannot read {tmp_path / name}: neither a file nor a folder"):
            read_json(tmp_path / name)
        with pytest.raises(InputError, match="expected a file, found"):
            is_there(tmp_path / name)


def test_a_file_that_need_not_be_there(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert is_there(tmp_path / "file") and is_there(tmp_path / "link") and not is_there(tmp_path / "absent")
    (tmp_path / "file").unlink()
    for name, what in (("link", "a link to nothing"), ("folder", "a folder")):
        (tmp_path / "folder").mkdir(exist_ok=True)
        with pytest.raises(InputError, match=f"{name}: expected a file, found {what}"):
            is_there(tmp_path / name)
