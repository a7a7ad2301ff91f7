"""`albert_tf.data.pretraining_manifest`: settings are checked, manifests come back, broken ones are refused."""

import json
from pathlib import Path

import pytest

from albert_tf.data.masking import MaskingRules
from albert_tf.data.pretraining_manifest import (
    FILE_NAME,
    HELD_OUT,
    TRAIN,
    Manifest,
    PretrainingDataSettings,
    Shard,
    folder_sha256,
)
from albert_tf.errors import InputError

SHARDS = (Shard("a", TRAIN, 10, 300, 2, 20, 5, 1000, "00"), Shard("b", TRAIN, 1, 30, 1, 3, 0, 100, "11"))
MANIFEST = Manifest(
    PretrainingDataSettings(("x.txt",)).to_dict(), "abc", (*SHARDS, Shard("c", HELD_OUT, *[1] * 6, "22"))
)


def test_a_manifest_comes_back(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text(MANIFEST.to_json(), encoding="utf-8")
    assert Manifest.read(tmp_path) == MANIFEST
    content = json.loads(MANIFEST.to_json())
    assert content["totals"] == {TRAIN: MANIFEST.totals(TRAIN), HELD_OUT: MANIFEST.totals(HELD_OUT)}


def test_totals() -> None:
    assert MANIFEST.totals(TRAIN) == {
        "shards": 2,
        "examples": 11,
        "tokens": 330,
        "documents": 3,
        "sentences": 23,
        "left_out_tokens": 5,
        "bytes": 1100,
    }
    assert MANIFEST.of_split(TRAIN) == list(SHARDS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "expected a folder that albert-tf pretrain-data wrote, but it has no manifest.json"),
        ("[]", "expected a manifest of format 1"),
        ('{"format": 2}', "expected a manifest of format 1"),
        ('{"format": 1}', "not a whole manifest"),
        ('{"format": 1, "settings": {}, "tokenizer_sha256": "", "shards": [{"file": "a"}]}', "not a whole manifest"),
        ("{", "not JSON"),
    ],
)
def test_broken_manifests(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / FILE_NAME).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        Manifest.read(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": ()}, "expected at least one text file"),
        ({"max_length": 7}, "--max-length: expected a whole number from 8 to 65535, got 7"),
        ({"max_length": 64.0}, "got 64.0"),
        ({"duplicates": 0}, "--duplicates: expected a whole number from 1"),
        ({"seed": -1}, "--seed: expected a whole number from 0"),
        ({"seed": 2**32}, "--seed"),
        ({"short_probability": 1.1}, "--short-probability: expected a share from 0 to 1, got 1.1"),
        ({"held_out": float("nan")}, "--held-out: expected a share from 0 to 1, got nan"),
        ({"shard_megabytes": 0}, "--shard-megabytes: expected a number above 0"),
    ],
)
def test_wrong_settings(change: dict, message: str) -> None:
    with pytest.raises(InputError) as error:
        PretrainingDataSettings(**{"inputs": ("x.txt",), **change})
    assert message in str(error.value)


def test_differences() -> None:
    settings = PretrainingDataSettings(("x.txt",), static_masks=MaskingRules())
    saved = json.loads(json.dumps(settings.to_dict()))
    assert settings.differences(saved) == []
    other = PretrainingDataSettings(("x.txt", "y.txt"), max_length=64)
    assert other.differences(saved)[:2] == ["inputs ['x.txt'] → ['x.txt', 'y.txt']", "max_length 512 → 64"]
    assert other.differences(saved)[2].startswith("static_masks {")
    assert other.differences({})[0].startswith("chinese_words None → False")


def test_folder_checksum(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    first = folder_sha256(tmp_path)
    (tmp_path / "b").write_bytes(b"")
    second = folder_sha256(tmp_path)
    (tmp_path / "b").rename(tmp_path / "c")
    assert len({first, second, folder_sha256(tmp_path)}) == 3
