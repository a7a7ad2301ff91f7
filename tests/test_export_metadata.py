"""The files that a TFLite file carries."""

import json
import zipfile

import pytest

from albert_tf.errors import InputError
from export.metadata import (
    FORMAT,
    SETTINGS_FILE,
    append_files,
    check_model,
    model_record,
    read_files,
    read_settings,
)

MODEL = b"\x1c\x00\x00\x00TFL3" + bytes(range(256)) * 8
SETTINGS = {"format": FORMAT, "task": "t", "settings": {}, "config": {}, "length": None, **model_record(MODEL)}
FILES = {"labels.txt": "no\nyes\n是\n".encode(), SETTINGS_FILE: json.dumps(SETTINGS).encode()}


def test_round_trip_keeps_the_model_in_front(tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(append_files(MODEL, FILES))
    assert path.read_bytes().startswith(MODEL)
    assert read_files(path) == FILES
    assert read_settings(read_files(path), path) == SETTINGS


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


@pytest.mark.parametrize("name", sorted(SETTINGS.keys() - {"format"}))
def test_incomplete_settings(name):
    for settings in ({n: v for n, v in SETTINGS.items() if n != name}, SETTINGS | {name: ["?"]}):
        with pytest.raises(InputError, match=f"missing or of a wrong type: {name}; export the file again"):
            read_settings({SETTINGS_FILE: json.dumps(settings).encode()}, "m.tflite")


def test_the_models_sum(tmp_path):
    assert model_record(b"abc") == {
        "model_bytes": 3,
        "model_sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",  # FIPS 180-2, example B.1
    }
    path = tmp_path / "m.tflite"
    large = MODEL + bytes(3_000_000)
    for model in (MODEL, large):
        path.write_bytes(append_files(model, FILES))
        check_model(path, model_record(model))
    for position in (0, len(MODEL), len(large) - 1):
        changed = bytearray(large)
        changed[position] ^= 1
        path.write_bytes(append_files(bytes(changed), FILES))
        with pytest.raises(InputError, match=f"{path}: damaged: the model's sha256 differs"):
            check_model(path, model_record(large))
    path.write_bytes(large[:-1])
    with pytest.raises(InputError, match="damaged"):
        check_model(path, model_record(large))
    with pytest.raises(InputError, match="cannot read"):
        check_model(tmp_path / "none", model_record(large))
