"""Local workers of one multi-worker run: started together, stopped together, started again together.

A worker of `tf.distribute.MultiWorkerMirroredStrategy` cannot go on when another has died, and one that never starts is
waited for without end and without a word. So all begin within a time limit, and when one dies all are started anew; the
run goes on from its last saved state.
"""

import contextlib
import ctypes
import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from albert_tf.errors import CheckError, InputError
from albert_tf.training.distribution import READY_FOLDER

WRONG_USE = 2  # exit code of a command that would fail again
_POLL_SECONDS = 0.2
_GRACE_SECONDS = 10.0  # for the others to see that one has gone, and to end by themselves
_SHOWN_LINES = 15
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux


@dataclasses.dataclass(frozen=True)
class LaunchConfig:
    """How the workers are run.

    Attributes:
        workers: processes.
        start_timeout: seconds within which all workers must have joined.
        restarts: times that all are started again after one died.

    Raises:
        InputError: a value out of range.
    """

    workers: int
    start_timeout: float = 300.0
    restarts: int = 3

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= 1024:
            raise InputError(f"--workers: expected a number from 1 to 1024, got {self.workers}")
        if self.start_timeout <= 0:
            raise InputError(f"--start-timeout: expected seconds above 0, got {self.start_timeout}")
        if self.restarts < 0:
            raise InputError(f"--restarts: expected 0 or more, got {self.restarts}")


def launch(
    config: LaunchConfig, command: Sequence[str], *, report: Callable[[str], None] = print, program: Sequence[str] = ()
) -> None:
    """Runs `command` in every worker until all are done.

    The first worker, the chief, writes to this terminal; of the others the last lines are shown when one of them fails.

    Args:
        config: how many, and with what patience.
        command: arguments of albert-tf, such as ["pretrain", "--strategy", "multiworker", …].
        report: receives lines about starts and deaths.
        program: what runs the arguments; default: this Python's albert-tf.

    Raises:
        InputError: the workers refuse the command.
        CheckError: the workers died more often than `config.restarts` allows, or did not start in time.
    """
    program = program or (sys.executable, "-m", "albert_tf.cli.main")
    for attempt in range(config.restarts + 1):
        failure = _run_once(config, [*program, *command])
        if failure is None:
            return
        if attempt < config.restarts:
            report(f"{failure}; starting all {config.workers} again ({attempt + 1} of {config.restarts} restarts)")
    raise CheckError(f"{failure}; gave up after {config.restarts} restarts")


def _run_once(config: LaunchConfig, command: Sequence[str]) -> str | None:
    """One start of all workers: None when all ended well, else what happened."""
    with tempfile.TemporaryDirectory(prefix="albert_tf_launch.") as folder, _ended_by_signal():
        logs = [Path(folder) / f"worker_{index}.log" for index in range(config.workers)]
        workers: list[subprocess.Popen[bytes]] = []
        try:
            # Inside `try`: a signal while they are being started stops those that have begun.
            for index, environment in enumerate(_environments(config.workers, folder)):
                workers.append(_start(command, environment, None if index == 0 else logs[index]))
            return _watch(workers, config, Path(folder), logs)
        finally:
            _stop(workers)


def _start(command: Sequence[str], environment: dict[str, str], log: Path | None) -> "subprocess.Popen[bytes]":
    """A worker; the chief (no `log`) shares this process's output."""
    before = _die_with_parent if sys.platform == "linux" else None
    if log is None:
        return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, preexec_fn=before)
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=before,
        )


def _watch(
    workers: "Sequence[subprocess.Popen[bytes]]", config: LaunchConfig, folder: Path, logs: Sequence[Path]
) -> str | None:
    """Waits until all ended well (None), one failed, or one did not join in time."""
    started = time.monotonic()
    while True:
        codes = [worker.poll() for worker in workers]
        if failed := [index for index, code in enumerate(codes) if code not in (None, 0)]:
            return _failure(workers, failed[0], logs)
        if all(code == 0 for code in codes):
            return None
        joined = [(folder / str(index)).exists() or code == 0 for index, code in enumerate(codes)]
        if time.monotonic() - started > config.start_timeout and not all(joined):
            missing = ", ".join(str(index) for index, here in enumerate(joined) if not here)
            return f"worker {missing} did not join within {config.start_timeout:g} seconds"
        time.sleep(_POLL_SECONDS)


def _failure(workers: "Sequence[subprocess.Popen[bytes]]", first: int, logs: Sequence[Path]) -> str:
    """What became of the worker that failed first, with its last lines; the others get time to end.

    Raises:
        InputError: a worker refused the command: it would again.
    """
    code = workers[first].returncode
    lines = logs[first].read_text("utf-8", "replace").splitlines()[-_SHOWN_LINES:] if logs[first].exists() else []
    if code == WRONG_USE:
        said = f": {lines[-1]}" if lines else ", as it says above"
        raise InputError(f"worker {first} refused the command{said}")
    deadline = time.monotonic() + _GRACE_SECONDS
    while time.monotonic() < deadline and any(worker.poll() is None for worker in workers):
        time.sleep(_POLL_SECONDS)
    how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    return f"worker {first} {how}" + "".join(f"\n  {line}" for line in lines)


def _stop(workers: "Sequence[subprocess.Popen[bytes]]") -> None:
    """Ends those that still run, by themselves or by force: by their own process, never by name."""
    for worker in workers:
        if worker.poll() is None:
            worker.terminate()
    deadline = time.monotonic() + _GRACE_SECONDS
    for worker in workers:
        try:
            worker.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()


@contextlib.contextmanager
def _ended_by_signal() -> Iterator[None]:
    """SIGTERM ends the launcher as Ctrl-C does, so that it stops its workers."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def _die_with_parent() -> None:
    """Linux: a worker whose launcher was killed (kill -9) is killed too; else it would train on beside its successor."""
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


def _environments(count: int, ready_folder: str) -> list[dict[str, str]]:
    """TF_CONFIG of each worker on free ports of this machine."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    cluster = {"worker": addresses}
    return [
        dict(
            os.environ,
            TF_CONFIG=json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}}),
            **{READY_FOLDER: ready_folder},
        )
        for index in range(count)
    ]
