"""Checkpoints in archives: whatever the form and the kind, as if it were unpacked, and nothing but the tokenizer stays."""

import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from garden_writer import RECORDED, arrays, encoder_layer, objects, save_saved_model
from peer_models import random_weights
from small_vocabularies import sentencepiece_vocabulary
from tf1_writer import save_folder

from albert_tf.config import AlbertConfig
from albert_tf.conversion.archive import unpacked
from albert_tf.conversion.huggingface import write_huggingface
from albert_tf.conversion.keras_hub import write_keras_hub
from albert_tf.conversion.model_garden import write_model_garden
from albert_tf.conversion.tf1 import write_tf1
from albert_tf.errors import InputError
from albert_tf.presets import load_checkpoint, load_tokenizer, save_preset
from albert_tf.tokenization.tokenizer import AlbertTokenizer

WRITERS = {
    "albert-tf preset": save_preset,
    "google tf1": write_tf1,
    "hugging face": write_huggingface,
    "keras-hub preset": write_keras_hub,
    "model garden": write_model_garden,
}
KINDS = {"zip": ".zip", "gztar": ".tar.gz", "bztar": ".tar.bz2", "xztar": ".tar.xz", "tar": ".tar"}
TEXTS = ["The old mill by the river, in 1999.", "Never again!"]


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """Where temporary folders are made."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def model(tmp_path, write):
    """A folder that `write` wrote, with an encoder and a tokenizer."""
    vocabulary = sentencepiece_vocabulary()
    config = AlbertConfig(vocabulary.size, 6, 10, 4, 2, embedding_dim=4, max_sequence_length=17)
    write(tmp_path / "model", config, random_weights(config), AlbertTokenizer(vocabulary, max_length=9))
    return tmp_path / "model"


def packed(folder, kind, *, inside="model"):
    """An archive of a folder; `inside` is what it is called there, "" for its files alone."""
    name = str(folder.parent / "packed")
    if not inside:
        return Path(shutil.make_archive(name, kind, folder))
    return Path(shutil.make_archive(name, kind, folder.parent, folder.name))


def same(found, expected):
    assert found.weights.keys() == expected.weights.keys()
    for name, weight in expected.weights.items():
        np.testing.assert_array_equal(found.weights[name], weight, name)
    assert (found.form, found.config, found.task) == (expected.form, expected.config, expected.task)
    ours, theirs = load_tokenizer(found), load_tokenizer(expected)
    assert ours is not None and theirs is not None and ours.max_length == theirs.max_length
    assert ours.encode_batch(TEXTS) == theirs.encode_batch(TEXTS)


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize(("kind", "inside"), [("zip", "model"), ("gztar", "")])
def test_every_form(tmp_path, scratch, form, kind, inside):
    folder = model(tmp_path, WRITERS[form])
    expected = load_checkpoint(folder)
    assert expected.form == form
    archive = packed(folder, kind, inside=inside)
    found = load_checkpoint(str(archive))
    same(found, expected)
    assert found.source == str(archive)
    (kept,) = scratch.iterdir()
    assert found.tokenizer_path is not None and found.tokenizer_path.is_relative_to(kept)
    vocabularies = {"30k-clean.model", "spiece.model", "vocabulary.spm", "tokenizer.json"}
    assert {path.name for path in kept.iterdir()} <= vocabularies


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(tmp_path, kind):
    folder = model(tmp_path, save_preset)
    archive = packed(folder, kind)
    assert archive.name == f"packed{KINDS[kind]}"
    same(load_checkpoint(archive), load_checkpoint(folder))


def test_a_saved_model_with_its_vocabulary(tmp_path):
    """As TF-Hub's archives are: the files alone."""
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    save_saved_model(tmp_path / "model", objects(arrays(RECORDED)))
    saved = SavedModel.FromString((tmp_path / "model" / "saved_model.pb").read_bytes())
    saved.meta_graphs[0].object_graph_def.nodes[0].user_object.metadata = json.dumps(encoder_layer())
    (tmp_path / "model" / "saved_model.pb").write_bytes(saved.SerializeToString())
    (tmp_path / "model" / "assets" / "vocab.txt").parent.mkdir(exist_ok=True)
    (tmp_path / "model" / "assets" / "vocab.txt").write_text(words(40))
    found = load_checkpoint(packed(tmp_path / "model", "gztar", inside=""))
    np.testing.assert_array_equal(
        found.weights["pooler/kernel"], arrays(RECORDED)["layer_with_weights-6/kernel"], strict=True
    )
    assert (found.form, found.config.num_layers) == ("model garden", 3)
    assert load_tokenizer(found).vocabulary.kind == "wordpiece"


def words(count):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return "".join(f"{word}\n" for word in special + [f"w{n}" for n in range(count - len(special))])


def test_a_module_of_tf_hub_1(tmp_path):
    folder = save_folder(tmp_path / "model")
    for name in ("saved_model.pb", "tfhub_module.pb"):
        (folder / name).touch()
    assert load_checkpoint(packed(folder, "gztar", inside="")).form == "google tf1"


@pytest.mark.parametrize("what", ["vocabulary", "tokenizer", "saved model"])
def test_a_tokenizer_in_an_archive(tmp_path, what):
    """As TF-Hub has its preprocessing models."""
    source = save_folder(tmp_path / "albert")
    chosen = tmp_path / "chosen"
    chosen.mkdir()
    (chosen / "vocab.txt").write_text(words(11))
    if what == "tokenizer":
        AlbertTokenizer.from_pretrained(chosen).save(tmp_path / "saved")
        chosen = tmp_path / "saved"
    elif what == "saved model":
        (chosen / "assets").mkdir()
        (chosen / "vocab.txt").rename(chosen / "assets" / "vocab.txt")
        (chosen / "saved_model.pb").touch()
    found = load_checkpoint(source, tokenizer=packed(chosen, "gztar", inside=""))
    assert load_tokenizer(found).vocabulary.encode("w0 w5") == [5, 10]


def test_a_folder_may_be_called_like_an_archive(tmp_path):
    folder = save_folder(tmp_path / "albert.zip")
    assert load_checkpoint(folder).source == str(folder)


def test_errors_tell_of_the_archive(tmp_path, scratch):
    folder = model(tmp_path, save_preset)
    (folder / "config.json").write_text("{")
    archive = packed(folder, "zip")
    with pytest.raises(InputError) as error:
        load_checkpoint(archive)
    assert str(error.value).startswith(f"{archive}/model/config.json, line 1: not JSON")
    assert not list(scratch.iterdir())


def test_a_config_for_an_archive_that_has_one(tmp_path):
    archive = packed(save_folder(tmp_path / "tf1"), "tar")
    with pytest.raises(InputError, match="of the form tf1, which has a config of its own; leave out the one given"):
        load_checkpoint(archive, config="albert_base_v2")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "the folder is empty"),
        (["notes.txt", "more.txt"], "found only more.txt, notes.txt"),
        (["model.zip"], "found only model.zip"),  # an archive in an archive
        (["saved_model.pb", "variables/variables.index"], "found a SavedModel of TensorFlow 1"),
    ],
)
def test_an_archive_of_something_else(tmp_path, files, message):
    for name in files:
        (tmp_path / "model" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "model" / name).touch()
    (tmp_path / "model").mkdir(exist_ok=True)
    with pytest.raises(InputError, match=message) as error:
        load_checkpoint(packed(tmp_path / "model", "zip", inside=""))
    assert str(error.value).startswith(f"{tmp_path / 'packed.zip'}: ")


def test_a_damaged_archive(tmp_path):
    archive = packed(model(tmp_path, save_preset), "zip")
    archive.write_bytes(archive.read_bytes()[:-100])
    with pytest.raises(InputError, match="cannot unpack"):
        load_checkpoint(archive)
    with pytest.raises(InputError, match="cannot unpack"), unpacked(archive):
        pass
