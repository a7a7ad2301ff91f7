"""How many passes through the encoder a model makes: all, as many as it is told, or until its answer is settled.

ALBERT's layers share their weights, so a model cut short is no other file. `ExitSettings` say when an answer is settled;
`DepthChoice` is what a caller wants of a model at run time.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from albert_tf.errors import InputError
from albert_tf.inference.runner import Outputs, Runner, RunnerAround
from albert_tf.tokenization.packing import Packed

# The output that says how many passes were made, and the inputs that choose it.
DEPTH, NUM_PASSES, EXIT_PATIENCE, EXIT_THRESHOLD = "depth", "num_passes", "exit_patience", "exit_threshold"
# What a file can leave open: nothing; the number of passes; that, and when an answer is settled.
PLAIN, PASSES, EXITS = "none", "passes", "exits"
ADAPTIVE = (PLAIN, PASSES, EXITS)
HEADS = ("shared", "own")
# Rule → (passes in a row, threshold) where none are given.
RULES: dict[str, tuple[int, float]] = {
    "patience": (2, 0.0),
    "confidence": (1, 0.95),
    "entropy": (1, 0.2),
    "tolerance": (1, 0.05),
}
_MOST = 2**31 - 1  # what an int32 of a file holds
_LARGEST = float(np.finfo(np.float32).max)


@dataclasses.dataclass(frozen=True)
class ExitSettings:
    """When an answer is settled: it is looked at after every pass, and `patience` settled passes in a row end the run.

    Attributes:
        rule: what a settled pass is. Tagging and question answering choose several things in a row: a label for each token
            but [CLS] and [SEP]; where the answer starts and where it ends, among the tokens of the passage and the first
            one, which stands for none; of the head "squad2" the end for the best start, and whether there is an answer. A
            pass is settled for the whole row, so every rule looks at the choice that is furthest from it. A row that asks
            for nothing is settled by "confidence" and "entropy" as if it were certain.
            "patience": the best label is that of the pass before (PABEE: Zhou et al., "BERT Loses Patience", 2020,
            section 3.2); of several choices, all are. The first pass has none before it, so patience P needs P + 1 passes.
            "confidence": the largest probability, of several choices the least of them, is above `threshold`. 0: after the
            first pass; 1: never.
            "entropy": the entropy of the probabilities, divided by its largest, ln(labels), or ln(places), of several
            choices the largest, is below `threshold` (DeeBERT: Xin et al., 2020, section 3.2; so divided, FastBERT: Liu et
            al., 2020, section 3.3). 0: never; 1: after the first pass, unless all options are equally probable.
            "tolerance": the value is off by less than `threshold` from that of the pass before (PABEE, for regression);
            an embedding, 1 - cosine. 0: never.
        patience: such passes in a row; a number as large as the model's passes is never reached by "patience" and
            "tolerance", a larger one by no rule. Default: 2 for "patience", 1 for others.
        threshold: see `rule`; not used by "patience". Default: 0.95, 0.2, 0.05 in the order above.
        heads: "shared", one head for every depth, which costs no bytes; or "own", a small one for each, where the task's
            head is small.

    Raises:
        InputError: a value that cannot be used.
    """

    rule: str
    patience: int | None = None
    threshold: float | None = None
    heads: str = "shared"

    def __post_init__(self) -> None:
        for name, value, known in (("rule", self.rule, tuple(RULES)), ("heads", self.heads, HEADS)):
            if value not in known:
                raise InputError(f"exits: {name}: expected one of {', '.join(known)}; got {value!r}")
        patience, threshold = RULES[self.rule]
        patience = patience if self.patience is None else _whole("exits: patience", self.patience)
        threshold = threshold if self.threshold is None else _number("exits: threshold", self.threshold)
        object.__setattr__(self, "patience", patience)
        object.__setattr__(self, "threshold", threshold)

    @classmethod
    def of(cls, settings: "ExitSettings | Mapping[str, Any] | None", rules: Sequence[str]) -> "ExitSettings | None":
        """The settings, also out of task.json.

        Args:
            settings: as they are, as JSON has them, or none.
            rules: those that the task knows.

        Raises:
            InputError: they cannot be used, or not by this task.
        """
        if isinstance(settings, Mapping):
            unknown = sorted(map(str, settings.keys() - {field.name for field in dataclasses.fields(cls)}))
            if unknown or "rule" not in settings:
                raise InputError(f"exits: expected rule, patience, threshold and heads; got {', '.join(settings)}")
            settings = cls(**settings)
        if settings is not None and not isinstance(settings, cls):
            raise InputError(f"exits: expected ExitSettings or None, got {settings!r}")
        if settings is not None and settings.rule not in rules:
            raise InputError(f"exits: rule: expected one of {', '.join(rules)} for this task; got {settings.rule}")
        return settings


@dataclasses.dataclass(frozen=True)
class DepthChoice:
    """What a caller wants of a model; None for what the model's own settings say.

    Attributes:
        num_passes: the most passes, from 1 to the model's layers.
        patience, threshold: in place of those of its `ExitSettings`.

    Raises:
        InputError: a number below 1, or below 0 for the threshold.
    """

    num_passes: int | None = None
    patience: int | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        if self.num_passes is not None:
            _whole("num_passes (--passes)", self.num_passes)
        if self.patience is not None:
            _whole("exit patience", self.patience)
        if self.threshold is not None:
            _number("exit threshold", self.threshold)

    def check(self, num_layers: int, adaptive: str) -> None:
        """Compares it with what a model leaves open.

        Args:
            num_layers: the model's.
            adaptive: of `ADAPTIVE`.

        Raises:
            InputError: more passes than the model has, or a choice that the model does not leave open.
        """
        if self.num_passes is not None and adaptive == PLAIN:
            raise InputError(
                "num_passes (--passes): this file always makes all passes; export it with --adaptive passes to choose them"
            )
        if self.num_passes is not None and self.num_passes > num_layers:
            raise InputError(
                f"num_passes (--passes): expected 1 to {num_layers}, the passes of this model; got {self.num_passes}"
            )
        if (self.patience, self.threshold) != (None, None) and adaptive != EXITS:
            raise InputError(
                "exit patience and threshold: this model does not exit early; expected one trained with finetune "
                "--early-exit, and exported with --adaptive exits"
            )

    def inputs(self, adaptive: str) -> dict[str, np.ndarray]:
        """The inputs, of one value each, of a file: 0 passes, a patience of 0 and a threshold below 0 are its own."""
        found = {} if adaptive == PLAIN else {NUM_PASSES: np.array([self.num_passes or 0], np.int32)}
        if adaptive == EXITS:
            found[EXIT_PATIENCE] = np.array([self.patience or 0], np.int32)
            found[EXIT_THRESHOLD] = np.array([-1.0 if self.threshold is None else self.threshold], np.float32)
        return found


class DepthCounter(RunnerAround):
    """Runs rows as `runner` does, and notes the passes made for each; see `Runner`.

    Attributes:
        depths: of all rows so far; none of a model that does not say.
    """

    def __init__(self, runner: Runner) -> None:
        super().__init__(runner)
        self.depths: list[int] = []

    @property
    def mean_depth(self) -> float | None:
        """Passes in the mean; None where no row said how many."""
        return float(np.mean(self.depths)) if self.depths else None

    def run_rows(self, rows: Sequence[Packed]) -> list[Outputs]:
        found = self.runner.run_rows(rows)
        self.depths += [int(outputs[DEPTH]) for outputs in found if DEPTH in outputs]
        return found


def _whole(name: str, value: Any) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or not 1 <= int(value) <= _MOST:
        raise InputError(f"{name}: expected a whole number from 1 to {_MOST}, got {value!r}")
    return int(value)


def _number(name: str, value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) <= _LARGEST:
        raise InputError(f"{name}: expected a number of at least 0 that float32 holds, got {value!r}")
    return float(value)
