"""TF1 checkpoints that are written: the published variables and files, bit for bit, and nothing else is lost."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tf1_writer import PUBLISHED, encoder, save_folder, save_published, squad_1, squad_2, variables

from albert_tf.config import AlbertConfig
from albert_tf.conversion.tf1 import read_tf1, write_tf1
from albert_tf.errors import InputError
from albert_tf.tokenization.tokenizer import AlbertTokenizer

CLASSIFIER = {
    "output_weights": np.arange(18, dtype=np.float32).reshape(3, 6),
    "output_bias": np.array([1, 2, 3], np.float32),
}


def write_again(source: Path, folder: Path, **options):
    """Reads and writes; returns what was read."""
    checkpoint = read_tf1(source)
    write_tf1(folder, checkpoint.config, checkpoint.weights, None, **options)
    return checkpoint


def written_values(folder: Path) -> dict[str, np.ndarray]:
    reader = tf.train.load_checkpoint(str(folder / "model.ckpt-best"))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


GROUPS = PUBLISHED | {"num_hidden_groups": 2, "inner_group_num": 2, "hidden_act": "relu", "hidden_dropout_prob": 0.1}


@pytest.mark.parametrize(
    ("config", "values"),
    [
        (PUBLISHED, variables(PUBLISHED)),
        (GROUPS, variables(GROUPS)),
        (PUBLISHED | {"embedding_size": 6}, variables(PUBLISHED | {"embedding_size": 6})),
        (PUBLISHED, {name: v for name, v in encoder().items() if "pooler" not in name}),
        (PUBLISHED, encoder() | CLASSIFIER),
        (PUBLISHED, encoder() | squad_1(np.arange(12, dtype=np.float32).reshape(2, 6))),
        (PUBLISHED, encoder() | squad_2(6)),
    ],
    ids=["pretraining", "groups", "E=H", "encoder", "classifier", "squad 1", "squad 2"],
)
def test_what_was_read_is_written_bit_for_bit(tmp_path, config, values):
    checkpoint = write_again(save_folder(tmp_path / "in", config, values), tmp_path / "out")
    written = written_values(tmp_path / "out")
    assert written.keys() == values.keys() | {"global_step"}
    for name, value in values.items():
        assert written[name].dtype == np.float32 and written[name].tobytes() == value.tobytes(), name
    assert written["global_step"].dtype == np.int64 and written["global_step"] == 0
    again = read_tf1(tmp_path / "out")
    assert again.config == checkpoint.config and again.head == checkpoint.head
    assert again.weights.keys() == checkpoint.weights.keys()
    assert all(weight.tobytes() == again.weights[name].tobytes() for name, weight in checkpoint.weights.items())


def test_the_files_are_the_released_ones(tmp_path):
    write_again(save_folder(tmp_path / "in"), tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "albert_config.json",
        "checkpoint",
        "model.ckpt-best.data-00000-of-00001",
        "model.ckpt-best.index",
    }
    assert tf.train.latest_checkpoint(str(tmp_path / "out")) == str(tmp_path / "out" / "model.ckpt-best")
    unused = {"down_scale_factor": 1, "gap_size": 0, "net_structure_type": 0, "num_memory_blocks": 0}
    assert json.loads((tmp_path / "out" / "albert_config.json").read_text()) == PUBLISHED | unused


def test_a_graph_with_the_original_names_restores_it(tmp_path):
    write_again(save_folder(tmp_path / "in"), tmp_path / "out")
    values = variables(PUBLISHED)
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        made = {name: v1.get_variable(name, value.shape) for name, value in values.items()}
        step = v1.train.create_global_step()
        v1.train.Saver().restore(session, str(tmp_path / "out" / "model.ckpt-best"))
        assert session.run(step) == 0
        for name, variable in made.items():
            np.testing.assert_array_equal(session.run(variable), values[name])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_published_list_is_reproduced(shared_data, tmp_path, language):
    """Names, types, shapes and places in the data file, as a dump of the released index lists them."""
    published = shared_data / "tf1_ckpt_index" / f"google_albert_base_{language}"
    values = save_published(tmp_path / "in", published)
    vocabulary = {"en": "30k-clean.model", "zh": "vocab.txt"}[language]
    tokenizer = AlbertTokenizer.from_pretrained(shared_data / f"albert_vocab_{language}" / vocabulary)
    checkpoint = read_tf1(tmp_path / "in")
    write_tf1(tmp_path / "out", checkpoint.config, checkpoint.weights, tokenizer)
    listed = (published / "model.ckpt-best.index.tsv").read_text().splitlines()
    offset, lines = 0, []
    reader = tf.train.load_checkpoint(str(tmp_path / "out" / "model.ckpt-best"))
    for name, shape in sorted(reader.get_variable_to_shape_map().items()):
        kind = reader.get_variable_to_dtype_map()[name]
        size = kind.size * int(np.prod(shape))
        lines.append(f"{name}\t{kind.name}\t{shape}\toffset={offset}\tsize={size}")
        offset += size
    assert lines == [line.rpartition("\t")[0] for line in listed if not line.startswith("#")]
    assert (tmp_path / "out" / "model.ckpt-best.data-00000-of-00001").stat().st_size == offset
    whole = (tmp_path / "out" / "model.ckpt-best.data-00000-of-00001").read_bytes()
    assert whole[:-8] == b"".join(values[name].tobytes() for name in sorted(values))
    config = json.loads((published / "albert_config.json").read_text())
    config.pop("layers_to_keep", None)  # an empty list, in the Chinese one only
    assert json.loads((tmp_path / "out" / "albert_config.json").read_text()) == config
    name = {"en": "30k-clean.model", "zh": "vocab_chinese.txt"}[language]
    original = (shared_data / f"albert_vocab_{language}" / vocabulary).read_bytes()
    assert (tmp_path / "out" / name).read_bytes().split() == original.split()
    assert read_tf1(tmp_path / "out").tokenizer_path == tmp_path / "out" / name


# === What cannot be written ===


@pytest.mark.parametrize(
    ("fields", "more", "message"),
    [
        ({"activation": "gelu_erf"}, {}, "albert_config.json has no form for activation='gelu_erf'"),
        ({"layer_norm_epsilon": 1e-5}, {}, "no form for layer_norm_epsilon"),
        ({}, {"tagger/kernel": np.zeros((6, 3), np.float32)}, "no variable for tagger/kernel; missing none"),
        ({}, {"classifier/kernel": np.zeros((6, 3), np.float32)}, "no variable for none; missing classifier/bias"),
        ({}, {"pooler/bias": np.zeros(7, np.float32)}, r"pooler/bias is \(7,\), expected \(6,\)"),
    ],
)
def test_what_has_no_form_there_is_refused(tmp_path, fields, more, message):
    checkpoint = read_tf1(save_folder(tmp_path / "in"))
    config = AlbertConfig(**(checkpoint.config.to_dict() | fields))
    with pytest.raises(InputError, match=message):
        write_tf1(tmp_path / "out", config, checkpoint.weights | more, None)
    assert not (tmp_path / "out").exists()


def test_a_path_that_tensorflow_takes_for_a_pattern_is_refused(tmp_path):
    source = save_folder(tmp_path / "in")
    with pytest.raises(InputError, match=r"TensorFlow takes \[ in a path for a pattern"):
        write_again(source, tmp_path / "my [best]")


def test_only_a_tf1_checkpoint_is_replaced_and_only_when_asked(tmp_path):
    source = save_folder(tmp_path / "in")
    write_again(source, tmp_path / "out")
    with pytest.raises(InputError, match="exists already"):
        write_again(source, tmp_path / "out")
    other = save_folder(tmp_path / "other", values=variables(PUBLISHED, seed=5))
    write_again(other, tmp_path / "out", overwrite=True)
    np.testing.assert_array_equal(
        written_values(tmp_path / "out")["bert/pooler/dense/bias"],
        variables(PUBLISHED, seed=5)["bert/pooler/dense/bias"],
    )
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "diary.txt").write_text("dear diary")
    (tmp_path / "file").write_text("")
    for folder, message in (("notes", r"is not a TF1 checkpoint \(diary.txt\)"), ("file", "is a file")):
        with pytest.raises(InputError, match=message):
            write_again(source, tmp_path / folder, overwrite=True)
    assert (tmp_path / "notes" / "diary.txt").read_text() == "dear diary"


def test_a_failure_leaves_nothing(tmp_path, monkeypatch):
    source = save_folder(tmp_path / "in")
    write_again(source, tmp_path / "out")
    before = shutil.copytree(tmp_path / "out", tmp_path / "before")

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr("albert_tf.conversion.tf1.write_variables", fail)
    with pytest.raises(InputError, match="disk full"):
        write_again(source, tmp_path / "out", overwrite=True)
    for path in before.iterdir():
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out", "before"}
