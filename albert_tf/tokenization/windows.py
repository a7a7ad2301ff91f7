"""Long texts in windows that overlap, as fine-tuning on SQuAD needs them: run_squad of google-research/albert."""

from collections.abc import Sequence
from typing import NamedTuple

from albert_tf.tokenization.alignment import Span
from albert_tf.tokenization.api import Vocabulary
from albert_tf.tokenization.packing import pack, pack_offsets


class Window(NamedTuple):
    """One input that holds a part of a long text.

    Attributes:
        token_ids, segment_ids, offsets: as in `packing.Encoded`.
        first_token: how many tokens of the long text come before the window.
        text_start, text_end: where its own tokens of the long text stand in `token_ids` (end excluded).
        max_context: for each token, whether it is one of the long text and has more text on its shorter side here than
            in any other window; so each token of the text has one window where it counts.
    """

    token_ids: list[int]
    segment_ids: list[int]
    offsets: list[Span]
    first_token: int
    text_start: int
    text_end: int
    max_context: list[bool]


def window_bounds(count: int, room: int, doc_stride: int) -> list[tuple[int, int]]:
    """The parts (start, end) into which `count` tokens are cut, each at most `room` long.

    Args:
        count: tokens of the long text.
        room: tokens of it in one window, at least 1.
        doc_stride: tokens from the start of one window to the start of the next, at least 1; not more than `room` count.
    """
    bounds = [(0, min(room, count))]
    while bounds[-1][1] < count:
        start = bounds[-1][0] + min(room, doc_stride)
        bounds.append((start, min(start + room, count)))
    return bounds


def max_context(bounds: Sequence[tuple[int, int]]) -> list[list[bool]]:
    """For each token of each part whether it has more context there than in the others (`_check_is_max_context`): the
    shorter of its two sides counts, then the length of the part, then which comes first."""
    best: dict[int, tuple[float, int]] = {}
    for number, (start, end) in enumerate(bounds):
        for token in range(start, end):
            score = min(token - start, end - 1 - token) + 0.01 * (end - start)
            if token not in best or score > best[token][0]:
                best[token] = (score, number)
    return [[best[token][1] == number for token in range(start, end)] for number, (start, end) in enumerate(bounds)]


def windows(
    question: tuple[list[int], list[Span]] | None,
    text: tuple[list[int], list[Span]],
    vocabulary: Vocabulary,
    length: int,
    doc_stride: int,
) -> list[Window]:
    """All windows of a text.

    Args:
        question: ids and spans of what stands before the text in every window, short enough to leave room; or None.
        text: ids and spans.
        length: the most tokens of a window, special tokens included.
    """
    ids, spans = text
    before = 1 if question is None else len(question[0]) + 2
    bounds = window_bounds(len(ids), length - before - 1, doc_stride)
    result = []
    for (start, end), best in zip(bounds, max_context(bounds), strict=True):
        if question is None:
            packed = pack(ids[start:end], None, vocabulary, length)
            offsets = pack_offsets(spans[start:end], None, length)
        else:
            packed = pack(question[0], ids[start:end], vocabulary, length)
            offsets = pack_offsets(question[1], spans[start:end], length)
        flags = [*[False] * before, *best, False]
        result.append(Window(*packed, offsets, start, before, before + end - start, flags))
    return result
