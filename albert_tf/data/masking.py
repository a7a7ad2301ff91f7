"""Whole-word n-gram masking (paper section 3.1; create_masked_lm_predictions of google-research/albert).

As published: n-grams of whole words in random order, their length n drawn with p(n) ∝ 1/n; one that would exceed the
number of predictions is shortened, or left out; one that meets a masked word is left out; of the masked tokens 80 %
become [MASK], 10 % stay and 10 % become a random token, each on its own. Unlike there, an n-gram ends with its text (the
original runs on from the first text into the second), and a random token is never a special one.

All examples of a batch are masked together, in a few hundred NumPy operations; each by random numbers of its own.
"""

import dataclasses

import numpy as np

from albert_tf.errors import InputError
from albert_tf.tokenization.api import Vocabulary

Array = np.ndarray

DRAWS = 4  # random numbers that masking takes for each token


@dataclasses.dataclass(frozen=True)
class MaskingRules:
    """How much is masked, and how.

    Attributes:
        rate: share of all tokens, special ones included, that are masked.
        max_ngram: the most words masked in a row as one.
        max_predictions: the most tokens masked in an example; None for what `rate` makes of its length.
        whole_words: mask all tokens of a word or none.
        mask_share: of the masked tokens, those replaced by [MASK].
        random_share: those replaced by a random token; the rest stay as they are.

    Raises:
        InputError: a value out of range.
    """

    rate: float = 0.15
    max_ngram: int = 3
    max_predictions: int | None = None
    whole_words: bool = True
    mask_share: float = 0.8
    random_share: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise InputError(f"share of masked tokens: expected a number above 0 and below 1, got {self.rate!r}")
        for name, value in (("max_ngram", self.max_ngram), ("max_predictions", self.max_predictions)):
            if name == "max_predictions" and value is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError(f"{name}: expected a whole number of at least 1, got {value!r}")
        shares = (self.mask_share, self.random_share)
        if min(shares) < 0 or sum(shares) > 1 + 1e-9:
            raise InputError(f"mask_share and random_share: expected shares that sum to at most 1, got {shares}")

    def num_predictions(self, length: int) -> int:
        """The most tokens masked in an example of `length` tokens, special ones included."""
        wanted = max(1, round(length * self.rate))
        return wanted if self.max_predictions is None else min(wanted, self.max_predictions)


class MaskingVocabulary:
    """What masking asks of a vocabulary.

    Attributes:
        cls_id, sep_id, pad_id, mask_id: the special tokens.
        ordinary_ids: every id but the special ones, int32: what a random token is drawn from.
        is_fixed: for each id whether it is one of the four, which are never masked, bool (V,).

    Raises:
        InputError: the vocabulary has nothing but special tokens.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.cls_id, self.sep_id = vocabulary.cls_id, vocabulary.sep_id
        self.pad_id, self.mask_id = vocabulary.pad_id, vocabulary.mask_id
        fixed = [self.cls_id, self.sep_id, self.pad_id, self.mask_id]
        self.is_fixed = np.zeros(vocabulary.size, bool)
        self.is_fixed[fixed] = True
        self.ordinary_ids = np.delete(np.arange(vocabulary.size, dtype=np.int32), [*fixed, vocabulary.unk_id])
        if not len(self.ordinary_ids):
            raise InputError("the vocabulary has special tokens only; masking draws random tokens from the others")


def mask_tokens(
    token_ids: Array,
    word_starts: Array,
    lengths: Array,
    rules: MaskingRules,
    vocabulary: MaskingVocabulary,
    draws: Array,
) -> tuple[Array, Array]:
    """Masks a batch.

    Args:
        token_ids: [CLS] A [SEP] B [SEP], or [CLS] A [SEP], and padding, int (B, S).
        word_starts: whether a word begins there, bool (B, S): True for special tokens and for what follows them.
        lengths: tokens of each row without padding, int (B,).
        draws: random numbers from 0 to 1, float (B, S, DRAWS). A row depends on its own alone.

    Returns:
        The masked token ids, int32 (B, S), and which of them are to be predicted, bool (B, S): in each row at most
        `rules.num_predictions` of its length.
    """
    words = _words(token_ids, word_starts if rules.whole_words else np.ones_like(word_starts), lengths, vocabulary)
    budgets = np.array([rules.num_predictions(length) for length in lengths.tolist()], np.int64)
    rows, first, count = choose_ngrams(words, rules.max_ngram, budgets, draws)
    taken = np.zeros(words.fixed.shape, bool)
    for offset in range(rules.max_ngram):
        more = count > offset
        taken[rows[more], first[more] + offset] = True
    predicted = np.take_along_axis(taken, words.of_token, axis=1)
    predicted &= np.arange(token_ids.shape[1]) < lengths[:, None]
    at = np.nonzero(predicted)
    action, replacement = draws[..., 2][at], draws[..., 3][at]
    ordinary = vocabulary.ordinary_ids[(replacement * len(vocabulary.ordinary_ids)).astype(np.int64)]
    masked = token_ids.astype(np.int32)
    masked[at] = np.where(
        action < rules.mask_share,
        np.int32(vocabulary.mask_id),
        np.where(action < rules.mask_share + rules.random_share, ordinary, token_ids[at]),
    )
    return masked, predicted


@dataclasses.dataclass(frozen=True)
class Words:
    """The words of a batch, W at most in a row.

    Attributes:
        begins: the first token of each word, and beyond the last word the row's length, int (B, W + 1).
        fixed: words that are never masked and that no n-gram crosses, special tokens and what is beyond the last word,
            bool (B, W).
        of_token: the word of each token, int (B, S).
    """

    begins: Array
    fixed: Array
    of_token: Array


def _words(token_ids: Array, word_starts: Array, lengths: Array, vocabulary: MaskingVocabulary) -> Words:
    starts = word_starts & (np.arange(token_ids.shape[1]) < lengths[:, None])
    of_token = np.cumsum(starts, axis=1) - 1
    rows, columns = np.nonzero(starts)
    places = of_token[rows, columns]
    begins = np.repeat(lengths[:, None], int(places.max(initial=0)) + 2, axis=1)
    begins[rows, places] = columns
    fixed = np.ones((len(token_ids), begins.shape[1] - 1), bool)
    fixed[rows, places] = vocabulary.is_fixed[token_ids[rows, columns]]
    return Words(begins, fixed, of_token)


def choose_ngrams(words: Words, max_ngram: int, budgets: Array, draws: Array) -> tuple[Array, Array, Array]:
    """The n-grams to mask: row, first word and number of words of each, three int arrays.

    Args:
        budgets: the most tokens to mask in each row, int (B,).
        draws: as in `mask_tokens`; the first of a word's first token decides when it is tried, the second how many words
            it begins.
    """
    token_of = np.minimum(words.begins[:, :-1], draws.shape[1] - 1)
    rank, size = (np.take_along_axis(draws[..., i], token_of, axis=1) for i in (0, 1))
    # Number and place in one integer: they sort faster, and in one order only, whatever the machine.
    keys = (np.where(words.fixed, 1, rank) * (1 << 24)).astype(np.int64) << 32 | np.arange(rank.shape[1])
    order = np.sort(keys, axis=1) & 0xFFFFFFFF
    drawn = _drawn_counts(words.fixed, max_ngram, size)
    candidates = np.sum(~words.fixed, axis=1)
    left = budgets.copy()
    # A margin: an n-gram's words are looked at up to the longest n-gram.
    taken = np.zeros((len(left), words.fixed.shape[1] + max_ngram), bool)
    chosen = [np.zeros((3, 0), np.int64)]
    rows = np.flatnonzero(candidates)
    step = 0
    while len(rows):
        first = order[rows, step]
        begin, count = words.begins[rows, first], drawn[rows, first]
        tokens = words.begins[rows, first + count] - begin
        for _ in range(max_ngram - 1):  # shorter while it exceeds what is left
            count = count - ((tokens > left[rows]) & (count > 1))
            tokens = words.begins[rows, first + count] - begin
        free = tokens <= left[rows]
        for offset in range(max_ngram):
            free &= ~taken[rows, first + offset] | (count <= offset)
        found, first, count = rows[free], first[free], count[free]
        chosen.append(np.stack([found, first, count]))
        left[found] -= tokens[free]
        for offset in range(max_ngram):
            more = count > offset
            taken[found[more], first[more] + offset] = True
        step += 1
        rows = rows[(left[rows] > 0) & (candidates[rows] > step)]
    result = np.concatenate(chosen, axis=1)
    return result[0], result[1], result[2]


def _drawn_counts(fixed: Array, max_ngram: int, draws: Array) -> Array:
    """How many words the n-gram that begins at each word would have: p(n) ∝ 1/n among those before the next fixed one."""
    width = fixed.shape[1]
    place = np.arange(width)
    next_fixed = np.minimum.accumulate(np.where(fixed, place, width)[:, ::-1], axis=1)[:, ::-1]
    room = np.clip(next_fixed - place, 1, max_ngram)
    harmonic = np.cumsum(1 / np.arange(1, max_ngram + 1))
    point = draws * harmonic[room - 1]
    counts = np.ones(fixed.shape, np.int64)
    for bound in harmonic[:-1]:
        counts += point >= bound
    return np.minimum(counts, room)
