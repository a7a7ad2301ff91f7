"""The files that a TFLite file carries."""

import json
import zipfile

import pytest

from albert_tf.errors import InputError
from export.metadata import FORMAT, SETTINGS_FILE, append_files, read_files, read_settings

MODEL = b"\x1c\x00\x00\x00TFL3" + bytes(range(256)) * 8
FILES = {"labels.txt": "no\nyes\n是\n".encode(), SETTINGS_FILE: json.dumps({"format": FORMAT}).encode()}


def test_round_trip_keeps_the_model_in_front(tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(append_files(MODEL, FILES))
    assert path.read_bytes().startswith(MODEL)
    assert read_files(path) == FILES
    assert read_settings(read_files(path), path) == {"format": FORMAT}


def test_same_input_same_bytes_and_nothing_compressed(tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(append_files(MODEL, FILES))
    assert path.read_bytes() == append_files(MODEL, dict(reversed(FILES.items())))
    with zipfile.ZipFile(path) as archive:
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a TFLite file"),
        (b"PK\x03\x04 not a model", "expected a TFLite file"),
        (MODEL, "holds no tokenizer and labels"),
        (append_files(MODEL, FILES)[:-30], "holds no tokenizer and labels"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        read_files(path)
    assert str(path) in str(error.value)


def test_missing_file_and_folder(tmp_path):
    for path in (tmp_path / "none.tflite", tmp_path):
        with pytest.raises(InputError, match="cannot read"):
            read_files(path)


@pytest.mark.parametrize("settings", [b"{", b"[]", b'{"format": 99}', b"\xff"])
def test_damaged_settings(settings):
    with pytest.raises(InputError, match=r"albert_tf\.json"):
        read_settings({SETTINGS_FILE: settings}, "m.tflite")
    with pytest.raises(InputError, match=r"has no albert_tf\.json"):
        read_settings({}, "m.tflite")
