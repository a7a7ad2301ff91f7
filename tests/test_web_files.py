"""What the page serves of npm, with a folder as npm would have left it; and the command."""

import json
import re
import signal
import subprocess
import sys
import urllib.request

import pytest
from command_line import albert_tf
from conftest import ROOT
from tiny_exports import exported
from web_pages import serving

from albert_tf.errors import InputError
from export.web.files import NPM, PACKAGES, install_command, runtime_files
from export.web.models import files_here

WANTED = json.loads((NPM / "package.json").read_text("utf-8"))["dependencies"]
CORE = (
    "import {a} from \"@litertjs/wasm-utils\";\nimport * as fs from 'fs';\nexport {a};\n"
    "//# sourceMappingURL=index.js.map\n"
)


@pytest.fixture
def installed(tmp_path):
    """A folder with the packages' files, which are small."""
    for package, names in PACKAGES.items():
        folder = tmp_path / "node_modules" / package
        for name in names:
            for full in (name,) if "." in name else (f"{name}.js", f"{name}.wasm"):
                (folder / full).parent.mkdir(parents=True, exist_ok=True)
                (folder / full).write_text(CORE, encoding="utf-8")
        (folder / "package.json").write_text(json.dumps({"version": WANTED[package]}), encoding="utf-8")
        (folder / "secret.txt").write_text("of no use to the page", encoding="utf-8")
    return tmp_path


def test_versions_are_exact_and_locked():
    lock = json.loads((NPM / "package-lock.json").read_text("utf-8"))["packages"]
    own = json.loads((NPM / "package.json").read_text("utf-8"))
    for name, version in (own["dependencies"] | own["devDependencies"]).items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version)
        assert lock[f"node_modules/{name}"]["version"] == version
    assert PACKAGES.keys() == own["dependencies"].keys()
    assert all("integrity" in entry for path, entry in lock.items() if path)
    assert not any("resolved" in entry for entry in lock.values())


def test_runtimes_are_served_with_imports_that_a_browser_knows(installed):
    with serving([exported("all", "float32", "loop", 16)], installed) as asker:
        state = asker.request("GET", "/api/state").json
        assert state["runtimes"] == WANTED and state["install"] is None
        assert state["models"][0]["runtime"] == "litert"
        reply = asker.request("GET", "/runtime/@litertjs/core/dist/index.js")
        assert reply.headers["Content-Type"] == "text/javascript; charset=utf-8"
        assert reply.body == (
            b'import {a} from "/runtime/@litertjs/wasm-utils/dist/bundle.js";\n'
            b"import * as fs from '/static/node_modules_absent.js';\nexport {a};\n\n"
        )
        assert asker.request("GET", "/runtime/@litertjs/wasm-utils/dist/bundle.js").status == 200
        wasm = asker.request("GET", "/runtime/@litertjs/core/wasm/litert_wasm_internal.wasm")
        assert (wasm.headers["Content-Type"], wasm.body) == ("application/wasm", CORE.encode())
        for path in ("/runtime/@litertjs/core/secret.txt", "/runtime/@litertjs/core/package.json", "/runtime/"):
            assert asker.request("GET", path).status == 404


def test_the_folder_may_be_that_of_the_modules(installed):
    assert runtime_files(installed / "node_modules") == runtime_files(installed)


def test_a_folder_that_is_not_npms(installed, tmp_path):
    with pytest.raises(InputError, match="expected a package that npm installed"):
        runtime_files(tmp_path / "nothing")
    with pytest.raises(InputError, match=f"run npm install --prefix {re.escape(str(tmp_path / 'nothing'))} @"):
        runtime_files(tmp_path / "nothing" / "node_modules")
    (installed / "node_modules/@litertjs/core/package.json").write_text('{"version": "1.0.0"}', encoding="utf-8")
    with pytest.raises(InputError, match=r"expected version 2\.5\.3, found 1\.0\.0; run npm install"):
        runtime_files(installed)


def test_a_file_that_is_missing(installed):
    (installed / "node_modules/@mediapipe/tasks-text/text_bundle.mjs").unlink()
    with pytest.raises(InputError, match=r"text_bundle\.mjs: no such file; install the packages again"):
        runtime_files(installed)


def test_without_runtimes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert runtime_files(None) == ({}, {})


def test_install_command(capsys, tmp_path):
    done = albert_tf(capsys)("web", "--install-command", "--runtime-folder", tmp_path)
    assert done.code == 0
    line = done.out.strip()
    assert line == install_command(tmp_path)
    assert line.startswith(f"npm install --prefix {tmp_path} ")
    assert set(line.split()[4:]) == {f"{name}@{version}" for name, version in WANTED.items()}


def test_files_of_this_folder(tmp_path):
    with pytest.raises(InputError, match=r"no \.tflite file in "):
        files_here(tmp_path)
    (tmp_path / "android_demo_assets").mkdir()
    (tmp_path / "android_demo_assets" / "films").mkdir()
    for name in ("b.tflite", "a.tflite", "android_demo_assets/c.tflite", "android_demo_assets/films/e.tflite", "d.txt"):
        (tmp_path / name).write_bytes(b"")
    assert [path.name for path in files_here(tmp_path)] == ["a.tflite", "b.tflite", "c.tflite", "e.tflite"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tflite", "nothing.tflite"], "nothing.tflite"),
        ([], "no .tflite file in "),
        (["--port", "70000"], "expected a number from 0 to 65535, got '70000'"),
        (["--port", "x"], "expected a number from 0 to 65535, got 'x'"),
        (["--tflite", exported, "--threads", "0"], "threads: expected a whole number from 1 to 256, got 0"),
        (["--tflite", exported, "--host", "no-such-name.invalid"], "cannot listen at no-such-name.invalid"),
        (["--runtime-folder", "nothing"], "expected a package that npm installed"),
    ],
)
def test_wrong_use(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    done = albert_tf(capsys)("web", *(word() if callable(word) else word for word in words))
    assert done.code == 2 and said in done.err and done.err.count("\n") == 1 and done.out == ""


def test_the_page_is_part_of_the_package():
    setup = (ROOT / "setup.py").read_text("utf-8")
    assert '"export.web": ["static/*", "npm/*"]' in setup


def test_the_command_serves_until_it_is_stopped():
    command = [sys.executable, "-m", "albert_tf.cli.main", "web", "--port", "0", "--tflite", exported()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        line = process.stdout.readline()
        found = re.match(r"(http://127\.0\.0\.1:\d+/)  1 file, run ", line)
        assert found, line
        with urllib.request.urlopen(f"{found[1]}api/state", timeout=30) as reply:
            assert json.load(reply)["models"][0]["name"] == exported().name
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
        assert process.stderr.read() == ""
