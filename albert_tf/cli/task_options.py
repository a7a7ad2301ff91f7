"""Options of `predict` and `evaluate` that only some tasks have."""

import argparse
import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from albert_tf.errors import InputError
from albert_tf.inference.runner import Pipeline


@dataclasses.dataclass(frozen=True)
class TaskOption:
    """An option of some tasks.

    Attributes:
        flag: as it is written on the command line.
        tasks: those that have it.
        help: what it does.
        arguments: more for `ArgumentParser.add_argument`; what is not given is None.
    """

    flag: str
    tasks: tuple[str, ...]
    help: str
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)

    @property
    def name(self) -> str:
        """The keyword or attribute that the option is for."""
        return str(self.arguments.get("dest", self.flag.removeprefix("--").replace("-", "_")))


_GLUE = ("classification", "regression")
_TEXTS = ("classification", "multi-label", "regression", "similarity")
GLUE_OPTION = TaskOption(
    "--glue", _GLUE, "the files are those of this task of GLUE, such as SST-2; the folder of the task will do"
)
GLUE_TEST_OPTION = TaskOption(
    "--glue",
    _GLUE,
    "--file is the test of this task of GLUE, or its folder; prints the predictions as they are handed in",
)
# How a text is found in a file or JSON object; keywords of the readers.
TEXT_OPTIONS = (
    TaskOption("--text-column", _TEXTS, "column of the text: a name, or a number from 0 for a file without header"),
    TaskOption("--pair-column", _TEXTS, "column of the second text"),
)
# What the examples of `predict` have in common; a keyword of the task's `example`.
EXAMPLE_OPTIONS = (
    *TEXT_OPTIONS,
    TaskOption(
        "--context-file", ("question-answering",), "file with the passage that all questions are about", {"type": Path}
    ),
)
# How a file with answers is read; keywords of the readers.
DATA_OPTIONS = (
    *TEXT_OPTIONS,
    TaskOption("--label-column", _TEXTS, "column of the label"),
    TaskOption("--negative-column", ("similarity",), "column of a third text, which does not belong to the first"),
    TaskOption("--label-separator", ("multi-label",), "what stands between labels in a table (default ,)"),
    GLUE_OPTION,
    TaskOption(
        "--leave-out-unusable",
        ("multiple-choice", "question-answering"),
        "leave out questions without options, or with an answer that cannot be, and say how many",
        {"action": "store_const", "const": True},
    ),
)
# Figures that are taken on request.
METRIC_OPTIONS = (
    TaskOption(
        "--calibration",
        ("classification",),
        "also how far probabilities are from the share of right answers (expected calibration error, 15 bins)",
        {"action": "store_const", "const": True},
    ),
    TaskOption(
        "--fit-temperature",
        ("classification",),
        "find the temperature that fits the probabilities to this file, which should be the one for validation, and save it "
        "in the run folder; exports made after that have it too",
        {"action": "store_const", "const": True},
    ),
)
# How answers are found; attributes of the task's pipeline.
PIPELINE_OPTIONS = (
    TaskOption("--top-k", ("fill-mask",), "pieces for each [MASK] (default 5)", {"type": int}),
    TaskOption(
        "--no-answer-threshold",
        ("question-answering",),
        "give no answer where the no-answer score is above this; default: the model's, found by its last validation",
        {"type": float},
    ),
    TaskOption(
        "--threshold",
        ("multi-label",),
        "a label is given where its probability is above this (default: as trained)",
        {"type": float},
    ),
    TaskOption(
        "--unconstrained",
        ("tagging",),
        "the most probable label of each word, also where it goes on with an entity that has not begun",
        {"action": "store_const", "const": False, "dest": "constrained"},
    ),
)


def add_options(parser: argparse.ArgumentParser, options: Iterable[TaskOption]) -> None:
    """Adds the options, each with the names of its tasks."""
    for option in options:
        text = f"{', '.join(option.tasks)}: {option.help}"
        parser.add_argument(option.flag, help=text, **option.arguments)


def given_options(args: argparse.Namespace, options: Iterable[TaskOption], task: str) -> dict[str, Any]:
    """The values of the options that were given, by name.

    Raises:
        InputError: one of them is not of this task.
    """
    given = {option: getattr(args, option.name) for option in options}
    for option, value in given.items():
        if value is not None and task not in option.tasks:
            raise InputError(f"{option.flag} is for {', '.join(option.tasks)}; this model is for {task}")
    return {option.name: value for option, value in given.items() if value is not None}


def set_pipeline_options(pipeline: Pipeline, args: argparse.Namespace, task: str) -> None:
    """Gives the task's pipeline what was asked of it.

    Raises:
        InputError: an option of another task, or a value that the pipeline cannot have.
    """
    for name, value in given_options(args, PIPELINE_OPTIONS, task).items():
        setattr(pipeline, name, value)
