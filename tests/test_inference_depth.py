"""`albert_tf.inference.depth`: what can be asked of a model's depth, and what is refused."""

from typing import Any

import numpy as np
import pytest

from albert_tf.errors import InputError
from albert_tf.inference.depth import ADAPTIVE, RULES, DepthChoice, DepthCounter, ExitSettings


@pytest.mark.parametrize("rule", RULES)
def test_defaults_are_those_of_the_rule(rule: str) -> None:
    settings = ExitSettings(rule)
    assert (settings.patience, settings.threshold) == RULES[rule] and settings.heads == "shared"
    assert ExitSettings.of({"rule": rule, "patience": 4, "threshold": 0.5, "heads": "own"}, [rule]) == ExitSettings(
        rule, 4, 0.5, "own"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rule": "mood"}, r"rule: expected one of patience, confidence, entropy, tolerance; got 'mood'"),
        ({"rule": "patience", "patience": 0}, "exits: patience: expected a whole number from 1 to 2147483647, got 0"),
        ({"rule": "patience", "patience": True}, "patience: expected a whole number"),
        ({"rule": "patience", "patience": 1.5}, "patience: expected a whole number"),
        (
            {"rule": "entropy", "threshold": -0.1},
            r"threshold: expected a number of at least 0 that float32 holds, got -0\.1",
        ),
        ({"rule": "entropy", "threshold": float("nan")}, "threshold: expected a number"),
        ({"rule": "entropy", "heads": "two"}, "heads: expected one of shared, own; got 'two'"),
        ({"rule": "entropy", "speed": 1}, "expected rule, patience, threshold and heads; got rule, speed"),
        ({"patience": 1}, "expected rule, patience, threshold and heads; got patience"),
        ({"rule": "tolerance"}, "rule: expected one of patience, confidence, entropy for this task; got tolerance"),
        (7, "expected ExitSettings or None, got 7"),
    ],
)
def test_unusable_settings_are_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ExitSettings.of(given, ("patience", "confidence", "entropy"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_passes": 0}, r"num_passes \(--passes\): expected a whole number from 1 to 2147483647, got 0"),
        ({"num_passes": 2.0}, r"num_passes \(--passes\): expected a whole number"),
        ({"num_passes": 2**31}, "expected a whole number from 1 to 2147483647, got 2147483648"),
        ({"patience": -1}, "exit patience: expected a whole number"),
        ({"threshold": -1.0}, "exit threshold: expected a number of at least 0"),
        ({"threshold": 1e39}, "exit threshold: expected a number of at least 0 that float32 holds, got 1e\\+39"),
    ],
)
def test_unusable_choices_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        DepthChoice(**fields)


@pytest.mark.parametrize(
    ("choice", "adaptive", "message"),
    [
        (DepthChoice(2), "none", "export it with --adaptive passes"),
        (DepthChoice(4), "passes", r"num_passes \(--passes\): expected 1 to 3, the passes of this model; got 4"),
        (DepthChoice(patience=1), "passes", "this model does not exit early"),
        (DepthChoice(threshold=0.0), "none", "this model does not exit early"),
    ],
)
def test_what_a_model_does_not_leave_open_is_refused(choice: DepthChoice, adaptive: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        choice.check(3, adaptive)


def test_inputs_of_a_file() -> None:
    assert DepthChoice().inputs("none") == {}
    for adaptive in ADAPTIVE:
        DepthChoice().check(3, adaptive)
    own = DepthChoice().inputs("exits")
    assert {name: (value.tolist(), value.dtype.name) for name, value in own.items()} == {
        "num_passes": ([0], "int32"),
        "exit_patience": ([0], "int32"),
        "exit_threshold": ([-1.0], "float32"),
    }
    chosen = DepthChoice(3, 2, 0.0).inputs("exits")  # a threshold of 0 is one
    assert [value.item() for value in chosen.values()] == [3, 2, 0.0]
    assert list(DepthChoice(3).inputs("passes")) == ["num_passes"]


def test_depths_are_counted() -> None:
    class Runner:
        task, task_settings, required_tokenizer = "classification", {"labels": ["a", "b"]}, None

        def run_rows(self, rows: Any) -> Any:
            return [{"depth": np.int32(len(ids))} if ids else {} for ids, _ in rows]

    counter = DepthCounter(Runner())  # type: ignore[arg-type]
    assert counter.mean_depth is None
    counter.run_rows([([1], [0]), ([1, 2], [0, 0]), ([], [])])
    assert counter.depths == [1, 2] and counter.mean_depth == 1.5
    assert counter.task_settings == Runner.task_settings and counter.task == Runner.task
