"""Loads a `.tflite` file in LiteRT in a process of its own: on damaged files the native runtime ends the process.

Run as a program it loads one file and prints JSON: `python -m export.trial model.tflite`.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

TIMEOUT_SECONDS = 120
# Beside what the file itself takes. A damaged size must not take all the memory there is.
MOST_MEMORY = 8 << 30
_ROOT = Path(__file__).resolve().parent.parent


def why_not_loaded(path: str | Path) -> str | None:
    """Why ai-edge-litert does not load the file and set up its tensors; None where it does."""
    # The new process must find this very package, also where it is not installed.
    search = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "export.trial", str(Path(path).absolute())],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=TIMEOUT_SECONDS,
            env=os.environ | {"PYTHONPATH": search},
        )
    except subprocess.TimeoutExpired:
        return f"not loaded after {TIMEOUT_SECONDS} seconds"
    lines = done.stdout.splitlines()
    if done.returncode == 0 and lines:
        reason: str | None = json.loads(lines[-1])["reason"]
        return reason
    if done.returncode < 0:
        return f"the runtime ends the process ({_signal_name(-done.returncode)})"
    return (done.stderr.strip().splitlines() or [f"the process ended with {done.returncode}"])[-1]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _reason(path: str) -> str | None:
    from ai_edge_litert.interpreter import Interpreter

    try:
        interpreter = Interpreter(path, num_threads=1)
        interpreter.allocate_tensors()
    except (ValueError, RuntimeError, MemoryError) as error:
        return (str(error).splitlines() or ["no reason given"])[0]
    return None


def _limit_memory(path: str) -> None:
    import resource

    most, (_, hard) = MOST_MEMORY + 3 * Path(path).stat().st_size, resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:  # who started this may allow less already
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    if sys.platform == "linux":
        _limit_memory(sys.argv[1])
    print(json.dumps({"reason": _reason(sys.argv[1])}))
