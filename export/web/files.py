"""The files that the page consists of: ours, and those of the browser's runtimes, by the paths they are served under."""

import dataclasses
import json
import re
from collections.abc import Mapping
from pathlib import Path

from albert_tf.errors import InputError

_HERE = Path(__file__).parent
STATIC = _HERE / "static"
NPM = _HERE / "npm"  # package.json and package-lock.json with the exact versions
DEFAULT_FOLDER = Path(".web")
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
}
# What each part of the page needs of npm: package → its files.
PACKAGES = {
    "@mediapipe/tasks-text": (
        "text_bundle.mjs",
        *(f"wasm/text_wasm_{kind}internal" for kind in ("", "module_", "nosimd_")),
    ),
    "@litertjs/core": ("dist/index.js", *(f"wasm/litert_wasm_{kind}internal" for kind in ("", "compat_"))),
    "@litertjs/wasm-utils": ("dist/bundle.js",),
    "@sctg/sentencepiece-js": ("dist/index.js",),
}
# Names of packages in import statements, which a browser does not know; the last two are of Node.js alone.
_IMPORTS = {
    b"@litertjs/wasm-utils": b"/runtime/@litertjs/wasm-utils/dist/bundle.js",
    b"fs": b"/static/node_modules_absent.js",
    b"buffer": b"/static/node_modules_absent.js",
}
_IMPORT = re.compile(rb"""(\bfrom\s*)(["'])([\w@/-]+)\2""")
# Where MediaPipe's web build posts statistics every minute: instead to this server, which drops them. The page's policy
# alone would forbid it too, with an error in the console each time.
_STATISTICS = b"https://odml.pa.googleapis.com/v1/log"
TOKENIZER_WORKER = "/static/tokenizer_worker.js"
DROPPED = "/api/dropped"
_SOURCE_MAP = re.compile(rb"^//# sourceMappingURL=.*$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class WebFile:
    """A file of the page.

    Attributes:
        path: where it is.
        type: its content type.
        of_package: whether it is of npm, so that its imports are rewritten.
    """

    path: Path
    type: str
    of_package: bool = False

    def read(self) -> bytes:
        content = self.path.read_bytes()
        if not self.of_package or self.path.suffix == ".wasm":
            return content
        content = content.replace(_STATISTICS, DROPPED.encode())
        return _SOURCE_MAP.sub(b"", _IMPORT.sub(_as_path, content))


def _as_path(found: re.Match[bytes]) -> bytes:
    return found[1] + found[2] + _IMPORTS.get(found[3], found[3]) + found[2]


def own_files() -> dict[str, WebFile]:
    """The page's own files by path."""
    files = {f"/static/{path.name}": WebFile(path, _TYPES[path.suffix]) for path in sorted(STATIC.iterdir())}
    return {"/": files["/static/index.html"]} | files


def runtime_files(folder: Path | None) -> tuple[dict[str, WebFile], dict[str, str]]:
    """The files of the browser's runtimes by path, and the packages' versions.

    Args:
        folder: where npm has installed them, that of package.json or its node_modules; None: `DEFAULT_FOLDER` where it is
            there, else none.

    Raises:
        InputError: the folder, or a file of a package in it, is not there.
    """
    if folder is None:
        if not (DEFAULT_FOLDER / "node_modules").is_dir():
            return {}, {}
        folder = DEFAULT_FOLDER
    modules = folder / "node_modules" if (folder / "node_modules").is_dir() else folder
    install = install_command(folder.parent if folder.name == "node_modules" else folder)
    wanted = json.loads((NPM / "package.json").read_text(encoding="utf-8"))["dependencies"]
    files, versions = {}, {}
    for package, names in PACKAGES.items():
        versions[package] = _version(modules / package, wanted[package], install)
        for name in names:
            for full in (name,) if Path(name).suffix else (f"{name}.js", f"{name}.wasm"):
                path = modules / package / full
                if not path.is_file():
                    raise InputError(f"{path}: no such file; install the packages again: {install}")
                files[f"/runtime/{package}/{full}"] = WebFile(path, _TYPES[path.suffix], of_package=True)
    return files, versions


def _version(package: Path, wanted: str, install: str) -> str:
    """The version of an installed package; `install` installs the one that is wanted."""
    try:
        found = str(json.loads((package / "package.json").read_text(encoding="utf-8"))["version"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{package}: expected a package that npm installed ({error}); run {install}") from error
    if found != wanted:
        raise InputError(f"{package}: expected version {wanted}, found {found}; run {install}")
    return found


def install_command(folder: Path) -> str:
    """How a person installs the runtimes into a folder."""
    wanted: Mapping[str, str] = json.loads((NPM / "package.json").read_text(encoding="utf-8"))["dependencies"]
    return f"npm install --prefix {folder} " + " ".join(f"{name}@{version}" for name, version in wanted.items())
