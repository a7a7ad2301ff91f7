"""Files of Google TF1 checkpoints that are damaged, missing or too many: each is named."""

import json
import os
import re
import shutil

import numpy as np
import pytest
from tf1_folders import same_rest
from tf1_writer import PUBLISHED, save, save_folder, variables
from tiny_models import TINY

from albert_tf.conversion.model_garden import write_model_garden
from albert_tf.conversion.tf1 import read_tf1, write_tf1
from albert_tf.conversion.tf1_files import checkpoint_prefix, closest
from albert_tf.errors import InputError
from albert_tf.parameters import backbone_weight_shapes

DATA = "model.ckpt-best.data-00000-of-00001"


def test_a_flipped_byte_names_the_tensor(copied):
    path = copied / DATA
    raw = bytearray(path.read_bytes())
    raw[2] ^= 1  # tensors lie in the order of their names
    path.write_bytes(raw)
    with pytest.raises(InputError, match=r"model\.ckpt-best: cannot read tensor bert/embeddings/LayerNorm/beta"):
        read_tf1(copied)


def test_every_flipped_byte_of_the_data_is_noticed(copied, released):
    whole = (released / DATA).read_bytes()
    for position in range(0, len(whole), 151):
        (copied / DATA).write_bytes(whole[:position] + bytes([whole[position] ^ 0x40]) + whole[position + 1 :])
        with pytest.raises(InputError, match="cannot read tensor"):
            read_tf1(copied)


def test_a_flipped_byte_of_the_index_gives_the_same_weights_or_an_error(copied, released):
    expected = read_tf1(released).weights
    whole = (released / "model.ckpt-best.index").read_bytes()
    refused = 0
    for position in range(0, len(whole), 7):
        changed = whole[:position] + bytes([whole[position] ^ 0x11]) + whole[position + 1 :]
        (copied / "model.ckpt-best.index").write_bytes(changed)
        try:
            weights = read_tf1(copied).weights
        except InputError:
            refused += 1
        else:
            assert weights.keys() == expected.keys()
            assert all(np.array_equal(weights[name], expected[name]) for name in expected)
    assert refused > len(whole) / 7 / 2


@pytest.mark.parametrize("left", [0, 1, 100, -1])
def test_a_truncated_data_file_names_the_tensor(copied, left):
    path = copied / DATA
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(InputError, match=r"cannot read tensor .*damaged or cut off"):
        read_tf1(copied)


def test_truncation_within_the_training_state_is_noticed_too(tmp_path):
    folder = save_folder(tmp_path, values=variables(PUBLISHED) | {"global_step": np.int64(7)})
    path = folder / DATA
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="cannot read tensor global_step"):
        read_tf1(folder)


@pytest.mark.parametrize("contents", [b"", b"no table", b"x" * 1000])
def test_an_index_that_is_none_is_refused(copied, contents):
    (copied / "model.ckpt-best.index").write_bytes(contents)
    with pytest.raises(InputError, match=r"model\.ckpt-best\.index: damaged or not a TensorFlow checkpoint"):
        read_tf1(copied)


def remove(name):
    return lambda folder: (folder / name).unlink()


def copy(name, new):
    return lambda folder: shutil.copy(folder / name, folder / new)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (remove("albert_config.json"), "expected one albert_config.json with the checkpoint; there is none"),
        (copy("albert_config.json", "albert_config_2.json"), "found albert_config.json, albert_config_2.json"),
        (remove(DATA), "the weights belong in model.ckpt-best.data-00000-of-00001 beside the .index; there is none"),
        (
            copy(DATA, "model.ckpt-best.data-00000-of-00002"),
            "found model.ckpt-best.data-00000-of-00001, model.ckpt-best",
        ),
        (remove("model.ckpt-best.index"), "expected a TF1 checkpoint (*.index), found 30k-clean.model"),
        (copy("model.ckpt-best.index", "other.index"), "several checkpoints, model.ckpt-best.index, other.index"),
        (
            copy("30k-clean.model", "vocab.txt"),
            "expected one vocabulary file (*.model, *.spm, vocab*.txt), found 30k-clean",
        ),
    ],
)
def test_a_missing_or_ambiguous_file_is_named(copied, change, message):
    change(copied)
    with pytest.raises(InputError) as error:
        read_tf1(copied)
    assert message in str(error.value)


def test_the_state_file_decides_between_checkpoints(copied):
    for step in (1, 2):
        save(copied / f"model.ckpt-{step}", variables(PUBLISHED, seed=step))
    state = 'model_checkpoint_path: "/where/it/was/trained/model.ckpt-2"\nall_model_checkpoint_paths: "model.ckpt-1"\n'
    (copied / "checkpoint").write_text(state)
    same_rest(read_tf1(copied).weights, variables(PUBLISHED, seed=2))
    same_rest(read_tf1(copied / "model.ckpt-1").weights, variables(PUBLISHED, seed=1))
    (copied / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-3"\n')
    with pytest.raises(InputError, match="several checkpoints"):
        read_tf1(copied)


def test_a_state_file_speaks_of_its_own_folder_only(tmp_path):
    """Two folders with checkpoints of the same name: neither is the one that is meant."""
    for name in ("first", "second"):
        save_folder(tmp_path / name)
        (tmp_path / name / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-best"\n')
    with pytest.raises(InputError, match=r"several checkpoints, first/model\.ckpt-best\.index, second/model"):
        read_tf1(tmp_path)


def test_a_vocabulary_nearby_goes_before_one_further_away(copied):
    """Such as that of a preset made of the checkpoint, in a folder below it."""
    (copied / "preset").mkdir()
    (copied / "preset" / "vocabulary.spm").write_bytes(b"model")
    assert read_tf1(copied).tokenizer_path == copied / "30k-clean.model"


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_a_data_file_that_is_none(copied, kind):
    (copied / DATA).unlink()
    (copied / DATA).mkdir() if kind == "folder" else os.mkfifo(copied / DATA)
    with pytest.raises(InputError, match=r"the weights belong in .* beside the \.index; there is none"):
        read_tf1(copied)


def test_a_name_that_is_no_text(copied):
    folder = copied.rename(copied.with_name(os.fsdecode(b"albert\xff")))
    with pytest.raises(InputError, match="TensorFlow takes names in UTF-8 only"):
        read_tf1(folder)


def test_a_data_file_without_its_index_is_named(copied):
    (copied / "model.ckpt-best.index").unlink()
    with pytest.raises(InputError, match=r"model\.ckpt-best\.index: no such file"):
        read_tf1(copied / DATA)
    with pytest.raises(InputError, match="expected a TF1 checkpoint"):
        read_tf1(copied / "model.ckpt-best")


def test_a_keras_training_checkpoint_is_refused(tmp_path):
    import tensorflow as tf

    tf.train.Checkpoint(v=tf.Variable(1.0)).write(str(tmp_path / "model.ckpt"))
    (tmp_path / "albert_config.json").write_text(json.dumps(PUBLISHED))
    with pytest.raises(InputError, match="a TensorFlow 2 object checkpoint"):
        read_tf1(tmp_path)


def test_hidden_files_do_not_count(tmp_path):
    (tmp_path / "inner").mkdir()
    for name in ("._a.index", "inner/b.index", "inner/._b.index"):
        (tmp_path / name).touch()
    assert closest(tmp_path, "*.index") == [tmp_path / "inner" / "b.index"]
    assert closest(tmp_path, "*.model") == []


@pytest.mark.parametrize("name", ["30k-clean.model", "albert_config.json"])
@pytest.mark.parametrize("target", ["gone", None])
def test_a_link_to_nothing_is_not_taken_for_no_file(copied, name, target):
    (copied / name).unlink()
    (copied / name).symlink_to(target or name)
    with pytest.raises(InputError, match=rf"{re.escape(name)}: expected a file, found a link to nothing"):
        read_tf1(copied)


@pytest.mark.parametrize("write", [write_tf1, write_model_garden])
def test_a_limit_on_the_size_of_files_is_one_plain_line(tmp_path, write):
    """As of a quota. TensorFlow's own message begins with the place in its graph."""
    import resource

    weights = {name: np.zeros(shape, np.float32) for name, shape in backbone_weight_shapes(TINY).items()}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        with pytest.raises(InputError, match=r"^cannot write [^{]*/out: [^{]*File too large; nothing was written$"):
            write(tmp_path / "out", TINY, weights, None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.iterdir())


def test_the_prefix_of_a_file(tmp_path):
    (tmp_path / "m.index").touch()
    for name in ("m", "m.index", "m.meta", "m.data-00001-of-00002"):
        assert checkpoint_prefix(tmp_path / name) == tmp_path / "m"
    assert checkpoint_prefix(tmp_path / "n") is None
