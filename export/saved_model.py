"""A Keras task → a SavedModel for TensorFlow Serving, with its tokenizer in the graph: strings in, answers out.

It runs wherever TensorFlow and TensorFlow Text are, without this package: `import tensorflow_text`, then
`tf.saved_model.load`. TensorFlow Serving has these operations built in. Vocabulary, labels and settings are in the graph;
the folder can be moved anywhere.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

import albert_tf
from albert_tf.conversion.tf1_files import errors_of_the_disk
from albert_tf.errors import InputError
from albert_tf.files import checked_path, refuse_existing, refuse_other_folder, resolved, written_whole
from albert_tf.inference.depth import EXITS, ExitSettings
from albert_tf.tasks.base import AlbertTask
from albert_tf.tokenization.tokenizer import check_texts
from export.adaptive import checked_adaptive, every_pass
from export.metadata import FORMAT, SETTINGS_FILE
from export.saved_model_check import SavedModelReport, as_tensors, check_saved_model, texts_to_ask
from export.served import ServedTask, Signature, checked_task
from export.served_choices import ServedMultipleChoice
from export.served_masks import ServedMaskedLM
from export.served_questions import ServedQuestionAnswerer
from export.served_tagging import ServedTagger
from export.served_texts import ServedClassifier, ServedEmbedder, ServedMultiLabel, ServedRegressor
from export.serving_warmup import FILE_NAME as WARMUP_FILE
from export.serving_warmup import write_warmup
from export.tflite import in_float32
from export.validation import CHECK_TEXTS

SERVED: dict[str, type[ServedTask]] = {
    "classification": ServedClassifier,
    "multi-label": ServedMultiLabel,
    "regression": ServedRegressor,
    "multiple-choice": ServedMultipleChoice,
    "tagging": ServedTagger,
    "similarity": ServedEmbedder,
    "fill-mask": ServedMaskedLM,
    "question-answering": ServedQuestionAnswerer,
}
SAVED_MODEL_FILE = "saved_model.pb"
EXTRA_FOLDER = "assets.extra"  # what a SavedModel may hold that TensorFlow does not read
TOKENIZER_FOLDER = "tokenizer"
_MOST_VERSION = 2**63 - 1  # TensorFlow Serving keeps it in an int64
_WARMUP_TEXTS = CHECK_TEXTS[:3]


def export_saved_model(
    task: AlbertTask,
    folder: str | Path,
    *,
    version: int | None = None,
    texts: Sequence[str] | None = None,
    adaptive: str | None = None,
    exits: ExitSettings | None = None,
    overwrite: bool = False,
) -> SavedModelReport:
    """Writes `folder/VERSION`, after checking that it answers as the Keras model does.

    Args:
        task: a trained task with a tokenizer.
        folder: the model's folder, as TensorFlow Serving has it: one folder for each version. Its name is the model's.
        version: the number; default: 1, or one more than the highest there is. With `overwrite`, the highest there is.
        texts: what to compare the two models on, beside built-in odd ones; default: built-in sentences.
        adaptive: what of the depth can be chosen in a request, as for `export.export_tflite`: by the signatures
            `texts_at_depth`, `questions_at_depth`, `pairs_at_depth` (not of embeddings) and `tokens_at_depth`, which take
            scalars beside their texts. With "exits" every signature but `embed` of classifiers and cosines says the
            `depth`: of texts and passages that are read in parts that of each part.
        exits: with "exits", when answers are settled, in place of the model's own.
        overwrite: replace the version, if it is there. Others stay.

    Returns:
        The figures of the check.

    Raises:
        InputError: not a task with a tokenizer, a folder that holds anything but versions, a version that exists, or a
            vocabulary whose pieces a graph cannot find the places of (question answering).
        ExportError: the SavedModel fails the check; nothing is written.
    """
    task = checked_task(task)
    folder = checked_path(folder, "folder")
    if texts is not None:
        check_texts(texts, "texts")
    asked = texts_to_ask(texts)
    adaptive, exits = checked_adaptive(task, adaptive, exits, form="loop", runtime="litert", text_input=False)
    number = _version(folder, version, overwrite=overwrite)
    path = folder / str(number)
    refuse_other_folder(path, SAVED_MODEL_FILE, "a SavedModel", overwrite=overwrite)
    task = in_float32(task, exits)
    signatures = SERVED[task.task](task, adaptive).signatures()
    whole = task if adaptive != EXITS and task.exits is not None else None
    with written_whole(path, overwrite=overwrite) as temporary, every_pass(whole):
        save(task, signatures, temporary)
        write_extra(task, signatures, temporary / EXTRA_FOLDER, model=resolved(folder).name)
        return check_saved_model(temporary, signatures, asked, version=number)


def _version(folder: Path, version: int | None, *, overwrite: bool) -> int:
    """The number to write."""
    whole = isinstance(version, int) and not isinstance(version, bool)
    if version is not None and not (whole and 1 <= version <= _MOST_VERSION):
        raise InputError(f"version: expected a whole number from 1 to {_MOST_VERSION}, got {version!r}")
    if not folder.is_dir():
        refuse_existing(folder, overwrite=False)
        return version or 1
    names = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
    if others := [name for name in names if not name.isdecimal()]:
        raise InputError(
            f"{folder}: expected a folder with versions of one model (1, 2, …) or a new one, found {', '.join(others[:5])} "
            "in it; give the name of a folder to create"
        )
    highest = max(map(int, names), default=0)
    if version is not None:
        return version
    wanted = highest if overwrite and highest else highest + 1
    if wanted > _MOST_VERSION:
        raise InputError(f"{folder}: has the version {highest}, after which no other can be; give --version")
    return wanted


def save(task: AlbertTask, signatures: Mapping[str, Signature], folder: Path) -> None:
    """Writes the SavedModel itself: weights and graphs, and no Keras objects."""
    traced: dict[int, Any] = {}
    functions = {}
    for name, signature in signatures.items():
        if id(signature) not in traced:  # one may have two names
            function = tf.function(signature.answer, autograph=False)
            traced[id(signature)] = function.get_concrete_function(**signature.inputs)
        functions[name] = traced[id(signature)]
    module = tf.Module()
    module.weights = [variable.value for variable in task.weights]
    with errors_of_the_disk():
        tf.saved_model.save(module, str(folder), signatures=functions)


def write_extra(task: AlbertTask, signatures: Mapping[str, Signature], folder: Path, *, model: str) -> None:
    """Writes what goes beside the SavedModel: requests to warm up, settings, and the tokenizer for clients of `tokens`."""
    folder.mkdir(parents=True, exist_ok=True)
    requests = {name: as_tensors(one, one.example(_WARMUP_TEXTS)) for name, one in signatures.items()}
    write_warmup(folder / WARMUP_FILE, requests, model=model)
    settings = {
        "format": FORMAT,
        "albert_tf": albert_tf.__version__,
        "task": task.task,
        "settings": task.settings(),
        "signatures": {name: list(signature.inputs) for name, signature in signatures.items()},
        "parameters": task.count_params(),
        "config": task.backbone.config.to_dict(),
    }
    content = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
    (folder / SETTINGS_FILE).write_text(content, encoding="utf-8")
    task.required_tokenizer.save(folder / TOKENIZER_FOLDER)
