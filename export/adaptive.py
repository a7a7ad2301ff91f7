"""Files whose depth is chosen when they run: what can have one, and how such a file is compared with its model."""

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from albert_tf.errors import InputError
from albert_tf.inference.depth import ADAPTIVE, DEPTH, EXITS, PLAIN, DepthChoice, ExitSettings
from albert_tf.inference.runner import Outputs
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.depth import exit_settings

# As many settled passes in a row no model has.
EVERY_PASS = DepthChoice(patience=2**31 - 1)


class ChosenDepth(Protocol):
    """A Keras task or a file whose depth can be chosen."""

    depth: DepthChoice

    def choose_depth(self, choice: DepthChoice) -> None: ...


@dataclasses.dataclass(frozen=True)
class DepthReport:
    """How deep a file with early exits goes, beside the Keras model, on the rows that the two were compared on.

    Attributes:
        num_passes: the most there are.
        keras_mean_depth, file_mean_depth: passes in the mean.
        same_depth: share of the rows for which both make as many.
    """

    num_passes: int
    keras_mean_depth: float
    file_mean_depth: float
    same_depth: float


def checked_adaptive(
    task: AlbertTask,
    adaptive: str | None,
    exits: ExitSettings | None,
    *,
    form: str,
    runtime: str,
    text_input: bool,
) -> tuple[str, ExitSettings | None]:
    """What the file leaves open, and when its answers are settled.

    Args:
        task: the model.
        adaptive: as asked for; None for what the model is.
        exits: in place of the model's own.
        form, runtime, text_input: of the file.

    Raises:
        InputError: exits that the model does not have, or a file that cannot have a depth of its own.
    """
    if exits is not None:
        exits = exit_settings(exits, type(task))
        heads = "shared" if task.exits is None else task.exits.heads
        if exits is not None and exits.heads != heads:
            raise InputError(f"exits: heads: this model was trained with {heads}, got {exits.heads}")
    exits = exits or task.exits
    if adaptive is None:
        adaptive = PLAIN if exits is None else EXITS
    if adaptive not in ADAPTIVE:
        raise InputError(f"adaptive: expected one of {', '.join(ADAPTIVE)}; got {adaptive!r}")
    if adaptive == EXITS and exits is None:
        raise InputError(
            "adaptive: this model has no early exits; expected one trained with finetune --early-exit, or a rule for this "
            "file (--exit-rule)"
        )
    if adaptive == PLAIN:
        return PLAIN, task.exits
    without = "; give --adaptive none for a file that always makes all passes" if task.exits is not None else ""
    if form != "loop":
        raise InputError(
            f"adaptive: {form} files have every pass written out, and run them all; a depth chosen at run time needs the "
            f"form loop{without}"
        )
    if runtime != "litert":
        raise InputError(f"adaptive: {runtime} knows no input or output for the depth; expected litert{without}")
    if text_input:
        raise InputError(
            f"adaptive: a signature for strings has no input for the depth; leave one of the two out{without}"
        )
    return adaptive, exits if adaptive == EXITS else task.exits


@contextlib.contextmanager
def every_pass(*models: ChosenDepth | None) -> Iterator[None]:
    """A block in which these models make all passes; None stands for one that does so anyway."""
    before = [(model, model.depth) for model in models if model is not None]
    try:
        for model, _ in before:
            model.choose_depth(EVERY_PASS)
        yield
    finally:
        for model, depth in before:
            model.choose_depth(depth)


def without_depth(rows: Sequence[Outputs]) -> list[Outputs]:
    """The outputs but for the depth."""
    return [{name: values for name, values in row.items() if name != DEPTH} for row in rows]


def depth_report(from_file: Sequence[Outputs], from_keras: Sequence[Outputs], num_passes: int) -> DepthReport:
    """The depths in the outputs of the same rows."""
    file, keras = (np.array([int(row[DEPTH]) for row in rows]) for rows in (from_file, from_keras))
    return DepthReport(num_passes, float(keras.mean()), float(file.mean()), float(np.mean(file == keras)))
