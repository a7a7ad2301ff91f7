"""`export.recorded`: answers are made of what was recorded, and nothing is run."""

from typing import Any

import numpy as np
import pytest
from tiny_exports import LABELS, exported

from albert_tf.inference.pipelines import pipeline_of
from export.recorded import Recorded
from export.runtime import TFLiteRunner


def test_answers_are_those_of_the_recorded_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = TFLiteRunner(exported("all", "float32"))

    def run(*args: Any) -> Any:
        raise RuntimeError("nothing is to be run")

    monkeypatch.setattr(runner, "run", run)
    rows = [{"probabilities": np.eye(3, dtype=np.float32)[place]} for place in (2, 0)]
    recorded = Recorded(runner, rows)
    assert (recorded.task, recorded.task_settings) == (runner.task, runner.task_settings)
    assert recorded.required_tokenizer is runner.tokenizer
    assert [answer.label for answer in pipeline_of(recorded)(["the old mill", "by the river"])] == [
        LABELS[2],
        LABELS[0],
    ]
