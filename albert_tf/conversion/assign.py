"""Weights into variables: the one place where it happens, strictly by name and shape.

Whatever the file form, its reader ends with a dict of our names and its caller ends here, so nothing can be skipped on
the way: a weight that finds no variable, a variable that finds no weight, and a wrong shape are one error.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from albert_tf.errors import InputError

_LISTED = 10  # names of each kind in one message


def assign(
    variables: Mapping[str, Any] | Iterable[Any],
    weights: dict[str, np.ndarray],
    *,
    source: str,
    optional: Collection[str] = (),
    consume: bool = False,
) -> list[str]:
    """Gives every variable its weight; nothing is assigned unless everything fits.

    Args:
        variables: Keras variables by name, or a collection of them to be named by their `path`.
        weights: name → array, floating point and finite.
        source: what to call the weights in an error message.
        optional: names that may be on one side only: a new head's variables, or a pooler that the model does not use.
            Where a name is on both sides, it must fit like any other.
        consume: take each weight out of `weights` as soon as its variable has it, so that memory does not hold
            the whole model twice.

    Returns:
        The names among `optional` that were on one side only, sorted.

    Raises:
        InputError: missing, left over, misshapen or non-finite weights; the message lists them all.
        ValueError: two variables have the same path.
    """
    by_name = _by_name(variables)
    shapes = {name: tuple(variable.shape) for name, variable in by_name.items()}
    check_shapes(weights, shapes, source=source, optional=optional)
    check_finite({name: weights[name] for name in by_name if name in weights}, source=source)
    on_one_side = sorted(set(by_name) ^ set(weights))
    take = weights.pop if consume else weights.__getitem__
    for name, variable in by_name.items():
        if name in weights:
            variable.assign(take(name))
    return on_one_side


def unfilled(shape: Sequence[int], dtype: str) -> Any:
    """A Keras initialiser for variables that are about to be assigned: memory as it comes, which is not even touched."""
    import tensorflow as tf

    return tf.raw_ops.Empty(shape=tf.constant(shape, tf.int32), dtype=dtype, init=False)


def check_shapes(
    weights: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...]],
    *,
    source: str,
    optional: Collection[str] = (),
) -> None:
    """Raises InputError unless `weights` are exactly `shapes`, apart from names in `optional` on one side only.

    Of the weights nothing is asked but the attribute `shape`; they may be in a file still.
    """
    missing = [f"{name} {shape}" for name, shape in shapes.items() if name not in weights and name not in optional]
    left_over = [f"{name} {weights[name].shape}" for name in weights if name not in shapes and name not in optional]
    misshapen = [
        f"{name} is {weights[name].shape}, expected {shape}"
        for name, shape in shapes.items()
        if name in weights and weights[name].shape != shape
    ]
    problems = (("missing", missing), ("not in the model", left_over), ("of another shape", misshapen))
    if missing or left_over or misshapen:
        told = "; ".join(f"{len(items)} {what}: {listing(items)}" for what, items in problems if items)
        raise InputError(
            f"{source}: the weights are not of this model: {told}; use the config and the head they were made with"
        )


def check_finite(weights: Mapping[str, np.ndarray], *, source: str) -> None:
    """Raises InputError when a weight is not floating point, or is NaN or infinite somewhere."""
    for name, weight in weights.items():
        if not np.issubdtype(weight.dtype, np.floating):
            raise InputError(f"{source}: {name}: expected floating-point weights, got {weight.dtype}")
        # NaN is the least and the greatest of an array that has one. An array of booleans would take a quarter more.
        if weight.size and not (np.isfinite(weight.min()) and np.isfinite(weight.max())):
            bad = weight.size - np.count_nonzero(np.isfinite(weight))
            raise InputError(
                f"{source}: {name}: {bad} of {weight.size} values are NaN or infinite; "
                "the training run that wrote the file had diverged, or the file is damaged: take an earlier checkpoint"
            )


def listing(items: Sequence[str]) -> str:
    """The first items and how many more there are, on one line."""
    more = f" and {len(items) - _LISTED} more" if len(items) > _LISTED else ""
    return ", ".join(items[:_LISTED]) + more


def _by_name(variables: Mapping[str, Any] | Iterable[Any]) -> dict[str, Any]:
    if isinstance(variables, Mapping):
        return dict(variables)
    by_name: dict[str, Any] = {}
    variable: Any
    for variable in variables:
        if by_name.setdefault(variable.path, variable) is not variable:
            raise ValueError(f"two variables have the path {variable.path!r}")
    return by_name
