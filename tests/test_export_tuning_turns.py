"""`export.tuning_turns`: outputs of each candidate by itself, and the order in which they are run."""

from typing import Any

import numpy as np
import pytest
from tiny_exports import exported, random_inputs

from albert_tf.inference.depth import DepthChoice
from export.runtime import TFLiteRunner
from export.tuning_turns import Ran, Turn, run_in_turns

ROWS = [random_inputs(length, seed) for seed, length in enumerate([5, 3, 5, 9, 3])]


class Clock:
    """In the place of a runner: notes each row it is given, and takes as many seconds as it is told."""

    def __init__(self, name: str, seconds: float, log: list[tuple[str, int, int | None]], now: list[float]) -> None:
        self.name, self.seconds, self.log, self.now = name, seconds, log, now
        self.depth: int | None = None
        self.warm_length = 0

    def choose_depth(self, choice: DepthChoice) -> None:
        self.depth = choice.num_passes

    def run(self, token_ids: list[int], segment_ids: list[int]) -> dict[str, np.ndarray]:
        self.log.append((self.name, len(token_ids), self.depth))
        # A new length costs a hundred seconds.
        self.now[0] += self.seconds * (self.depth or 1) + (100.0 if len(token_ids) != self.warm_length else 0.0)
        self.warm_length = len(token_ids)
        return {"probabilities": np.array([len(token_ids), self.depth or 0])}


def test_each_row_goes_through_all_and_allocation_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[Any] = []
    now = [0.0]
    monkeypatch.setattr("export.tuning_turns.time.process_time", lambda: now[0])
    one, other = (Clock(name, seconds, log, now) for name, seconds in (("one", 1.0), ("other", 10.0)))
    choices = [(one, DepthChoice()), (one, DepthChoice(2)), (other, DepthChoice(1))]
    turns: list[Any] = [Turn(runner, choice) for runner, choice in choices]  # type: ignore[arg-type]
    ran = run_in_turns(turns, ROWS)
    assert [found.seconds for found in ran] == [5.0, 10.0, 50.0]
    assert [outputs["probabilities"].tolist() for outputs in ran[1].outputs] == [[5, 2], [3, 2], [5, 2], [9, 2], [3, 2]]
    timed = [entry for entry in log if entry[:2] == ("other", 3)][1:]  # after the row that makes the runtime allocate
    assert len(timed) == 2
    # The first of a row is another one each time.
    assert [name for name, length, depth in log if length == 3] == [
        *("one", "other"),
        *("one", "one", "other"),
        *("one", "other", "one"),
    ]


def test_outputs_are_those_of_the_file_alone() -> None:
    runner, other = (TFLiteRunner(exported("all", recipe)) for recipe in ("float32", "dynamic_int8"))
    ran = run_in_turns([Turn(one, DepthChoice()) for one in (runner, other)], ROWS)
    for one, found in zip((runner, other), ran, strict=True):
        assert found.seconds > 0
        for mine, alone in zip(found.outputs, one.run_rows(ROWS), strict=True):
            assert np.array_equal(mine["probabilities"], alone["probabilities"])


def test_mean_passes_are_those_of_the_depth_output_where_there_is_one() -> None:
    assert Ran([{"depth": np.array(1)}, {"depth": np.array(4)}]).mean_passes(6) == 2.5
    assert Ran([{}, {}]).mean_passes(6) == 6.0
