"""What a path holds is told by the names of its files, and what cannot be read is told too."""

import pytest

from albert_tf.conversion.detect import ARCHIVE, HUGGING_FACE, KERAS_HUB, MODEL_GARDEN, PRESET, TF1, detect
from albert_tf.errors import InputError


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


@pytest.mark.parametrize(
    ("names", "form"),
    [
        (["config.json", "weights.safetensors", "tokenizer.json"], PRESET),
        (["albert_config.json", "model.ckpt-best.index", "model.ckpt-best.data-00000-of-00001"], TF1),
        (["albert_base/albert_config.json", "albert_base/model.ckpt-best.index"], TF1),
        (["saved_model.pb", "tfhub_module.pb", "variables/variables.index"], TF1),
        (["config.json", "model.safetensors", "tf_model.h5", "tokenizer.json"], HUGGING_FACE),
        (["config.json", "model.safetensors.index.json", "model-1.safetensors"], HUGGING_FACE),
        (["config.json", "pytorch_model.bin", "spiece.model", "old/model.ckpt.index"], HUGGING_FACE),
        (["config.json", "pytorch_model.bin.index.json"], HUGGING_FACE),
        (["config.json", "model.weights.h5", "task.weights.h5", "task.json", "tokenizer.json"], KERAS_HUB),
        (["config.json", "model.weights.json"], KERAS_HUB),
    ],
)
def test_folders_with_a_reader(tmp_path, names, form):
    assert detect(touch(tmp_path, *names)) == form
    assert detect(str(tmp_path)) == form


@pytest.mark.parametrize("given", ["m", "m.index", "m.meta", "m.data-00000-of-00001"])
def test_a_prefix_and_its_files(tmp_path, given):
    assert detect(touch(tmp_path, "m.index", "m.meta", "m.data-00000-of-00001") / given) == TF1


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tgz", "a.tar", "a.tar.bz2", "a.tar.xz", "albert.ZIP"])
def test_archives(tmp_path, name):
    assert detect(touch(tmp_path, name) / name) == ARCHIVE


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "the folder is empty"),
        ([".hidden"], "the folder is empty"),
        (
            ["config.json", "tf_model.h5", "spiece.model"],
            r"found a Hugging Face checkpoint in its TensorFlow or Flax form alone \(tf_model\.h5\), which has no reader",
        ),
        (["saved_model.pb", "variables/variables.index"], "found a SavedModel of TensorFlow 1, which has no reader"),
        (["config.json", "notes.txt"], "found only config.json, notes.txt"),
        (["albert_config.json"], "found only albert_config.json"),
    ],
)
def test_folders_without_a_reader(tmp_path, names, message):
    with pytest.raises(InputError, match=message) as error:
        detect(touch(tmp_path, *names))
    assert "expected an albert-tf preset folder" in str(error.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("model.safetensors", "found a safetensors file alone"),
        ("pytorch_model.bin", "found a PyTorch file"),
        ("model.TFLITE", "found a TFLite file"),
        ("albert_config.json", "give its folder"),
        ("albert.7z", "found a file of unknown form"),
        ("notes", "found a file of unknown form"),
    ],
)
def test_files_without_a_reader(tmp_path, name, message):
    with pytest.raises(InputError, match=message):
        detect(touch(tmp_path, name) / name)


def test_nothing_there(tmp_path):
    with pytest.raises(InputError, match="no such file or folder; expected an albert-tf preset folder"):
        detect(tmp_path / "absent")
    with pytest.raises(InputError, match="no such file or folder"):
        detect(tmp_path / "absent.tar.gz")


def test_the_name_of_a_config_has_no_weights(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        InputError, match="albert_base_v2 is the name of a config, which has no weights here; expected an"
    ):
        detect("albert_base_v2")
    touch(tmp_path, "albert_base_v2/weights.safetensors")
    assert detect("albert_base_v2") == PRESET


@pytest.mark.parametrize("given", ["", "ckpt-1", "ckpt-1.index", "ckpt-1.data-00000-of-00001"])
def test_an_object_checkpoint_is_told_by_its_index(tmp_path, given):
    touch(tmp_path, "checkpoint", "ckpt-1.index", "ckpt-1.data-00000-of-00001", "albert_config.json")
    (tmp_path / "ckpt-1.index").write_bytes(b"\0\0_CHECKPOINTABLE_OBJECT_GRAPH\x08model/")
    assert detect(tmp_path / given) == MODEL_GARDEN


def test_a_saved_model_of_tensorflow_2(tmp_path):
    touch(tmp_path, "saved_model.pb", "keras_metadata.pb", "variables/variables.index", "assets/30k-clean.model")
    (tmp_path / "variables" / "variables.index").write_bytes(b"\0\0_CHECKPOINTABLE_OBJECT_GRAPH\x08variables/")
    assert detect(tmp_path) == MODEL_GARDEN


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["config.json", "model.safetensors", "albert_config.json", "model.ckpt-best.index"],
            r"found a Hugging Face checkpoint \(model\.safetensors\) and a TensorFlow checkpoint "
            r"\(model\.ckpt-best\.index\); .*or give the prefix",
        ),
        (["weights.safetensors", "pytorch_model.bin"], "found an albert-tf preset .* and a Hugging Face checkpoint"),
        (
            ["model.weights.h5", "model.safetensors"],
            "found a Hugging Face checkpoint .* and weights of Keras or KerasHub",
        ),
        (["saved_model.pb", "ckpt-1.index", "model.weights.json"], "KerasHub .* and a SavedModel .* and a TensorFlow"),
    ],
)
def test_several_forms_in_a_folder(tmp_path, names, message):
    with pytest.raises(InputError, match=message):
        detect(touch(tmp_path, *names))


def test_a_link_to_nothing(tmp_path):
    """As of a large file in another folder, where only the folder with the links was copied."""
    (tmp_path / "a.index").symlink_to("blobs/1234")
    with pytest.raises(InputError, match=r"a\.index: expected a file, found a link to nothing"):
        detect(tmp_path)
    (tmp_path / "albert").symlink_to("albert")
    with pytest.raises(InputError, match="albert: a link to nothing; expected"):
        detect(tmp_path / "albert")
    (tmp_path / "albert").unlink()
    (tmp_path / "a.index").rename(tmp_path / "a.weights")
    with pytest.raises(InputError, match=r"found only a\.weights \(a\.weights: a link to nothing\)"):
        detect(tmp_path)
