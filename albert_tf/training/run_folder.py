"""The folders of a training run: OUT.training while it is under way, OUT when it is finished.

Both are replaced or removed only where they are known by their run.json: a mistyped --out must not cost anyone a folder.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from albert_tf.errors import InputError
from albert_tf.evaluation.report import plot_history, write_json
from albert_tf.files import refuse_other_folder, written_whole
from albert_tf.training.checkpoints import has_state
from albert_tf.training.distribution import Devices
from albert_tf.training.settings import Settings

RUN_FILE = "run.json"
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
        shutil.rmtree(work)
    with written_whole(work) as temporary:
        temporary.mkdir()
        (temporary / RUN_FILE).write_text(run.to_json(), encoding="utf-8")
    return work


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
    """
    with written_whole(run.out, overwrite=overwrite) as folder:
        write_model(folder)
        (folder / RUN_FILE).write_text(run.to_json(), encoding="utf-8")
        write_json(folder / "metrics.json", summary)
        write_json(folder / "history.json", history)
        plot_history(history, folder / "curves.png", metric=metric)
        (folder / REPORT_FILE).write_text(page, encoding="utf-8")
        shutil.copytree(work / TENSORBOARD_FOLDER, folder / TENSORBOARD_FOLDER)


def _refuse_other_settings(work: Path, run: Settings) -> None:
    differences = run.differences(type(run).read(work / RUN_FILE))
    if differences:
        raise InputError(
            f"{work}: an interrupted run with other settings ({'; '.join(differences)}); give the same ones to "
            "go on with it, another --out, or --overwrite to start again"
        )
