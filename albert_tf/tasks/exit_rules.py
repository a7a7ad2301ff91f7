"""When a pass is a settled one: the rules of `ExitSettings`, over whatever a task decides in a row.

A row may ask for several choices: a label for each token, a start and an end. It is settled where all of them are, so that
every rule looks at the one that is furthest from it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from keras import ops

_TINY = 1e-30  # of a probability, or of the largest entropy, below which nothing is divided or given to a logarithm


class Choice(NamedTuple):
    """One choice of each row, or one at each of its places.

    Attributes:
        probabilities: float32 (B, options) or (B, places, options).
        counts: which places are asked for, bool (B, places); None where there is one choice for each row.
        options: how many of the options can be chosen, float32 (B,); None: all.
    """

    probabilities: Any
    counts: Any = None
    options: Any = None


def least_confidence(choices: Sequence[Choice]) -> Any:
    """Of each row's choices the least of their largest probabilities, (B,); 1 where nothing is asked for."""
    found = [_over_places(ops.max(one.probabilities, axis=-1), one.counts, 1.0, ops.min) for one in choices]
    return _of_all(ops.minimum, found)


def largest_entropy(choices: Sequence[Choice]) -> Any:
    """Of each row's choices the largest of their entropies, each divided by the logarithm of its options, (B,); 0 where
    nothing is asked for."""
    return _of_all(ops.maximum, [_over_places(_entropy(one), one.counts, 0.0, ops.max) for one in choices])


def same_choices(choices: Sequence[Choice], before: Sequence[Choice]) -> Any:
    """Whether every choice of a row is that of the pass before, bool (B,)."""
    found = []
    for now, then in zip(choices, before, strict=True):
        same = ops.all(ops.equal(_is_best(now.probabilities), _is_best(then.probabilities)), axis=-1)
        if now.counts is not None:
            same = ops.all(ops.logical_or(same, ops.logical_not(now.counts)), axis=-1)
        found.append(same)
    return _of_all(ops.logical_and, found)


def _entropy(choice: Choice) -> Any:
    logarithms = ops.log(ops.maximum(choice.probabilities, _TINY))
    entropies = -ops.sum(choice.probabilities * logarithms, axis=-1)
    if choice.options is None:
        return entropies / ops.log(ops.cast(choice.probabilities.shape[-1], "float32"))
    return entropies / ops.maximum(ops.log(choice.options), _TINY)  # a single option is certain


def _over_places(values: Any, counts: Any, unasked: float, reduce: Any) -> Any:
    """(B, places), or (B,) as it is → (B,)."""
    return values if counts is None else reduce(ops.where(counts, values, unasked), axis=-1)


def _of_all(combine: Any, values: Sequence[Any]) -> Any:
    found, *others = values
    for one in others:
        found = combine(found, one)
    return found


def _is_best(values: Any) -> Any:
    """Where the largest of each row is, bool. Keras's argmax asks for the sign of zeros, by operators that TFLite lacks."""
    return values >= ops.max(values, axis=-1, keepdims=True)
