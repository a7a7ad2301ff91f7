"""Which characters of a text the pieces stand for, through rules that replace, drop and add characters.

A span (start, end) counts characters of the original Python string, from 0, end excluded. Three rules hold everywhere:

- A character that a rule drops (an accent, a control character) belongs to the character before it in the same word.
- Where one character becomes several (a ligature), each of them stands for the whole of it; where several become one,
  it stands for all.
- "▁", the mark for a space, stands for nothing: a piece that is only the mark has the empty span where its word begins.
"""

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import NamedTuple

from albert_tf.tokenization.rules import WORD_START

Span = tuple[int, int]

_PIECE_BYTES = 3 * array("i").itemsize


class Sources(NamedTuple):
    """For each character of a rewritten text, the characters of the original that it stands for: starts and ends."""

    starts: Sequence[int]
    ends: Sequence[int]


def sources_of_lengths(lengths: Sequence[int]) -> Sources:
    """Sources where each character of the original became `lengths[i]` characters."""
    starts = list(chain.from_iterable(map(repeat, range(len(lengths)), lengths)))
    if all(lengths):
        return Sources(starts, [start + 1 for start in starts])
    return sources_of_starts([*starts, len(lengths)])


def sources_of_starts(starts: Sequence[int]) -> Sources:
    """Sources where only their starts are known, and after them the end of the last one.

    sentencepiece gives these. Where the last character became one with spaces after it, which it cuts off, its end comes
    out too low.
    """
    ends: list[int] = []
    following = end = starts[-1] if starts[-2:-1] != starts[-1:] else starts[-1] + 1
    for start in reversed(starts[:-1]):
        if start != following:
            following, end = start, following
        ends.append(end)
    return Sources(starts[:-1], ends[::-1])


def piece_spans(text: str, ends: Sequence[int], sources: Sources) -> list[Span]:
    """The span of each piece of a word.

    Args:
        text: the word, in which every piece but the first begins where the one before it ends.
        ends: where the pieces end.
        sources: of the characters of `text`.
    """
    spans = []
    start = 0
    for end in ends:
        first = start + 1 if text[start] == WORD_START else start
        if first < end:
            spans.append((sources.starts[first], sources.ends[end - 1]))
        else:
            place = sources.starts[first] if first < len(text) else sources.ends[-1]
            spans.append((place, place))
        start = end
    return spans


def spans_through(spans: Sequence[Span], sources: Sources) -> list[Span]:
    """Spans in a rewritten text → spans in its original."""
    starts, ends = sources
    return [(starts[start], ends[end - 1] if end > start else starts[start]) for start, end in spans]


def pieces_as_bytes(ids: Iterable[int], spans: Iterable[Span]) -> bytes:
    """The pieces of a word in the form in which they are remembered: id, start and end of each, as int32."""
    return array("i", [value for index, span in zip(ids, spans, strict=True) for value in (index, *span)]).tobytes()


def pieces_in_text(text: str, words: Sequence[str], pieces: Sequence[bytes]) -> tuple[list[int], list[Span]]:
    """The ids of all words of a text, which stand in it in this order, and the spans of their pieces in it."""
    places = []
    place = 0
    for word in words:
        place = text.index(word, place)
        places.append(place)
        place += len(word)
    values = memoryview(b"".join(pieces)).cast("i").tolist()
    word_places = chain.from_iterable(map(repeat, places, [len(word) // _PIECE_BYTES for word in pieces]))
    spans = [(p + start, p + end) for p, start, end in zip(word_places, values[1::3], values[2::3], strict=True)]
    return values[0::3], spans
