"""`albert_tf.inference.runner`: no answer is made of what is no number."""

import numpy as np
import pytest
from tiny_tasks import EXAMPLES, tiny_task

from albert_tf.evaluation.remembering import RememberingRunner
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.inference.runner import NotFiniteError, finite_outputs


class Spoiled(RememberingRunner):
    """Puts out `value` in one place of the last row."""

    value = float("nan")

    def run_rows(self, rows):
        outputs = super().run_rows(rows)
        return [*outputs[:-1], {name: self._spoiled(values) for name, values in outputs[-1].items()}]

    def _spoiled(self, values):
        values = np.array(values)
        values.flat[-1] = self.value
        return values


@pytest.mark.parametrize("task", EXAMPLES)
def test_outputs_that_are_no_numbers(task):
    runner = Spoiled(tiny_task(task))
    pipeline = pipeline_of(runner)
    prepared = pipeline.prepare(EXAMPLES[task][1])
    for runner.value in (float("nan"), float("inf")):
        with pytest.raises(NotFiniteError, match=r"for row (\d+) of \1 are NaN or infinite: its weights are damaged"):
            pipeline.answer(prepared)
    assert len(finite_outputs(runner.runner, prepared.rows)) == len(prepared.rows)
