"""`albert-tf convert`: a TF1 checkpoint becomes a preset with the same weights, and says what it is."""

import argparse
import tarfile

import numpy as np
import pytest
from tf1_writer import PUBLISHED, save_folder, variables

from albert_tf.cli.convert import add_parser
from albert_tf.errors import InputError
from albert_tf.presets import load_checkpoint


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
    assert read.tokenizer_path == tmp_path / "out"


def test_an_archive_becomes_a_preset_with_its_vocabulary(source, tmp_path, capsys):
    path = tmp_path / "albert.tar.gz"
    with tarfile.open(path, "w:gz") as file:
        file.add(source, "albert")
    convert(path, tmp_path / "out")
    assert "google tf1 archive" in capsys.readouterr().out
    assert load_checkpoint(tmp_path / "out").tokenizer_path == tmp_path / "out"


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


def test_a_preset_is_not_converted_again(source, tmp_path):
    convert(source, tmp_path / "out")
    with pytest.raises(InputError, match="is a preset folder already"):
        convert(tmp_path / "out", tmp_path / "again")


def test_the_help_shows_an_example(capsys):
    with pytest.raises(SystemExit):
        convert("--help")
    assert "albert-tf convert albert_base_v2.tar.gz albert_base" in capsys.readouterr().out
