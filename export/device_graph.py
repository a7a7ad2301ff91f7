"""A Keras task as a bare TFLite model: which operators it has, and how they are laid out.

The encoder's shared block can be written in two forms. As a loop it becomes a TFLite `WHILE` whose body is the block,
once: a runtime packs the weights once, and memory stays as small as sharing promises. Unrolled, the block's operators
stand in the graph once for each layer: more memory (each operator packs its own copy of the weights), but accepted by
runtimes that take only files with one subgraph.
"""

import functools
import tempfile
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.conversion.tf1_files import errors_of_the_disk
from albert_tf.data.schema import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from albert_tf.inference.depth import PLAIN, DepthChoice
from albert_tf.layers.encoder import attention_bias
from albert_tf.layers.passes import loop_plan
from albert_tf.tasks.base import AlbertTask
from albert_tf.tokenization.packing import Packed, pad_batch
from export.integer_graph import IntegerEncoder, head_computed_by, integer_weights, narrow_logits
from export.integer_weights import WeightBits, rewrite_weights, with_shared_buffers
from export.quantization import Recipe
from export.quiet import without_native_notes
from export.signatures import SIGNATURE, Length, signature_names
from export.static_ranges import with_static_ranges
from export.text_input import TEXTS, from_texts

_PADDING = -1e9


def longest_input(task: AlbertTask) -> int:
    """The most tokens that the task takes."""
    return min(task.required_tokenizer.max_length, task.backbone.config.max_sequence_length)


def convert(
    task: AlbertTask,
    recipe: Recipe,
    *,
    form: str,
    length: Length,
    calibration: Sequence[str | tuple[str, str]] = (),
    hides_padding: bool = False,
    open_loop: bool = False,
    text_input: bool = False,
    adaptive: str = PLAIN,
) -> bytes:
    """The bare TFLite model: int32 token_ids, segment_ids, padding_mask (1, S) → the task's device outputs.

    With `adaptive`, one of `albert_tf.inference.depth.ADAPTIVE`, it also takes what `DepthChoice.inputs` names.

    Of several lengths each has a signature of its own, and so have strings with `text_input`; they share the weights.
    With a dynamic length, what is longer than the task takes is cut as `tokenization.packing.pack` cuts one text.
    `open_loop` leaves all sizes inside the loop open: Task Library's runtime of 2023 forgets to prepare its body anew for
    a text of another length where they follow from the input's.
    """
    if recipe.activation_bits is not None and isinstance(length, int):
        return _convert_to_integers(task, recipe, length, calibration)
    encode = functools.partial(_encode_loop, open_state=open_loop) if form == "loop" else _encode_unrolled
    longest = longest_input(task)

    def encode_ids(token_ids: Any, segment_ids: Any, padding_mask: Any) -> dict[str, Any]:
        return task.row_outputs(encode(task.backbone, token_ids, segment_ids, padding_mask), segment_ids, padding_mask)

    def serve(token_ids: Any, segment_ids: Any, padding_mask: Any, *depth: Any) -> dict[str, Any]:
        inputs = [token_ids, segment_ids, padding_mask]
        if length is None:
            inputs = [_cut(tensor, longest) for tensor in inputs]
        if adaptive != PLAIN:
            named = dict(zip((TOKEN_IDS, SEGMENT_IDS, PADDING_MASK), inputs, strict=True))
            return task.outputs_at_depth(named, *(value[0] for value in depth))
        outputs = encode_ids(*inputs)
        return _hidden(outputs, task.token_outputs, inputs[2]) if hides_padding else outputs

    most = longest if length is None else max(length) if isinstance(length, tuple) else length
    texts = from_texts(task, encode_ids, most) if text_input else None
    model = _converted(serve, recipe, length, texts, DepthChoice().inputs(adaptive))
    if not recipe.rewrites_weights:
        return with_shared_buffers(model) if isinstance(length, tuple) or text_input else model
    table, dense = (8 if size == 1 else 4 for size in (recipe.table_bytes or recipe.weight_bytes, recipe.weight_bytes))
    apart = recipe.scales_apart
    bits = WeightBits(dense, table, recipe.block, recipe.computes_in_float, apart, compact_tables=not apart)
    return rewrite_weights(model, bits)


def _convert_to_integers(
    task: AlbertTask, recipe: Recipe, length: int, texts: Sequence[str | tuple[str, str]]
) -> bytes:
    tokenizer = task.required_tokenizer
    rows = _calibration_rows(task, texts, min(length, tokenizer.max_length))
    encode = IntegerEncoder(task.backbone.config, integer_weights(task, rows))

    def serve(token_ids: Any, segment_ids: Any, padding_mask: Any) -> dict[str, Any]:
        return task.row_outputs(encode(token_ids, segment_ids, padding_mask), segment_ids, padding_mask)

    inputs = [pad_batch([row], tokenizer.vocabulary.pad_id, length=length) for row in rows]
    with narrow_logits(task), head_computed_by(encode, task):
        model = _converted(serve, recipe, length)
    return with_static_ranges(model, inputs, SIGNATURE, dense_bits=recipe.activation_bits or 16)


def _calibration_rows(task: AlbertTask, texts: Sequence[str | tuple[str, str]], length: int) -> list[Packed]:
    """Texts as they are, pairs as pairs; where every row of the task is a pair, texts with one another."""
    encode_batch = task.required_tokenizer.encode_batch
    alone = [text for text in texts if isinstance(text, str)]
    pairs = [text for text in texts if not isinstance(text, str)]
    in_pairs = task.takes_pairs or task.task == "multiple-choice"
    rows: list[Packed] = encode_batch(alone, alone[::-1] if in_pairs else None, length=length)
    if pairs:
        rows += encode_batch([first for first, _ in pairs], [second for _, second in pairs], length=length)
    return rows


def _converted(
    serve: Any, recipe: Recipe, length: Length, serve_texts: Any = None, depth: dict[str, Any] | None = None
) -> bytes:
    names = signature_names(length)
    keys = [*names]
    # ExportArchive is the one way in which the converter finds Keras 3 variables; others give, without an error, a
    # small file whose weights are unbound (tensorflow#98964). It tracks the variables of its endpoints by itself.
    archive = keras.export.ExportArchive()
    for name, tokens in names.items():
        specs = [tf.TensorSpec((1, tokens), tf.int32, part) for part in (TOKEN_IDS, SEGMENT_IDS, PADDING_MASK)]
        specs += [tf.TensorSpec(value.shape, value.dtype, part) for part, value in (depth or {}).items()]
        archive.add_endpoint(name, serve, input_signature=specs)
    if serve_texts is not None:
        archive.add_endpoint(TEXTS, serve_texts, input_signature=[tf.TensorSpec((1,), tf.string, TEXTS)])
        keys.append(TEXTS)
    with tempfile.TemporaryDirectory() as folder:
        with errors_of_the_disk():
            archive.write_out(folder, verbose=False)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=keys)
        converter.allow_custom_ops = serve_texts is not None
        recipe.configure(converter)
        with without_native_notes():
            return bytes(converter.convert())


def _cut(tensor: Any, longest: int) -> Any:
    """(1, S) → (1, S) of at most `longest` positions; the last one, that of the closing [SEP], stays the last.

    MediaPipe does not cut texts for files of dynamic length. Bounds that depend on S would cost up to half the speed: the
    runtime knows no shapes behind them before it runs, and XNNPACK takes no operators of unknown shape.
    """
    return tf.concat([tensor[:, : longest - 1], tensor[:, longest - 1 :][:, -1:]], axis=1)


def _hidden(outputs: dict[str, Any], names: Sequence[str], padding_mask: Any) -> dict[str, Any]:
    """Those of `names`, (1, S), very low at padding."""
    low = _PADDING * (1.0 - tf.cast(padding_mask, tf.float32))
    return {name: output + low if name in names else output for name, output in outputs.items()}


def _encode_unrolled(backbone: AlbertBackbone, token_ids: Any, segment_ids: Any, padding_mask: Any) -> Any:
    return backbone.encoder(backbone.embeddings(token_ids, segment_ids), padding_mask)[-1]


def _encode_loop(
    backbone: AlbertBackbone, token_ids: Any, segment_ids: Any, padding_mask: Any, *, open_state: bool
) -> Any:
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
        # The state's length is open or fixed as the input's is: runtimes make room for outputs of the shape that the file
        # says, LiteRT for the web for one token where it is open.
        _, x = tf.while_loop(
            lambda i, x, passes=passes: i < passes,
            lambda i, x, run=run_layer: (i + 1, run(x)),
            [tf.constant(0), x],
            shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, None, x.shape[-1]]) if open_state else x.shape],
        )
    return x
