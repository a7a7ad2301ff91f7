"""A hash table in arrays, which is asked for thousands of keys at once."""

import numpy as np

_SLOTS = 1 << 12  # at first
_EMPTY = -1
_SPREAD_LOW, _SPREAD_HIGH = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)  # large, odd, irregular


class KeyTable:
    """Keys of 16 bytes → numbers. A key's slot is its hash, or the next one that is free (linear probing).

    Keys are given as two uint64, of which not both may be 0.
    """

    def __init__(self) -> None:
        self._resize(_SLOTS)

    def look_up(self, low: np.ndarray, high: np.ndarray, next_number: int) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of keys. A key that is not there yet is added, with the next number.

        Returns:
            The numbers, int64; and where the added keys stand among the arguments, in the order of their numbers.
        """
        if self._count + len(low) > len(self._numbers) // 2:
            self._grow(self._count + len(low))
        slots = self._hash(low, high)
        numbers = self._numbers.take(slots)
        added = [np.zeros(0, np.int64)]
        pending = np.flatnonzero(~self._is_at(slots, low, high))
        while len(pending):
            free = pending[self._numbers[slots[pending]] == _EMPTY]
            # Of several keys that want a slot, the one written last has it.
            self._numbers[slots[free]] = free
            winners = free[self._numbers[slots[free]] == free]
            self._put(slots[winners], low[winners], high[winners], next_number + np.arange(len(winners)))
            next_number += len(winners)
            added.append(winners)
            there = self._is_at(slots[pending], low[pending], high[pending])
            numbers[pending[there]] = self._numbers[slots[pending[there]]]
            pending = pending[~there]
            slots[pending] = (slots[pending] + 1) % len(self._numbers)
        return numbers, np.concatenate(added)

    def _is_at(self, slots: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return (self._low.take(slots) == low) & (self._high.take(slots) == high)

    def _put(self, slots: np.ndarray, low: np.ndarray, high: np.ndarray, numbers: np.ndarray) -> None:
        self._low[slots], self._high[slots], self._numbers[slots] = low, high, numbers
        self._count += len(slots)

    def _hash(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        bits = len(self._numbers).bit_length() - 1
        return (((high * _SPREAD_HIGH ^ low) * _SPREAD_LOW) >> np.uint64(64 - bits)).astype(np.int64)

    def _resize(self, slots: int) -> None:
        self._count = 0
        self._low, self._high = np.zeros(slots, np.uint64), np.zeros(slots, np.uint64)
        self._numbers = np.full(slots, _EMPTY, np.int64)

    def _grow(self, count: int) -> None:
        """Makes room for `count` keys."""
        used = self._numbers != _EMPTY
        low, high, numbers = self._low[used], self._high[used], self._numbers[used]
        self._resize(1 << (4 * count - 1).bit_length())
        slots = self._hash(low, high)
        pending = np.arange(len(low))
        while len(pending):
            free = pending[self._numbers[slots[pending]] == _EMPTY]
            _, first = np.unique(slots[free], return_index=True)
            winners = free[first]
            self._put(slots[winners], low[winners], high[winners], numbers[winners])
            pending = pending[~self._is_at(slots[pending], low[pending], high[pending])]
            slots[pending] = (slots[pending] + 1) % len(self._numbers)
