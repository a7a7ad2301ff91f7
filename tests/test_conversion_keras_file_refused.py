"""`.keras` files that are damaged, made to do harm, or of other models: each is told in a line."""

import dataclasses
import io
import json
import os
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np
import pytest
from peer_models import assert_same_weights
from tiny_models import TINY

from albert_tf.backbone import AlbertBackbone
from albert_tf.conversion.checkpoint import Checkpoint
from albert_tf.errors import InputError
from albert_tf.presets import load_checkpoint
from albert_tf.tasks.classification import AlbertTextClassifier

LABELS = ["no", "yes", "perhaps"]
CONFIG = dataclasses.replace(TINY, num_layers=4, num_groups=2, num_inner_repetitions=2)
QUERY = "layers/albert_backbone/layers/albert_encoder/attention_blocks/attention_block/query/vars"


@pytest.fixture(scope="module")
def saved_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier without a tokenizer."""
    path = tmp_path_factory.mktemp("saved") / "small.keras"
    AlbertTextClassifier(AlbertBackbone(CONFIG), labels=LABELS, classifier_dropout=0.3).save(path)
    return path


@pytest.fixture
def small_file(saved_file: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(saved_file, tmp_path))


def rewritten(path: Path, change: Callable[[dict[str, bytes]], Any]) -> Path:
    """The zip with other members: name → content."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def with_config(path: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    def edit(members: dict[str, bytes]) -> None:
        saved = json.loads(members["config.json"])
        change(saved)
        members["config.json"] = json.dumps(saved).encode()

    return rewritten(path, edit)


def with_variables(path: Path, change: Callable[[h5py.File], Any]) -> Path:
    def edit(members: dict[str, bytes]) -> None:
        content = io.BytesIO(members["model.weights.h5"])
        with h5py.File(content, "r+") as file:
            change(file)
        members["model.weights.h5"] = content.getvalue()

    return rewritten(path, edit)


@pytest.mark.parametrize("kind", ["Sequential", "Functional"])
def test_models_of_others(kind: str, tmp_path: Path) -> None:
    layers = [keras.Input((2,)), keras.layers.Dense(1)]
    model = keras.Sequential(layers) if kind == "Sequential" else keras.Model(layers[0], layers[1](layers[0]))
    model.save(tmp_path / "other.keras")
    with pytest.raises(InputError, match=rf"other\.keras/config\.json: the model is of the class '{kind}', not one of"):
        load_checkpoint(tmp_path / "other.keras")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda saved: saved.update(registered_name="keras_hub>AlbertBackbone"), "save_to_preset"),
        (lambda saved: saved.update(registered_name="albert_tf>AlbertPoet"), "knows no AlbertPoet; expected Albert"),
        (lambda saved: saved.update(registered_name=["albert_tf>AlbertTextClassifier"]), "of the class 'AlbertTextC"),
        (lambda saved: saved.update(config=[]), 'the model: expected an object that Keras saved, with "config"'),
        (lambda saved: saved["config"].pop("backbone"), 'backbone: expected an object that Keras saved, with "config"'),
        (lambda saved: saved["config"]["backbone"].update(registered_name="x>AlbertBackbone"), "backbone is of the cl"),
        (
            lambda saved: saved["config"].update(backbone={**saved, "config": {}}),
            "backbone: expected AlbertBackbone, found AlbertT",
        ),
        (lambda saved: saved["config"]["backbone"]["config"].update(config="x"), "expected a JSON object with model"),
        (lambda saved: saved["config"]["backbone"]["config"].pop("config"), "expected a JSON object with model dimens"),
        (lambda saved: saved["config"]["backbone"]["config"]["config"].update(num_heads="2"), "num_heads: expected a"),
        (lambda saved: saved["config"]["backbone"]["config"]["config"].update(new=1), r"unknown keys \['new'\]"),
        (lambda saved: saved["config"]["backbone"]["config"]["config"].update(hidden_dim=32), "of another shape: "),
        (
            lambda saved: saved["config"]["backbone"]["config"].update(pooler=0),
            "pooler: expected true or false, found 0",
        ),
        (lambda saved: saved["config"]["backbone"]["config"].update(pooler=False), "2 not in the model: pooler/kernel"),
        (lambda saved: saved["config"].pop("labels"), "expected the names of the labels, found none"),
        (lambda saved: saved["config"].update(labels=["a", "b"]), "classifier/bias is .3,., expected .2,."),
        (lambda saved: saved["config"].update(labels={"a": 1}), "labels: expected a list of names, found {'a': 1}"),
        (lambda saved: saved["config"].update(classifier_dropout="much"), "classifier_dropout: expected a rate"),
    ],
)
def test_a_config_that_cannot_be_used(small_file: Path, change: Any, expected: str) -> None:
    with pytest.raises(InputError, match=rf"small\.keras.*{expected}"):
        load_checkpoint(with_config(small_file, change))


def test_settings_of_another_version(small_file: Path) -> None:
    with pytest.raises(InputError, match="settings that this version does not know: poetry"):
        AlbertTextClassifier.from_pretrained(with_config(small_file, lambda saved: saved["config"].update(poetry=True)))


def renamed(file: h5py.File, group: str, name: Any) -> None:
    file[group].attrs["name"] = name


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda file: file.pop("layers/dense"), r"2 missing: classifier/kernel \(16, 3\), classifier/bias \(3,\)"),
        (lambda file: file.pop(f"{QUERY}/1"), r"1 missing: encoder/attention_0/query/bias \(16,\)"),
        (
            lambda file: file.create_dataset(f"{QUERY}/2", (4,), "f4", np.zeros(4)),
            "1 not in the model: layers/albert_ba",
        ),
        (lambda file: file.create_dataset("stray", (4,), "f4", np.zeros(4)), r"1 not in the model: stray \(4,\)"),
        (lambda file: file.create_dataset("vars/0", (4,), "f4", np.zeros(4)), "1 not in the model: vars/0"),
        (lambda file: renamed(file, QUERY, "key"), "is the second variable encoder/attention_0/key/kernel in the file"),
        (lambda file: renamed(file, QUERY, "../query"), "not in the model: encoder/attention_0/../query/kernel"),
        (lambda file: file[QUERY].attrs.pop("name"), "not in the model: encoder/attention_0/kernel"),
        (
            lambda file: file[f"{QUERY}/0"].write_direct(np.full((16, 16), np.nan, np.float32)),
            "256 of 256 values are NaN",
        ),
        (
            lambda file: (file.pop(f"{QUERY}/0"), file.create_dataset(f"{QUERY}/0", data=np.ones((16, 16), np.int8))),
            "query/kernel: expected floating-point weights, got int8",
        ),
        (
            lambda file: (file.pop(f"{QUERY}/0"), file.create_dataset(f"{QUERY}/0", data=np.ones((8, 32), np.float32))),
            r"query/kernel is \(8, 32\), expected \(16, 16\)",
        ),
    ],
)
def test_weights_that_do_not_fit(small_file: Path, change: Any, expected: str) -> None:
    with pytest.raises(InputError, match=rf"small\.keras.*{expected}"):
        load_checkpoint(with_variables(small_file, change))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda members: members.pop("config.json"), r"cannot read .*config\.json: No such file"),
        (lambda members: members.pop("model.weights.h5"), r"cannot read .*model\.weights\.h5: No such file"),
        (lambda members: members.update({"config.json": b"{"}), r"config\.json, line 1: not JSON"),
        (lambda members: members.update({"config.json": b"[]"}), "the model: expected an object that Keras saved"),
        (lambda members: members.update({"model.weights.h5": b"x" * 1000}), "the file is damaged"),
        (lambda members: members.update({"../outside": b"x"}), r"member '\.\./outside' would be written outside"),
        (lambda members: members.update({"/outside": b"x"}), "member '/outside' would be written outside"),
        (lambda members: members.update({"a/" * 2000 + "x": b"x"}), "member 'a/a/.*' is in more than 32 folders"),
        (lambda members: members.update({"assets/x": b"x"}), r"assets: expected tokenizer\.json"),
        (lambda members: members.update({"assets": b"x"}), "assets: expected a folder with the tokenizer's files"),
        (
            lambda members: members.update({"assets/tokenizer.json": b'{"kind": 1}'}),
            "assets/tokenizer.json: expected th",
        ),
    ],
)
def test_members_that_cannot_be_used(small_file: Path, change: Any, expected: str) -> None:
    with pytest.raises(InputError, match=rf"small\.keras.*{expected}|{expected}"):
        load_checkpoint(rewritten(small_file, change))
    assert not (small_file.parent / "outside").exists()


def test_bombs_and_other_files(small_file: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(small_file, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("assets/zeros", "w") as file:
        for _ in range(80):
            file.write(bytes(2**20))
    with pytest.raises(InputError, match="unpacks to more than 100 times its size"):
        load_checkpoint(small_file)
    for content in (b"", b"\x89HDF\r\n\x1a\n" + bytes(100), b"PK"):
        small_file.write_bytes(content)
        with pytest.raises(InputError, match="not a Keras model file: expected a zip, as Keras 3 saves it"):
            load_checkpoint(small_file)
    small_file.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(InputError, match="only a Git LFS pointer"):
        load_checkpoint(small_file)
    with pytest.raises(InputError, match="no such file or folder"):
        load_checkpoint(tmp_path / "absent.keras")
    with pytest.raises(InputError, match="of the form keras model, which has a config of its own"):
        load_checkpoint(small_file, config="albert_base_v2")


def test_pipes_and_folders_in_the_place_of_files(saved_file: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.keras")
    with pytest.raises(InputError, match=r"pipe\.keras: neither a file nor a folder"):
        load_checkpoint(tmp_path / "pipe.keras")
    folder = tmp_path / "unzipped"
    shutil.unpack_archive(saved_file, folder, "zip")
    (folder / "model.weights.h5").unlink()
    with pytest.raises(InputError, match=r"cannot read .*unzipped/model\.weights\.h5: No such file"):
        load_checkpoint(folder)
    os.mkfifo(folder / "model.weights.h5")
    with pytest.raises(InputError, match=r"model\.weights\.h5: neither a file nor a folder"):
        load_checkpoint(folder)


def test_a_file_in_a_folder_is_to_be_named(small_file: Path) -> None:
    with pytest.raises(InputError, match=r"found small\.keras; give the path of that file"):
        load_checkpoint(small_file.parent)
    with zipfile.ZipFile(small_file.parent / "packed.zip", "w") as archive:
        archive.write(small_file, "films.keras")
    with pytest.raises(InputError, match=r"packed\.zip: found films\.keras; give the path of that file"):
        load_checkpoint(small_file.parent / "packed.zip")


LAMBDA = {
    "module": "builtins",
    "class_name": "__lambda__",
    "config": {"value": ["4wEAAAAAAAAAAAAAAAIAAABDAAAA", None, None]},
    "registered_name": None,
}
SHELL = {"module": "os", "class_name": "system", "config": {"command": "touch harm"}, "registered_name": None}


@pytest.mark.parametrize("harm", [LAMBDA, SHELL])
@pytest.mark.parametrize("place", ["dtype", "compile_config", "build_config", "name", "module"])
def test_no_object_in_a_config_is_made(
    small_file: Path, monkeypatch: pytest.MonkeyPatch, harm: dict[str, Any], place: str
) -> None:
    """Keras would make them when it loads the file; here they are not even looked at."""
    monkeypatch.chdir(small_file.parent)
    monkeypatch.setattr(keras.saving, "deserialize_keras_object", lambda *_, **__: pytest.fail("an object was made"))

    def change(saved: dict[str, Any]) -> None:
        if place in ("compile_config", "build_config"):
            saved[place] = {"optimizer": harm, "input_shape": harm}
        elif place == "module":
            saved["config"]["backbone"].update(module=harm["module"], class_name=harm["class_name"])
        else:
            saved["config"]["backbone"]["config"][place] = harm

    assert load_checkpoint(with_config(small_file, change)).config == CONFIG
    assert not Path("harm").exists()


def outcome(path: Path) -> Checkpoint | None:
    try:
        return load_checkpoint(path)
    except InputError as error:
        assert str(path) in str(error) and "\n" not in str(error) and len(str(error)) < 3100
        return None


def test_seeded_damage(small_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never another exception, and never other numbers: a zip has checksums."""
    whole, expected = small_file.read_bytes(), load_checkpoint(small_file)
    chance = random.Random(0)
    refused = 0
    for _ in range(24):
        place = chance.randrange(len(whole)) if chance.random() < 0.5 else len(whole) - chance.randrange(1, 400)
        parts = (
            whole[:place],
            whole[:place] + bytes([chance.randrange(256)]) + whole[place + 1 :],
            whole[:place] + whole,
        )
        small_file.write_bytes(chance.choice(parts))
        if (read := outcome(small_file)) is None:
            refused += 1
        else:
            assert_same_weights(read.weights, expected.weights)
            assert read.task == expected.task
    assert refused > 12
