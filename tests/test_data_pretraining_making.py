"""`albert_tf.data.pretraining_making`: the folder is the same however it is made, and whole or not there."""

import dataclasses
import gzip
import itertools
import json
import lzma
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT
from pretraining_texts import documents, tokenizer, write_documents

from albert_tf.data.pretraining_data import PretrainingData
from albert_tf.data.pretraining_making import make_pretraining_data
from albert_tf.data.pretraining_manifest import FILE_NAME, HELD_OUT, TRAIN, PretrainingDataSettings
from albert_tf.data.pretraining_shards import ShardMaker
from albert_tf.errors import InputError
from albert_tf.tokenization.tokenizer import AlbertTokenizer


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_documents(tmp_path_factory.mktemp("text") / "text.txt", documents(80, seed=1))


def settings_of(*paths: Path, **changes) -> PretrainingDataSettings:
    settings = PretrainingDataSettings(
        tuple(map(str, paths)), max_length=48, held_out=0.1, shard_megabytes=0.01, duplicates=2
    )
    return dataclasses.replace(settings, **changes)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def made(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made by one process; no test changes it."""
    out = tmp_path_factory.mktemp("made") / "data"
    make_pretraining_data(settings_of(text), tokenizer(), out, workers=1)
    return out


def test_the_folder(made: Path, text: Path) -> None:
    manifest = json.loads((made / FILE_NAME).read_text(encoding="utf-8"))
    names = [shard["file"] for shard in manifest["shards"]]
    assert sorted(contents(made)) == sorted([*names, FILE_NAME, "tokenizer/tokenizer.json", "tokenizer/vocabulary.spm"])
    assert len([name for name in names if name.startswith("train-")]) > 5
    assert manifest["settings"]["inputs"] == [str(text)]
    assert manifest["totals"][TRAIN]["documents"] + manifest["totals"][HELD_OUT]["documents"] == 80
    saved = AlbertTokenizer.from_pretrained(made / "tokenizer")
    assert saved.max_length == 48
    assert saved.vocabulary.model == tokenizer().vocabulary.model


def test_three_processes_make_the_same(made: Path, text: Path, tmp_path: Path) -> None:
    told = []
    make_pretraining_data(
        settings_of(text), tokenizer(), tmp_path / "data", workers=3, progress=lambda *counts: told.append(counts)
    )
    assert contents(tmp_path / "data") == contents(made)
    assert told == sorted(told) and len(told) > 5
    assert told[-1][1] == pytest.approx(text.stat().st_size, rel=0.05)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def test_compressed_text_is_the_same_text(made: Path, text: Path, tmp_path: Path) -> None:
    for suffix, pack in ((".gz", gzip.compress), (".xz", lzma.compress)):
        path = tmp_path / f"text.txt{suffix}"
        path.write_bytes(pack(text.read_bytes()))
        make_pretraining_data(settings_of(path), tokenizer(), tmp_path / suffix, workers=1)
        made_of = contents(tmp_path / suffix)
        assert made_of.pop(FILE_NAME) != contents(made)[FILE_NAME]  # the name of the text
        assert made_of.items() <= contents(made).items()


def test_small_files_share_shards(text: Path, tmp_path: Path) -> None:
    texts = documents(12, seed=2, sentences=4)
    paths = [write_documents(tmp_path / f"{index}.txt", texts[index : index + 1]) for index in range(12)]
    manifest = make_pretraining_data(
        settings_of(*paths, shard_megabytes=1.0, held_out=0.0), tokenizer(), tmp_path / "data", workers=1
    )
    assert manifest.totals(TRAIN)["shards"] == 1
    assert manifest.totals(TRAIN)["documents"] == 12


KILLED = """
import os, sys
from albert_tf.data import pretraining_making
write, count = pretraining_making._write_block, 0
def counted(*arguments):
    global count
    count += 1
    if count > 3:
        os.kill(os.getpid(), 9)
    return write(*arguments)
pretraining_making._write_block = counted
from pretraining_texts import tokenizer
from test_data_pretraining_making import settings_of
from pathlib import Path
pretraining_making.make_pretraining_data(settings_of(Path(sys.argv[1])), tokenizer(), sys.argv[2], workers=1)
"""


@pytest.fixture
def interrupted(text: Path, tmp_path: Path) -> Path:
    """A call that was killed after three blocks, in the middle of a shard; OUT of that call."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT)])}
    out = tmp_path / "data"
    done = subprocess.run([sys.executable, "-c", KILLED, text, out], env=environment, cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    work = tmp_path / "data.making"
    assert len(list((work / "done").iterdir())) == 3
    (work / ".train-00000-00003.tfrecord.gz.abc").mkdir()
    (work / ".train-00000-00003.tfrecord.gz.abc/train-00000-00003.tfrecord.gz").write_bytes(b"half")
    return out


def test_a_killed_call_goes_on(interrupted: Path, made: Path, text: Path, monkeypatch) -> None:
    assert not interrupted.exists()
    written, write = [], ShardMaker.write

    def noted(self, block, folder):
        written.append(block.name)
        return write(self, block, folder)

    monkeypatch.setattr(ShardMaker, "write", noted)
    make_pretraining_data(settings_of(text), tokenizer(), interrupted, workers=1)
    assert contents(interrupted) == contents(made)
    blocks = {name[len("train-") : -len(".tfrecord.gz")] for name in contents(made) if name.startswith("train-")}
    assert sorted(written) == sorted(blocks)[3:], "only the blocks that were missing"


def test_a_killed_call_goes_on_in_several_processes(interrupted: Path, made: Path, text: Path) -> None:
    make_pretraining_data(settings_of(text), tokenizer(), interrupted, workers=2)
    assert contents(interrupted) == contents(made)


def test_a_killed_parent_ends_its_processes(text: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from test_data_pretraining_making import settings_of\n"
        "from pretraining_texts import tokenizer\n"
        "from albert_tf.data.pretraining_making import make_pretraining_data\n"
        "if __name__ == '__main__':\n"
        "    make_pretraining_data(settings_of(Path(sys.argv[1]), duplicates=200), tokenizer(), sys.argv[2], workers=2)\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT)])}
    running = subprocess.Popen(
        [sys.executable, script, text, tmp_path / "data"], env=environment, start_new_session=True
    )
    done = tmp_path / "data.making/done"
    wait_until(lambda: done.is_dir() and any(done.iterdir()))
    children = [int(pid) for pid in Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()]
    assert len(children) >= 2
    running.kill()
    running.wait()
    wait_until(lambda: not any(alive(pid) for pid in children))
    assert not (tmp_path / "data").exists()


def wait_until(condition) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_other_settings_do_not_go_on(interrupted: Path, text: Path) -> None:
    with pytest.raises(InputError, match=r"an interrupted call with other settings \(max_length 48 → 64; seed 0 → 1\)"):
        make_pretraining_data(settings_of(text, max_length=64, seed=1), tokenizer(), interrupted, workers=1)
    other = AlbertTokenizer(type(tokenizer().vocabulary)(tokenizer().vocabulary.model, lower=False))
    with pytest.raises(InputError, match="another vocabulary"):
        make_pretraining_data(settings_of(text), other, interrupted, workers=1)
    make_pretraining_data(settings_of(text, seed=1), tokenizer(), interrupted, workers=1, overwrite=True)
    assert PretrainingData(interrupted).manifest.settings["seed"] == 1


def test_changed_text_does_not_go_on(interrupted: Path, text: Path) -> None:
    before = text.read_bytes()
    try:
        text.write_bytes(b"another beginning\n" + before)
        with pytest.raises(InputError, match="the text was changed since the interrupted call"):
            make_pretraining_data(settings_of(text), tokenizer(), interrupted, workers=1)
    finally:
        text.write_bytes(before)


def test_a_process_that_is_killed(text: Path, tmp_path: Path, monkeypatch) -> None:
    """As the system does when memory runs out."""
    monkeypatch.setattr("albert_tf.data.pretraining_making._work_on", kill_itself)
    with pytest.raises(InputError, match=r"a process was ended from outside.*fewer --workers than 2"):
        make_pretraining_data(settings_of(text), tokenizer(), tmp_path / "data", workers=2)
    monkeypatch.undo()
    make_pretraining_data(settings_of(text), tokenizer(), tmp_path / "data", workers=1)
    assert (tmp_path / "data" / FILE_NAME).exists()


def kill_itself(block) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_nothing_is_overwritten_unasked(made: Path, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "data"
    make_pretraining_data(settings_of(text, seed=5), tokenizer(), out, workers=1)
    before = contents(out)
    with pytest.raises(InputError, match="exists already; pass --overwrite"):
        make_pretraining_data(settings_of(text), tokenizer(), out, workers=1)
    assert contents(out) == before
    make_pretraining_data(settings_of(text), tokenizer(), out, workers=1, overwrite=True)
    assert contents(out) == contents(made)
    for name in ("data", "data.making"):
        other = tmp_path / "other" / name
        other.mkdir(parents=True)
        (other / "precious.txt").write_text("x", encoding="utf-8")
        with pytest.raises(InputError, match=r"is not .*precious\.txt"):
            make_pretraining_data(settings_of(text), tokenizer(), tmp_path / "other/data", workers=1, overwrite=True)
        (other / "precious.txt").unlink()
        other.rmdir()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_bad_file_is_told_and_the_rest_is_kept(text: Path, tmp_path: Path, workers: int) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"fine\n\xff\xfe\n" * 2)
    with pytest.raises(InputError, match=r"bad\.txt, line 2: expected UTF-8 text"):
        make_pretraining_data(settings_of(text, bad), tokenizer(), tmp_path / "data", workers=workers)
    assert not (tmp_path / "data").exists()
    bad.write_bytes(b"fine again\n")
    make_pretraining_data(settings_of(text, bad), tokenizer(), tmp_path / "data", workers=workers)


def test_errors_of_a_process_come_through(text: Path, tmp_path: Path) -> None:
    one = write_documents(tmp_path / "one.txt", [list(itertools.chain(*documents(30, seed=3)))])
    with pytest.raises(InputError, match="--nsp: expected at least two documents"):
        make_pretraining_data(settings_of(one, next_sentence=True), tokenizer(), tmp_path / "data", workers=2)


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "no text to train on"), ("\n\n\n", "no text to train on"), ("a\n\nb\n\nc", "no text to train on")],
)
def test_text_without_pairs(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "text.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        make_pretraining_data(settings_of(path), tokenizer(), tmp_path / "data", workers=1)
    assert not (tmp_path / "data").exists()


def test_wrong_arguments(text: Path, tmp_path: Path) -> None:
    for workers in (0, -1):
        with pytest.raises(InputError, match="--workers: expected a whole number of at least 1"):
            make_pretraining_data(settings_of(text), tokenizer(), tmp_path / "data", workers=workers)
    for out in ("", "..", "."):
        with pytest.raises(InputError, match="--out: expected the name of a folder to create"):
            make_pretraining_data(settings_of(text), tokenizer(), out, workers=1)
    with pytest.raises(InputError, match=r"none\.txt: no such file; expected a text file"):
        make_pretraining_data(settings_of(tmp_path / "none.txt"), tokenizer(), tmp_path / "data", workers=1)
    with pytest.raises(InputError, match="a folder; expected a text file"):
        make_pretraining_data(settings_of(tmp_path), tokenizer(), tmp_path / "data", workers=1)
    assert list(tmp_path.iterdir()) == []
