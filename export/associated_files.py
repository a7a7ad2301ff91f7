"""What an exported file carries behind its model: settings, tokenizer, labels, and what its runtime needs."""

import dataclasses
import json
import tempfile
from pathlib import Path

import albert_tf
from albert_tf.inference.depth import PLAIN
from albert_tf.tasks.base import AlbertTask
from export.device_runtimes import device_files
from export.metadata import FORMAT, SETTINGS_FILE, model_record
from export.quantization import Recipe
from export.signatures import Length
from export.tflite_metadata import LABELS_FILE


def associated_files(
    task: AlbertTask,
    model: bytes,
    recipe: Recipe,
    *,
    form: str,
    length: Length,
    runtime: str = "litert",
    text_input: bool = False,
    adaptive: str = PLAIN,
    calibration_texts: int = 0,
) -> dict[str, bytes]:
    """What goes into the file beside `model`: settings, tokenizer, labels."""
    settings = {
        "format": FORMAT,
        "albert_tf": albert_tf.__version__,
        "task": task.task,
        "settings": task.settings(),
        "recipe": dataclasses.asdict(recipe) | {"calibration_texts": calibration_texts},
        "form": form,
        "length": length,
        "runtime": runtime,
        "text_input": text_input,
        "parameters": task.count_params(),
        "config": task.backbone.config.to_dict(),
    } | model_record(model)
    if adaptive != PLAIN:
        settings["adaptive"] = adaptive
    files = {SETTINGS_FILE: (json.dumps(settings, indent=2, ensure_ascii=False) + "\n").encode()}
    tokenizer = task.required_tokenizer
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "tokenizer"
        tokenizer.save(target)
        files |= {file.name: file.read_bytes() for file in sorted(target.iterdir())}
    if labels := task.settings().get("labels"):
        files[LABELS_FILE] = "".join(f"{label}\n" for label in labels).encode()
    return files | device_files(task, runtime)
