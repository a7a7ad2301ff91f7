"""Two processes that write the same path: each output is whole, and none is lost that was not to be replaced."""

import shutil
import threading
from pathlib import Path

import pytest

from albert_tf.errors import InputError
from albert_tf.files import written_whole


def write(path: Path, text: str, *, folder: bool) -> None:
    if not folder:
        path.write_text(text)
        return
    path.mkdir()
    for name in ("a", "b"):
        (path / name).write_text(text)


def texts(path: Path) -> set[str]:
    return {file.read_text() for file in ([path] if path.is_file() else path.iterdir())}


@pytest.mark.parametrize("folder", [False, True])
def test_what_came_meanwhile_is_not_replaced(tmp_path: Path, folder: bool) -> None:
    """`overwrite` was not given, and both began when there was nothing."""
    path = tmp_path / "out"
    with pytest.raises(InputError, match="exists already"), written_whole(path) as second:
        write(second, "second", folder=folder)
        with written_whole(path) as first:
            write(first, "first", folder=folder)
    assert texts(path) == {"first"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("folder", [False, True])
def test_what_came_meanwhile_is_replaced_where_it_may_be(tmp_path: Path, folder: bool) -> None:
    path = tmp_path / "out"
    with written_whole(path, overwrite=True) as second:
        write(second, "second", folder=folder)
        with written_whole(path) as first:
            write(first, "first", folder=folder)
    assert texts(path) == {"second"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("meanwhile", ["comes", "goes"])
def test_another_process_between_the_two_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str) -> None:
    """It puts its own where the old one has just been moved aside, or moves the old one aside first."""
    path = tmp_path / "out"
    write(path, "old", folder=True)
    rename, calls = Path.rename, []

    def renamed(self: Path, target: Path) -> Path:
        calls.append(self)
        if len(calls) > 1:
            return rename(self, target)
        if meanwhile == "goes":
            shutil.rmtree(path)
        done = rename(self, target)
        write(path, "other", folder=True)
        return done

    monkeypatch.setattr(Path, "rename", renamed)
    with written_whole(path, overwrite=True) as new:
        write(new, "new", folder=True)
    assert texts(path) == {"new"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_many_writers(tmp_path: Path) -> None:
    path = tmp_path / "out"
    failed: list[Exception] = []

    def work(number: int) -> None:
        try:
            for count in range(20):
                with written_whole(path, overwrite=True) as temporary:
                    write(temporary, f"{number} {count}", folder=True)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert len(texts(path)) == 1 and len(list(path.iterdir())) == 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]
