"""Pairs of texts into what a pretraining step takes: special tokens, sentence order, masks, padding.

Every random choice about an example comes from random numbers of its own, which depend on the seed, the epoch and the
example, not on the batch or the process it is made in.
"""

import numpy as np

from albert_tf.data.masking import DRAWS, MaskingRules, MaskingVocabulary, mask_tokens
from albert_tf.data.schema import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from albert_tf.data.sentence_order import NO_LABEL, Pairs

Array = np.ndarray

# What a batch has beside the model's three inputs; see `masked_batch`.
MASKED_POSITIONS = "masked_positions"
MASKED_IDS = "masked_ids"
MASKED_WEIGHTS = "masked_weights"
SENTENCE_ORDER_LABELS = "sentence_order_labels"


def example_draws(seed: int, epoch: int, numbers: Array, length: int, stream: int = 0) -> tuple[Array, Array]:
    """The random numbers of examples, from 0 to 1: float32 (B,) for the order of the texts, (B, length, DRAWS) for masks.

    An example's are the first of an endless row of its own, so they do not depend on `length`.

    Args:
        seed, epoch, numbers: of the run, the pass over the data, the examples; whole numbers from 0 to 2**64 - 1.
        stream: keeps numberings apart that begin at 0 each.
    """
    bits = np.random.Philox(key=[seed, epoch])
    random, state = np.random.Generator(bits), bits.state
    draws = np.empty((len(numbers), 1 + length * DRAWS), np.float32)
    for row, number in zip(draws, numbers.tolist(), strict=True):
        state["state"]["counter"][:] = (0, 0, stream, number)
        bits.state = state
        random.random(dtype=np.float32, out=row)
    return draws[:, 0], draws[:, 1:].reshape(len(numbers), length, DRAWS)


def masked_batch(
    pairs: Pairs,
    rules: MaskingRules,
    vocabulary: MaskingVocabulary,
    draws: tuple[Array, Array],
    length: int,
    num_predictions: int,
) -> dict[str, Array]:
    """A batch of examples; texts without a label of their own are swapped half of the time.

    Args:
        pairs: the texts of each row.
        draws: as `example_draws` gives them.
        length: tokens to pad to, S; at least those of the longest example.
        num_predictions: masked positions to pad to, P.

    Returns:
        token_ids, segment_ids, padding_mask int32 (B, S); masked_positions, masked_ids int32 (B, P) and masked_weights
        float32 (B, P), where padding is position 0, id 0 and weight 0; sentence_order_labels int32 (B,), 1 if the texts
        are swapped (or the second comes from elsewhere).
    """
    swapped = (draws[0] < 0.5) & (pairs.labels == NO_LABEL)
    token_ids, word_starts, first_lengths = _packed(pairs, swapped, vocabulary, length)
    lengths = pairs.example_lengths
    masked, predicted = mask_tokens(token_ids, word_starts, lengths, rules, vocabulary, draws[1])
    place = np.arange(length)
    valid = place < lengths[:, None]
    rows, columns = np.nonzero(predicted)
    slots = np.arange(len(rows)) - np.searchsorted(rows, rows)
    batch = {
        TOKEN_IDS: masked,
        SEGMENT_IDS: (valid & (place >= first_lengths[:, None])).astype(np.int32),
        PADDING_MASK: valid.astype(np.int32),
    }
    shape = (len(pairs), num_predictions)
    batch |= {MASKED_POSITIONS: np.zeros(shape, np.int32), MASKED_IDS: np.zeros(shape, np.int32)}
    batch[MASKED_WEIGHTS] = np.zeros(shape, np.float32)
    batch[MASKED_POSITIONS][rows, slots] = columns
    batch[MASKED_IDS][rows, slots] = token_ids[rows, columns]
    batch[MASKED_WEIGHTS][rows, slots] = 1
    batch[SENTENCE_ORDER_LABELS] = np.where(pairs.labels == NO_LABEL, swapped, pairs.labels).astype(np.int32)
    return batch


def _packed(pairs: Pairs, swapped: Array, vocabulary: MaskingVocabulary, length: int) -> tuple[Array, Array, Array]:
    """[CLS] A [SEP] B [SEP] of each pair, its word starts, and the tokens of segment 0; if `swapped`, B comes first."""
    begins = np.where(swapped[:, None], pairs.begins[:, ::-1], pairs.begins)
    lengths = np.where(swapped[:, None], pairs.lengths[:, ::-1], pairs.lengths)
    place = np.arange(length)
    first_sep = lengths[:, :1] + 1
    last_sep = first_sep + lengths[:, 1:] + 1
    source = np.where(place < first_sep, begins[:, :1] - 1, begins[:, 1:] - first_sep - 1) + place
    token_ids = pairs.token_ids.take(source, mode="clip")
    word_starts = pairs.word_starts.take(source, mode="clip")
    token_ids[place > last_sep] = vocabulary.pad_id
    token_ids[:, 0] = vocabulary.cls_id
    rows = np.arange(len(pairs))
    for separator in (first_sep[:, 0], last_sep[:, 0]):
        token_ids[rows, separator] = vocabulary.sep_id
        word_starts[rows, separator] = True
    word_starts[:, :2] = True
    word_starts[rows, first_sep[:, 0] + 1] = True
    return token_ids, word_starts, first_sep[:, 0] + 1
