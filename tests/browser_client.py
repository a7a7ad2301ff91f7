"""The page in headless Chromium, driven by `tests/browser/drive.mjs`."""

import functools
import json
import shutil
import subprocess
from typing import Any

from conftest import ROOT

MODULES = ROOT / ".web" / "node_modules"
_DRIVER = ROOT / "tests" / "browser" / "drive.mjs"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_SECONDS = 600
# What a browser says of itself, and its runtimes of a machine without a graphics card.
_USUAL = ("warning: No available adapters.", "warning: Failed to create default WebGPU device")


@functools.cache
def _program(*names: str) -> str:
    """The path of the first of these programs that is here."""
    found = next(filter(None, map(shutil.which, names)), None)
    assert found, f"{' or '.join(names)} not found: these tests need it on the PATH (Debian: chromium, nodejs, npm)"
    return found


def browse(url: str, **job: Any) -> dict[str, Any]:
    """What came of a job of drive.mjs; see there. Fails where the console has an error, or a request went elsewhere."""
    assert (MODULES / "playwright-core").is_dir(), f"{MODULES} is not installed: run make .web/.installed"
    job |= {"url": url, "chromium": _program(*_BROWSERS), "modules": str(MODULES)}
    done = subprocess.run(
        [_program("node"), _DRIVER],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    assert [line for line in found["console"] if not line.startswith(_USUAL)] == []
    assert [address for address in found["requests"] if not address.startswith((url, "blob:"))] == []
    return found
