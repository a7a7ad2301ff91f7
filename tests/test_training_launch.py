"""The launcher, with small programs in place of a training; tests/test_training_distribution.py has the real ones."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from albert_tf.errors import CheckError, InputError
from albert_tf.training.launch import LaunchConfig, launch

# Arguments: folder, behaviour. Every worker says that it has joined and leaves a note of each start.
WORKER = """
import json, os, sys, time
from pathlib import Path
folder, how = Path(sys.argv[1]), sys.argv[2]
config = json.loads(os.environ["TF_CONFIG"])
index = config["task"]["index"]
assert len(set(config["cluster"]["worker"])) == len(config["cluster"]["worker"])
starts = len(list(folder.glob(f"start_{index}_*")))
(folder / f"start_{index}_{starts}").write_text(str(os.getpid()))
if how == "never" and index == 1:
    time.sleep(60)
(Path(os.environ["ALBERT_TF_READY_FOLDER"]) / str(index)).touch()
if how == "refuse" and index == 1:
    print("albert-tf: error: no such file")
    sys.exit(2)
if how == "die" or (how == "die_once" and starts == 0):
    if index == 1:
        print("out of memory")
        os.kill(os.getpid(), 9)
    time.sleep(60)
if how == "wait":
    time.sleep(60)
"""


@pytest.fixture
def program(tmp_path: Path) -> tuple[str, str]:
    path = tmp_path / "worker.py"
    path.write_text(WORKER)
    return sys.executable, str(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "notes"
    path.mkdir()
    return path


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("albert_tf.training.launch._GRACE_SECONDS", 0.5)


def running(folder: Path) -> list[int]:
    """Processes of the workers that are alive still."""
    pids = [int(path.read_text()) for path in folder.glob("start_*") if path.read_text()]
    return [pid for pid in pids if Path(f"/proc/{pid}").exists() and "Z" not in _state(pid)]


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_all_workers_run_to_the_end(program: tuple[str, str], folder: Path) -> None:
    launch(LaunchConfig(3), [str(folder), "well"], program=program)
    assert sorted(path.name for path in folder.iterdir()) == ["start_0_0", "start_1_0", "start_2_0"]


def test_one_death_starts_all_again(program: tuple[str, str], folder: Path) -> None:
    lines: list[str] = []
    launch(LaunchConfig(2), [str(folder), "die_once"], program=program, report=lines.append)
    assert len(list(folder.iterdir())) == 4
    assert len(lines) == 1
    assert "worker 1 was ended by signal 9" in lines[0]
    assert "out of memory" in lines[0]
    assert "1 of 3 restarts" in lines[0]
    assert not running(folder)


def test_gives_up(program: tuple[str, str], folder: Path) -> None:
    with pytest.raises(CheckError, match=r"(?s)worker 1 was ended by signal 9.*gave up after 1 restarts"):
        launch(LaunchConfig(2, restarts=1), [str(folder), "die"], program=program, report=lambda line: None)
    assert len(list(folder.iterdir())) == 4
    assert not running(folder)


def test_wrong_use_is_not_tried_again(program: tuple[str, str], folder: Path) -> None:
    with pytest.raises(InputError, match=r"worker 1 refused the command.*no such file"):
        launch(LaunchConfig(2), [str(folder), "refuse"], program=program)
    assert len(list(folder.glob("start_1_*"))) == 1
    assert not running(folder)


def test_a_worker_that_does_not_join_is_not_waited_for(program: tuple[str, str], folder: Path) -> None:
    with pytest.raises(CheckError, match=r"worker 1 did not join within 1\.5 seconds"):
        launch(LaunchConfig(2, start_timeout=1.5, restarts=0), [str(folder), "never"], program=program)
    assert not running(folder)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_the_launcher(program: tuple[str, str], folder: Path, how: signal.Signals) -> None:
    if how == signal.SIGKILL and sys.platform != "linux":
        pytest.xfail("only Linux ends the children of a process that was killed")
    code = (
        "from albert_tf.training.launch import LaunchConfig, launch; "
        f"launch(LaunchConfig(2), [{str(folder)!r}, 'wait'], program={program!r})"
    )
    launcher = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL, env=dict(os.environ))
    try:
        deadline = time.monotonic() + 60
        while len(running(folder)) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert len(running(folder)) == 2
        launcher.send_signal(how)
        launcher.wait(30)
        while running(folder) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not running(folder)
    finally:
        launcher.kill()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"workers": 0}, "--workers"),
        ({"workers": 2, "start_timeout": 0.0}, "--start-timeout"),
        ({"workers": 2, "restarts": -1}, "--restarts"),
    ],
)
def test_settings_out_of_range(settings: dict, named: str) -> None:
    with pytest.raises(InputError, match=named):
        LaunchConfig(**settings)
