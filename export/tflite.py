"""A Keras task → one TFLite file, with its labels, tokenizer and settings inside.

The encoder's shared block can be written in two forms. As a loop it becomes a TFLite `WHILE` whose body is the block,
once: a runtime packs the weights once, and memory stays as small as sharing promises. Unrolled, the block's operators
stand in the graph once for each layer: more memory (each operator packs its own copy of the weights), but accepted by
runtimes that take only files with one subgraph.
"""

import tempfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.conversion.assign import assign
from albert_tf.data.schema import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from albert_tf.errors import InputError
from albert_tf.files import checked_path, refuse_existing, written_whole
from albert_tf.layers.encoder import attention_bias
from albert_tf.tasks.base import AlbertTask
from albert_tf.tokenization.packing import Packed, pad_batch
from albert_tf.tokenization.tokenizer import check_texts
from export.associated_files import associated_files
from export.device_runtimes import checked_form, with_metadata
from export.integer_graph import IntegerEncoder, integer_weights
from export.integer_weights import WeightBits, rewrite_weights
from export.metadata import append_files
from export.quantization import Recipe, recipe_by_name
from export.quiet import without_native_notes
from export.static_ranges import with_static_ranges
from export.validation import ExportReport, check_export

SIGNATURE = "serving_default"


def export_tflite(
    task: AlbertTask,
    path: str | Path,
    *,
    recipe: str = "dynamic_int8",
    form: str | None = None,
    length: int | None = None,
    runtime: str = "litert",
    texts: Sequence[str] | None = None,
    calibration: Sequence[str] | None = None,
    force: bool = False,
    overwrite: bool = False,
) -> ExportReport:
    """Writes `path`, after checking that the file answers as the Keras model does.

    Args:
        task: a trained task with a tokenizer.
        path: the file to write.
        recipe: a name in `export.quantization.RECIPES`.
        form: "loop" or "unrolled"; default: "loop", for MediaPipe "unrolled".
        length: fix the input at this many tokens; None takes any length, which costs only the tokens there are.
        runtime: "litert", or "mediapipe" for a file that MediaPipe's TextClassifier (Android, iOS, web, Python) opens as
            it is: with metadata, and with a vocabulary that gives the same ids there.
        texts: what to compare the two models on; default: built-in sentences.
        calibration: texts like those that the file is for; the recipes int8 and int16x8 take their ranges from them.
        force: write the file also where its answers differ more than the recipe allows.
        overwrite: replace `path`.

    Returns:
        The figures of the check.

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
    chosen = recipe_by_name(recipe)
    form = checked_form(task, form, runtime, chosen)
    _check_calibration(chosen, calibration, length)
    longest = longest_input(task)
    if length is not None and not (isinstance(length, int) and 3 <= length <= longest):
        raise InputError(f"length: expected a whole number from 3 to {longest} tokens, got {length!r}")
    refuse_existing(path, overwrite=overwrite, file=True)
    task = in_float32(task)
    model = convert(task, chosen, form=form, length=length, calibration=calibration or ())
    model = with_metadata(task, model, runtime)
    files = associated_files(
        task, model, chosen, form=form, length=length, runtime=runtime, calibration_texts=len(calibration or ())
    )
    content = append_files(model, files)
    report = check_export(content, model_bytes=len(model), task=task, recipe=chosen, texts=texts, force=force)
    with written_whole(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content)
    return report


def _check_calibration(recipe: Recipe, calibration: Sequence[str] | None, length: int | None) -> None:
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
    check_texts(calibration, "calibration")
    if not calibration:
        raise InputError("calibration: expected at least one text, got none")


def longest_input(task: AlbertTask) -> int:
    """The most tokens that the task takes."""
    return min(task.required_tokenizer.max_length, task.backbone.config.max_sequence_length)


def convert(
    task: AlbertTask, recipe: Recipe, *, form: str, length: int | None, calibration: Sequence[str] = ()
) -> bytes:
    """The bare TFLite model: int32 token_ids, segment_ids, padding_mask (1, S) → the task's device outputs.

    With a dynamic length, what is longer than the task takes is cut as `tokenization.packing.pack` cuts one text.
    """
    if recipe.activation_bits is not None and length is not None:
        return _convert_to_integers(task, recipe, length, calibration)
    encode = _encode_loop if form == "loop" else _encode_unrolled
    longest = longest_input(task)

    def serve(token_ids: Any, segment_ids: Any, padding_mask: Any) -> dict[str, Any]:
        inputs = [token_ids, segment_ids, padding_mask]
        if length is None:
            inputs = [_cut(tensor, longest) for tensor in inputs]
        return task.row_outputs(encode(task.backbone, *inputs), inputs[1], inputs[2])

    model = _converted(serve, recipe, length)
    if not recipe.rewrites_weights:
        return model
    table, dense = (8 if size == 1 else 4 for size in (recipe.table_bytes or recipe.weight_bytes, recipe.weight_bytes))
    bits = WeightBits(dense, table, recipe.block, recipe.computes_in_float, positions=dense == 4)
    return rewrite_weights(model, bits)


def _convert_to_integers(task: AlbertTask, recipe: Recipe, length: int, texts: Sequence[str]) -> bytes:
    tokenizer = task.required_tokenizer
    pairs = texts[::-1] if task.takes_pairs else None
    rows: list[Packed] = tokenizer.encode_batch(texts, pairs, length=min(length, tokenizer.max_length))
    encode = IntegerEncoder(task.backbone.config, integer_weights(task, rows))

    def serve(token_ids: Any, segment_ids: Any, padding_mask: Any) -> dict[str, Any]:
        return task.row_outputs(encode(token_ids, segment_ids, padding_mask), segment_ids, padding_mask)

    inputs = [pad_batch([row], tokenizer.vocabulary.pad_id, length=length) for row in rows]
    model = _converted(serve, recipe, length)
    return with_static_ranges(model, inputs, SIGNATURE, dense_bits=recipe.activation_bits or 16)


def _converted(serve: Any, recipe: Recipe, length: int | None) -> bytes:
    signature = [tf.TensorSpec((1, length), tf.int32, name) for name in (TOKEN_IDS, SEGMENT_IDS, PADDING_MASK)]
    # ExportArchive is the one way in which the converter finds Keras 3 variables; others give, without an error, a
    # small file whose weights are unbound (tensorflow#98964). It tracks the variables of its endpoints by itself.
    archive = keras.export.ExportArchive()
    archive.add_endpoint(SIGNATURE, serve, input_signature=signature)
    with tempfile.TemporaryDirectory() as folder:
        archive.write_out(folder, verbose=False)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=[SIGNATURE])
        recipe.configure(converter)
        with without_native_notes():
            return bytes(converter.convert())


def _cut(tensor: Any, longest: int) -> Any:
    """(1, S) → (1, S) of at most `longest` positions; the last one, that of the closing [SEP], stays the last.

    MediaPipe does not cut texts for files of dynamic length. Bounds that depend on S would cost up to half the speed: the
    runtime knows no shapes behind them before it runs, and XNNPACK takes no operators of unknown shape.
    """
    return tf.concat([tensor[:, : longest - 1], tensor[:, longest - 1 :][:, -1:]], axis=1)


def _encode_unrolled(backbone: AlbertBackbone, token_ids: Any, segment_ids: Any, padding_mask: Any) -> Any:
    return backbone.encoder(backbone.embeddings(token_ids, segment_ids), padding_mask)[-1]


def _encode_loop(backbone: AlbertBackbone, token_ids: Any, segment_ids: Any, padding_mask: Any) -> Any:
    encoder = backbone.encoder
    bias = attention_bias(padding_mask)
    x = backbone.embeddings(token_ids, segment_ids)
    for layer, passes in loop_plan(backbone.config.block_schedule, backbone.config.num_inner_repetitions):

        def run_layer(x: Any, layer: tuple[tuple[int, int], ...] = layer) -> Any:
            for attention, feed_forward in layer:
                x = encoder.feed_forward_blocks[feed_forward](encoder.attention_blocks[attention](x, bias))
            return x

        if passes == 1:
            x = run_layer(x)
            continue
        # The length inside the loop is left open: with a dynamic input a fixed one does not convert.
        _, x = tf.while_loop(
            lambda i, x, passes=passes: i < passes,
            lambda i, x, run=run_layer: (i + 1, run(x)),
            [tf.constant(0), x],
            shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, None, backbone.config.hidden_dim])],
        )
    return x


def loop_plan(
    schedule: Sequence[tuple[int, int]], steps_per_layer: int
) -> list[tuple[tuple[tuple[int, int], ...], int]]:
    """Runs of consecutive layers with the same weights: (the layer's steps, how many times)."""
    layers = [tuple(schedule[i : i + steps_per_layer]) for i in range(0, len(schedule), steps_per_layer)]
    return [(layer, len(list(run))) for layer, run in groupby(layers)]


def in_float32(task: AlbertTask) -> AlbertTask:
    """The task itself, or a float32 copy of one that computes in mixed precision."""
    if task.backbone.policy.compute_dtype == "float32":
        return task
    backbone = AlbertBackbone(task.backbone.config, pooler=task.backbone.pooler is not None, dtype="float32")
    copy = type(task)(backbone, task.required_tokenizer, **task.settings())
    assign(copy.named_weights(), {name: w.numpy() for name, w in task.named_weights().items()}, source=task.name)
    return copy
