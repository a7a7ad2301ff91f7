"""What is chosen among candidates: bounds, the Pareto front, and which of them is preferred."""

import dataclasses
import math
from collections.abc import Mapping, Sequence

from albert_tf.errors import CheckError
from albert_tf.inference.depth import ExitSettings

PREFERENCES = ("latency", "accuracy", "size")
_NEAREST = 3


class TuningError(CheckError):
    """No candidate meets the bounds; the message says which come nearest, and what each misses."""


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A way to export the model.

    Attributes:
        name: what it is called in tables.
        shape: heads and columns that a block has.
        recipe: how weights are stored.
        num_passes: the most passes.
        exits: when it stops before that; None for never.
    """

    name: str
    shape: tuple[int, int]
    recipe: str
    num_passes: int
    exits: ExitSettings | None = None


@dataclasses.dataclass(frozen=True)
class Figures:
    """What a candidate gives and costs.

    Attributes:
        candidate: which.
        value: the task's metric on the examples.
        points_lost: by how much less that is than the reference's, in percentage points.
        latency_ms: processor time of an example, in the mean.
        latency_ratio: that, divided by the reference's.
        mean_passes: passes in the mean.
        size_bytes: of the whole file.
        memory_bytes: by which the process grows with the model.
    """

    candidate: Candidate
    value: float
    points_lost: float
    latency_ms: float
    latency_ratio: float
    mean_passes: float
    size_bytes: int
    memory_bytes: int

    @property
    def costs(self) -> tuple[float, ...]:
        """What should be small: the negative metric, latency, size, memory."""
        return -self.value, self.latency_ms, self.size_bytes, self.memory_bytes


@dataclasses.dataclass(frozen=True)
class Excess:
    """How a figure misses its bound.

    Attributes:
        told: in words.
        share: by which share of the bound; of a drop, of one point where the bound is less.
    """

    told: str
    share: float


@dataclasses.dataclass(frozen=True)
class Bounds:
    """What a file must keep; None for no bound.

    Attributes:
        max_size: bytes of the whole file.
        max_latency_ratio: of the latency to the reference's.
        max_drop: points of the metric below the reference's.
    """

    max_size: int | None = None
    max_latency_ratio: float | None = None
    max_drop: float | None = 1.0

    def excesses(self, figures: Figures) -> dict[str, Excess]:
        """The bounds that are missed, by what they are of: size, latency, drop."""
        found = {}
        size, ratio, drop = self.max_size, self.max_latency_ratio, self.max_drop
        # Written so that a NaN misses them too.
        if size is not None and not figures.size_bytes <= size:
            told = f"size {figures.size_bytes:,} bytes, at most {size:,}"
            found["size"] = Excess(told, figures.size_bytes / size - 1)
        if ratio is not None and not figures.latency_ratio <= ratio:
            told = f"latency ratio {figures.latency_ratio:.3f}, at most {ratio:g}"
            found["latency"] = Excess(told, figures.latency_ratio / ratio - 1)
        # 100 · (0.93 - 0.92) is a little more than one point.
        if drop is not None and not figures.points_lost <= drop + 1e-9:
            told = f"drop {figures.points_lost:.2f} points, at most {drop:g}"
            found["drop"] = Excess(told, (figures.points_lost - drop) / max(drop, 1.0))
        return found


def in_words(excesses: Mapping[str, Excess]) -> str:
    """What is missed, on one line."""
    return ", ".join(excess.told for excess in excesses.values())


def pareto_front(costs: Sequence[Sequence[float]]) -> list[bool]:
    """Whether each row is on the front: no other is as small in every number and smaller in one."""
    order = sorted(range(len(costs)), key=lambda place: tuple(costs[place]))
    on_front = [False] * len(costs)
    front: list[Sequence[float]] = []
    for place in order:  # what dominates a row comes before it
        row = costs[place]
        on_front[place] = not any(
            tuple(other) != tuple(row) and all(a <= b for a, b in zip(other, row, strict=True)) for other in front
        )
        if on_front[place]:
            front.append(row)
    return on_front


def by_preference(tried: Sequence[Figures], bounds: Bounds, prefer: str) -> list[Figures]:
    """Those that meet all bounds, the preferred one first.

    Args:
        tried: all candidates.
        bounds: what they must keep.
        prefer: of `PREFERENCES`; among equals the faster one, then the more accurate.
    """
    order = {
        "latency": lambda one: (one.latency_ratio, -one.value, one.size_bytes),
        "accuracy": lambda one: (-one.value, one.latency_ratio, one.size_bytes),
        "size": lambda one: (one.size_bytes, one.latency_ratio, -one.value),
    }[prefer]
    return sorted((one for one in tried if not bounds.excesses(one)), key=order)


def nothing_fits(tried: Sequence[Figures], bounds: Bounds, left_out: dict[str, str]) -> TuningError:
    """The error that tells the nearest candidates.

    Args:
        tried: candidates, none of which is taken.
        bounds: what they must keep.
        left_out: those that were not tried → why.
    """

    def distance(one: Figures) -> tuple[int, float]:
        excesses = bounds.excesses(one).values()
        return len(excesses), math.fsum(excess.share for excess in excesses)

    missing = [one for one in tried if bounds.excesses(one)]
    nearest = sorted(missing, key=distance)[:_NEAREST]
    told = "; ".join(f"{one.candidate.name} ({in_words(bounds.excesses(one))})" for one in nearest)
    more = ""
    if left_out:
        name, reason = next(iter(left_out.items()))
        more = f"; {len(left_out)} not tried, such as {name} ({reason})"
    return TuningError(f"no candidate meets the bounds, nothing is written; nearest: {told or 'none'}{more}")
