"""Character rules as TensorFlow operations on code points, exact for all of Unicode.

TensorFlow's own string operations follow another Unicode version than Python's, and other rules (case folding is not
lower case). So each rule of rules.py is turned into a table over all code points, computed by the Python rule itself.
"""

import functools
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from albert_tf.tokenization.rules import SIGMA

_FINAL_SIGMA = "ς"
_OTHER, _CASED, _IGNORABLE = 0, 1, 2  # what a character is to a Σ nearby (Unicode, section 3.13, Final_Sigma)
_PAGE_BITS = 8
_PAGE = 1 << _PAGE_BITS
_NUM_CODE_POINTS = 0x110000
# Where rules act: all planes with cased, decomposable, ideographic or format characters. Ranges without surrogates.
_RANGES = ((0, 0xD800), (0xE000, 0x30000), (0xE0000, 0xE0200))


def split(texts: tf.Tensor) -> tf.RaggedTensor:
    """Strings (n,) → their words, at ASCII whitespace (n, None). `tf.strings.split` in fewer operations."""
    found = tf.raw_ops.StringSplitV2(input=texts, sep="")
    lengths = occurrences(tf.squeeze(found.indices[:, :1], 1), tf.size(texts, tf.int64))
    return ragged(found.values, tf.concat([[0], tf.cumsum(lengths)], 0))


def decode(texts: tf.Tensor) -> tf.RaggedTensor:
    """UTF-8 strings (n,) → int32 code points (n, None)."""
    return tf.strings.unicode_decode(texts, "UTF-8")


def encode(code_points: tf.RaggedTensor) -> tf.Tensor:
    """Code points (n, None) → UTF-8 strings (n,)."""
    return tf.strings.unicode_encode(code_points, "UTF-8")


class CodePointTable(tf.Module):
    """A rule character → text as a lookup: code points (n, None) → code points (n, None).

    A table of pages, as most of Unicode stays as it is: code point → page → number of a replacement. Replacements are
    kept as differences from the code point, so that one entry serves a whole alphabet.

    Args:
        rule: text for each single character, not depending on its neighbours.
    """

    def __init__(self, rule: Callable[[str], str]) -> None:
        super().__init__()
        differences: dict[tuple[int, ...], int] = {(0,): 0}
        slots = np.zeros(_NUM_CODE_POINTS, np.int32)
        for first, last in _RANGES:
            for code_point in range(first, last):
                character = chr(code_point)
                replacement = rule(character)
                if replacement != character:
                    difference = tuple(ord(c) - code_point for c in replacement)
                    slots[code_point] = differences.setdefault(difference, len(differences))
        pages = [page.tobytes() for page in slots.reshape(-1, _PAGE)]
        numbers = {page: number for number, page in enumerate(dict.fromkeys(pages))}
        self._pages = np.array([numbers[page] * _PAGE for page in pages], np.int32)
        self._slots = np.frombuffer(b"".join(numbers), np.int32)
        self._values = np.array([value for difference in differences for value in difference], np.int32)
        self._row_splits = np.cumsum([0, *map(len, differences)]).astype(np.int64)

    def __call__(self, code_points: tf.RaggedTensor) -> tf.RaggedTensor:
        return self.with_sources(code_points)[0]

    def with_sources(self, code_points: tf.RaggedTensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """The replaced text, and for each of its values the place in `code_points.values` that it comes from, int32."""
        flat = code_points.values
        page = tf.gather(self._pages, tf.bitwise.right_shift(flat, _PAGE_BITS))
        slot = tf.gather(self._slots, page + tf.bitwise.bitwise_and(flat, _PAGE - 1))
        replacements = ragged(self._values, self._row_splits)
        differences = tf.gather(replacements, slot)
        sources = row_numbers(differences)
        row_splits = tf.gather(differences.row_splits, code_points.row_splits)
        return ragged(tf.gather(flat, sources) + differences.values, row_splits), sources


def final_sigma(code_points: tf.RaggedTensor) -> tf.RaggedTensor:
    """Lower-cases Σ as `str.lower` does: ς where a cased letter stands before it and none after it, else σ.

    Case-ignorable characters (apostrophes, marks) between Σ and the letter do not count. The other letters may be in
    lower case already.
    """
    flat = code_points.values
    has_sigma = tf.reduce_any(flat == ord(SIGMA))
    return code_points.with_values(tf.cond(has_sigma, lambda: _with_final_sigma(code_points), lambda: flat))


def _with_final_sigma(code_points: tf.RaggedTensor) -> tf.Tensor:
    flat, rows = code_points.values, row_numbers(code_points)
    starts, classes = _case_classes()
    found = tf.gather(classes, tf.searchsorted(starts, flat, side="right") - 1)
    counts = found != _IGNORABLE
    # Without the characters that do not count, the ones to look at are the neighbours in the list.
    cased, row = tf.boolean_mask(found, counts) == _CASED, tf.boolean_mask(rows, counts)
    same_row = row[1:] == row[:-1]
    after_letter = tf.concat([[False], cased[:-1] & same_row], 0)
    before_letter = tf.concat([cased[1:] & same_row, [False]], 0)
    # Σ itself counts, being cased: its place among those that do is how many there are up to it.
    place = tf.where(flat == ord(SIGMA))
    kept_place = tf.gather(tf.cumsum(tf.cast(counts, tf.int32)), place[:, 0]) - 1
    is_final = tf.gather(after_letter, kept_place) & ~tf.gather(before_letter, kept_place)
    lowered = tf.where(is_final, ord(_FINAL_SIGMA), ord(SIGMA.lower()))
    return tf.tensor_scatter_nd_update(flat, place, lowered)


@functools.cache
def _case_classes() -> tuple[np.ndarray, np.ndarray]:
    """Code points that start a run of one class, and its class, as Python's lower-casing of Σ shows them."""
    starts, classes = [0], [_OTHER]
    for first, last in (*_RANGES, (_RANGES[-1][1], _RANGES[-1][1] + 1)):
        for code_point in range(first, last):
            character = chr(code_point)
            if f"{character}{SIGMA}".lower()[-1] == _FINAL_SIGMA:
                found = _CASED
            elif f"A{character}{SIGMA}".lower()[-1] == _FINAL_SIGMA:
                found = _IGNORABLE
            else:
                found = _OTHER
            if found != classes[-1]:
                starts.append(code_point)
                classes.append(found)
    return np.array(starts, np.int32), np.array(classes, np.int32)


def row_numbers(ragged: tf.RaggedTensor) -> tf.Tensor:
    """The row of each value, int32. In linear time, unlike `value_rowids`, whose cost grows with the longest row."""
    row_splits = tf.cast(ragged.row_splits, tf.int32)
    return tf.cumsum(occurrences(row_splits[1:-1], row_splits[-1]))


def occurrences(values: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """How often each number below `size` is among `values`. `tf.math.bincount` in one operation."""
    return tf.raw_ops.DenseBincount(input=values, size=size, weights=tf.zeros([0], values.dtype))


def next_starts(starts: tf.Tensor, rows: tf.Tensor, row_ends: tf.Tensor) -> tf.Tensor:
    """Where the characters end that values come from, if one that yields nothing belongs to the one before it.

    Args:
        starts: for each value, the place of its character; in order.
        rows: the row of each value.
        row_ends: the end of this row.

    Returns:
        The next start in the row that is another one; after the last, the row's end.
    """
    same_row = tf.concat([rows[1:] == rows[:-1], [False]], 0)[: tf.size(rows)]
    following = tf.concat([starts[1:], starts[:1]], 0)
    is_last = ~same_row | (following != starts)  # of the values of one character
    ends = tf.boolean_mask(tf.where(same_row, following, row_ends), is_last)
    return tf.gather(ends, tf.cumsum(tf.cast(is_last, tf.int32), exclusive=True))


def ragged(values: tf.Tensor, row_splits: tf.Tensor) -> tf.RaggedTensor:
    """A ragged tensor of parts that fit."""
    return tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)
