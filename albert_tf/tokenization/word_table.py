"""The ids of many texts at once: their words are looked up by their bytes, with numpy; only new words need Python."""

import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from albert_tf.tokenization.key_table import KeyTable
from albert_tf.tokenization.rules import with_ascii_spaces

_PORTION = 1_000_000  # characters of text in work
_TOGETHER = 32_768  # words looked up in one go
_MOST_WORDS = 200_000
_MOST_BYTES = 4_000_000
_KEY = 16  # a word of at most so many bytes is its own key
_IS_SPACE = np.isin(np.arange(256), list(b" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"))  # what str.split takes for it in ASCII
_LOW_BYTES = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)


class WordTable:
    """Word → ids, computed once for each word.

    The words of all texts get numbers, equal ones the same: short ones by a hash table, long ones by a dict. The ids of
    all words lie in one array, in the order of the numbers. Threads may share a table; they have turns.

    Args:
        find: the ids of words, which are all different, as the bytes of int32.
    """

    def __init__(self, find: Callable[[list[str]], list[bytes]]) -> None:
        self._find = find
        self._lock = threading.Lock()
        self._clear()

    def __getstate__(self) -> dict[str, Any]:
        return {"_find": self._find}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._find = state["_find"]
        self._lock = threading.Lock()
        self._clear()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of the words (`str.split`) of each text, one after the other."""
        results: list[list[int]] = []
        for portion in _portions(texts):
            with self._lock:
                try:
                    results += self._encode(portion)
                except BaseException:  # words may have got numbers, but no ids
                    self._clear()
                    raise
                if self._words > _MOST_WORDS or self._bytes > _MOST_BYTES:
                    self._clear()
        return results

    def _clear(self) -> None:
        self._short = KeyTable()
        self._long: dict[bytes, int] = {}
        self._words = 0
        self._bytes = 0  # of all words
        # Word i has ids[splits[i]] to ids[splits[i + 1]] (excluded). There is room for more at the ends of both arrays.
        self._ids, self._splits = np.zeros(0, np.int32), np.zeros(1, np.int64)

    def _encode(self, texts: list[str]) -> list[list[int]]:
        lines = [with_ascii_spaces(text).encode("utf-8") for text in texts]
        buffer = b"\n".join([*lines, bytes(_KEY)])
        is_space = _IS_SPACE.take(np.frombuffer(buffer, np.uint8))
        is_space[-_KEY:] = True
        edges = np.flatnonzero(np.diff(is_space, prepend=True))
        starts, ends = edges[0::2], edges[1::2]
        numbers, new = self._number(buffer, starts, ends)
        if len(new):
            pairs = zip(starts[new].tolist(), ends[new].tolist(), strict=True)
            self._learn([buffer[start:end].decode("utf-8") for start, end in pairs])
            self._bytes += int((ends[new] - starts[new]).sum())
        firsts = self._splits.take(numbers)
        counts = self._splits.take(numbers + 1) - firsts
        id_ends = np.cumsum(counts)
        places = np.repeat(firsts - (id_ends - counts), counts)
        ids = self._ids.take(places + np.arange(len(places))).tolist()
        line_ends = np.cumsum(np.fromiter(map(len, lines), np.int64, len(lines)) + 1)
        splits = np.pad(id_ends, (1, 0)).take(np.searchsorted(starts, line_ends)).tolist()
        return [ids[start:end] for start, end in pairwise([0, *splits])]

    def _number(self, buffer: bytes, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of words, and a word for each new number, in order."""
        lengths = ends - starts
        eights = np.ndarray((len(buffer) - 7,), "<u8", buffer, strides=(1,))  # all runs of 8 bytes
        low = eights[starts] & _LOW_BYTES.take(np.minimum(lengths, 8))
        high = eights[starts + 8] & _LOW_BYTES.take(np.clip(lengths - 8, 0, 8))
        is_short = lengths <= _KEY
        if b"\0" in buffer[:-_KEY]:  # it would look like what fills up a key
            zeros = np.flatnonzero(np.frombuffer(buffer, np.uint8, len(buffer) - _KEY) == 0)
            is_short[np.searchsorted(ends, zeros, side="right")] = False
        count = self._words
        numbers = np.empty(len(starts), np.int64)
        new = []
        short = np.flatnonzero(is_short)
        for start in range(0, len(short), _TOGETHER):
            words = short[start : start + _TOGETHER]
            numbers[words], added = self._short.look_up(low[words], high[words], count)
            new.append(words[added])
            count += len(added)
        for word in np.flatnonzero(~is_short).tolist():
            numbers[word] = self._long.setdefault(buffer[starts[word] : ends[word]], count)
            if numbers[word] == count:
                new.append(np.array([word]))
                count += 1
        return numbers, np.concatenate(new) if new else np.zeros(0, np.int64)

    def _learn(self, words: list[str]) -> None:
        """Adds the ids of new words."""
        found = self._find(words)
        ends = self._splits[self._words] + np.cumsum(np.fromiter(map(len, found), np.int64, len(found)) // 4)
        self._ids = _with_room(self._ids, ends[-1])
        self._ids[self._splits[self._words] : ends[-1]] = np.frombuffer(b"".join(found), np.int32)
        self._splits = _with_room(self._splits, self._words + len(words) + 1)
        self._splits[self._words + 1 : self._words + len(words) + 1] = ends
        self._words += len(words)


def _with_room(values: np.ndarray, count: int) -> np.ndarray:
    """`values`, in an array of `count` places or more."""
    if count <= len(values):
        return values
    return np.concatenate([values, np.empty(2 * count - len(values), values.dtype)])


def _portions(texts: Sequence[str]) -> Iterator[list[str]]:
    portion = []
    size = 0
    for text in texts:
        portion.append(text)
        size += len(text)
        if size >= _PORTION:
            yield portion
            portion, size = [], 0
    yield portion
