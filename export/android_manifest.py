"""manifest.json of a folder for apps: what its files are, made from the files alone; and whether they still are that.

Runs without TensorFlow. What differs from run to run, memory and latency, is in a file of its own (`MEASUREMENTS`).
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from albert_tf.errors import InputError
from albert_tf.files import is_there, read_json
from export.android_golden import FORMAT as GOLDEN_FORMAT
from export.android_golden import golden_differences
from export.device_tasks import DEVICE_TASKS
from export.inspection import End, inspect_file
from export.runtime import TFLiteRunner

FORMAT = 1
MANIFEST, MEASUREMENTS = "manifest.json", "measurements.json"
# Of each model's folder, beside its `.tflite`.
GOLDEN, CARD = "golden.json", "model.json"
_CHUNK = 1 << 20
_MOST_LINES = 50


def manifest_of(folder: str | Path, names: list[str]) -> dict[str, Any]:
    """The manifest of the models in these folders of `folder`.

    Raises:
        InputError: a folder without its files, or a file that cannot be read.
    """
    folder = Path(folder)
    models = [_model_entry(folder, name) for name in sorted(names)]
    total = sum(file["bytes"] for model in models for file in model["files"])
    return {"format": FORMAT, "models": models, "total_bytes": total}


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """The JSON text of a manifest."""
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """The manifest of a folder.

    Raises:
        InputError: there is none, or it is damaged or of another format.
    """
    path = Path(folder) / MANIFEST
    if not is_there(path):
        raise InputError(f"{path}: no such file; expected a folder written by albert-tf export android")
    manifest = read_json(path)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT or not _has_models(manifest):
        raise InputError(f"{path}: expected a manifest of format {FORMAT} by albert-tf export android; export again")
    return manifest


def _has_models(manifest: Mapping[str, Any]) -> bool:
    """Whether its models have names and lists of files, none of them a way out of the folder."""
    models = manifest.get("models")
    return isinstance(models, list) and all(
        isinstance(model, dict)
        and _is_name(model.get("name"))
        and isinstance(model.get("files"), list)
        and all(isinstance(file, dict) and _is_name(file.get("name")) for file in model["files"])
        for model in models
    )


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name not in ("", ".", "..") and not {"/", "\\", "\0"} & set(name)


def folder_differences(folder: str | Path) -> list[str]:
    """What is not as the manifest says, or answers otherwise than golden.json says: a line each, none where all is well.

    Every file's size and sha256, the manifest itself, and each model's golden answers on ai-edge-litert.

    Raises:
        InputError: there is no manifest.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    lines: list[str] = []
    for model in manifest["models"]:
        changed = _file_differences(folder, model)
        # A file that is not what it was is not given to the runtime, which trusts it.
        lines += changed or [f"{model['name']}: {line}" for line in _answer_differences(folder, model["name"])]
    if not lines:
        found = json.loads(json.dumps(manifest_of(folder, [model["name"] for model in manifest["models"]])))
        lines = [f"{MANIFEST}: {line}" for line in _value_differences(manifest, found, "")]
    return lines if len(lines) <= _MOST_LINES else [*lines[:_MOST_LINES], f"and {len(lines) - _MOST_LINES} more"]


def _file_differences(folder: Path, model: Mapping[str, Any]) -> list[str]:
    own, lines = folder / model["name"], []
    recorded = {file["name"]: file for file in model["files"]}
    there = {path.name for path in own.iterdir()} if own.is_dir() else set()
    for name in sorted(recorded.keys() | there):
        where = f"{model['name']}/{name}"
        if name not in recorded:
            lines.append(f"{where}: not in {MANIFEST}")
        elif name not in there or not (own / name).is_file():
            lines.append(f"{where}: missing")
        elif (found := _file_entry(own / name)) != recorded[name]:
            lines.append(f"{where}: {_how_it_differs(found, recorded[name])}")
    return lines


def _how_it_differs(found: Mapping[str, Any], recorded: Mapping[str, Any]) -> str:
    if found["bytes"] != recorded.get("bytes"):
        return f"has {found['bytes']:,} bytes, {MANIFEST} says {recorded.get('bytes')!r}"
    return f"has the sha256 {found['sha256']}, {MANIFEST} says {recorded.get('sha256')}"


def _answer_differences(folder: Path, name: str) -> list[str]:
    try:
        runner = TFLiteRunner(folder / name / f"{name}.tflite")
        return golden_differences(runner, _read_golden(folder / name / GOLDEN))
    except InputError as error:
        return [str(error)]


def _read_golden(path: Path) -> dict[str, Any]:
    golden = read_json(path)
    if not isinstance(golden, dict) or golden.get("format") != GOLDEN_FORMAT:
        raise InputError(f"{path}: expected golden answers of format {GOLDEN_FORMAT}; export the model again")
    return golden


def _value_differences(recorded: Any, found: Any, where: str) -> list[str]:
    """The places at which two JSON values differ."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        names = dict.fromkeys([*recorded, *found])
        pairs = [(f"{where}.{name}" if where else name, recorded.get(name), found.get(name)) for name in names]
    elif isinstance(recorded, list) and isinstance(found, list) and len(recorded) == len(found):
        pairs = [(f"{where}[{i}]", a, b) for i, (a, b) in enumerate(zip(recorded, found, strict=True))]
    else:
        return [] if recorded == found else [f"{where} is {recorded!r}, the files say {found!r}"]
    return [line for place, a, b in pairs for line in _value_differences(a, b, place)]


def _model_entry(folder: Path, name: str) -> dict[str, Any]:
    own = folder / name
    path = own / f"{name}.tflite"
    inspected = inspect_file(path)
    settings = inspected.settings
    if settings is None or settings.get("task") not in DEVICE_TASKS:
        raise InputError(f"{path}: expected a file of albert-tf export android, for {', '.join(DEVICE_TASKS)}")
    return {
        "name": name,
        "task": settings["task"],
        "runtime": settings["runtime"],
        "form": settings["form"],
        "lengths": settings["length"],
        "recipe": settings["recipe"],
        "settings": settings["settings"],
        "parameters": inspected.parameters,
        "model_bytes": inspected.model_bytes,
        "signatures": [
            {"name": s.key, "inputs": list(map(_tensor, s.inputs)), "outputs": list(map(_tensor, s.outputs))}
            for s in inspected.signatures
        ],
        "min_runtime_version": inspected.min_runtime_version,
        # Without the version of the LiteRT that looked, which has no part in the files.
        "runtimes": [
            {"runtime": _without_own_version(verdict.runtime), "takes": verdict.takes, "reasons": list(verdict.reasons)}
            for verdict in inspected.runtimes
        ],
        "source": read_json(own / CARD),
        "files": [_file_entry(file) for file in sorted(own.iterdir())],
    }


def _without_own_version(runtime: str) -> str:
    name, _, version = runtime.partition(" ")
    return name if name == "LiteRT" and version[:1].isdigit() else runtime


def _tensor(end: End) -> dict[str, Any]:
    return {"name": end.name, "type": end.type, "shape": list(end.shape)}


def _file_entry(path: Path) -> dict[str, Any]:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": digest.hexdigest()}
