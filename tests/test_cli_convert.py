"""`albert-tf convert`: a TF1 checkpoint becomes a preset with the same weights, and says what it is."""

import argparse
import json
import shutil
import tarfile

import numpy as np
import pytest
import tensorflow as tf
from huggingface_writer import save, tensors, without_heads
from safetensors.numpy import load_file
from tf1_writer import PUBLISHED, encoder, save_folder, save_published, squad_1, squad_2, variables

from albert_tf.cli.convert import add_parser
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.presets import load_checkpoint, read_task_settings, save_preset
from albert_tf.tokenization.tokenizer import AlbertTokenizer


def convert(*arguments):
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["convert", *map(str, arguments)])
    return args.run(args)


@pytest.fixture
def source(tmp_path):
    folder = save_folder(tmp_path / "albert")
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\ne\nf\n")
    return folder


def test_a_folder_becomes_a_preset(source, tmp_path, capsys):
    assert convert(source, tmp_path / "out") == 0
    printed = capsys.readouterr().out
    for told in ("google tf1", "4 layers, 6 wide", "pretraining", "wordpiece, 11 entries", "MB"):
        assert told in printed
    values = variables(PUBLISHED)
    backbone = sum(value.size for name, value in values.items() if name.startswith("bert/"))
    assert f"{backbone:,} + {sum(value.size for value in values.values()) - backbone:,} in the head" in printed
    read = load_checkpoint(tmp_path / "out")
    assert read.weights.keys() == load_checkpoint(source).weights.keys()
    np.testing.assert_array_equal(read.weights["pooler/kernel"], values["bert/pooler/dense/kernel"])
    assert AlbertTokenizer.from_pretrained(tmp_path / "out").max_length == 7


def test_an_archive_becomes_a_preset_with_its_vocabulary(source, tmp_path, capsys):
    path = tmp_path / "albert.tar.gz"
    with tarfile.open(path, "w:gz") as file:
        file.add(source, "albert")
    convert(path, tmp_path / "out")
    assert "google tf1 archive" in capsys.readouterr().out
    assert load_checkpoint(tmp_path / "out").tokenizer_path == tmp_path / "out"


def test_an_archive_of_a_preset_becomes_the_preset(source, tmp_path, capsys):
    convert(source, tmp_path / "preset")
    shutil.make_archive(str(tmp_path / "preset"), "zip", tmp_path, "preset")
    convert(tmp_path / "preset.zip", tmp_path / "out")
    assert "albert-tf preset archive" in capsys.readouterr().out
    for path in (tmp_path / "preset").iterdir():
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()


def test_a_source_without_a_vocabulary_is_converted_and_told(source, tmp_path, capsys):
    (source / "vocab.txt").unlink()
    convert(source, tmp_path / "out")
    assert "none in the source" in capsys.readouterr().out


def test_what_exists_is_replaced_only_when_asked(source, tmp_path):
    convert(source, tmp_path / "out")
    with pytest.raises(InputError, match="exists already"):
        convert(source, tmp_path / "out")
    convert(source, tmp_path / "out", "--overwrite")
    with pytest.raises(InputError, match="is not a preset"):
        convert(source, source, "--overwrite")
    assert load_checkpoint(source).form == "google tf1"


def test_a_preset_in_half_the_bytes(source, tmp_path):
    convert(source, tmp_path / "preset")
    convert(tmp_path / "preset", tmp_path / "half", "--dtype", "float16", "--verify")
    whole, half = (tmp_path / name / "weights.safetensors" for name in ("preset", "half"))
    assert all(values.dtype == np.float16 for values in load_file(half).values())
    for name, values in load_file(whole).items():
        np.testing.assert_array_equal(load_checkpoint(tmp_path / "half").weights[name], values.astype(np.float16))


def test_half_precision_is_of_presets_and_of_weights_that_it_holds(source, tmp_path):
    with pytest.raises(InputError, match="--to tf1 writes float32"):
        convert(source, tmp_path / "out", "--to", "tf1", "--dtype", "float16")
    checkpoint = load_checkpoint(source)
    checkpoint.weights["pooler/bias"][0] = 70000
    save_preset(tmp_path / "large", checkpoint.config, checkpoint.weights, None)
    with pytest.raises(InputError, match="pooler/bias has a weight of 70000, float16 holds up to 65504"):
        convert(tmp_path / "large", tmp_path / "out", "--dtype", "float16")
    assert not (tmp_path / "out").exists()


def test_a_preset_is_not_converted_again(source, tmp_path):
    convert(source, tmp_path / "out")
    with pytest.raises(InputError, match="is a preset folder already"):
        convert(tmp_path / "out", tmp_path / "again")


def test_back_to_tf1(source, tmp_path, capsys):
    convert(source, tmp_path / "preset")
    assert convert(tmp_path / "preset", tmp_path / "tf1", "--to", "tf1") == 0
    assert "otherwise there" not in capsys.readouterr().out
    reader = tf.train.load_checkpoint(str(tmp_path / "tf1" / "model.ckpt-best"))
    for name, value in variables(PUBLISHED).items():
        np.testing.assert_array_equal(reader.get_tensor(name), value)
    assert AlbertConfig.from_json(tmp_path / "tf1" / "albert_config.json") == AlbertConfig.from_dict(PUBLISHED)
    assert load_checkpoint(tmp_path / "tf1").tokenizer_path == tmp_path / "tf1" / "vocab_chinese.txt"


def test_what_tf1_cannot_record_is_told(source, tmp_path, capsys):
    checkpoint = load_checkpoint(source)
    weights = checkpoint.backbone_weights | {
        "classifier/kernel": np.ones((6, 2), np.float32),
        "classifier/bias": np.zeros(2, np.float32),
    }
    tokenizer = AlbertTokenizer.from_pretrained(source / "vocab.txt", lower=False, max_length=7)
    task = json.dumps({"task": "classification", "settings": {"labels": ["no", "yes"], "classifier_dropout": 0.1}})
    save_preset(tmp_path / "preset", checkpoint.config, weights, tokenizer, extra_files={"task.json": task})
    convert(tmp_path / "preset", tmp_path / "tf1", "--to", "tf1")
    printed = " ".join(capsys.readouterr().out.split())
    assert "the text rules lower=false are not recorded" in printed
    assert "labels have no names; in their order they are no, yes" in printed


@pytest.mark.parametrize(
    ("head", "values"), [("squad 1", squad_1(np.ones((2, 6), np.float32))), ("squad 2", squad_2(6))]
)
def test_question_answering_heads_are_reported_and_go_back(tmp_path, capsys, head, values):
    convert(save_folder(tmp_path / "albert", values=encoder() | values), tmp_path / "preset")
    assert "question_answering" in capsys.readouterr().out
    convert(tmp_path / "preset", tmp_path / "tf1", "--to", "tf1")
    reader = tf.train.load_checkpoint(str(tmp_path / "tf1" / "model.ckpt-best"))
    for name, value in values.items():
        np.testing.assert_array_equal(reader.get_tensor(name), value)


@pytest.mark.parametrize(("form", "mark"), [("huggingface", "model.safetensors"), ("keras-hub", "model.weights.h5")])
def test_to_another_system_and_back(source, tmp_path, capsys, form, mark):
    (source / "albert_config.json").write_text(json.dumps(PUBLISHED | {"hidden_act": "gelu"}))
    convert(source, tmp_path / "theirs", "--to", form)
    assert (tmp_path / "theirs" / mark).is_file()
    printed = " ".join(capsys.readouterr().out.split())
    assert ("the head masked_lm is left out" in printed) == (form == "keras-hub")
    convert(tmp_path / "theirs", tmp_path / "ours")
    first, last = load_checkpoint(source), load_checkpoint(tmp_path / "ours")
    assert last.config == first.config
    for name, weight in (first.backbone_weights if form == "keras-hub" else first.weights).items():
        np.testing.assert_array_equal(last.weights[name], weight, name)
    convert(tmp_path / "ours", tmp_path / "again", "--to", form)
    assert (tmp_path / "again" / mark).read_bytes() == (tmp_path / "theirs" / mark).read_bytes()


def test_a_fine_tuned_head_keeps_its_labels(tmp_path, capsys):
    state = without_heads(tensors()) | {
        "classifier.weight": np.ones((2, 6), np.float32),
        "classifier.bias": np.zeros(2),
    }
    state = {name: tensor.astype(np.float32) for name, tensor in state.items()}
    labels = {"0": "bad", "1": "good"}
    save(tmp_path / "theirs", state, architectures=["AlbertForSequenceClassification"], id2label=labels)
    convert(tmp_path / "theirs", tmp_path / "ours")
    settings = {"labels": ["bad", "good"], "classifier_dropout": 0.1}
    assert read_task_settings(tmp_path / "ours") == {"task": "classification", "settings": settings}
    convert(tmp_path / "ours", tmp_path / "back", "--to", "huggingface")
    assert json.loads((tmp_path / "back" / "config.json").read_text())["id2label"] == labels


def test_an_activation_may_be_forced(source, tmp_path):
    convert(source, tmp_path / "erf", "--activation", "gelu_erf")
    assert load_checkpoint(tmp_path / "erf").config.activation == "gelu_erf"
    convert(tmp_path / "erf", tmp_path / "tanh", "--activation", "gelu_tanh")
    assert load_checkpoint(tmp_path / "tanh").config == load_checkpoint(source).config
    with pytest.raises(InputError, match="is a preset folder already"):
        convert(tmp_path / "erf", tmp_path / "same", "--activation", "gelu_erf")


def test_the_help_shows_an_example(capsys):
    with pytest.raises(SystemExit):
        convert("--help")
    assert "albert-tf convert albert_base_v2.tar.gz albert_base" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("language", "name", "vocabulary", "told"),
    [
        ("en", "albert_base_v2", "30k-clean.model", "sentencepiece, 30000 entries"),
        ("zh", "albert_base_zh", "vocab.txt", "wordpiece, 21128 entries"),
    ],
)
def test_the_published_models_are_converted(shared_data, tmp_path, capsys, language, name, vocabulary, told):
    values = save_published(tmp_path / "albert", shared_data / "tf1_ckpt_index" / f"google_albert_base_{language}")
    shutil.copy(shared_data / f"albert_vocab_{language}" / vocabulary, tmp_path / "albert")
    convert(tmp_path / "albert", tmp_path / "out")
    printed = capsys.readouterr().out
    assert name in printed
    assert told in printed
    read = load_checkpoint(tmp_path / "out").weights
    assert sum(weight.size for weight in read.values()) == sum(value.size for value in values.values())
    word_table = "embeddings/word_embedding/embeddings"
    np.testing.assert_array_equal(read[word_table], values["bert/embeddings/word_embeddings"])


def test_the_chinese_vocabulary_does_not_go_with_the_english_model(shared_data, tmp_path):
    save_published(tmp_path / "albert", shared_data / "tf1_ckpt_index" / "google_albert_base_en")
    shutil.copy(shared_data / "albert_vocab_zh" / "vocab.txt", tmp_path / "albert")
    with pytest.raises(
        InputError, match="wrong vocabulary: the tokenizer has 21128 entries, the model's word table 30000"
    ):
        convert(tmp_path / "albert", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["[red]a[/]", "x[/b]y"])
def test_names_that_look_like_markup(source, tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    assert convert(source, name, "--verify") == 0
    assert f"│ {name} (" in capsys.readouterr().out
    assert convert(name, "again", "--activation", "linear", "--verify") == 0
    assert f"{name}: read as a whole" in capsys.readouterr().out


def test_a_full_disk(source, tmp_path, monkeypatch):
    def write(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("albert_tf.presets.write_safetensors", write)
    with pytest.raises(InputError, match=r"cannot write .*out: No space left on device; nothing was written"):
        convert(source, tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {source.name}
