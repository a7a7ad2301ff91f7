"""A Python of its own: a virtual environment with packages from the index and nothing of ours."""

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from conftest import ROOT

CONSTRAINTS = ("-c", str(ROOT / "constraints.txt"))


def run_python(
    python: Path | str, *arguments: Any, send: Any = None, check: bool = True, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a Python that finds none of our sources.

    Args:
        send: what it reads as JSON from its standard input.
        check: fail where it ends with an error.
        environment: variables beside this process's own.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [str(python), *map(str, arguments)]
    done = subprocess.run(
        command, input=json.dumps(send), capture_output=True, text=True, check=False, env=own | environment, cwd="/"
    )
    assert not check or done.returncode == 0, done.stderr
    return done


class ClientPython:
    """The environment, made in `folder`.

    Args:
        packages: what to install, and options of pip.
    """

    def __init__(self, folder: Path, packages: Iterable[str]) -> None:
        venv.create(folder, with_pip=True)
        self.python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        self.run("-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)

    def run(self, *arguments: Any, **options: Any) -> subprocess.CompletedProcess[str]:
        """See `run_python`."""
        return run_python(self.python, *arguments, **options)

    def ask(self, code: str, file: Path, send: Sequence[Any]) -> Any:
        """What `code`, given the file's name, prints as JSON in its last line."""
        return json.loads(self.run("-c", code, file, send=list(send)).stdout.splitlines()[-1])
