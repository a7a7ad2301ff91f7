"""Documents of token ids into pairs of texts for the sentence-order task (paper section 3.1), or for BERT's.

As published (create_instances_from_document of google-research/albert): sentences are gathered up to a target length,
which is the longest possible or, for a share of the documents, a random shorter one; they are parted at a random border
into two consecutive texts; what is too long loses tokens at random ends.

Unlike there, a text that has no partner is never paired with one of another document, which made part of the task one of
topics (google-research/albert issue 234): two sentences are gathered at least, and the one that may remain at the end of
a document is parted between two words, or left out if it is short. A sentence too long for an example is cut into parts
first, where the original drops what is too much.
"""

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

Array = np.ndarray

SPECIAL_TOKENS = 3  # [CLS] A [SEP] B [SEP]
FEWEST_WORDS_TO_PART = 8  # a lone sentence shorter than this is left out
NO_LABEL = -1


@dataclasses.dataclass(frozen=True)
class TokenizedText:
    """Documents, one after another.

    Attributes:
        token_ids: of all sentences, without special tokens, int32 (N,).
        word_starts: whether a word begins there, bool (N,).
        sentences: where each begins, and N, rising, int (sentences + 1,).
        documents: the first sentence of each, and their number, rising, int (documents + 1,).
    """

    token_ids: Array
    word_starts: Array
    sentences: Array
    documents: Array


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Pairs of texts, n of them, each a part of one long row of tokens.

    Attributes:
        token_ids, word_starts: the row, without special tokens, int32 (N,) and bool (N,).
        begins: where the first and the second text of each pair begin in it, int (n, 2).
        lengths: their tokens, int (n, 2).
        labels: `NO_LABEL` for consecutive texts, which may be swapped; of the next-sentence task, 1 if the second text
            comes from another document and 0 if it follows, int8 (n,).
    """

    token_ids: Array
    word_starts: Array
    begins: Array
    lengths: Array
    labels: Array

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def example_lengths(self) -> Array:
        """Tokens of each example, special ones included, int (n,)."""
        return np.sum(self.lengths, axis=1) + SPECIAL_TOKENS

    def chosen(self, indices: Array) -> "Pairs":
        """Some of the pairs, of the same row of tokens."""
        return dataclasses.replace(
            self, begins=self.begins[indices], lengths=self.lengths[indices], labels=self.labels[indices]
        )

    def compact(self) -> "Pairs":
        """The same pairs in a row that holds nothing else."""
        edges = zip(self.begins.reshape(-1).tolist(), (self.begins + self.lengths).reshape(-1).tolist(), strict=True)
        places = np.concatenate([np.zeros(0, np.int64), *(np.arange(begin, end) for begin, end in edges)])
        ends = np.cumsum(self.lengths.reshape(-1)).reshape(-1, 2)
        row = {"token_ids": self.token_ids[places], "word_starts": self.word_starts[places]}
        return dataclasses.replace(self, **row, begins=ends - self.lengths)


def joined_pairs(parts: Sequence[Pairs]) -> Pairs:
    """Several lots of pairs as one."""
    offsets = np.cumsum([0, *(len(part.token_ids) for part in parts)])
    return Pairs(
        np.concatenate([part.token_ids for part in parts]),
        np.concatenate([part.word_starts for part in parts]),
        np.concatenate([part.begins + offset for part, offset in zip(parts, offsets[:-1].tolist(), strict=True)]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.labels for part in parts]),
    )


def sentence_order_pairs(
    text: TokenizedText,
    documents: Sequence[int],
    max_length: int,
    short_probability: float,
    random: np.random.Generator,
) -> Pairs:
    """The pairs of consecutive texts of some documents.

    Args:
        documents: which ones.
        max_length: the most tokens of an example, special ones included; at least 8.
        short_probability: how often a document has a shorter target length, drawn uniformly from 2 on.
    """
    room = max_length - SPECIAL_TOKENS
    targets = _target_lengths(len(documents), room, short_probability, random)
    chunks: list[tuple[list[int], int, int]] = []  # borders of a document; first and last one of the chunk
    lone: list[tuple[int, int]] = []
    for document, target in zip(documents, targets, strict=True):
        borders = document_borders(text, document, room)
        begin, last = 0, len(borders) - 1
        for end in range(1, last + 1):
            if end < last and (borders[end] - borders[begin] < target or end - begin < 2):
                continue
            if end - begin >= 2:
                chunks.append((borders, begin, end))
            else:
                lone.append((borders[begin], borders[end]))
            begin = end
    draws = random.random(len(chunks)).tolist()
    parted = [
        (borders[begin], borders[begin + 1 + int(draw * (end - begin - 1))], borders[end])
        for (borders, begin, end), draw in zip(chunks, draws, strict=True)
    ]
    parted += _parted_sentences(text, lone, random)
    edges = np.array(parted, np.int64).reshape(-1, 3)
    labels = np.full(len(edges), NO_LABEL, np.int8)
    return _shortened(text, edges[:, :2], np.diff(edges, axis=1), labels, room, random)


def next_sentence_pairs(
    text: TokenizedText,
    documents: Sequence[int],
    others: Sequence[int],
    max_length: int,
    short_probability: float,
    random: np.random.Generator,
) -> Pairs:
    """The pairs of BERT's next-sentence task of some documents: half of the second texts come from another one.

    Args:
        documents: which ones the first texts come from.
        others: which ones the second texts come from; at least two.
        max_length, short_probability: as in `sentence_order_pairs`.
    """
    room = max_length - SPECIAL_TOKENS
    targets = _target_lengths(len(documents), room, short_probability, random)
    pairs: list[tuple[int, int, int, int, int]] = []  # begin and end of both texts, label
    for document, target in zip(documents, targets, strict=True):
        borders = document_borders(text, document, room)
        begin, end, last = 0, 1, len(borders) - 1
        while end <= last:
            if end < last and borders[end] - borders[begin] < target:
                end += 1
                continue
            middle = begin + 1 if end - begin < 2 else int(random.integers(begin + 1, end))
            if end - begin < 2 or random.random() < 0.5:
                wanted = target - (borders[middle] - borders[begin])
                second = _random_text(text, others, document, wanted, room, random)
                pairs.append((borders[begin], borders[middle], *second, 1))
                begin = middle  # the other sentences of this chunk are used again
            else:
                pairs.append((borders[begin], borders[middle], borders[middle], borders[end], 0))
                begin = end
            end = begin + 1
    columns = np.array(pairs, np.int64).reshape(-1, 5)
    begins, ends = columns[:, [0, 2]], columns[:, [1, 3]]
    return _shortened(text, begins, ends - begins, columns[:, 4].astype(np.int8), room, random)


def document_borders(text: TokenizedText, document: int, room: int) -> list[int]:
    """Where the sentences of a document begin, and its end; those longer than `room` are cut at words."""
    first, last = text.documents[document], text.documents[document + 1]
    borders: list[int] = text.sentences[first : last + 1].tolist()
    if all(end - begin <= room for begin, end in itertools.pairwise(borders)):
        return borders
    # Parts of a quarter of the room and little more: four of them fill an example, and not much of the last is lost.
    quarter = -(-room // 4)
    cut = borders[:1]
    for end in borders[1:]:
        if end - cut[-1] > room:
            while end - cut[-1] > 2 * quarter:
                near = cut[-1] + quarter
                word = int(np.argmax(text.word_starts[near : near + quarter]))  # 0 where none begins: cut there
                cut.append(near + word)
        cut.append(end)
    return cut


def _target_lengths(count: int, room: int, short_probability: float, random: np.random.Generator) -> list[int]:
    """Tokens to gather for an example; one target for a whole document, as published."""
    short = random.random(count) < short_probability
    targets: list[int] = np.where(short, random.integers(2, room + 1, size=count), room).tolist()
    return targets


def _parted_sentences(
    text: TokenizedText, lone: Sequence[tuple[int, int]], random: np.random.Generator
) -> list[tuple[int, int, int]]:
    """Sentences as two texts each: parted between two words, at least a quarter of them on each side."""
    parted = []
    for (begin, end), draw in zip(lone, random.random(len(lone)).tolist(), strict=True):
        words = np.flatnonzero(text.word_starts[begin:end])
        if len(words) >= FEWEST_WORDS_TO_PART:
            quarter = len(words) // 4
            middle = quarter + int(draw * (len(words) - 2 * quarter + 1))
            parted.append((begin, begin + int(words[middle]), end))
    return parted


def _random_text(
    text: TokenizedText, others: Sequence[int], document: int, wanted: int, room: int, random: np.random.Generator
) -> tuple[int, int]:
    """Begin and end of sentences of another document, from a random one on, of `wanted` tokens or to its end."""
    other = document
    while other == document:
        other = others[int(random.integers(len(others)))]
    first, last = int(text.documents[other]), int(text.documents[other + 1])
    sentence = int(random.integers(first, last))
    begin = int(text.sentences[sentence])
    end = int(np.searchsorted(text.sentences, begin + max(1, wanted)))
    return begin, min(int(text.sentences[min(end, last)]), begin + room)


def _shortened(
    text: TokenizedText, begins: Array, lengths: Array, labels: Array, room: int, random: np.random.Generator
) -> Pairs:
    """Pairs of at most `room` tokens: the longer text loses tokens, each from a random end (truncate_seq_pair)."""
    first, second = lengths.T
    # As `tokenization.packing.truncated_lengths`, of arrays.
    kept_first = np.minimum(first, np.maximum(room - second, (room + 1) // 2))
    kept_second = np.minimum(second, np.maximum(room - first, room // 2))
    kept = np.stack([kept_first, kept_second], axis=1)
    front = random.binomial(lengths - kept, 0.5)
    return Pairs(text.token_ids, text.word_starts, begins + front, kept, labels)
