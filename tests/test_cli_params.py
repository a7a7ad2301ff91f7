"""`albert-tf params`: the printed tables, the files, and the faults."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from albert_tf.cli.params import add_parser
from albert_tf.config import CONFIGS, SHARING_MODES, AlbertConfig
from albert_tf.errors import InputError


@pytest.fixture
def command(capsys, monkeypatch):
    """Runs the command with the given arguments; returns the printed tables, each a list of rows of cells."""
    monkeypatch.setenv("COLUMNS", "400")
    parser = argparse.ArgumentParser(prog="albert-tf")
    add_parser(parser.add_subparsers())

    def run(*arguments: str | Path) -> list[list[list[str]]]:
        args = parser.parse_args(["params", *map(str, arguments)])
        assert args.run(args) == 0
        blocks = capsys.readouterr().out.strip().split("\n\n")
        return [[line.split() for line in block.rpartition("─\n")[2].splitlines()] for block in blocks]

    return run


def test_one_model(command) -> None:
    assert command("albert_base_zh") == [
        [["albert_base_zh", "21,128", "768", "128", "16,226,304", "2,802,688", "5.8×"]],
        [["albert_base_zh", "all", "12", "7,087,872", "85,054,464", "7,087,872", "12.0×"]],
        [["albert_base_zh", "all", "102,267,648", "16.3%", "10,547,968", "27.2%", "9.7×"]],
    ]


def test_every_model_by_default(command) -> None:
    embedding, layers, total = command()
    assert [row[0] for row in embedding] == [row[0] for row in layers] == [row[0] for row in total] == list(CONFIGS)


def test_heads(command) -> None:
    assert command("albert_base_v2", "--heads")[2][0][4] == "11,813,810"


def test_sharing_modes(command) -> None:
    embedding, layers, total = command("albert_base_v2", "albert_large_v2", "--sharing", "every")
    assert [row[0] for row in embedding] == ["albert_base_v2", "albert_large_v2"]
    assert [row[1] for row in layers] == [row[1] for row in total] == [*SHARING_MODES] * 2
    assert [row[5] for row in layers[:4]] == ["7,087,872", "59,051,520", "33,090,816", "85,054,464"]
    once = command("albert_base_v2", "--sharing", "none", "--sharing", "all", "--sharing", "none")
    assert [row[1] for row in once[1]] == ["none", "all"]


def test_a_config_file(command, tmp_path: Path) -> None:
    path = tmp_path / "albert_config.json"
    AlbertConfig.from_name("albert_base_v2").to_json(path, published=True)
    rows = command("--config", path)[2]
    assert rows[0][-6:] == command("albert_base_v2")[2][0][1:]
    assert [len(table) for table in command("bert_base", "--config", path)] == [2, 2, 2]
    groups = tmp_path / "groups.json"
    AlbertConfig(**(CONFIGS["albert_base_v2"].to_dict() | {"num_groups": 4})).to_json(groups)
    assert [row[5] for row in command("--config", groups, "--sharing", "all", "--sharing", "none")[1]] == [
        f"{4 * 7_087_872:,}",
        f"{12 * 7_087_872:,}",
    ]


def test_json_holds_the_figures_of_the_tables(command, tmp_path: Path) -> None:
    path = tmp_path / "params.json"
    embedding, layers, total = command(*("--sharing", "every", "--heads", "--json", path))
    report = json.loads(path.read_text(encoding="utf-8"))
    assert report["heads"] is True
    assert len(report["models"]) == len(layers) == len(total) == 4 * len(CONFIGS)
    for model, layer_row, total_row in zip(report["models"], layers, total, strict=True):
        albert, bert, times = model["albert"], model["bert"], model["times_smaller"]
        assert layer_row == [
            *(model["name"], model["sharing"], f"{model['num_layers']:,}", f"{albert['one_layer']:,}"),
            *(f"{bert['layers']:,}", f"{albert['layers']:,}", f"{times['layers']:.1f}×"),
        ]
        assert total_row == [
            *(model["name"], model["sharing"], f"{bert['total']:,}", f"{bert['embedding_share']:.1%}"),
            *(f"{albert['total']:,}", f"{albert['embedding_share']:.1%}", f"{times['total']:.1f}×"),
        ]
    for model, row in zip(report["models"][::4], embedding, strict=True):
        figures = [f"{model[system]['word_embedding']:,}" for system in ("bert", "albert")]
        assert [row[0], *row[4:]] == [model["name"], *figures, f"{model['times_smaller']['word_embedding']:.1f}×"]


def test_files_are_not_overwritten_unasked(command, tmp_path: Path, capsys) -> None:
    figures, picture = tmp_path / "params.json", tmp_path / "params.png"
    command("albert_base_v2", "--json", figures, "--plot", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    before = figures.read_bytes()
    for option, path in (("--json", figures), ("--plot", picture)):
        with pytest.raises(InputError, match="--overwrite"):
            command("albert_large_v2", option, path)
    assert capsys.readouterr().out == ""  # refused before the work
    command("albert_large_v2", "--json", figures, "--plot", picture, "--overwrite")
    assert figures.read_bytes() != before


def test_faults(command, tmp_path: Path, capsys) -> None:
    with pytest.raises(InputError, match=r"'albert_huge'.*albert_base_v2"):
        command("albert_huge")
    with pytest.raises(InputError, match="cannot read"):
        command("--config", tmp_path / "absent.json")
    with pytest.raises(InputError, match=r"\.png"):
        command("--plot", tmp_path / "params.bmp")
    with pytest.raises(SystemExit) as ended:
        command("--sharing", "some")
    assert ended.value.code == 2
    assert list(tmp_path.iterdir()) == []


def test_help_ends_with_an_example(capsys) -> None:
    parser = argparse.ArgumentParser(prog="albert-tf")
    subparsers = parser.add_subparsers()
    add_parser(subparsers)
    description = subparsers.choices["params"].description
    assert description.splitlines()[-1].startswith("  albert-tf params ")
    assert all(name in description for name in CONFIGS)
    example = description.splitlines()[-1].split()[1:]
    assert parser.parse_args(example).names == ["albert_base_v2", "albert_base_zh"]


def test_nothing_heavy_is_loaded() -> None:
    code = """
import argparse, sys
from albert_tf.cli.params import add_parser
parser = argparse.ArgumentParser()
add_parser(parser.add_subparsers())
args = parser.parse_args(["params", "--sharing", "every"])
args.run(args)
print([name for name in ("tensorflow", "keras", "matplotlib", "sklearn") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
