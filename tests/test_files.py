"""`albert_tf.files`: whole or not at all, and readable errors."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from albert_tf.errors import InputError
from albert_tf.files import refuse_existing, written_whole


def held(folder: Path) -> dict[str, str | None]:
    """Everything below a folder, hidden files too: relative path → text, None for a folder."""
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
    }


def write_folder(folder: Path, **files: str) -> None:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


# === written_whole ===


def test_file_appears_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "a.txt"
    with written_whole(path) as temporary:
        assert temporary.name == "a.txt"  # writers that look at the suffix see the right one
        temporary.write_text("whole", encoding="utf-8")
        assert not path.exists()
    assert held(tmp_path / "new") == {"deep": None, "deep/a.txt": "whole"}


def test_folder_appears_when_the_block_ends(tmp_path: Path) -> None:
    with written_whole(tmp_path / "out") as temporary:
        write_folder(temporary, a="1", b="2")
        assert not (tmp_path / "out").exists()
    assert held(tmp_path) == {"out": None, "out/a": "1", "out/b": "2"}


def test_nothing_remains_of_a_block_that_raises(tmp_path: Path) -> None:
    with pytest.raises(KeyError), written_whole(tmp_path / "a.txt") as temporary:
        temporary.write_text("half", encoding="utf-8")
        raise KeyError
    with pytest.raises(KeyError), written_whole(tmp_path / "out") as temporary:
        write_folder(temporary, a="half")
        raise KeyError
    assert held(tmp_path) == {}


def test_pipes_and_devices_are_not_replaced(tmp_path: Path) -> None:
    """A process that may would put a file in the place of /dev/null."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    for path in (tmp_path / "pipe", tmp_path / "link"):
        for overwrite in (False, True):
            match = "it is a pipe or a device, which is not replaced"
            with pytest.raises(InputError, match=match), written_whole(path, overwrite=overwrite):
                pass
    assert (tmp_path / "link").is_symlink() and sorted(p.name for p in tmp_path.iterdir()) == ["link", "pipe"]


@pytest.mark.parametrize("interruption", [KeyError, KeyboardInterrupt, SystemExit])
def test_what_was_there_survives_a_block_that_raises(interruption: type[BaseException], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old", encoding="utf-8")
    write_folder(tmp_path / "out", a="old")
    before = held(tmp_path)
    for name in ("a.txt", "out"):
        with pytest.raises(interruption), written_whole(tmp_path / name, overwrite=True) as temporary:
            temporary.write_text("half", encoding="utf-8")
            raise interruption
    assert held(tmp_path) == before


def test_what_was_there_survives_a_block_that_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old", encoding="utf-8")
    write_folder(tmp_path / "out", a="old")
    before = held(tmp_path)
    for name in ("a.txt", "out", "new"):
        with pytest.raises(FileNotFoundError), written_whole(tmp_path / name, overwrite=True):
            pass
    assert held(tmp_path) == before


def test_what_was_there_survives_a_killed_process(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old", encoding="utf-8")
    code = (
        "import os, sys\nfrom albert_tf.files import written_whole\n"
        "with written_whole(sys.argv[1], overwrite=True) as temporary:\n"
        "    temporary.write_text('half')\n    os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, tmp_path / "a.txt"], check=False).returncode == 9
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["a.txt"]


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old", encoding="utf-8")
    (tmp_path / "out").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("a.txt", "out", "dangling"):
        reached = False
        with pytest.raises(InputError, match=f"{name} exists already; pass --overwrite"):  # noqa: SIM117
            with written_whole(tmp_path / name):
                reached = True
        assert not reached
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "old"


def test_overwriting(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old", encoding="utf-8")
    write_folder(tmp_path / "out", a="old", b="old")
    with written_whole(tmp_path / "a.txt", overwrite=True) as temporary:
        temporary.write_text("new", encoding="utf-8")
    with written_whole(tmp_path / "out", overwrite=True) as temporary:
        write_folder(temporary, b="new")
    assert held(tmp_path) == {"a.txt": "new", "out": None, "out/b": "new"}  # nothing left of the old folder


@pytest.mark.parametrize("name", ["a", "replaced"])
def test_a_folder_replaces_a_file_but_no_file_a_folder(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("old", encoding="utf-8")
    with written_whole(path, overwrite=True) as temporary:
        write_folder(temporary, b="new")
    assert held(tmp_path) == {name: None, f"{name}/b": "new"}
    with written_whole(path, overwrite=True) as temporary:
        write_folder(temporary, c="newer")
    assert held(tmp_path) == {name: None, f"{name}/c": "newer"}
    with pytest.raises(InputError, match="is a folder"), written_whole(path, overwrite=True) as temporary:
        temporary.write_text("newest", encoding="utf-8")
    assert held(tmp_path) == {name: None, f"{name}/c": "newer"}


def test_overwriting_a_link_leaves_its_target(tmp_path: Path) -> None:
    write_folder(tmp_path / "target", a="kept")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with written_whole(tmp_path / "link", overwrite=True) as temporary:
        write_folder(temporary, b="new")
    assert not (tmp_path / "link").is_symlink()
    assert held(tmp_path) == {"link": None, "link/b": "new", "target": None, "target/a": "kept"}


def test_a_folder_that_cannot_be_put_in_place_is_moved_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(tmp_path / "out", a="old")
    before = held(tmp_path)
    replace = Path.replace

    def fail(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"), written_whole(tmp_path / "out", overwrite=True) as temporary:
        write_folder(temporary, a="new")
        monkeypatch.setattr(Path, "replace", fail)
    monkeypatch.setattr(Path, "replace", replace)
    assert held(tmp_path) == before


def test_place_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    for name in ("a.txt", "b/c/a.txt"):
        path = tmp_path / "file" / name
        with pytest.raises(InputError, match=rf"cannot write {path}: {tmp_path}/file is no folder"):
            refuse_existing(path, overwrite=True)
        with pytest.raises(InputError, match=r"cannot write"), written_whole(path):
            pytest.fail("the block must not be reached")
    # The tests may be run by root, who may write anywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    with pytest.raises(InputError, match=rf"cannot write .*a\.txt: {tmp_path} may not be written to"):
        refuse_existing(tmp_path / "new" / "a.txt", overwrite=False)


def test_permissions_are_the_usual_ones(tmp_path: Path) -> None:
    (tmp_path / "usual").write_text("", encoding="utf-8")
    with written_whole(tmp_path / "ours") as temporary:
        temporary.write_text("", encoding="utf-8")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_refuse_existing(tmp_path: Path) -> None:
    refuse_existing(tmp_path / "absent", overwrite=False)
    refuse_existing(tmp_path, overwrite=True)
    with pytest.raises(InputError, match="choose another name"):
        refuse_existing(str(tmp_path), overwrite=False)
    with pytest.raises(InputError, match="is a folder, so no file is written"):
        refuse_existing(tmp_path, overwrite=True, file=True)
    refuse_existing(tmp_path / "absent", overwrite=False, file=True)


# === What a killed process left ===

WRITER = """
import pathlib, sys, time
from albert_tf import files
with files.written_whole(sys.argv[1], overwrite=True) as temporary:
    temporary.mkdir()
    (temporary / "a").write_text("half")
    print("started", flush=True)
    time.sleep(100)
"""


def start_writing(path: Path) -> "subprocess.Popen[str]":
    """A process in the middle of `written_whole(path)`."""
    command = [sys.executable, "-c", WRITER, str(path)]
    started = subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None and started.stdout.readline() == "started\n"
    return started


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="without locks nothing is removed")
    running, killed = start_writing(tmp_path / "out"), start_writing(tmp_path / "out")
    try:
        assert len(list(tmp_path.iterdir())) == 2
        killed.kill()
        killed.wait()
        with written_whole(tmp_path / "other") as temporary:
            temporary.touch()
        assert len(list(tmp_path.iterdir())) == 3
        with written_whole(tmp_path / "out") as temporary:
            assert len(list(tmp_path.iterdir())) == 3  # other, and those of the two processes that write
            write_folder(temporary, a="whole")
        assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith(".")) == ["other", "out"]
    finally:
        running.kill()
        running.wait()
    with written_whole(tmp_path / "out", overwrite=True) as temporary:
        write_folder(temporary, b="new")
    assert held(tmp_path) == {"other": "", "out": None, "out/b": "new"}


def left(path: Path, **held_files: str) -> Path:
    """A scratch folder of `path` that no process holds."""
    scratch = path.parent / f".{path.name}.abcdefgh.unfinished"
    write_folder(scratch, **held_files)
    return scratch


def test_what_was_moved_aside_is_put_back(tmp_path: Path) -> None:
    """Killed between the two renames that replace a folder."""
    pytest.importorskip("fcntl", reason="without locks nothing is removed")
    path = tmp_path / "out"
    left(path, **{"out": "new", "replaced.out": "old"})
    with pytest.raises(InputError, match="exists already"), written_whole(path):
        pytest.fail("the block must not be reached")
    assert held(tmp_path) == {"out": "old"}
    left(path, **{"replaced.out": "older"})  # killed after them
    with pytest.raises(InputError, match="exists already"), written_whole(path):
        pytest.fail("the block must not be reached")
    assert held(tmp_path) == {"out": "old"}


def test_what_was_left_within_what_was_left_is_removed(tmp_path: Path) -> None:
    """Killed while it wrote a folder at the temporary path in the same way, as a model is saved into a run folder."""
    pytest.importorskip("fcntl", reason="without locks nothing is removed")
    scratch = tmp_path / ".out.abcdefgh.unfinished"
    (scratch / ".out.ijklmnop.unfinished" / "out").mkdir(parents=True)
    (tmp_path / ".out.emptyone.unfinished").mkdir()
    other = tmp_path / ".out.qrstuvwx.unfinished"
    (other / ".out.txt.ijklmnop.unfinished").mkdir(parents=True)
    with written_whole(tmp_path / "out") as temporary:
        temporary.touch()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".out.qrstuvwx.unfinished", "out"]


def test_folders_of_others_are_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "out"
    kept = left(path, **{"out": "", "mine": "kept"})
    (tmp_path / ".out.ijklmnop.unfinished").symlink_to(tmp_path / "target")
    write_folder(tmp_path / "target", out="kept")
    (tmp_path / ".out.qrstuvwx.unfinished").write_text("kept", encoding="utf-8")
    write_folder(tmp_path / ".out.settings", out="kept")
    before = held(tmp_path)
    with written_whole(path) as temporary:
        temporary.touch()
    assert kept.is_dir() and held(tmp_path) == before | {"out": ""}


def test_without_locks_nothing_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    scratch = left(tmp_path / "out", out="half")
    with written_whole(tmp_path / "out") as temporary:
        temporary.touch()
    assert scratch.is_dir() and (tmp_path / "out").is_file()


# === read_text ===


def test_names_that_are_no_place_to_write_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("", ".", "..", "new/..", "/"):
        with pytest.raises(InputError, match="give a name of its own"), written_whole(name, overwrite=True):
            pytest.fail("the block must not be reached")
    for name in ("n" * 256, "a\0b"):
        with pytest.raises(InputError, match="cannot write"), written_whole(tmp_path / name):
            pytest.fail("the block must not be reached")
    for _ in range(2):
        with written_whole(tmp_path / ("n" * 255), overwrite=True) as temporary:
            temporary.mkdir()
    assert [path.name for path in tmp_path.iterdir()] == ["n" * 255]


# === read_json ===
