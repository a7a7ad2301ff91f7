"""Files that take turns: each row of the examples goes through every candidate before the next, in one process, so that
all of them see the same machine."""

import dataclasses
import time
from collections.abc import Sequence

import numpy as np

from albert_tf.inference.depth import DEPTH, DepthChoice
from albert_tf.inference.runner import Outputs
from albert_tf.tokenization.packing import Packed
from export.runtime import TFLiteRunner


@dataclasses.dataclass(frozen=True)
class Turn:
    """A file, and how deep it goes in this turn."""

    runner: TFLiteRunner
    choice: DepthChoice


@dataclasses.dataclass
class Ran:
    """What a turn gave.

    Attributes:
        outputs: of each row.
        seconds: processor time of all rows together.
    """

    outputs: list[Outputs]
    seconds: float = 0.0

    def mean_passes(self, num_passes: int) -> float:
        """Passes in the mean; of a model that does not say, those it always makes."""
        return float(np.mean([int(row.get(DEPTH, num_passes)) for row in self.outputs]))


def run_in_turns(turns: Sequence[Turn], rows: Sequence[Packed]) -> list[Ran]:
    """Runs every row through every turn, shortest rows first, and begins with another turn at each row.

    The runtime allocates anew for a row of another length: each file has run such a row once before it is timed.
    """
    ran = [Ran([{}] * len(rows)) for _ in turns]
    runners = list({id(turn.runner): turn.runner for turn in turns}.values())
    length = 0
    for number, index in enumerate(sorted(range(len(rows)), key=lambda i: len(rows[i][0]))):
        row = rows[index]
        if len(row[0]) != length:
            length = len(row[0])
            for runner in runners:
                runner.run(*row)
        first = number % len(turns)
        for place in [*range(first, len(turns)), *range(first)]:
            turn = turns[place]
            turn.runner.choose_depth(turn.choice)
            started = time.process_time()
            ran[place].outputs[index] = turn.runner.run(*row)
            ran[place].seconds += time.process_time() - started
    return ran
