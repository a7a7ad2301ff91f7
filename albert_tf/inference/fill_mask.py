"""Texts with [MASK] → what may stand there."""

import dataclasses
import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from albert_tf.data.rows import start_of
from albert_tf.errors import InputError
from albert_tf.inference.runner import Outputs, Prepared, Runner, finite_outputs
from albert_tf.tokenization.packing import Packed
from albert_tf.tokenization.rules import WORD_START
from albert_tf.tokenization.tokenizer import check_texts
from albert_tf.tokenization.wordpiece import CONTINUATION

TOKEN_PROBABILITIES = "token_probabilities"
MASK = "[MASK]"  # the piece of every vocabulary that stands for a missing one
TOP_K = 5
# A letter or digit of a script with spaces between words.
_SPACED = re.compile("[^\\W_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_MOST_VALUES = 2**25  # probabilities held at a time: 128 MiB


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A piece that may stand in the place of a mask.

    Attributes:
        piece: the vocabulary's entry: "▁" in front begins a word in SentencePiece, "##" goes on with one in WordPiece.
        token_id: its id.
        probability: of all pieces of the vocabulary, in this place.
    """

    piece: str
    token_id: int
    probability: float
    _writing: "_Writing" = dataclasses.field(repr=False)

    @property
    def text(self) -> str:
        """The text with the piece in it; other masks are left. Made when asked for: a long text has many masks."""
        return self._writing.text


@dataclasses.dataclass(frozen=True)
class _Writing:
    """Characters of a text, from `start` to `end`, that are written over: a mask, and spaces before it that go with it."""

    source: str
    start: int
    end: int
    written: str

    @property
    def text(self) -> str:
        return self.source[: self.start] + self.written + self.source[self.end :]


@dataclasses.dataclass(frozen=True)
class FilledText:
    """The answer to one text.

    Attributes:
        text: the text with the most probable piece in the place of every mask.
        masks: for each mask in order, candidates from the most probable one on.
        places: for each mask the characters of `text` that its piece is, (start, end).
    """

    text: str
    masks: tuple[tuple[Candidate, ...], ...]
    places: tuple[tuple[int, int], ...]


class FillMaskPipeline:
    """The most probable pieces for every [MASK] in a text; all else in it is ordinary text, "[CLS]" too.

    The ids beside a mask are those that pretraining has there: between spaces the mask stands for the beginning of a word,
    and what follows it without a space goes on with that word. Of a text that is longer than the model takes, each mask is
    seen with as much text on both sides as there is room for, together with other masks where they fit.

    Args:
        runner: what runs the model.
        top_k: candidates for each mask.

    Raises:
        InputError: `top_k` is not 1 to the size of the vocabulary.
    """

    def __init__(self, runner: Runner, *, top_k: int = TOP_K) -> None:
        self.runner = runner
        self.vocabulary = runner.required_tokenizer.vocabulary
        self.top_k = top_k

    @property
    def top_k(self) -> int:
        return self._top_k

    @top_k.setter
    def top_k(self, value: int) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= self.vocabulary.size:
            raise InputError(
                f"top_k: expected a whole number from 1 to {self.vocabulary.size}, the size of the vocabulary; got {value!r}"
            )
        self._top_k = value

    def __call__(self, texts: Sequence[str]) -> list[FilledText]:
        """Candidates for the masks in each text.

        Raises:
            InputError: not a list of strings, or a text without [MASK].
        """
        return self.answer(self.prepare(texts))

    def outputs(self, config: dict[str, Any]) -> dict[str, tuple[int | None, ...]]:
        return {TOKEN_PROBABILITIES: (None, config["vocabulary_size"])}

    def prepare(self, examples: Sequence[str]) -> Prepared:
        """Rows of texts; the context says of each row where in it which masks of which text stand."""
        check_texts(examples, "texts")
        rows: list[Packed] = []
        places: list[tuple[int, dict[int, int]]] = []
        for index, text in enumerate(examples):
            if MASK not in text:
                raise InputError(f"text {index + 1} ({start_of(text)}): {no_mask()}")
            for token_ids, masks in self._windows(*self._encoded(text)):
                rows.append((token_ids, [0] * len(token_ids)))
                places.append((index, masks))
        return Prepared(rows, (places, list(examples)))

    def answer(self, prepared: Prepared) -> list[FilledText]:
        places, texts = prepared.context
        found: list[dict[int, list[tuple[int, float]]]] = [{} for _ in texts]
        for (index, masks), outputs in zip(places, self._outputs(prepared.rows), strict=True):
            for mask, position in masks.items():
                found[index][mask] = self._best(outputs[TOKEN_PROBABILITIES][position])
        return [
            self._filled(text, [best[mask] for mask in sorted(best)]) for text, best in zip(texts, found, strict=True)
        ]

    def decision(self, outputs: Outputs) -> tuple[tuple[int, ...], float]:
        """The most probable piece of every token."""
        table = outputs[TOKEN_PROBABILITIES]
        ordered = np.partition(table, -2, axis=-1)
        return tuple(table.argmax(axis=-1).tolist()), float((ordered[:, -1] - ordered[:, -2]).min())

    def _outputs(self, rows: Sequence[Packed]) -> Iterator[Outputs]:
        """Of each row, a few rows at a time: the probabilities of all would not fit into memory."""
        start = 0
        while start < len(rows):
            end, longest = start, 0
            while end < len(rows):
                longest = max(longest, len(rows[end][0]))
                if end > start and (end + 1 - start) * longest * self.vocabulary.size > _MOST_VALUES:
                    break
                end += 1
            yield from finite_outputs(self.runner, rows[start:end])
            start = end

    def _encoded(self, text: str) -> tuple[list[int], list[int]]:
        """The ids of a text, without special tokens but the masks; and where these stand."""
        ids: list[int] = []
        masks = []
        for number, part in enumerate(text.split(MASK)):
            if number:
                masks.append(len(ids))
                ids.append(self.vocabulary.mask_id)
            own = self.vocabulary.encode(part)
            joined = number and part and not part[0].isspace() and part[0] != WORD_START
            ids += self._without_word_start(own) if own and joined else own
        return ids, masks

    def _without_word_start(self, ids: list[int]) -> list[int]:
        """Ids of a text that goes on with a word: the mark in front of the first piece goes, as in `encode_pieces` of
        google-research/albert; a piece that there is only with the mark keeps it."""
        (first,) = self.vocabulary.pieces(ids[:1])
        if self.vocabulary.kind != "sentencepiece" or not first.startswith(WORD_START):
            return ids
        if first == WORD_START:
            return ids[1:]
        return [self._ids.get(first.removeprefix(WORD_START), ids[0]), *ids[1:]]

    @functools.cached_property
    def _ids(self) -> dict[str, int]:
        """Piece → id."""
        return {piece: index for index, piece in enumerate(self.vocabulary.pieces(list(range(self.vocabulary.size))))}

    @functools.cached_property
    def _special(self) -> set[int]:
        return set(self.runner.required_tokenizer.special_tokens.values())

    def _windows(self, ids: list[int], masks: list[int]) -> Iterator[tuple[list[int], dict[int, int]]]:
        """Token ids of as many inputs as it takes to show every mask, with the position of each mask in them."""
        room = self.runner.required_tokenizer.max_length - 2
        groups: list[list[int]] = []  # masks, by number, that fit into one input
        for number, place in enumerate(masks):
            if not groups or place - masks[groups[-1][0]] >= room:
                groups.append([])
            groups[-1].append(number)
        for group in groups:
            first, last = masks[group[0]], masks[group[-1]]
            start = max(0, min(first - (room - (last - first + 1)) // 2, len(ids) - room))
            window = [self.vocabulary.cls_id, *ids[start : start + room], self.vocabulary.sep_id]
            yield window, {number: 1 + masks[number] - start for number in group}

    def _best(self, probabilities: np.ndarray) -> list[tuple[int, float]]:
        """Ids and probabilities of the most probable pieces; of equal ones the lower id first."""
        chosen = np.argpartition(-probabilities, self.top_k - 1)[: self.top_k]
        ordered = chosen[np.lexsort((chosen, -probabilities[chosen]))]
        return [(int(index), float(probabilities[index])) for index in ordered]

    def _filled(self, text: str, best: Sequence[list[tuple[int, float]]]) -> FilledText:
        masks: list[tuple[Candidate, ...]] = []
        chosen: list[_Writing] = []
        end, after = len(text), ""  # after: what stands behind the mask once all behind it is filled
        for candidates in reversed(best):
            start = text.rindex(MASK, 0, end)
            behind = text[start + len(MASK)] if start + len(MASK) < end else after
            pieces = self.vocabulary.pieces([index for index, _ in candidates])
            chosen.append(self._writing(text, start, candidates[0][0], pieces[0], behind))
            end, after = chosen[-1].start, chosen[-1].written[:1] or behind
            alone = text[start + len(MASK) : start + len(MASK) + 1]
            masks.append(
                tuple(
                    Candidate(piece, index, probability, self._writing(text, start, index, piece, alone))
                    for piece, (index, probability) in zip(pieces, candidates, strict=True)
                )
            )
        filled, places = _written(text, chosen[::-1])
        return FilledText(filled, tuple(masks[::-1]), places)

    def _writing(self, text: str, start: int, index: int, piece: str, after: str) -> _Writing:
        """A piece in the place of the mask that begins at `start`, with the spaces that it asks for.

        Args:
            after: the character that comes behind it; none at the end.
        """
        end = start + len(MASK)
        if index in self._special:
            return _Writing(text, start, end, piece)
        before = text[start - 1 : start]
        if self.vocabulary.kind == "wordpiece":
            if piece.startswith(CONTINUATION):
                return _Writing(text, _word_end(text, start), end, piece.removeprefix(CONTINUATION))
            return _Writing(text, start, end, _space(before, piece) + piece + _space(piece, after))
        if not piece.startswith(WORD_START):
            return _Writing(text, _word_end(text, start), end, piece)
        space = " " if before and not before.isspace() else ""
        return _Writing(text, start, end, space + piece.removeprefix(WORD_START))


def no_mask() -> str:
    """What is wrong with a text without a mask."""
    return f"expected {MASK} in the text, found none; write {MASK} where a word is to be found"


def _written(text: str, writings: Sequence[_Writing]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """A text with all of these in it, in order, and where the pieces are then."""
    parts, places, end, length = [], [], 0, 0
    for writing in writings:
        parts += [text[end : writing.start], writing.written]
        length += writing.start - end
        piece = writing.written.strip(" ")
        first = length + writing.written.index(piece)
        places.append((first, first + len(piece)))
        length += len(writing.written)
        end = writing.end
    return "".join([*parts, text[end:]]), tuple(places)


def _word_end(text: str, end: int) -> int:
    """`end` without the spaces before it."""
    while end and text[end - 1].isspace():
        end -= 1
    return end


def _space(first: str, second: str) -> str:
    """A space between two words of a script that has such, else nothing."""
    apart = first and second and _SPACED.match(first[-1]) and _SPACED.match(second[0])
    return " " if apart else ""
