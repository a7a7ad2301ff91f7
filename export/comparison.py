"""How far the outputs of a file are from those of the model it was made from, row by row."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf.inference.multiple_choice import MultipleChoicePipeline
from albert_tf.inference.runner import Outputs, Pipeline

# Scores below are those of positions that can be no answer.
MASKED = -1e3
# Sums of the same float32 products in another order differ by some units in the last place of the values; of regressors
# by 1 to 3 in the mean (one of twelve layers that says 2.6, with a deviation of 0.004, to all texts: 4e-7, which is 1e-4 of
# the deviation). Where values lie close together beside their size, that is no small part of their spread, and says nothing
# of the file: it is left out of the distance.
ROUNDING = 8 * 2.0**-23


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Figures of the outputs of two models.

    Attributes:
        rows: how many rows of tokens were compared.
        max_difference, mean_difference: absolute.
        distance: in the mean, as `distance` has it.
        cosine: in the mean over rows and outputs, of what the file and the model put out.
        agreement: share of the same decisions; None where a row decides nothing, as of numbers and embeddings.
        clear_ones_agree: whether the decisions are the same wherever the model prefers its own by `clear_margin`.
    """

    rows: int
    max_difference: float
    mean_difference: float
    distance: float
    cosine: float
    agreement: float | None
    clear_ones_agree: bool


@dataclasses.dataclass(frozen=True)
class MetricPair:
    """A figure of the Keras model and of the file on the same examples."""

    keras: float
    file: float
    difference: float


def compare(
    from_file: Sequence[Outputs],
    from_keras: Sequence[Outputs],
    pipeline: Pipeline,
    context: Any,
    clear_margin: float,
) -> Comparison:
    """Compares the outputs of the same rows.

    Args:
        from_file, from_keras: the outputs of each row.
        pipeline: of the task.
        context: what the pipeline said of the rows when it prepared them; None for rows that stand for themselves.
        clear_margin: a preference that the file must share, in parts of the outputs' `spread`.
    """
    differences = np.concatenate(
        [
            _differences(file[name], keras[name])
            for file, keras in zip(from_file, from_keras, strict=True)
            for name in keras
        ]
    )
    names = list(from_keras[0])
    spreads = {name: spread(name, [outputs[name] for outputs in from_keras]) for name in names}
    wanted = _decisions(pipeline, context, from_keras)
    agrees = [d == w for (d, _), (w, _) in zip(_decisions(pipeline, context, from_file), wanted, strict=True)]
    clear = clear_margin * max(spreads.values())
    decides = any(decision is not None for decision, _ in wanted)
    return Comparison(
        rows=len(from_keras),
        max_difference=float(differences.max()),
        mean_difference=float(differences.mean()),
        distance=max(
            distance([o[name] for o in from_file], [o[name] for o in from_keras], spreads[name]) for name in names
        ),
        cosine=_mean_cosine(from_file, from_keras),
        agreement=float(np.mean(agrees)) if decides else None,
        clear_ones_agree=all(same for same, (_, margin) in zip(agrees, wanted, strict=True) if margin > clear),
    )


def _decisions(pipeline: Pipeline, context: Any, outputs: Sequence[Outputs]) -> list[tuple[Any, float]]:
    """What the outputs amount to, and by how much it is preferred: of each row, or of all options of a question."""
    if not isinstance(pipeline, MultipleChoicePipeline) or context is None:
        return [pipeline.decision(row) for row in outputs]
    choices = pipeline.choices(outputs, context)
    margins = [float(np.subtract(*np.sort(choice.probabilities)[-1:-3:-1])) for choice in choices]
    return [(choice.option, margin) for choice, margin in zip(choices, margins, strict=True)]


def _differences(file: np.ndarray, keras: np.ndarray) -> np.ndarray:
    """Absolute differences, (values,). Of a place that can be no answer any score will do that is below all others."""
    lowest = keras.min(initial=np.inf, where=keras > MASKED)
    return np.abs(np.asarray(file, np.float64) - keras)[(keras > MASKED) | ~(np.asarray(file) < lowest)]


def _mean_cosine(from_file: Sequence[Outputs], from_keras: Sequence[Outputs]) -> float:
    found = []
    for file, keras in zip(from_file, from_keras, strict=True):
        for name, values in keras.items():
            kept = values > MASKED
            a, b = np.asarray(file[name][kept], np.float64), np.asarray(values[kept], np.float64)
            lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
            found.append(float(a @ b) / lengths if lengths else float(np.array_equal(a, b)))
    return float(np.mean(found))


def spread(name: str, rows: Sequence[np.ndarray]) -> float:
    """What a difference of the output `name` is measured by: 1 for probabilities, else how far the values lie apart."""
    if name.endswith("probabilities"):
        return 1.0
    values = np.concatenate([np.asarray(row, np.float64).ravel() for row in rows])
    values = values[values > MASKED]
    # Of one value alone, its size: there is nothing to compare it with.
    return float(values.std() or np.abs(values).max()) or 1.0


def distance(from_file: Sequence[np.ndarray], from_keras: Sequence[np.ndarray], spread: float) -> float:
    """The mean distance of one output of all rows: of distributions the total variation, of vectors of length 1 the angle
    between them as a share of half a turn, of numbers |a - b| / spread.

    Numbers that float32 can hardly tell apart count as equal: `ROUNDING` of the largest. A mean over the pieces of a
    vocabulary would be small however wrong the distribution is.
    """
    total, count, are_directions = 0.0, 0, _are_directions(from_keras)
    if are_directions:
        spread = 1.0
    unsure = ROUNDING * max(float(np.abs(values[values > MASKED]).max(initial=0.0)) for values in from_keras)
    for file, keras in zip(from_file, from_keras, strict=True):
        is_distribution = keras.ndim > 0 and keras.min() >= 0 and np.allclose(keras.sum(-1), 1, atol=1e-3)
        if is_distribution and keras.shape[-1] > 1:
            differences = np.abs(np.asarray(file, np.float64) - keras).sum(-1) / 2
        elif are_directions:
            chord = np.linalg.norm(np.asarray(file, np.float64) - keras, axis=-1)
            differences = 2 * np.arcsin(np.minimum(chord / 2, 1)) / np.pi
        else:
            differences = _differences(file, keras)
            differences[differences <= unsure] = 0
        total, count = total + float(differences.sum()) / spread, count + differences.size
    return total / count


def _are_directions(rows: Sequence[np.ndarray]) -> bool:
    """Whether all rows are vectors of length 1; those of probabilities, which are never below 0, only look so."""
    return all(row.ndim > 0 and np.allclose(np.linalg.norm(row, axis=-1), 1, atol=1e-3) for row in rows) and any(
        row.shape[-1] > 1 and row.min() < 0 for row in rows
    )
