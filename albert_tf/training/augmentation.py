"""Variations of training rows: the words are proposed by a masked language model, or by a table of word embeddings."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.data.batching import sorted_batches
from albert_tf.data.replacement import (
    Proposing,
    ReplacementRules,
    ReplacementVocabulary,
    best_columns,
    nearest_pieces,
    varied_rows,
)
from albert_tf.errors import InputError
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.fill_mask import AlbertMaskedLM
from albert_tf.tokenization.packing import Packed, pad_batch
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from albert_tf.training.distill_runs import Distillation

_BATCH_SIZE = 32


def variations(
    run: Distillation, tokenizer: AlbertTokenizer, teacher: AlbertTask | None, rows: Sequence[Packed]
) -> list[list[Packed]]:
    """`run.augment` new rows of each row; see `albert_tf.data.replacement`.

    Args:
        run: the settings.
        tokenizer: of the rows.
        teacher: whose word table proposes words, where there is no `run.augment_from`; of the same vocabulary.

    Raises:
        InputError: a model of another vocabulary or for shorter texts, or too small a vocabulary.
    """
    rules = ReplacementRules(run.augment, run.augment_probability, run.augment_candidates)
    words = ReplacementVocabulary(tokenizer.vocabulary, rules)
    flag = "--teacher" if run.augment_from is None else "--augment-from"
    source = run.augment_from or run.teacher
    model: Any = teacher if run.augment_from is None else AlbertMaskedLM.from_pretrained(run.augment_from)
    if not same_tokenizer(model.required_tokenizer, tokenizer):
        raise InputError(
            f"--augment: {flag} {source} has another vocabulary or other text rules than the student, so it cannot propose "
            "words for it; give --augment-from a model of its vocabulary"
        )
    if run.augment_from is None:
        table = np.asarray(model.backbone.embeddings.word_embedding.embeddings, np.float32)
        return varied_rows(rows, rules, words, nearest_pieces(table, words, rules), run.seed)
    positions, longest = model.backbone.config.max_sequence_length, max(len(ids) for ids, _ in rows)
    if longest > positions:
        raise InputError(
            f"--augment-from {source}: takes {positions} tokens, the longest text has {longest}; give --max-length"
        )
    return varied_rows(rows, rules, words, masked_pieces(model, words, rules), run.seed)


def same_tokenizer(first: AlbertTokenizer, second: AlbertTokenizer) -> bool:
    """Whether two tokenizers give every text the same ids."""
    own, other = first.vocabulary, second.vocabulary
    if own.kind != other.kind or own.size != other.size or own.options() != other.options():
        return False
    every = list(range(own.size))
    return own.pieces(every) == other.pieces(every)


def masked_pieces(model: AlbertMaskedLM, vocabulary: ReplacementVocabulary, rules: ReplacementRules) -> Proposing:
    """The pieces that are most probable in a word's place, masked one word at a time."""
    ids = np.flatnonzero(vocabulary.is_word)
    own = model.required_tokenizer.vocabulary
    kinds = {name: tf.TensorSpec((None, None), tf.int32) for name in model.backbone.input}

    @tf.function(input_signature=[kinds, tf.TensorSpec((None, 1), tf.int32)])
    def logits(batch: dict[str, tf.Tensor], positions: tf.Tensor) -> tf.Tensor:
        vectors = model.backbone(batch, training=False)["sequence_output"]
        found = model.masked_lm(vectors, positions, *model.backbone.embeddings.output_matrices())
        return tf.gather(found[:, 0], ids, axis=-1)

    def propose(rows: Sequence[Packed], places: Sequence[tuple[int, int]]) -> np.ndarray:
        proposed = np.zeros((len(places), rules.candidates), np.int64)
        for chosen in sorted_batches([len(rows[row][0]) for row, _ in places], _BATCH_SIZE):
            masked = [_masked(rows[row], position, own.mask_id) for row, position in (places[i] for i in chosen)]
            positions = np.array([[places[i][1]] for i in chosen], np.int32)
            found = logits(pad_batch(masked, own.pad_id), positions).numpy()
            proposed[chosen] = ids[best_columns(found, rules.candidates)]
        return proposed

    return propose


def _masked(row: Packed, position: int, mask_id: int) -> Packed:
    token_ids, segment_ids = row
    return [*token_ids[:position], mask_id, *token_ids[position + 1 :]], segment_ids
