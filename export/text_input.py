"""A string as input: the tokenizer as part of a TFLite graph, in operators of TensorFlow Text.

They are custom operators: an application links them (`tflite_registrar.SELECT_TFTEXT_OPS` in Python). SentencePiece runs
on a copy of the vocabulary whose own normalisation carries the text rules, so one operator does nearly everything; the
digit-comma rule is left to operators behind it. The ids are those of `Vocabulary.encode`, but for what docs/tokenizer.md
says of device copies, other than digits and commas. WordPiece has no such way: TensorFlow Text's normaliser for BERT also
turns full-width signs into others, which BERT does not.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.data.schema import TOKEN_IDS
from albert_tf.errors import InputError
from albert_tf.inference.runner import Outputs
from albert_tf.tasks.base import AlbertTask
from albert_tf.tokenization.device_model import ruled_model
from albert_tf.tokenization.rules import to_utf8
from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary
from export.quiet import without_native_notes

TEXTS = "texts"  # the signature, and its input: one string
# Where ids alone say everything. Others need places in the text, or put several texts together.
TASKS = ("classification", "multi-label", "regression", "similarity")
_NONE = -1  # no id

Encode = Callable[[Any, Any, Any], dict[str, Any]]


def check_text_input(task: AlbertTask, runtime: str, *, in_integers: bool) -> None:
    """Raises InputError where a file of this task, runtime or recipe cannot take strings."""
    if task.task not in TASKS:
        raise InputError(
            f"text_input: expected a model for {', '.join(TASKS)}; one for {task.task} needs places in the text, or several "
            "texts"
        )
    if not isinstance(task.required_tokenizer.vocabulary, SentencePieceVocabulary):
        raise InputError(
            "text_input: expected a model with a SentencePiece vocabulary; TensorFlow Text's operators for WordPiece turn "
            "full-width signs (，。) into others, so their ids are not this model's"
        )
    if runtime != "litert":
        raise InputError(f"text_input: {runtime} has a tokenizer of its own and takes files of one graph; leave it out")
    if in_integers:
        raise InputError("text_input: recipes that measure ranges have a graph for ids alone; leave it out")


def from_texts(task: AlbertTask, encode: Encode, longest: int) -> Callable[[Any], dict[str, Any]]:
    """A function from (1,) strings to what `encode` gives for the text's ids, and the ids.

    Args:
        task: with a tokenizer.
        encode: token_ids, segment_ids and padding_mask (1, S) → outputs.
        longest: the most tokens, special ones included.
    """
    vocabulary = task.required_tokenizer.vocabulary
    ids_of = _pieces(vocabulary, longest)

    def serve(texts: Any) -> dict[str, Any]:
        ids = ids_of(texts)[: longest - 2]
        token_ids = tf.concat([[vocabulary.cls_id], ids, [vocabulary.sep_id]], axis=0)[None]
        return encode(token_ids, tf.zeros_like(token_ids), tf.ones_like(token_ids)) | {TOKEN_IDS: token_ids}

    return serve


def _pieces(vocabulary: Any, longest: int) -> Callable[[Any], Any]:
    """A function from (1,) strings to ids (S,), without special tokens."""
    import tensorflow_text

    with tf.init_scope():  # its constants belong to the function's maker, not to the graph being built
        segmenter = tensorflow_text.FastSentencepieceTokenizer(ruled_model(vocabulary))
    replaced = {index: ids for index, ids in enumerate(vocabulary.digit_comma_ids()) if ids != [index]}
    if not replaced:
        return lambda texts: segmenter.tokenize(texts).flat_values
    width = max(map(len, replaced.values()))
    sources = np.array(list(replaced), np.int32)
    targets = np.array([ids + [_NONE] * (width - len(ids)) for ids in replaced.values()], np.int32)

    def ids_of(texts: Any) -> Any:
        ids = segmenter.tokenize(texts).flat_values[: longest - 2]  # the rule makes none fewer
        same = tf.equal(ids[:, None], sources[None])  # (pieces, sources)
        place = tf.argmax(tf.cast(same, tf.int32), axis=1, output_type=tf.int32)
        own = tf.pad(ids[:, None], [[0, 0], [0, width - 1]], constant_values=_NONE)
        found = tf.reshape(tf.where(tf.reduce_any(same, axis=1)[:, None], tf.gather(targets, place), own), [-1])
        return tf.gather_nd(found, tf.where(found > _NONE))

    return ids_of


def run_texts(path: str | Path, texts: Sequence[str]) -> list[Outputs]:
    """What a file with the signature for strings puts out for each text, its token_ids too."""
    import tensorflow_text
    from ai_edge_litert.interpreter import InterpreterWithCustomOps

    with without_native_notes():
        interpreter = InterpreterWithCustomOps(
            custom_op_registerers=tensorflow_text.tflite_registrar.SELECT_TFTEXT_OPS, model_path=str(path)
        )
        interpreter.allocate_tensors()
        run = interpreter.get_signature_runner(TEXTS)
        batches = [run(**{TEXTS: np.array([to_utf8(text)], object)}) for text in texts]
    return [{name: array[0] for name, array in batch.items()} for batch in batches]
