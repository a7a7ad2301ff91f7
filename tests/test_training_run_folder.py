"""`albert_tf.training.run_folder`: no folder is lost to a mistyped --out, and an interrupted run is found again."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from tiny_data import TinyFiles, tiny_run

from albert_tf.errors import InputError
from albert_tf.training.run_folder import STATE_FILE, check_out, finished_before, remove_work, work_folder


@pytest.fixture
def somebodys(tmp_path: Path) -> Path:
    """A folder that no run made."""
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "sea.jpg").write_bytes(b"sea")
    return folder


def started(files: TinyFiles, out: Path) -> Path:
    """The work folder of a run interrupted after a round."""
    work = work_folder(tiny_run(files, out), overwrite=False)
    (work / STATE_FILE).write_bytes(b"state")
    return work


def test_a_new_name_is_fine_and_an_existing_one_is_not(tmp_path: Path) -> None:
    check_out(tmp_path / "new", overwrite=False)
    check_out(tmp_path / "new", overwrite=True)
    (tmp_path / "old").mkdir()
    with pytest.raises(InputError, match=r"old exists already; pass --overwrite"):
        check_out(tmp_path / "old", overwrite=False)
    check_out(tmp_path / "old", overwrite=True)  # empty: nothing to lose


def test_only_a_run_folder_is_replaced(somebodys: Path) -> None:
    with pytest.raises(InputError, match=r"photos is not a run folder \(sea.jpg\), so it is not replaced"):
        check_out(somebodys, overwrite=True)
    with pytest.raises(InputError, match=r"sea\.jpg is a file"):
        check_out(somebodys / "sea.jpg", overwrite=True)
    (somebodys / "run.json").write_text("{}")
    check_out(somebodys, overwrite=True)


@pytest.mark.parametrize("out", [".", "", "..", "/", "../.."])
def test_what_is_no_name_of_a_folder_to_create(out: str) -> None:
    for overwrite in (False, True):
        with pytest.raises(InputError, match="expected the name of a folder to create"):
            check_out(out, overwrite=overwrite)


@pytest.mark.parametrize("overwrite", [False, True])
def test_only_a_runs_work_folder_is_used(
    tiny_files: TinyFiles, tmp_path: Path, somebodys: Path, overwrite: bool
) -> None:
    """A folder OUT.training that is somebody's own would be removed at the end."""
    somebodys.rename(tmp_path / "photos.training")
    with pytest.raises(InputError, match=r"photos\.training is not the state of a run"):
        work_folder(tiny_run(tiny_files, tmp_path / "photos"), overwrite=overwrite)
    assert (tmp_path / "photos.training" / "sea.jpg").exists()


def test_the_work_folder_stands_beside_out(tiny_files: TinyFiles, tmp_path: Path) -> None:
    run = tiny_run(tiny_files, tmp_path / "deep" / "run")
    work = work_folder(dataclasses.replace(run, out=run.out + "/"), overwrite=False)
    assert work == tmp_path / "deep" / "run.training"
    assert json.loads((work / "run.json").read_text())["out"] == run.out + "/"
    assert not Path(run.out).exists()


def test_an_interrupted_run_is_found_again(tiny_files: TinyFiles, tmp_path: Path) -> None:
    work = started(tiny_files, tmp_path / "run")
    assert work_folder(tiny_run(tiny_files, tmp_path / "run"), overwrite=False) == work
    assert (work / STATE_FILE).read_bytes() == b"state"


def test_other_settings_are_refused_and_listed(tiny_files: TinyFiles, tmp_path: Path) -> None:
    started(tiny_files, tmp_path / "run")
    other = tiny_run(tiny_files, tmp_path / "run", batch_size=4, seed=1, from_scratch=None, tokenizer=None, source="x")
    expected = (
        rf"run.training: an interrupted run with other settings \(--from None → x; --from-scratch {tiny_files.shape} → "
        rf"None; --tokenizer {tiny_files.vocabulary} → None; --batch-size 8 → 4; --seed 0 → 1\)"
    )
    with pytest.raises(InputError, match=expected):
        work_folder(other, overwrite=False)


def test_settings_that_cannot_be_read(tiny_files: TinyFiles, tmp_path: Path) -> None:
    work = started(tiny_files, tmp_path / "run")
    whole = (work / "run.json").read_text()
    for content in (whole[:99], whole.replace("best_metric", "best_metrix")):
        (work / "run.json").write_text(content)
        with pytest.raises(InputError, match=r"run\.training/run\.json.*; pass --overwrite to start again$"):
            work_folder(tiny_run(tiny_files, tmp_path / "run"), overwrite=False)
    work_folder(tiny_run(tiny_files, tmp_path / "run"), overwrite=True)
    assert (work / "run.json").read_text() == whole


def test_overwrite_forgets_an_interrupted_run(tiny_files: TinyFiles, tmp_path: Path) -> None:
    work = started(tiny_files, tmp_path / "run")
    work_folder(tiny_run(tiny_files, tmp_path / "run", seed=1), overwrite=True)
    assert [path.name for path in work.iterdir()] == ["run.json"]
    assert json.loads((work / "run.json").read_text())["seed"] == 1


def test_a_removal_that_was_interrupted_goes_on(
    tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At whatever file: what is left is still known for the state of a run."""
    run, calls = tiny_run(tiny_files, tmp_path / "run"), []
    unlink = Path.unlink

    def interrupted(self: Path, *args: Any, **kwargs: Any) -> None:
        calls.append(self.name)
        if len(calls) == at:
            raise KeyboardInterrupt
        unlink(self, *args, **kwargs)

    for at in (1, 2, 3):
        work = started(tiny_files, tmp_path / "run")
        (work / "state.before.safetensors").write_bytes(b"state")
        calls.clear()
        monkeypatch.setattr(Path, "unlink", interrupted)
        with pytest.raises(KeyboardInterrupt):
            remove_work(work)
        monkeypatch.undo()
        assert calls[-1] == "run.json" if at == 3 else calls[-1] != "run.json"
        work_folder(run, overwrite=True)
        assert [path.name for path in work.iterdir()] == ["run.json"]
        remove_work(work)
        assert not work.exists()


def test_a_finished_run_is_known_by_the_files_that_both_folders_have(tiny_files: TinyFiles, tmp_path: Path) -> None:
    run, lines = tiny_run(tiny_files, tmp_path / "run"), []
    work = started(tiny_files, tmp_path / "run")
    for folder, name in ((work, "events.2"), (tmp_path / "run", "events.1")):
        (folder / "tensorboard").mkdir(parents=True)
        (folder / "tensorboard" / name).touch()
    (tmp_path / "run" / "run.json").write_text(run.to_json())
    (tmp_path / "run" / "metrics.json").write_text('{"valid": {}}')
    assert finished_before(run, lines.append) is None  # begun again with --overwrite
    (tmp_path / "run" / "tensorboard" / "events.2").touch()
    assert finished_before(dataclasses.replace(run, seed=1), lines.append) is None
    assert work.exists() and lines == []
    assert finished_before(run, lines.append) == {"valid": {}}
    assert not work.exists() and lines == [f"{run.out}: was finished by an interrupted call; nothing is trained again"]
    assert finished_before(run, lines.append) is None


def test_a_run_that_ended_before_its_first_round_holds_nothing_to_keep(tiny_files: TinyFiles, tmp_path: Path) -> None:
    work = work_folder(tiny_run(tiny_files, tmp_path / "run"), overwrite=False)
    work_folder(tiny_run(tiny_files, tmp_path / "run", learning_rate=1e-4), overwrite=False)
    assert json.loads((work / "run.json").read_text())["learning_rate"] == 1e-4
