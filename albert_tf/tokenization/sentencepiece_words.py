"""From the words of a text to SentencePiece ids and the characters that they stand for."""

from array import array
from collections.abc import Sequence
from itertools import accumulate, chain, compress, islice, pairwise
from typing import Any

import numpy as np

from albert_tf.tokenization import sentencepiece_model as models
from albert_tf.tokenization.alignment import (
    Sources,
    Span,
    piece_spans,
    pieces_as_bytes,
    sources_of_lengths,
    sources_of_starts,
    spans_through,
)
from albert_tf.tokenization.package_search import END, PackageSearch
from albert_tf.tokenization.rules import (
    WORD_START,
    digit_comma_table,
    folded_lengths,
    rewritten_word,
)
from albert_tf.tokenization.unigram import UnigramModel

_BLOCK = 8192  # words in one search: what they need fits into the processor's cache
_LINE, _MARKED_LINE = "\n", f"\n{WORD_START}"

Pieces = tuple[list[int], list[Span]]  # ids of a word, and the characters of it that each stands for


class WordEncoder:
    """Text rules, the model's own normaliser, segmentation and digit-comma rule, for words of `text.split()`.

    Args:
        proto: the parsed model.
        pieces: the piece of each of its ids.
        unk_id: its unknown piece.
        rules: `lower`, `keep_accents`, `quotes`.

    Attributes:
        unigram: the search of any word.
    """

    def __init__(self, proto: Any, pieces: Sequence[str], unk_id: int, rules: dict[str, bool]) -> None:
        self._rules = rules
        self._normalizer = models.normalizer_of(proto)
        self._changes_ascii = models.changes_ascii(proto.normalizer_spec.precompiled_charsmap)
        ids = np.array([index for index, piece in enumerate(proto.pieces) if models.is_text(piece)], np.int32)
        scores = np.fromiter((piece.score for piece in proto.pieces), np.float32, len(pieces))
        self.unigram = UnigramModel([pieces[index] for index in ids], ids, scores[ids], unk_id)
        self._package = PackageSearch(proto, unk_id)
        # What is the same after the model's normaliser, in lines.
        signs = filter(self._package.takes, map(chr, range(ord("!"), ord("~") + 1)))
        unchanged = self._package.takes(WORD_START) and not self._changes_ascii
        self._plain = frozenset([_LINE, *signs] if unchanged else [])
        self._lengths = list(map(len, pieces))
        self._digit_commas = digit_comma_table(pieces, self._segment, unk_id)
        rows = [self.row(index) for index in range(len(pieces))]
        self._row_bytes = [*(array("i", [new for new, _ in row]).tobytes() for row in rows), END]

    def ids_of(self, words: list[str]) -> list[bytes]:
        """The ids of each word, as the bytes of int32."""
        if len(words) > _BLOCK:
            blocks = [words[start : start + _BLOCK] for start in range(0, len(words), _BLOCK)]
            return [ids for block in blocks for ids in self.ids_of(block)]
        lines = "\n".join(words)
        if not lines.isascii():  # the rules are quicker on ASCII words alone
            plain = [word for word in words if word.isascii()]
            other = [word for word in words if not word.isascii()]
            found = dict(zip(plain, self.ids_of(plain), strict=True))
            found.update(zip(other, self._ids_of_any(other), strict=True))
            return list(map(found.__getitem__, words))
        lines = rewritten_word(lines, **self._rules)
        if words and self._plain.issuperset(lines) and max(map(len, words)) < self._package.longest:
            return self._package.rows_of(f"{WORD_START}{lines.replace(_LINE, _MARKED_LINE)}\n", self._row_bytes)
        return self._ids_of_any(words)

    def _ids_of_any(self, words: list[str]) -> list[bytes]:
        parts = [rewritten_word(word, **self._rules).split() for word in words]
        texts = list(map(self._normalized, chain.from_iterable(parts)))
        is_quick = list(map(self._package.takes, texts))
        quick = iter(self._package.rows_of("".join(f"{text}\n" for text in compress(texts, is_quick)), self._row_bytes))
        ids = (next(quick) if here else self._slow(text) for text, here in zip(texts, is_quick, strict=True))
        return [b"".join(islice(ids, len(word_parts))) for word_parts in parts]

    def _slow(self, text: str) -> bytes:
        """The ids of any normalized word."""
        return b"".join(map(self._row_bytes.__getitem__, self.unigram.segment(text)[0]))

    def pieces_of(self, words: list[str]) -> list[bytes]:
        """The pieces of each word, with their spans in it; see `alignment.pieces_as_bytes`."""
        return list(map(self._pieces_of_word, words))

    def _pieces_of_word(self, word: str) -> bytes:
        text = rewritten_word(word, **self._rules)
        if word.isascii() and len(word) == len(text):  # at most its case has changed
            return pieces_as_bytes(*self._pieces_of_part(text))
        starts, ends = sources_of_lengths(folded_lengths(word, **self._rules))
        ids: list[int] = []
        spans: list[Span] = []
        place = 0
        for part in text.split():
            place = text.index(part, place)
            following = place + len(part)
            part_ids, part_spans = self._pieces_of_part(part)
            ids += part_ids
            spans += spans_through(part_spans, Sources(starts[place:following], ends[place:following]))
            place = following
        return pieces_as_bytes(ids, spans)

    def row(self, index: int) -> list[tuple[int, int]]:
        """What the digit-comma rule puts in the place of an id: mostly itself; with lengths in characters."""
        return self._digit_commas.get(index, [(index, self._lengths[index])])

    def _normalized(self, word: str) -> str:
        """A word as the model's normaliser leaves it, with "▁" in front."""
        if word.isascii() and word.isprintable() and not self._changes_ascii:
            return WORD_START + word
        return self._normalizer.normalize(word)

    def _segment(self, word: str) -> list[tuple[int, int]]:
        """Id and length of each piece of a word, before the digit-comma rule."""
        ids, ends = self._search(self._normalized(word))
        return list(zip(ids, (end - start for start, end in pairwise([0, *ends])), strict=True))

    def _search(self, text: str) -> tuple[list[int], list[int]]:
        """`UnigramModel.segment`."""
        if self._package.takes(text):
            ids = self._package.encode(text)
            return ids, list(accumulate(map(self._lengths.__getitem__, ids)))
        return self.unigram.segment(text)

    def _pieces_of_part(self, part: str) -> Pieces:
        text = self._normalized(part)
        ids, ends = self._search(text)
        if "," in text:
            ids, ends = self._without_digit_commas(ids, ends)
        return ids, self._spans(part, text, ends)

    def _without_digit_commas(self, ids: list[int], ends: list[int]) -> tuple[list[int], list[int]]:
        new_ids, new_ends = [], []
        for index, (start, end) in zip(ids, pairwise([0, *ends]), strict=True):
            for new, length in self._digit_commas.get(index, [(index, end - start)]):
                start += length
                new_ids.append(new)
                new_ends.append(start)
        return new_ids, new_ends

    def _spans(self, word: str, text: str, ends: list[int]) -> list[Span]:
        """The span in a word of each piece of its normalized text."""
        if text[1:] == word:  # only the mark in front is new: a shorter way to the same
            ends = [end - 1 for end in ends]
            return list(zip([0, *ends[:-1]], ends, strict=True))
        _, starts = self._normalizer.normalize(word, with_offsets=True)
        return piece_spans(text, ends, sources_of_starts(starts))
