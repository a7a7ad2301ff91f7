"""`albert_tf.data.sentence_order`: pairs of one document, parted where they may be, of the lengths of the published code."""

import random as python_random
from collections import Counter

import numpy as np
import pytest
from pretraining_texts import numbered_text
from scipy.stats import chi2_contingency, chisquare

from albert_tf.data.sentence_order import (
    FEWEST_WORDS_TO_PART,
    NO_LABEL,
    Pairs,
    TokenizedText,
    document_borders,
    joined_pairs,
    next_sentence_pairs,
    sentence_order_pairs,
)
from albert_tf.tokenization.packing import truncated_lengths

MAX_LENGTH = 64
ROOM = MAX_LENGTH - 3


def random_lengths(count: int, seed: int, *, sentences: int = 30, tokens: int = 20) -> list[list[int]]:
    random = np.random.default_rng(seed)
    return [random.integers(1, 2 * tokens, size=random.integers(1, 2 * sentences)).tolist() for _ in range(count)]


def texts_of(pairs: Pairs) -> list[tuple[list[int], list[int]]]:
    """The token ids of both texts of each pair."""
    return [
        tuple(pairs.token_ids[begin : begin + length].tolist() for begin, length in zip(*row, strict=True))
        for row in zip(pairs.begins, pairs.lengths, strict=True)
    ]


def pairs_of(text: TokenizedText, *, short: float = 0.1, seed: int = 0, max_length: int = MAX_LENGTH) -> Pairs:
    documents = range(len(text.documents) - 1)
    return sentence_order_pairs(text, documents, max_length, short, np.random.default_rng(seed))


def test_pairs_are_consecutive_and_of_one_document() -> None:
    text = numbered_text(random_lengths(300, seed=1))
    pairs = pairs_of(text)
    edges = text.sentences[text.documents]
    borders = set(text.sentences.tolist())
    assert len(pairs) > 1000
    assert (pairs.labels == NO_LABEL).all()
    for first, second in texts_of(pairs):
        assert first and second and first[-1] < second[0]
        assert len(first) + len(second) <= ROOM
        documents = np.searchsorted(edges, [first[0], first[-1], second[0], second[-1]], side="right")
        assert len(set(documents.tolist())) == 1, "both texts are of one document"
        if len(first) + len(second) < ROOM:  # nothing was cut off
            assert first[-1] + 1 == second[0]
            assert first[0] in borders and second[-1] + 1 in borders


def test_no_token_is_used_twice_and_few_are_left_out() -> None:
    text = numbered_text(random_lengths(100, seed=2, tokens=8))
    used = Counter(token for pair in texts_of(pairs_of(text)) for part in pair for token in part)
    assert max(used.values()) == 1
    assert len(used) / len(text.token_ids) > 0.9


def test_every_border_of_a_chunk_is_as_likely() -> None:
    text = numbered_text([[5] * 10] * 4000)
    middles = Counter(len(first) // 5 for first, _ in texts_of(pairs_of(text, short=0)))
    assert sorted(middles) == list(range(1, 10))
    assert chisquare([middles[n] for n in sorted(middles)]).pvalue > 1e-3


def published_lengths(lengths: list[list[int]], short: float, seed: int) -> list[int]:
    """Tokens of each example of create_instances_from_document, for documents whose chunks have two sentences or more."""
    random = python_random.Random(seed)
    result = []
    for document in lengths:
        target = random.randint(2, ROOM) if random.random() < short else ROOM
        chunk: list[int] = []
        for index, length in enumerate(document):
            chunk.append(length)
            if index == len(document) - 1 or sum(chunk) >= target:
                if len(chunk) > 1:
                    middle = random.randint(1, len(chunk) - 1)
                    result.append(3 + sum(truncated_lengths(sum(chunk[:middle]), sum(chunk[middle:]), ROOM)))
                chunk = []
    return result


def test_lengths_as_published() -> None:
    """Sentences so short that no target is reached by one; those are treated otherwise than in the original."""
    lengths = random_lengths(6000, seed=3, tokens=5)
    ours = pairs_of(numbered_text(lengths), short=0).example_lengths
    theirs = np.array(published_lengths(lengths, 0, seed=4))
    # The lone sentences, which are parted here and paired with others there, are the only ones so short.
    assert (ours[ours >= 20]).size == pytest.approx(theirs[theirs >= 20].size, rel=0.01)
    edges = [20, 40, 55, 60, 62, 64, 65]
    table = [np.histogram(values, edges)[0] for values in (ours, theirs)]
    assert chi2_contingency(np.array(table) + 1).pvalue > 1e-3


def test_short_targets() -> None:
    """A tenth of the documents have a target of their own, uniform from 2 on; the others the longest possible."""
    text = numbered_text([[1] * 4 * ROOM] * 5000, word_length=1)
    documents = [
        sentence_order_pairs(text, [document], MAX_LENGTH, 0.1, np.random.default_rng((5, document)))
        for document in range(5000)
    ]
    targets = np.array([int(pairs.lengths[0].sum()) for pairs in documents])
    short = targets[targets < ROOM]
    assert chisquare([len(short), 5000 - len(short)], [500 * (1 - 1 / 60), 4500 + 500 / 60]).pvalue > 1e-3
    counts = np.bincount(short, minlength=ROOM)[2:]
    assert (
        chisquare([part.sum() for part in np.array_split(counts, 6)], [len(short) * n / 59 for n in (10,) * 5 + (9,)])[
            1
        ]
        > 1e-3
    )


def test_a_sentence_that_reaches_a_short_target_gets_a_partner() -> None:
    """The original pairs it with a random document."""
    pairs = pairs_of(numbered_text([[20] * 40] * 200), short=1.0)
    alone = pairs.begins[:, 0] % 800 >= 780  # the last sentence of a document may remain
    assert (pairs.lengths[~alone] >= 20).all(), "whole sentences, none parted"
    assert 0 < alone.sum() <= 200


def test_truncation_takes_tokens_from_random_ends_of_the_longer_text() -> None:
    text = numbered_text([[40, 50]] * 3000)
    pairs = pairs_of(text, short=0)
    assert (pairs.lengths == [31, 30]).all()
    front = pairs.begins - np.arange(3000)[:, None] * 90 - [0, 40]
    assert chisquare([np.sum(front[:, 0] <= 4), np.sum(front[:, 0] >= 5)]).pvalue > 1e-3  # of 9 lost tokens
    assert front[:, 1].mean() == pytest.approx(10, abs=0.2)  # of 20
    assert set(range(3, 18)) <= set(front[:, 1].tolist())


def test_a_lone_sentence_is_parted_between_words() -> None:
    words = 12
    text = numbered_text([[2 * words]] * 3000)
    pairs = pairs_of(text, short=0)
    assert len(pairs) == 3000
    assert (pairs.lengths.sum(axis=1) == 2 * words).all()
    middles = Counter((pairs.lengths[:, 0] / 2).tolist())
    assert sorted(middles) == list(range(words // 4, words - words // 4 + 1))
    assert chisquare(list(middles.values())).pvalue > 1e-3


def test_a_short_lone_sentence_is_left_out() -> None:
    assert len(pairs_of(numbered_text([[2 * (FEWEST_WORDS_TO_PART - 1)]] * 5))) == 0
    assert len(pairs_of(numbered_text([[2 * FEWEST_WORDS_TO_PART]] * 5))) == 5


def test_the_last_sentence_of_a_document_is_never_paired_with_another_document() -> None:
    # The first two sentences fill an example; the third remains alone.
    text = numbered_text([[40, 30, 20]] * 200)
    pairs = pairs_of(text, short=0)
    assert len(pairs) == 400
    assert Counter(pairs.lengths.sum(axis=1).tolist()) == {ROOM: 200, 20: 200}


def test_a_long_sentence_is_cut_at_words() -> None:
    text = numbered_text([[500, 10]], word_length=3)
    borders = document_borders(text, 0, ROOM)
    assert borders[0] == 0 and borders[-1] == 510 and 500 in borders
    assert all(text.word_starts[border] for border in borders[:-1])
    sizes = np.diff(borders)
    assert sizes[:-2].min() >= 16 and sizes[:-2].max() <= 18 and sizes.max() <= 32
    left_out = 510 - pairs_of(text, short=0).lengths.sum()
    assert left_out < 510 * 0.2, "of each four parts the excess over the room"
    unbroken = numbered_text([[500]], word_length=1000)
    assert set(np.diff(document_borders(unbroken, 0, ROOM))[:-1].tolist()) == {16}
    usual = numbered_text([[ROOM, 10]])
    assert document_borders(usual, 0, ROOM) == [0, ROOM, ROOM + 10]


def test_next_sentence_pairs() -> None:
    text = numbered_text([[5] * 40] * 400)
    documents = list(range(400))
    pairs = next_sentence_pairs(text, documents, documents, MAX_LENGTH, 0.0, np.random.default_rng(0))
    # Where a document ends with one sentence, that is paired with another document, as in the original.
    early = pairs.begins[:, 0] % 200 < 200 - ROOM
    assert chisquare(np.bincount(pairs.labels[early])).pvalue > 1e-3
    assert pairs.labels.mean() == pytest.approx(0.55, abs=0.05)
    for (first, second), label in zip(texts_of(pairs), pairs.labels.tolist(), strict=True):
        assert len(first) + len(second) <= ROOM
        same_document = first[0] // 200 == second[0] // 200
        assert same_document == (label == 0)
        if label == 0 and len(first) + len(second) < ROOM:
            assert first[-1] + 1 == second[0]
    others = Counter(
        second[0] // 200 for (_, second), label in zip(texts_of(pairs), pairs.labels.tolist(), strict=True) if label
    )
    assert len(others) > 350, "second texts come from all documents"


def test_next_sentence_pairs_use_the_sentences_that_were_put_back() -> None:
    text = numbered_text([[5] * 40] * 50)
    pairs = next_sentence_pairs(text, range(50), range(50), MAX_LENGTH, 0.0, np.random.default_rng(0))
    firsts = {token for first, _ in texts_of(pairs) for token in first}
    seconds = {t for (_, second), label in zip(texts_of(pairs), pairs.labels, strict=True) if not label for t in second}
    assert len(firsts | seconds) > 0.9 * len(text.token_ids)


def test_the_same_generator_gives_the_same_pairs() -> None:
    text = numbered_text(random_lengths(50, seed=6))
    assert texts_of(pairs_of(text, seed=1)) == texts_of(pairs_of(text, seed=1))
    assert texts_of(pairs_of(text, seed=1)) != texts_of(pairs_of(text, seed=2))


def test_nothing_in_nothing_out() -> None:
    text = numbered_text([])
    assert len(sentence_order_pairs(text, [], MAX_LENGTH, 0.1, np.random.default_rng(0))) == 0
    assert len(next_sentence_pairs(text, [], [], MAX_LENGTH, 0.1, np.random.default_rng(0))) == 0


def test_chosen_compact_and_joined() -> None:
    first, second = (pairs_of(numbered_text(random_lengths(20, seed=seed))) for seed in (7, 8))
    chosen = np.array([5, 0, 9])
    compact = first.chosen(chosen).compact()
    assert texts_of(compact) == texts_of(first.chosen(chosen)) == [texts_of(first)[i] for i in chosen]
    assert len(compact.token_ids) == compact.lengths.sum() < len(first.token_ids)
    assert len(first.chosen(chosen[:0]).compact()) == 0
    joined = joined_pairs([compact, second])
    assert texts_of(joined) == texts_of(compact) + texts_of(second)
    assert joined.example_lengths.tolist() == [3 + len(a) + len(b) for a, b in texts_of(joined)]
    for begins, length in zip(joined.begins[:3], joined.lengths[:3], strict=True):
        assert joined.word_starts[begins[0] : begins[0] + length[0]].any()
