"""`albert_tf.data.masking`: against a row-by-row reading of the published procedure, and against its probabilities."""

import dataclasses
import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from small_vocabularies import sentencepiece_vocabulary, wordpiece_vocabulary

from albert_tf.data.masking import DRAWS, MaskingRules, MaskingVocabulary, Words, choose_ngrams, mask_tokens
from albert_tf.errors import InputError

VOCABULARY = MaskingVocabulary(sentencepiece_vocabulary())
SIZE = sentencepiece_vocabulary().size
SPECIAL = {VOCABULARY.cls_id, VOCABULARY.sep_id, VOCABULARY.pad_id, VOCABULARY.mask_id}
SHORTEST = 8


@dataclasses.dataclass(frozen=True)
class Batch:
    token_ids: np.ndarray
    word_starts: np.ndarray
    lengths: np.ndarray
    draws: np.ndarray


def random_batch(rows: int, length: int, seed: int, *, shortest: int = SHORTEST, start_share: float = 0.7) -> Batch:
    """[CLS] A [SEP] B [SEP] of random words and lengths, padded; every kind of row that masking meets."""
    random = np.random.default_rng(seed)
    token_ids = random.choice(VOCABULARY.ordinary_ids, size=(rows, length)).astype(np.int32)
    starts = random.random((rows, length)) < start_share
    lengths = random.integers(shortest, length + 1, size=rows)
    for row, end in enumerate(lengths.tolist()):
        middle = int(random.integers(2, end - 2))
        token_ids[row, 0], token_ids[row, [middle, end - 1]] = VOCABULARY.cls_id, VOCABULARY.sep_id
        starts[row, [0, 1, middle, middle + 1, end - 1]] = True
        token_ids[row, end:] = VOCABULARY.pad_id
    draws = random.random((rows, length, DRAWS), dtype=np.float32)
    return Batch(token_ids, starts, lengths, draws)


def masked(batch: Batch, rules: MaskingRules) -> tuple[np.ndarray, np.ndarray]:
    return mask_tokens(batch.token_ids, batch.word_starts, batch.lengths, rules, VOCABULARY, batch.draws)


def expected_row(
    token_ids: list[int], starts: list[bool], draws: np.ndarray, rules: MaskingRules
) -> tuple[list[int], list[int]]:
    """The published procedure with this row's random numbers: masked ids and the positions to predict."""
    segments: list[list[list[int]]] = [[]]
    for position, token in enumerate(token_ids):
        if token in SPECIAL:
            segments.append([])
        elif starts[position] or not rules.whole_words or not segments[-1]:
            segments[-1].append([position])
        else:
            segments[-1][-1].append(position)
    candidates = [(segment, index) for segment in segments for index in range(len(segment))]
    candidates.sort(key=lambda candidate: float(draws[candidate[0][candidate[1]][0], 0]))
    budget = min(max(1, round(len(token_ids) * rules.rate)), rules.max_predictions or len(token_ids))
    covered: set[int] = set()
    for segment, index in candidates:
        if len(covered) >= budget:
            break
        ngrams = [
            list(itertools.chain(*segment[index : index + n]))
            for n in range(1, rules.max_ngram + 1)
            if index + n <= len(segment)
        ]
        weights = np.cumsum([1 / n for n in range(1, len(ngrams) + 1)])
        number = int(np.sum(weights[:-1] <= float(draws[segment[index][0], 1]) * weights[-1]))
        while number and len(covered) + len(ngrams[number]) > budget:
            number -= 1
        if len(covered) + len(ngrams[number]) <= budget and not covered.intersection(ngrams[number]):
            covered.update(ngrams[number])
    changed = list(token_ids)
    for position in covered:
        if draws[position, 2] < rules.mask_share:
            changed[position] = VOCABULARY.mask_id
        elif draws[position, 2] < rules.mask_share + rules.random_share:
            ids = VOCABULARY.ordinary_ids
            changed[position] = int(ids[int(np.float32(draws[position, 3]) * len(ids))])
    return changed, sorted(covered)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 2**31),
    st.integers(SHORTEST, 80),
    st.sampled_from([0.15, 0.02, 0.6, 0.95]),
    st.integers(1, 5),
    st.sampled_from([None, 1, 3]),
    st.booleans(),
    st.sampled_from([0.2, 0.7, 1.0]),
)
def test_as_row_by_row(seed, length, rate, max_ngram, max_predictions, whole_words, start_share) -> None:
    rules = MaskingRules(rate, max_ngram, max_predictions, whole_words)
    batch = random_batch(5, length, seed, start_share=start_share)
    token_ids, predicted = masked(batch, rules)
    for row, end in enumerate(batch.lengths.tolist()):
        changed, positions = expected_row(
            batch.token_ids[row, :end].tolist(), batch.word_starts[row].tolist(), batch.draws[row], rules
        )
        assert np.flatnonzero(predicted[row]).tolist() == positions
        assert token_ids[row, :end].tolist() == changed
        assert (token_ids[row, end:] == VOCABULARY.pad_id).all()


@pytest.fixture(scope="module")
def many() -> tuple[Batch, np.ndarray, np.ndarray]:
    batch = random_batch(4000, 128, seed=1, shortest=128, start_share=0.8)
    return (batch, *masked(batch, MaskingRules()))


def test_mask_rate(many) -> None:
    batch, _, predicted = many
    counts = predicted.sum(axis=1)
    wanted = MaskingRules().num_predictions(128)
    assert wanted == 19
    assert counts.max() == wanted
    assert np.mean(counts == wanted) > 0.99
    assert predicted.sum() / batch.lengths.sum() == pytest.approx(0.15, rel=0.02)


def test_mask_keep_and_random_shares(many) -> None:
    batch, token_ids, predicted = many
    now, before = token_ids[predicted], batch.token_ids[predicted]
    ordinary = len(VOCABULARY.ordinary_ids)
    kinds = Counter(np.where(now == VOCABULARY.mask_id, "mask", np.where(now == before, "same", "random")).tolist())
    total = predicted.sum()
    # A random token is the one that stood there once in as many times as there are tokens.
    shares = {"mask": 0.8, "same": 0.1 + 0.1 / ordinary, "random": 0.1 * (1 - 1 / ordinary)}
    assert chisquare([kinds[kind] for kind in shares], [share * total for share in shares.values()]).pvalue > 1e-3


def test_random_tokens_are_uniform_and_never_special(many) -> None:
    batch, token_ids, predicted = many
    changed = predicted & (token_ids != batch.token_ids) & (token_ids != VOCABULARY.mask_id)
    counts = np.bincount(token_ids[changed], minlength=SIZE)
    special = sorted({*SPECIAL, sentencepiece_vocabulary().unk_id})
    assert counts[special].sum() == 0
    assert chisquare(counts[VOCABULARY.ordinary_ids]).pvalue > 1e-3


def test_ngram_shares() -> None:
    """The first n-gram of a row is in nobody's way: p(n) = (1/n) / (1 + 1/2 + 1/3), and any word may begin it."""
    rows, width = 30000, 40
    fixed = np.zeros((rows, width), bool)
    fixed[:, [0, 20, width - 1]] = True
    words = Words(np.tile(np.arange(width + 1), (rows, 1)), fixed, np.tile(np.arange(width), (rows, 1)))
    draws = np.random.default_rng(4).random((rows, width, DRAWS), dtype=np.float32)
    of_row, first, count = choose_ngrams(words, 3, np.full(rows, 3), draws)
    assert (of_row[:rows] == np.arange(rows)).all(), "each row finds its first n-gram at once"
    first, count = first[:rows], count[:rows]
    assert chisquare(np.bincount(first, minlength=width)[~fixed[0]]).pvalue > 1e-3
    free = (first < 18) | ((first > 20) & (first < width - 3))
    wanted = np.array([1, 1 / 2, 1 / 3]) / (1 + 1 / 2 + 1 / 3)
    assert chisquare(np.bincount(count[free])[1:], wanted * free.sum()).pvalue > 1e-3
    before_border = np.isin(first, [18, width - 3])  # two words fit
    assert chisquare(np.bincount(count[before_border])[1:], np.array([2, 1]) / 3 * before_border.sum()).pvalue > 1e-3
    assert (count[np.isin(first, [19, width - 2])] == 1).all()


def test_whole_words(many) -> None:
    batch, _, predicted = many
    words = np.cumsum(batch.word_starts, axis=1)
    for row in range(50):
        for word in range(1, words[row].max() + 1):
            assert len(set(predicted[row, words[row] == word].tolist())) == 1
    _, single = masked(batch, MaskingRules(whole_words=False))
    inside = ~batch.word_starts
    assert (single & inside & ~np.roll(single, 1, axis=1)).any(), "a word's second token alone is never masked"


def test_special_tokens_are_never_masked(many) -> None:
    batch, token_ids, predicted = many
    special = np.isin(batch.token_ids, list(SPECIAL))
    assert not (predicted & special).any()
    assert (token_ids[special] == batch.token_ids[special]).all()
    assert (token_ids[~predicted] == batch.token_ids[~predicted]).all()


def test_a_row_depends_on_its_own_numbers_alone() -> None:
    batch = random_batch(30, 60, seed=3)
    token_ids, predicted = masked(batch, MaskingRules())
    chosen = [7, 3, 20]
    part = Batch(*(getattr(batch, field.name)[chosen] for field in dataclasses.fields(batch)))
    longer = Batch(
        np.pad(part.token_ids, ((0, 0), (0, 9)), constant_values=VOCABULARY.pad_id),
        np.pad(part.word_starts, ((0, 0), (0, 9))),
        part.lengths,
        np.pad(part.draws, ((0, 0), (0, 9), (0, 0))),
    )
    for other, end in ((part, 60), (longer, 60)):
        again, again_predicted = masked(other, MaskingRules())
        assert (again[:, :end] == token_ids[chosen]).all()
        assert (again_predicted[:, :end] == predicted[chosen]).all()


def test_nothing_to_mask() -> None:
    special = np.array([[VOCABULARY.cls_id, VOCABULARY.sep_id, VOCABULARY.sep_id]])
    token_ids, predicted = mask_tokens(
        special, np.ones((1, 3), bool), np.array([3]), MaskingRules(), VOCABULARY, np.zeros((1, 3, DRAWS), np.float32)
    )
    assert not predicted.any()
    assert (token_ids == special).all()


@pytest.mark.parametrize(("length", "expected"), [(1, 1), (3, 1), (10, 2), (20, 3), (128, 19), (512, 77)])
def test_num_predictions(length: int, expected: int) -> None:
    assert MaskingRules().num_predictions(length) == expected
    assert MaskingRules(max_predictions=20).num_predictions(length) == min(20, expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 0.0}, "share of masked tokens: expected a number above 0 and below 1, got 0.0"),
        ({"rate": 1}, "got 1"),
        ({"max_ngram": 0}, "max_ngram: expected a whole number of at least 1, got 0"),
        ({"max_predictions": 0}, "max_predictions: expected a whole number of at least 1, got 0"),
        ({"max_predictions": True}, "got True"),
        ({"mask_share": 0.95}, "sum to at most 1, got (0.95, 0.1)"),
        ({"random_share": -0.1}, "got (0.8, -0.1)"),
    ],
)
def test_wrong_rules(options: dict, message: str) -> None:
    with pytest.raises(InputError) as error:
        MaskingRules(**options)
    assert message in str(error.value)


def test_the_special_tokens_of_both_kinds() -> None:
    for vocabulary in (sentencepiece_vocabulary(), wordpiece_vocabulary()):
        masking = MaskingVocabulary(vocabulary)
        special = {vocabulary.pad_id, vocabulary.unk_id, vocabulary.cls_id, vocabulary.sep_id, vocabulary.mask_id}
        assert set(masking.ordinary_ids.tolist()) == set(range(vocabulary.size)) - special
        # An unknown character is text, and may be masked.
        assert set(np.flatnonzero(masking.is_fixed).tolist()) == special - {vocabulary.unk_id}
