"""`export.tuning_choice`: the Pareto front against brute force, bounds, and what is preferred."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.errors import CheckError
from export.tuning_choice import PREFERENCES, Bounds, Candidate, Figures, by_preference, nothing_fits, pareto_front

# Few values, so that rows are equal in some or all numbers.
ROWS = st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=12)


def figures(name: str, *, lost: float = 0.0, ratio: float = 1.0, size: int = 100, memory: int = 10) -> Figures:
    candidate = Candidate(name, (4, 64), "dynamic_int8", 3)
    return Figures(candidate, 0.9 - lost / 100, lost, 10 * ratio, ratio, 3.0, size, memory)


TRIED = [
    figures("reference"),
    figures("fast", lost=1.0, ratio=0.4, size=90),
    figures("faster", lost=3.0, ratio=0.2, size=90),
    figures("small", lost=0.5, ratio=0.9, size=50),
    figures("better", lost=-0.5, ratio=0.95, size=200),
]


@given(ROWS)
def test_the_front_is_what_no_row_dominates(rows: list[tuple[int, ...]]) -> None:
    found = pareto_front(rows)
    array = np.array(rows).reshape(len(rows), 3)
    for row, best in zip(array, found, strict=True):
        at_least = (array <= row).all(axis=1)
        assert best == (not (at_least & (array < row).any(axis=1)).any())


def test_the_front_of_known_points() -> None:
    assert pareto_front([]) == []
    assert pareto_front([(1, 3), (2, 2), (3, 3), (3, 1), (2, 2)]) == [True, True, False, True, True]


@pytest.mark.parametrize(
    ("bounds", "prefer", "expected"),
    [
        (Bounds(), "latency", ["fast", "small", "better", "reference"]),
        (Bounds(), "accuracy", ["better", "reference", "small", "fast"]),
        (Bounds(), "size", ["small", "fast", "reference", "better"]),
        (Bounds(max_drop=None), "latency", ["faster", "fast", "small", "better", "reference"]),
        (Bounds(max_drop=0.5), "latency", ["small", "better", "reference"]),
        (Bounds(max_size=90), "accuracy", ["small", "fast"]),
        (Bounds(max_latency_ratio=0.4, max_drop=3.0), "accuracy", ["fast", "faster"]),
        (Bounds(max_size=80, max_latency_ratio=0.5), "latency", []),
    ],
)
def test_what_keeps_the_bounds_in_the_order_preferred(bounds: Bounds, prefer: str, expected: list[str]) -> None:
    assert [one.candidate.name for one in by_preference(TRIED, bounds, prefer)] == expected


@pytest.mark.parametrize("prefer", PREFERENCES)
def test_equals_are_told_apart_by_latency_and_then_by_the_rest(prefer: str) -> None:
    same = [figures("slow", ratio=0.9), figures("quick", ratio=0.8), figures("large", ratio=0.8, size=101)]
    found = [one.candidate.name for one in by_preference(same, Bounds(), prefer)]
    assert found[0] == "quick"


def test_a_point_is_lost_where_rounding_makes_it_a_little_more() -> None:
    one = dataclasses.replace(figures("one"), points_lost=100 * (0.93 - 0.92))
    assert one.points_lost > 1.0
    assert Bounds(max_drop=1.0).excesses(one) == {}


def test_a_number_that_is_none_keeps_no_bound() -> None:
    assert len(Bounds(max_drop=1.0).excesses(dataclasses.replace(figures("bad"), points_lost=float("nan")))) == 1


def test_the_error_names_the_nearest_and_what_each_misses() -> None:
    bounds = Bounds(max_size=80, max_latency_ratio=0.3)
    error = nothing_fits(TRIED, bounds, {"float32, all passes": "at least 400 bytes, at most 80 wanted"})
    assert isinstance(error, CheckError)
    told = str(error)
    # One bound missed comes before two, and of those the one that is less beyond them.
    assert "nothing is written" in told
    assert "small (latency ratio 0.900, at most 0.3); fast (size 90 bytes, at most 80" in told
    assert "latency ratio 0.400, at most 0.3" in told
    assert "1 not tried, such as float32, all passes (at least 400 bytes, at most 80 wanted)" in told
    assert "better (" not in told
