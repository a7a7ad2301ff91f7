"""What the runtimes that apps use ask of a file: its form, length and weights, its metadata, a vocabulary that they read.

LiteRT runs any model and leaves the text to the app. MediaPipe Tasks and Task Library turn text into ids themselves: they
have a class for each of a few tasks, and know tensors, tokenizer and labels by the metadata in the file.
"""

import dataclasses
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from albert_tf.errors import InputError
from albert_tf.inference.classification import PROBABILITIES
from albert_tf.inference.multi_label import SIGMOID_PROBABILITIES
from albert_tf.inference.question_answering import END_LOGITS, START_LOGITS
from albert_tf.inference.similarity import EMBEDDING
from albert_tf.tasks.base import AlbertTask
from albert_tf.tokenization import wordpiece
from export.operator_support import TASK_LIBRARY
from export.quantization import Recipe
from export.runtime_rules import ANSWER_LENGTH
from export.tflite_metadata import DEVICE_VOCABULARY, Description, Output, add_metadata

FORMS = ("loop", "unrolled")


@dataclasses.dataclass(frozen=True)
class RuntimeClass:
    """A class of a runtime that runs the models of one of our tasks.

    Attributes:
        name: the class's.
        does: what its models do.
        outputs: what it calls our outputs.
        length: the only one that it takes; None where any will do.
        looks_at_padding: whether it takes the best tokens out of a row with its padding.
    """

    name: str
    does: str
    outputs: Mapping[str, Output]
    length: int | None = None
    looks_at_padding: bool = False


@dataclasses.dataclass(frozen=True)
class DeviceRuntime:
    """A runtime.

    Attributes:
        title: its name for people.
        form: what a file for it has if none is asked for.
        classes: its class for each task; empty where it runs models of any task, and reads no metadata.
        loops: whether it takes files with more than one subgraph.
        newest: whether it knows integers of 4 bits and layers that compute in 16, and a scale for each output; and prepares
            the body of a loop anew for a text of another length.
    """

    title: str
    form: str
    classes: Mapping[str, RuntimeClass]
    loops: bool = True
    newest: bool = True


_LABELS = Output("probability", "of each label", labels=True)
_ONE_LABEL, _LABEL_SCORES = "Gives one label to a text.", "Gives a text any number of labels."
_EMBEDDER = RuntimeClass("TextEmbedder", "Gives a vector to a text.", {EMBEDDING: Output("embedding", "of the text")})
_ANSWERER = RuntimeClass(
    "BertQuestionAnswerer",
    "Finds the part of a passage that answers a question.",
    {
        END_LOGITS: Output("end_logits", "of each token as the last of the answer"),
        START_LOGITS: Output("start_logits", "of each token as the first of the answer"),
    },
    length=ANSWER_LENGTH,
    looks_at_padding=True,
)


def _classifiers(name: str) -> dict[str, RuntimeClass]:
    return {
        "classification": RuntimeClass(name, _ONE_LABEL, {PROBABILITIES: _LABELS}),
        "multi-label": RuntimeClass(name, _LABEL_SCORES, {SIGMOID_PROBABILITIES: _LABELS}),
    }


RUNTIMES = {
    "litert": DeviceRuntime("LiteRT", "loop", {}),
    "mediapipe": DeviceRuntime(
        "MediaPipe Tasks", "unrolled", _classifiers("TextClassifier") | {"similarity": _EMBEDDER}, loops=False
    ),
    "task-library": DeviceRuntime(
        TASK_LIBRARY,
        "loop",
        _classifiers("BertNLClassifier") | {"similarity": _EMBEDDER, "question-answering": _ANSWERER},
        newest=False,
    ),
}


def runtime_by_name(name: str) -> DeviceRuntime:
    """The runtime called `name`.

    Raises:
        InputError: there is none.
    """
    if not isinstance(name, str) or name not in RUNTIMES:
        raise InputError(f"runtime: expected one of {', '.join(RUNTIMES)}; got {name!r}")
    return RUNTIMES[name]


def runtime_recipe(recipe: Recipe, runtime: str) -> Recipe:
    """The recipe in the operators that the runtime knows.

    Raises:
        InputError: it knows none for it.
    """
    chosen = runtime_by_name(runtime)
    if chosen.newest:
        return recipe
    reason = "takes no square roots of 16-bit integers" if recipe.activation_bits else "knows no integers of 4 bits"
    if recipe.activation_bits is not None or recipe.weight_bytes < 1:
        raise InputError(
            f"recipe: {chosen.title} {reason}, so {recipe.name} cannot be had for it; expected float32, float16, "
            "dynamic_int8 or weight_only_int8"
        )
    return dataclasses.replace(recipe, scales_apart=recipe.rewrites_weights)


def checked_form(task: AlbertTask, form: str | None, runtime: str, recipe: Recipe) -> str:
    """The form to write: the one asked for, or the one that recipe and runtime want.

    Raises:
        InputError: the runtime, or the recipe, does not take the form, or the runtime not the task.
    """
    chosen = runtime_by_name(runtime)
    if form is None:
        form = chosen.form if recipe.activation_bits is None else "unrolled"
    if form not in FORMS:
        raise InputError(f"form: expected one of {', '.join(FORMS)}; got {form!r}")
    if recipe.activation_bits is not None and form != "unrolled":
        raise InputError(
            f"form: {recipe.name} gives every pass through the shared block its own ranges, so it has to be unrolled; "
            f"got {form}"
        )
    if form == "loop" and not chosen.loops:
        raise InputError(f"form: {chosen.title} takes only files with one subgraph: expected unrolled, got {form}")
    if chosen.classes:
        _check_task(task, chosen)
    return form


def _check_task(task: AlbertTask, runtime: DeviceRuntime) -> None:
    if task.task not in runtime.classes:
        known = ", ".join(f"{name} ({runtime.classes[name].name})" for name in runtime.classes)
        raise InputError(f"runtime: {runtime.title} has no class for {task.task}: expected {known}; or use litert")
    if task.settings().get("head") == "squad2":
        raise InputError(
            f"runtime: {runtime.classes[task.task].name} reads a start and an end logit of each token; the head squad2 "
            "has ends that depend on the start, and a class for no answer: fine-tune with --head span, or use litert"
        )
    if not task.required_tokenizer.vocabulary.options()["lower"]:
        raise InputError(
            f"runtime: {runtime.title} lower-cases every text, this model's tokenizer does not; use the runtime litert"
        )


def runtime_length(task: AlbertTask, length: Any, runtime: str) -> Any:
    """The length asked for, or the one that the runtime's class has built in.

    Raises:
        InputError: they differ, or the model takes less.
    """
    chosen = runtime_by_name(runtime).classes.get(task.task)
    if chosen is None or chosen.length is None:
        return length
    if length not in (None, chosen.length, [chosen.length], (chosen.length,)):
        raise InputError(
            f"length: {chosen.name} writes {chosen.length} tokens; expected {chosen.length}, got {length!r}"
        )
    longest = min(task.required_tokenizer.max_length, task.backbone.config.max_sequence_length)
    if longest < chosen.length:
        raise InputError(
            f"runtime: {chosen.name} writes {chosen.length} tokens, this model takes {longest}; fine-tune with "
            f"--max-length {chosen.length}"
        )
    return chosen.length


def looks_at_padding(task: AlbertTask, runtime: str) -> bool:
    """Whether what the model puts out for padding has to be very low."""
    chosen = runtime_by_name(runtime).classes.get(task.task)
    return chosen is not None and chosen.looks_at_padding


def with_metadata(task: AlbertTask, model: bytes, runtime: str) -> bytes:
    """The bare model with the metadata that `runtime` reads, as it is where it reads none."""
    chosen = runtime_by_name(runtime).classes.get(task.task)
    if chosen is None:
        return model
    kind = task.required_tokenizer.vocabulary.kind
    tokenizer_file = DEVICE_VOCABULARY if kind == "sentencepiece" else wordpiece.FILE_NAME
    name = f"ALBERT for {chosen.name}"
    return add_metadata(model, Description(name, chosen.does, chosen.outputs, kind, tokenizer_file))


def device_files(task: AlbertTask, runtime: str) -> dict[str, bytes]:
    """What `runtime` needs in the archive behind the model, beside what every file of ours has there."""
    tokenizer = task.required_tokenizer
    if not runtime_by_name(runtime).classes or tokenizer.vocabulary.kind != "sentencepiece":
        return {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / DEVICE_VOCABULARY
        tokenizer.save_device_model(path)
        return {path.name: path.read_bytes()}
