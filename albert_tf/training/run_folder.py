"""The folders of a training run: OUT.training while it is under way, OUT when it is finished.

Both are replaced or removed only where they are known by their run.json: a mistyped --out must not cost anyone a folder.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from albert_tf.errors import InputError
from albert_tf.evaluation.report import plot_history, write_json
from albert_tf.files import read_json, refuse_other_folder, written_whole
from albert_tf.training.checkpoints import has_state, writing
from albert_tf.training.distribution import Devices
from albert_tf.training.settings import Settings

RUN_FILE = "run.json"
METRICS_FILE = "metrics.json"
REPORT_FILE = "report.html"
STATE_FILE = "state.safetensors"
BEST_FOLDER = "best"
TENSORBOARD_FOLDER = "tensorboard"


def check_out(out: str | Path, *, overwrite: bool) -> None:
    """Raises InputError when the run folder `out` cannot be made: to be asked before the long part."""
    path = Path(out)
    if path.name in ("", ".."):
        raise InputError(f"--out: expected the name of a folder to create, got {str(out)!r}")
    refuse_other_folder(path, RUN_FILE, "a run folder", overwrite=overwrite)


def work_path(run: Settings) -> Path:
    """Where the state of a run is while it is under way."""
    out = Path(run.out)
    return out.with_name(f"{out.name}.training")


def work_folder(run: Settings, *, overwrite: bool) -> Path:
    """The folder of the run's state: a new one, or that of an interrupted run with the same settings.

    Args:
        run: the settings; they are written there.
        overwrite: forget an interrupted run.

    Raises:
        InputError: an interrupted run with other settings, or a folder that no run made.
    """
    work = work_path(run)
    if work.exists():
        refuse_other_folder(work, RUN_FILE, "the state of a run", overwrite=True)
        if not overwrite and has_state(work / STATE_FILE):
            _refuse_other_settings(work, run)
            return work
        remove_work(work)
    with written_whole(work) as temporary:
        temporary.mkdir()
        (temporary / RUN_FILE).write_text(run.to_json(), encoding="utf-8")
    return work


def remove_work(work: Path) -> None:
    """Removes the state of a run, what it is known by last: what is left by a call that was ended in between can be removed
    by the next."""
    for entry in sorted(work.iterdir(), key=lambda entry: entry.name == TENSORBOARD_FOLDER):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != RUN_FILE:
            entry.unlink()
    (work / RUN_FILE).unlink(missing_ok=True)
    work.rmdir()


def finished_before(run: Settings, report: Callable[[str], None]) -> dict[str, Any] | None:
    """The figures of the same run, where a call was ended when it had written `run.out`, and had the state to remove.

    TensorBoard's files, which have names of their own in every call, tell that the one was made of the other.
    """
    out, work = Path(run.out), work_path(run)
    written, kept = ({path.name for path in (folder / TENSORBOARD_FOLDER).glob("*")} for folder in (out, work))
    if not (kept and kept <= written and (out / RUN_FILE).is_file() and (work / RUN_FILE).is_file()):
        return None
    if run.differences(type(run).read(out / RUN_FILE)):
        return None
    report(f"{out}: was finished by an interrupted call; nothing is trained again")
    figures: dict[str, Any] = read_json(out / METRICS_FILE)
    remove_work(work)
    return figures


def shared_work_folder(run: Settings, devices: Devices, *, overwrite: bool) -> Path:
    """`work_folder` of a run of several workers: the chief makes it, the others wait for it."""
    if devices.is_chief:
        work_folder(run, overwrite=overwrite)
    devices.wait_for_all()
    return work_path(run)


def write_run_folder(
    run: Settings,
    write_model: Callable[[Path], None],
    history: list[dict[str, float]],
    summary: dict[str, Any],
    page: str,
    work: Path,
    *,
    metric: str,
    overwrite: bool,
) -> None:
    """Writes `run.out`, whole: the model, run.json, figures, curves, report.html, and TensorBoard's files.

    Args:
        run: the settings.
        write_model: writes the model, and what is the task's own, into the folder it is given.
        history: the figures of each round, as `plot_history` takes them.
        summary: becomes metrics.json.
        page: becomes report.html.
        work: the run's state, for TensorBoard's files.
        metric: the figure drawn beside the loss.
        overwrite: whether `run.out` may exist.

    Raises:
        UnsavedError: the disk is full, or cannot be written to.
    """
    full = f"{run.out}: cannot be written"
    with writing(full, "training is done"), written_whole(run.out, overwrite=overwrite) as folder:
        write_model(folder)
        (folder / RUN_FILE).write_text(run.to_json(), encoding="utf-8")
        write_json(folder / METRICS_FILE, summary)
        write_json(folder / "history.json", history)
        plot_history(history, folder / "curves.png", metric=metric)
        (folder / REPORT_FILE).write_text(page, encoding="utf-8")
        shutil.copytree(work / TENSORBOARD_FOLDER, folder / TENSORBOARD_FOLDER)


def _refuse_other_settings(work: Path, run: Settings) -> None:
    try:
        before = type(run).read(work / RUN_FILE)
    except InputError as error:
        raise InputError(f"{error}; pass --overwrite to start again") from error
    if differences := run.differences(before):
        raise InputError(
            f"{work}: an interrupted run with other settings ({'; '.join(differences)}); give the same ones to "
            "go on with it, another --out, or --overwrite to start again"
        )
