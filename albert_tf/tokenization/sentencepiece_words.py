"""From the words of a text to SentencePiece ids and the characters that they stand for."""

from array import array
from collections.abc import Sequence
from itertools import chain, pairwise
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
from albert_tf.tokenization.rules import (
    WORD_START,
    digit_comma_table,
    folded_lengths,
    rewritten_words,
    sentencepiece_words,
)
from albert_tf.tokenization.unigram import UnigramModel

_FEW_WORDS = 100  # the search of many words takes a millisecond at least,
_LONG_WORD = 64  # and memory for the longest of them times their number

Pieces = tuple[list[int], list[Span]]  # ids of a word, and the characters of it that each stands for


class WordEncoder:
    """Text rules, the model's own normaliser, segmentation and digit-comma rule, for words of `text.split()`.

    Args:
        proto: the parsed model.
        pieces: the piece of each of its ids.
        unk_id: its unknown piece.
        rules: `lower`, `keep_accents`, `quotes`.

    Attributes:
        unigram: the search.
    """

    def __init__(self, proto: Any, pieces: Sequence[str], unk_id: int, rules: dict[str, bool]) -> None:
        self._rules = rules
        self._normalizer = models.normalizer_of(proto)
        self._changes_ascii = models.changes_ascii(proto.normalizer_spec.precompiled_charsmap)
        ids = np.array([index for index, piece in enumerate(proto.pieces) if models.is_text(piece)], np.int32)
        scores = np.fromiter((piece.score for piece in proto.pieces), np.float32, len(pieces))
        self.unigram = UnigramModel([pieces[index] for index in ids], ids, scores[ids], unk_id)
        self._lengths = list(map(len, pieces))
        self._digit_commas = digit_comma_table(pieces, self._segment, unk_id)
        self._is_digit_comma = np.zeros(len(pieces), bool)
        self._is_digit_comma[list(self._digit_commas)] = True

    def ids_of(self, words: list[str]) -> list[bytes]:
        """The ids of each word, as the bytes of int32."""
        if len(words) < _FEW_WORDS:
            return [b"".join(map(self._ids_of_part, sentencepiece_words(word, **self._rules))) for word in words]
        rewritten = rewritten_words(words, **self._rules)
        parts, several = _parts(rewritten)
        texts = list(map(self._normalized, parts))
        long = {part for part, text in zip(parts, texts, strict=True) if len(text) > _LONG_WORD}
        if long:
            texts = [text for text in texts if len(text) <= _LONG_WORD]
            parts = [part for part in parts if part not in long]
        ids, _, splits = self.unigram.segment_all(texts)
        joined = ids.tobytes()
        found = dict(zip(parts, [joined[start:end] for start, end in pairwise((4 * splits).tolist())], strict=True))
        for part in chain(long, map(parts.__getitem__, self._with_digit_commas(ids, splits))):
            found[part] = self._ids_of_part(part)
        found.update((text, b"".join(map(found.__getitem__, text_parts))) for text, text_parts in several.items())
        return [found[text] for text in rewritten]

    def pieces_of(self, words: list[str]) -> list[bytes]:
        """The pieces of each word, with their spans in it; see `alignment.pieces_as_bytes`."""
        return [pieces_as_bytes(*self._pieces_of_word(word)) for word in words]

    def row(self, index: int) -> list[tuple[int, int]]:
        """What the digit-comma rule puts in the place of an id: mostly itself; with lengths in characters."""
        return self._digit_commas.get(index, [(index, self._lengths[index])])

    def _with_digit_commas(self, ids: np.ndarray, splits: np.ndarray) -> list[int]:
        """The words in which the digit-comma rule has something to do."""
        places = np.flatnonzero(self._is_digit_comma.take(ids))
        return np.unique(np.searchsorted(splits, places, side="right") - 1).tolist()

    def _normalized(self, word: str) -> str:
        """A word as the model's normaliser leaves it, with "▁" in front."""
        if word.isascii() and word.isprintable() and not self._changes_ascii:
            return WORD_START + word
        return self._normalizer.normalize(word)

    def _segment(self, word: str) -> list[tuple[int, int]]:
        """Id and length of each piece of a word, before the digit-comma rule."""
        ids, ends = self.unigram.segment(self._normalized(word))
        return list(zip(ids, (end - start for start, end in pairwise([0, *ends])), strict=True))

    def _ids_of_part(self, part: str) -> bytes:
        text = self._normalized(part)
        ids, _ = self.unigram.segment(text)
        if "," in text:
            ids = [new for index in ids for new, _ in self.row(index)]
        return array("i", ids).tobytes()

    def _pieces_of_part(self, part: str) -> Pieces:
        text = self._normalized(part)
        ids, ends = self.unigram.segment(text)
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

    def _pieces_of_word(self, word: str) -> Pieces:
        [text] = rewritten_words([word], **self._rules)
        if word.isascii() and len(word) == len(text):  # at most its case has changed
            return self._pieces_of_part(text)
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
        return ids, spans


def _parts(texts: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """The different words in texts that are a single word each, as a rule; and the words of those that are not."""
    different = dict.fromkeys(texts)
    several = {text: text.split() for text in different if " " in text or not text}
    if several:
        singles = (text for text in different if text not in several)
        different = dict.fromkeys(chain(singles, *several.values()))
    return list(different), several
