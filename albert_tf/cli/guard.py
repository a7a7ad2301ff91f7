"""A command in a process of its own: native code that is given a damaged model can end a process without a word."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

# What native code ends a process with; of its own accord, not because it was told to.
_CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS")


def runs_tflite(args: Any) -> bool:
    """Whether the command gives a `.tflite` file to the native runtime."""
    path = getattr(args, "model", None)
    if args.command not in ("predict", "evaluate") or not isinstance(path, Path) or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(8)[4:] == b"TFL3"
    except OSError:  # the command will say it
        return False


def watched(path: Path) -> int | None:
    """Goes on in a new process, where it returns None; in this one it waits, and returns the other one's exit code.

    Where the new process crashes, this one says so in a line, and returns 2. Where it was ended from outside, so is this
    one. Windows has no such processes: there it returns None at once.

    Args:
        path: of the file that is run.
    """
    if not hasattr(os, "fork"):
        return None
    child = os.fork()
    if not child:
        return None
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for both; the other one knows what to say
    signal.signal(signal.SIGTERM, lambda number, frame: os.kill(child, number))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code >= 0:
        return code
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    if name not in _CRASHES:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    print(
        f"albert-tf: error: {path}: the runtime ended the process ({name}): the model in the file is damaged; copy, "
        "download or export it again",
        file=sys.stderr,
    )
    return 2
