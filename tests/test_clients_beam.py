"""Pretraining data as a Beam pipeline, on the direct runner: the same files as on one machine, byte for byte."""

import dataclasses
import gzip
from pathlib import Path

import pytest
from pretraining_texts import documents, tokenizer, write_documents

from albert_tf.data.masking import MaskingRules
from albert_tf.data.pretraining_beam import run_pretraining_pipeline
from albert_tf.data.pretraining_making import make_pretraining_data
from albert_tf.data.pretraining_manifest import FILE_NAME, TRAIN, PretrainingDataSettings
from albert_tf.errors import InputError

pytestmark = pytest.mark.clients

FLAGS = ("--runner=DirectRunner",)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A file of many blocks, two that share a group, one of them compressed."""
    folder = tmp_path_factory.mktemp("texts")
    paths = [write_documents(folder / f"{n}.txt", documents(count, seed=n)) for n, count in enumerate((80, 2, 2))]
    packed = folder / "2.txt.gz"
    packed.write_bytes(gzip.compress(paths[2].read_bytes()))
    return [*paths[:2], packed]


def settings_of(*paths: Path | str, **changes) -> PretrainingDataSettings:
    settings = PretrainingDataSettings(tuple(map(str, paths)), max_length=48, held_out=0.1, shard_megabytes=0.01)
    return dataclasses.replace(settings, **changes)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "changes", [{}, {"next_sentence": True}, {"static_masks": MaskingRules(max_predictions=7), "duplicates": 2}]
)
def test_the_same_files(texts: list[Path], tmp_path: Path, changes: dict) -> None:
    settings = settings_of(*texts, **changes)
    manifest = run_pretraining_pipeline(settings, tokenizer(), str(tmp_path / "beam"), FLAGS)
    assert manifest == make_pretraining_data(settings, tokenizer(), tmp_path / "here", workers=1)
    assert len(manifest.of_split(TRAIN)) > 5
    assert contents(tmp_path / "beam") == contents(tmp_path / "here")


def test_several_processes(texts: list[Path], tmp_path: Path) -> None:
    settings = settings_of(*texts)
    flags = (*FLAGS, "--direct_num_workers=2", "--direct_running_mode=multi_processing")
    run_pretraining_pipeline(settings, tokenizer(), str(tmp_path / "beam"), flags)
    make_pretraining_data(settings, tokenizer(), tmp_path / "here", workers=1)
    assert contents(tmp_path / "beam") == contents(tmp_path / "here")


def test_patterns(texts: list[Path], tmp_path: Path) -> None:
    pattern = str(texts[0].parent / "[01].txt")
    made = run_pretraining_pipeline(settings_of(pattern), tokenizer(), str(tmp_path / "beam"), FLAGS)
    here = make_pretraining_data(settings_of(*texts[:2]), tokenizer(), tmp_path / "here", workers=1)
    assert made.shards == here.shards
    assert made.settings["inputs"] == [pattern]


def test_nothing_is_overwritten_unasked(texts: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "beam"
    run_pretraining_pipeline(settings_of(texts[1]), tokenizer(), str(out), FLAGS)
    with pytest.raises(InputError, match="exists already; pass --overwrite"):
        run_pretraining_pipeline(settings_of(texts[1]), tokenizer(), str(out), FLAGS)
    (out / "train-00077-00000.tfrecord.gz").write_bytes(b"left over")
    run_pretraining_pipeline(settings_of(texts[1]), tokenizer(), str(out), FLAGS, overwrite=True)
    assert "train-00077-00000.tfrecord.gz" not in contents(out)
    (out / FILE_NAME).unlink()  # as a pipeline that failed
    run_pretraining_pipeline(settings_of(texts[1]), tokenizer(), str(out), FLAGS, overwrite=True)
    (out / "precious.txt").write_text("x", encoding="utf-8")
    with pytest.raises(InputError, match=r"is not a folder of pretraining data \(.*precious\.txt\)"):
        run_pretraining_pipeline(settings_of(texts[1]), tokenizer(), str(out), FLAGS, overwrite=True)
    assert (out / "precious.txt").exists() and (out / FILE_NAME).exists()


def test_wrong_files(texts: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.txt: no such file; expected a text file, or a pattern of some"):
        run_pretraining_pipeline(settings_of(tmp_path / "none.txt"), tokenizer(), str(tmp_path / "out"), FLAGS)
    (tmp_path / "empty.txt").write_text("\n\n", encoding="utf-8")
    with pytest.raises(InputError, match="no text to train on"):
        run_pretraining_pipeline(settings_of(tmp_path / "empty.txt"), tokenizer(), str(tmp_path / "out"), FLAGS)
    (tmp_path / "bad.txt").write_bytes(b"fine\n\xff\n")
    with pytest.raises(InputError, match=r"bad\.txt, line 2: expected UTF-8 text, found byte 0xff"):
        run_pretraining_pipeline(settings_of(tmp_path / "bad.txt"), tokenizer(), str(tmp_path / "bad"), FLAGS)
    assert not (tmp_path / "bad" / FILE_NAME).exists()


def test_the_command(texts: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from command_line import albert_tf

    tokenizer().save(tmp_path / "vocabulary")
    words = ("pretrain-data", *texts, "--tokenizer", tmp_path / "vocabulary", "--max-length", 48)
    done = albert_tf(capsys)(*words, "--out", tmp_path / "beam", "--beam=--runner=DirectRunner --direct_num_workers=1")
    assert done.code == 0, done.err
    assert albert_tf(capsys)(*words, "--out", tmp_path / "here", "--workers", 1).code == 0
    assert contents(tmp_path / "beam") == contents(tmp_path / "here")
