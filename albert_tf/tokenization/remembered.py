"""What is known of a word is kept, as most words come again."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")

_MOST_WORDS = 100_000
_LONGEST_WORD = 40  # characters; a longer one hardly comes again


class RememberedWords(Generic[Value]):
    """A function of words that is computed once for each word.

    Threads may share it: entries are only added, and when there are too many a new dict takes the place of the old one,
    which those who still read it keep.

    Args:
        find: the values of words, which are all different.
    """

    def __init__(self, find: Callable[[list[str]], list[Value]]) -> None:
        self._find = find
        self._known: dict[str, Value] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_known": {}}

    def look_up(self, words: list[str]) -> list[Value]:
        """The value of each word."""
        known = self._known
        try:
            return list(map(known.__getitem__, words))
        except KeyError:
            new = list(set(words).difference(known))
        found = dict(zip(new, self._find(new), strict=True))
        values = list(map(found.get, words, map(known.get, words)))
        if len(known) + len(found) > _MOST_WORDS:
            known = {}
        known.update((word, value) for word, value in found.items() if len(word) <= _LONGEST_WORD)
        self._known = known
        return values  # type: ignore[return-value]  # none is missing
