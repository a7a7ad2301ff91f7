"""Run folders → a folder for apps: device files with labels, tokenizer, golden answers and notes, and a manifest."""

import dataclasses
import importlib.metadata
import platform
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import albert_tf
from albert_tf.errors import InputError
from albert_tf.evaluation.report import write_json
from albert_tf.files import checked_path, is_there, read_json, resolved, written_whole
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.trained import load_task
from albert_tf.tokenization import wordpiece
from albert_tf.training.run_folder import METRICS_FILE, RUN_FILE
from export.android_golden import golden_answers, golden_text
from export.android_manifest import (
    CARD,
    GOLDEN,
    MANIFEST,
    MEASUREMENTS,
    folder_differences,
    manifest_of,
    manifest_text,
    read_manifest,
)
from export.device_tasks import DEVICE_TASKS
from export.quantization import recipe_by_name
from export.runtime import TFLiteRunner
from export.tflite import export_tflite, in_float32
from export.tflite_metadata import DEVICE_VOCABULARY, LABELS_FILE
from export.validation import ExportError, ExportReport

LICENCE_FILE = "licence.txt"
# Of a run's settings, what says how its model came about; paths lose their folders.
_TOLD_PATHS = ("source", "train", "valid")
_TOLD = ("epochs", "steps", "batch_size", "learning_rate", "max_length", "precision", "seed")


def export_android(
    runs: Sequence[str | Path],
    out: str | Path,
    *,
    recipe: str = "dynamic_int8",
    examples: Callable[[Path, str], Sequence[Any] | None] | None = None,
    licence: str = "",
    overwrite: bool = False,
    report: Callable[[str, ExportReport], None] | None = None,
) -> dict[str, Any]:
    """Writes a folder of each run's name into `out`, and a manifest: all of them, or none.

    Args:
        runs: run folders of classification, question answering or tagging.
        out: a new folder; or one that holds other things, which are kept.
        recipe: a name in `export.quantization.RECIPES`.
        examples: a function from a run folder and its task to labelled examples, on which file and model are compared and
            metrics taken, or to None for built-in sentences.
        licence: text for the licence note of each model.
        overwrite: replace the models that an earlier call wrote there.
        report: receives each model's name and what was found about its file.

    Returns:
        The manifest.

    Raises:
        InputError: a recipe that needs calibration, a run of another task, two of one name, or a folder in `out` that no
            call of this wrote.
        ExportError: a file fails its check; nothing is written.
    """
    named = _named(runs)
    if recipe_by_name(recipe).activation_bits is not None:
        raise InputError(
            f"recipe: {recipe} computes in integers alone, with ranges from texts and one fixed length; albert-tf export "
            "tflite writes such files"
        )
    out = resolved(checked_path(out, "out"))
    kept = _kept(out, set(named), overwrite=overwrite)
    tasks = {name: _device_task(run) for name, run in named.items()}
    measured = {}
    with written_whole(out, overwrite=True) as temporary:
        _copy(out, temporary, kept)
        for name, task in tasks.items():
            run = named[name]
            found = _write_model(task, temporary / name, run, recipe, examples and examples(run, task.task), licence)
            measured[name] = dataclasses.asdict(found.device) if found.device is not None else None
            if report is not None:
                report(name, found)
        manifest = manifest_of(temporary, list(named))
        (temporary / MANIFEST).write_text(manifest_text(manifest), encoding="utf-8")
        write_json(temporary / MEASUREMENTS, {"machine": _machine(), "models": measured})
        if lines := folder_differences(temporary):
            raise ExportError(f"the folder fails its own check: {lines[0]}")
    return manifest


def _named(runs: Sequence[str | Path]) -> dict[str, Path]:
    """Folder name → run, in the order of the names."""
    if isinstance(runs, (str, Path)) or not len(runs):
        raise InputError(f"runs: expected a list of at least one run folder, got {runs!r}")
    found: dict[str, Path] = {}
    for run in map(Path, runs):
        name = resolved(run).name
        if name in found:
            raise InputError(
                f"runs: {found[name]} and {run} would both become {name}/; give run folders of different names"
            )
        found[name] = run
    return dict(sorted(found.items()))


def _kept(out: Path, names: set[str], *, overwrite: bool) -> list[str]:
    """The names in `out` that are no work of this command, and stay.

    Raises:
        InputError: `out` has models already, or something else of a model's name.
    """
    if not out.exists():
        return []
    if not out.is_dir():
        raise InputError(f"{out}: expected a folder, or a name for a new one; found a file")
    own = {MANIFEST, MEASUREMENTS} & {path.name for path in out.iterdir()}
    if is_there(out / MANIFEST):
        if not overwrite:
            raise InputError(f"{out} has a {MANIFEST} already; pass --overwrite to replace its models")
        own |= {model["name"] for model in read_manifest(out)["models"]}
    kept = sorted(path.name for path in out.iterdir() if path.name not in own)
    if taken := sorted(names.intersection(kept)):
        raise InputError(
            f"{out / taken[0]} is there, and no work of this command; move it, or give the run folder another name"
        )
    if taken := sorted(names & {MANIFEST, MEASUREMENTS}):
        raise InputError(f"runs: {taken[0]} is the name of a file of this command; give the run folder another name")
    return kept


def _copy(out: Path, temporary: Path, kept: list[str]) -> None:
    temporary.mkdir()
    for name in kept:
        if (out / name).is_dir() and not (out / name).is_symlink():
            shutil.copytree(out / name, temporary / name, symlinks=True)
        else:
            shutil.copy2(out / name, temporary / name, follow_symlinks=False)


def _device_task(run: Path) -> AlbertTask:
    task = load_task(run)
    if task.task not in DEVICE_TASKS:
        raise InputError(
            f"{run}: a model for {task.task}; expected one for {', '.join(DEVICE_TASKS)}. albert-tf export tflite writes "
            "a file of any task"
        )
    if task.exits is not None:
        raise InputError(
            f"{run}: stops early, while an app's folder has files that make all passes; albert-tf export tflite writes one "
            "that stops early, and with --adaptive none one that does not"
        )
    return in_float32(task)


def _write_model(
    task: AlbertTask, folder: Path, run: Path, recipe: str, examples: Sequence[Any] | None, licence: str
) -> ExportReport:
    """Writes what an app needs of one model."""
    folder.mkdir()
    kind = DEVICE_TASKS[task.task]
    path = folder / f"{folder.name}.tflite"
    longest = min(task.required_tokenizer.max_length, task.backbone.config.max_sequence_length)
    lengths = sorted({min(tokens, longest) for tokens in kind.lengths}) or None
    found = export_tflite(task, path, recipe=recipe, runtime=kind.runtime, length=lengths, examples=examples)
    if labels := task.settings().get("labels"):
        (folder / LABELS_FILE).write_text("".join(f"{label}\n" for label in labels), encoding="utf-8")
    sentencepiece = task.required_tokenizer.vocabulary.kind == "sentencepiece"
    task.required_tokenizer.save_device_model(folder / (DEVICE_VOCABULARY if sentencepiece else wordpiece.FILE_NAME))
    golden = golden_answers(TFLiteRunner(path), task)
    (folder / GOLDEN).write_text(golden_text(golden), encoding="utf-8")
    card = _card(run, task, found)
    write_json(folder / CARD, card)
    (folder / LICENCE_FILE).write_text(_licence_note(folder.name, card, licence), encoding="utf-8")
    return found


def _card(run: Path, task: AlbertTask, found: ExportReport) -> dict[str, Any]:
    """Where the model comes from and how good it is."""
    card: dict[str, Any] = {"task": task.task, "parameters": task.count_params()}
    if (run / RUN_FILE).is_file():
        settings = read_json(run / RUN_FILE)
        card["training"] = {name: Path(settings[name]).name for name in _TOLD_PATHS if settings.get(name)}
        card["training"] |= {name: settings[name] for name in _TOLD if settings.get(name) is not None}
    if (run / METRICS_FILE).is_file():
        figures = read_json(run / METRICS_FILE)
        card["training_examples"] = figures.get("train_examples")
    card["compared_on"] = "labelled examples" if found.metrics else "built-in sentences"
    card["metrics"] = {
        name: {"float32": round(pair.keras, 4), "file": round(pair.file, 4)} for name, pair in found.metrics.items()
    }
    return card


def _licence_note(name: str, card: Mapping[str, Any], licence: str) -> str:
    training = card.get("training", {})
    source, data = training.get("source", "not recorded"), training.get("train", "not recorded")
    lines = [
        f"{name}.tflite and the files beside it were written by albert-tf {albert_tf.__version__}.",
        f"The weights start from: {source}. They were fine-tuned on: {data}.",
        "The terms of both apply to the file, which is made of them; the tokenizer's are those of the first.",
    ]
    return "\n".join([*lines, *(["", licence.strip()] if licence.strip() else [])]) + "\n"


def _machine() -> dict[str, Any]:
    """What memory and latency were measured on."""
    return {
        "processor": _processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "runtime": f"ai-edge-litert {importlib.metadata.version('ai-edge-litert')}",
    }


def _processor() -> str:
    """The processor's model, as the system names it."""
    cpus = Path("/proc/cpuinfo")
    if cpus.is_file():
        for line in cpus.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(("model name", "Model")):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
