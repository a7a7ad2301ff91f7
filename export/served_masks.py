"""Signatures of fill-mask: texts with [MASK] → the most probable pieces for each, in the graph."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from albert_tf.inference.fill_mask import MASK, TOP_K
from albert_tf.tokenization.graph_normalizer import reached_places
from albert_tf.tokenization.graph_rules import ragged, row_numbers
from albert_tf.tokenization.rules import WORD_START
from export.served import (
    EMBED,
    SERVING_DEFAULT,
    SPACES,
    TEXTS,
    Answer,
    Columns,
    ServedTask,
    Signature,
    Tensors,
    strings,
)

PIECES, CANDIDATE_IDS, PROBABILITIES = "pieces", "token_ids", "probabilities"

_DROPPED = -1


class MaskedTexts(NamedTuple):
    """Texts as ids.

    Attributes:
        ids: of all texts, without special tokens but the masks.
        places: of the masks among all these, int64 (masks,).
        text_splits: of the texts among the ids.
        mask_splits: of the texts among the masks.
    """

    ids: tf.Tensor
    places: tf.Tensor
    text_splits: tf.Tensor
    mask_splits: tf.Tensor


class ServedMaskedLM(ServedTask):
    """For each mask of a text, `pieces`, `token_ids` and `probabilities` of the best candidates, (B, masks, candidates);
    of a text without a mask nothing but filling."""

    def text_signatures(self) -> dict[str, Signature]:
        vocabulary = self.tokenizer.vocabulary
        count = min(TOP_K, vocabulary.size)
        pieces = vocabulary.pieces(list(range(vocabulary.size)))
        self.pipeline.top_k = count
        without_mark = _without_mark(pieces, vocabulary.kind)

        def answer(texts: tf.Tensor) -> Tensors:
            masked = self._masked(texts, without_mark)
            probabilities, ids = tf.math.top_k(self._probabilities(masked), count)
            found = {PIECES: tf.gather(tf.constant(pieces), ids), CANDIDATE_IDS: ids, PROBABILITIES: probabilities}
            return {name: ragged(values, masked.mask_splits).to_tensor() for name, values in found.items()}

        return {
            SERVING_DEFAULT: Signature(answer, strings(TEXTS), self._example, self._expected),
            EMBED: self.embeddings(),
        }

    def _masked(self, texts: tf.Tensor, without_mark: np.ndarray) -> MaskedTexts:
        """`FillMaskPipeline._encoded` of each text."""
        parts = tf.strings.split(texts, MASK)
        numbers = row_numbers(parts)
        is_first = tf.equal(tf.range(tf.size(numbers, tf.int64)), tf.gather(parts.row_splits, numbers))
        is_last = tf.equal(tf.range(tf.size(numbers, tf.int64)), tf.gather(parts.row_splits, numbers + 1) - 1)
        first = tf.strings.unicode_decode(tf.strings.substr(parts.values, 0, 1, unit="UTF8_CHAR"), "UTF-8")
        begins = first.to_tensor(ord(" "), shape=[None, 1])[:, 0]  # the character that each part begins with
        goes_on = ~is_first & ~tf.reduce_any(tf.equal(begins[:, None], [*SPACES, ord(WORD_START)]), 1)
        ids = self.encode_texts(parts.values)  # (parts, None)
        # What goes on with a word loses the mark in front of its first piece.
        changed = tf.boolean_mask(ids.row_splits[:-1], goes_on & (ids.row_lengths() > 0))
        values = tf.tensor_scatter_nd_update(
            ids.values, changed[:, None], tf.gather(without_mark, tf.gather(ids.values, changed))
        )
        kept = tf.not_equal(values, _DROPPED)
        kept_before = tf.concat([[0], tf.cumsum(tf.cast(kept, tf.int64))], 0)
        ids = ragged(tf.boolean_mask(values, kept), tf.gather(kept_before, ids.row_splits))
        mask_splits = tf.concat([[0], tf.cumsum(tf.cast(~is_last, tf.int64))], 0)
        masks = tf.fill(mask_splits[-1:], self.tokenizer.vocabulary.mask_id)
        ids = tf.concat([ids, ragged(masks, mask_splits)], 1)
        return MaskedTexts(
            ids.values,
            tf.boolean_mask(ids.row_splits[1:], ~is_last) - 1,
            tf.gather(ids.row_splits, parts.row_splits),
            tf.gather(mask_splits, parts.row_splits),
        )

    def _probabilities(self, masked: MaskedTexts) -> tf.Tensor:
        """(masks, V), each mask with as much text around it as there is room for: `FillMaskPipeline._windows`."""
        room = self.tokenizer.max_length - 2
        number = tf.range(tf.size(masked.places, tf.int64))
        masks = ragged(number, masked.mask_splits)
        text_ends = tf.gather(masked.mask_splits[1:], row_numbers(masks))
        # A group goes up to the first mask that is too far away from its own first, or to the end of the text.
        following = tf.minimum(tf.searchsorted(masked.places, masked.places + room, out_type=tf.int64), text_ends)
        firsts = reached_places(masks, following - number)
        sizes = tf.scatter_nd(firsts[:, None], tf.ones_like(firsts), tf.shape(number, tf.int64))
        group = tf.cumsum(sizes) - 1  # of each mask
        lasts = tf.gather(following, firsts) - 1
        text = tf.gather(row_numbers(masks), firsts)
        begin, end = tf.gather(masked.text_splits, text), tf.gather(masked.text_splits, text + 1)
        first, last = tf.gather(masked.places, firsts), tf.gather(masked.places, lasts)
        start = tf.maximum(begin, tf.minimum(first - (room - (last - first + 1)) // 2, end - room))
        windows = tf.ragged.range(start, tf.minimum(start + room, end))
        rows = tf.gather(masked.ids, windows)
        encoded = self.encode(self.padded(self.framed(rows)))
        place = 1 + masked.places - tf.gather(start, group)
        hidden = tf.gather_nd(encoded, tf.stack([group, place], 1))[:, None]
        logits = self.task.masked_lm(hidden, None, *self.task.backbone.embeddings.output_matrices())
        return tf.nn.softmax(logits[:, 0])

    def _example(self, texts: Sequence[str]) -> Columns:
        """Masks at the beginning, between words, inside words and at the end; texts that have some stay."""
        forms = ("{} " + MASK, MASK + " {}", MASK + "{}" + MASK, "{} " + MASK + " {}")
        made = [text if MASK in text else forms[i % 4].replace("{}", text) for i, text in enumerate(texts)]
        return {TEXTS: made}

    def _expected(self, columns: Columns) -> list[Answer]:
        return [
            {
                PIECES: [[candidate.piece for candidate in mask] for mask in found.masks],
                CANDIDATE_IDS: [[candidate.token_id for candidate in mask] for mask in found.masks],
                PROBABILITIES: [[candidate.probability for candidate in mask] for mask in found.masks],
            }
            for found in self.pipeline(columns[TEXTS])
        ]


def _without_mark(pieces: Sequence[str], kind: str) -> np.ndarray:
    """For each id, what stands for it where a text goes on with a word: see `FillMaskPipeline._without_word_start`."""
    ids = {piece: index for index, piece in enumerate(pieces)}
    changed = np.arange(len(pieces), dtype=np.int32)
    for index, piece in enumerate(pieces):
        if kind == "sentencepiece" and piece.startswith(WORD_START):
            changed[index] = _DROPPED if piece == WORD_START else ids.get(piece.removeprefix(WORD_START), index)
    return changed
