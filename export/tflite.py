"""A Keras task → one TFLite file, with its labels, tokenizer and settings inside."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from albert_tf.backbone import AlbertBackbone
from albert_tf.conversion.assign import assign
from albert_tf.errors import InputError
from albert_tf.files import checked_path, refuse_existing, written_whole
from albert_tf.inference.depth import ExitSettings
from albert_tf.tasks.base import AlbertTask
from albert_tf.tokenization.tokenizer import check_texts
from export.adaptive import checked_adaptive
from export.associated_files import associated_files
from export.device_graph import convert, longest_input
from export.device_runtimes import (
    checked_form,
    looks_at_padding,
    runtime_by_name,
    runtime_length,
    runtime_recipe,
    with_metadata,
)
from export.metadata import append_files
from export.quantization import Recipe, recipe_by_name
from export.signatures import Length
from export.text_input import check_text_input
from export.validation import ExportReport, check_examples, check_export


def export_tflite(
    task: AlbertTask,
    path: str | Path,
    *,
    recipe: str = "dynamic_int8",
    form: str | None = None,
    length: int | Sequence[int] | None = None,
    runtime: str = "litert",
    texts: Sequence[str] | None = None,
    examples: Sequence[Any] | None = None,
    source: str = "examples",
    calibration: Sequence[str | tuple[str, str]] | None = None,
    text_input: bool = False,
    adaptive: str | None = None,
    exits: ExitSettings | None = None,
    measure: bool = True,
    force: bool = False,
    overwrite: bool = False,
) -> ExportReport:
    """Writes `path`, after checking that the file answers as the Keras model does.

    Args:
        task: a trained task with a tokenizer.
        path: the file to write.
        recipe: a name in `export.quantization.RECIPES`.
        form: "loop" or "unrolled"; default: "loop", for MediaPipe "unrolled".
        length: fix the input at this many tokens; several numbers give a file with a signature for each, on the same
            weights, for runtimes that refuse dynamic shapes. None takes any length, which costs only the tokens there are.
        runtime: "litert", or "mediapipe" or "task-library" for a file that a class of MediaPipe Tasks or of TFLite Task
            Library 0.4.4 opens as it is: with metadata, and with a vocabulary that gives the same ids there; which class
            takes which task says `export.device_runtimes`. "task-library" sets the length of question answering.
        texts: what to compare the two models on; default: built-in sentences.
        examples: the task's examples with their answers, as the readers in `albert_tf.data` give them, to compare the two
            models on instead: the report has the metrics of both, and a file that loses too much is not written.
        source: what to call the examples in an error message.
        calibration: texts like those that the file is for, pairs as (text, pair), a question with its passage so; the
            recipes int8 and int16x8 take their ranges from them.
        text_input: also write a signature that takes a string, for runtimes that link TensorFlow Text's custom operators.
            Others read the file as if it had none.
        adaptive: what of the depth is chosen when the file runs, by inputs of one value each: "passes", the int32 input
            `num_passes`; "exits", that and `exit_patience` (int32) and `exit_threshold` (float32), with the output `depth`
            (int32), the passes made. 0, and a threshold below 0, are the file's own. "none": every pass, always. Default:
            "exits" for a model with early exits, else "none".
        exits: with "exits", when the file's answers are settled, in place of the model's own.
        measure: also measure load, memory and latency, which takes a second or two more.
        force: write the file also where its answers differ more than the recipe allows.
        overwrite: replace `path`.

    Returns:
        What was found.

    Raises:
        InputError: an unknown recipe, form or runtime, an unusable length, a file that exists, a task that the runtime
            cannot run, or a recipe that cannot be had in this form or without calibration.
        ExportError: the file fails the check; nothing is written.
    """
    if not isinstance(task, AlbertTask):
        raise InputError(
            f"task: expected a task such as AlbertTextClassifier, got {type(task).__name__}; from_pretrained reads a folder"
        )
    path = checked_path(path, "path")
    if texts is not None:
        check_texts(texts, "texts")
    check_examples(task, texts, examples)
    chosen = runtime_recipe(recipe_by_name(recipe), runtime)
    form = checked_form(task, form, runtime, chosen)
    lengths = _checked_length(runtime_length(task, length, runtime), longest_input(task), chosen, runtime)
    _check_calibration(chosen, calibration, lengths)
    adaptive, exits = checked_adaptive(task, adaptive, exits, form=form, runtime=runtime, text_input=text_input)
    if text_input:
        check_text_input(task, runtime, in_integers=chosen.activation_bits is not None)
    refuse_existing(path, overwrite=overwrite, file=True)
    task = in_float32(task, exits)
    hidden = looks_at_padding(task, runtime)
    model = convert(
        task,
        chosen,
        form=form,
        length=lengths,
        calibration=calibration or (),
        hides_padding=hidden,
        open_loop=not runtime_by_name(runtime).newest and lengths is None,
        text_input=text_input,
        adaptive=adaptive,
    )
    model = with_metadata(task, model, runtime)
    files = associated_files(
        task,
        model,
        chosen,
        form=form,
        length=lengths,
        runtime=runtime,
        text_input=text_input,
        adaptive=adaptive,
        calibration_texts=len(calibration or ()),
    )
    content = append_files(model, files)
    report = check_export(
        content,
        model_bytes=len(model),
        task=task,
        recipe=chosen,
        texts=texts,
        examples=examples,
        source=source,
        force=force,
        measured=measure,
    )
    with written_whole(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content)
    return report


def _checked_length(length: Any, longest: int, recipe: Recipe, runtime: str) -> Length:
    """The length of the file, or several from the least on."""
    if length is None:
        return None
    several = isinstance(length, Sequence) and not isinstance(length, str) and len(length) > 0
    found = sorted(set(length), key=str) if several else [length]
    if not all(isinstance(n, int) and not isinstance(n, bool) and 3 <= n <= longest for n in found):
        raise InputError(f"length: expected a whole number from 3 to {longest} tokens, or several such, got {length!r}")
    if len(found) == 1:
        return int(found[0])
    if recipe.activation_bits is not None:
        raise InputError(
            f"length: {recipe.name} measures the ranges of one graph, several lengths have as many; expected one number"
        )
    if runtime != "litert":
        raise InputError(f"length: {runtime} runs one signature, several lengths have one each; expected one number")
    return tuple(sorted(found))


def _check_calibration(recipe: Recipe, calibration: Sequence[str | tuple[str, str]] | None, length: Length) -> None:
    if recipe.activation_bits is None:
        if calibration is not None:
            raise InputError(f"calibration: the recipe {recipe.name} measures no ranges; leave the texts out")
        return
    if length is None:
        raise InputError(f"length: {recipe.name} files have a fixed one; expected a number of tokens, such as 64")
    if calibration is None:
        raise InputError(
            f"calibration: {recipe.name} takes its ranges from texts like those that the file is for; give a hundred or so "
            "(--calibration FILE, one a line)"
        )
    if isinstance(calibration, (str, bytes)) or not hasattr(calibration, "__len__"):
        check_texts(calibration, "calibration")  # type: ignore[arg-type]  # says what is wrong
    for index, entry in enumerate(calibration):
        pair = isinstance(entry, tuple) and len(entry) == 2
        check_texts(entry if pair else [entry], f"calibration[{index}]")  # type: ignore[list-item]
    if not calibration:
        raise InputError("calibration: expected at least one text, got none")


def in_float32(task: AlbertTask, exits: ExitSettings | None = None) -> AlbertTask:
    """The task itself, or a copy of one that computes in mixed precision, or exits otherwise than `exits`."""
    backbone = task.backbone
    if backbone.policy.compute_dtype != "float32":
        backbone = AlbertBackbone(backbone.config, pooler=backbone.pooler is not None, dtype="float32")
    elif exits in (None, task.exits):
        return task
    settings = task.settings() | ({} if exits is None else {"exits": exits})
    copy = type(task)(backbone, task.required_tokenizer, **settings)
    assign(copy.named_weights(), {name: w.numpy() for name, w in task.named_weights().items()}, source=task.name)
    return copy
