"""The state of a running training, written whole, from which the same run goes on.

The state before it is kept beside it, for when the newest is damaged: a disk can fail, and a power cut can leave a file
that looks whole. Each holds a checksum.
"""

import contextlib
import dataclasses
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
from safetensors import SafetensorError, safe_open

from albert_tf.conversion.stored import write_safetensors
from albert_tf.errors import InputError
from albert_tf.files import written_whole
from albert_tf.training.quantization_aware import quantization_variables


@dataclasses.dataclass
class Progress:
    """How far a run has come.

    Attributes:
        round: validations done.
        history: one dict of figures for each.
        best_round: the round whose weights are kept, counted from 1, or None before the first.
        data: a checksum of the examples that the run goes over.
        best_checksum: that of the folder with the best round's weights.
    """

    round: int = 0
    history: list[dict[str, float]] = dataclasses.field(default_factory=list)
    best_round: int | None = None
    data: str = ""
    best_checksum: str = ""


def save_state(path: str | Path, model: keras.Model, progress: Progress) -> None:
    """Writes every variable of the model and its optimizer, random states included, and the progress.

    What was at `path` is kept as the state before.
    """
    path = Path(path)
    values = {name: np.asarray(variable) for name, variable in _variables(model).items()}
    metadata = {"progress": json.dumps(dataclasses.asdict(progress)), "checksum": _checksum(values)}
    with written_whole(path, overwrite=True) as temporary:
        write_safetensors(temporary, values, metadata)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())  # on the disk before it takes the place of a good one
        if path.exists():
            path.replace(_before(path))


def has_state(path: str | Path) -> bool:
    """Whether there is a state to go on from."""
    return Path(path).exists() or _before(Path(path)).exists()


def restore_state(
    path: str | Path,
    model: keras.Model,
    report: Callable[[str], None] = print,
    unusable: Callable[[Progress], str | None] = lambda progress: None,
) -> Progress:
    """Puts the variables back into a model built and compiled alike, and returns the progress.

    Args:
        path: of the state; where it is damaged, gone or unusable, the one before it is taken.
        model: gets the variables.
        report: is told so.
        unusable: says what else that belongs to a state is damaged; None where nothing is.

    Raises:
        InputError: both files are damaged, or the state belongs to a model of another shape.
    """
    path = Path(path)
    try:
        return _restore(path, model, unusable)
    except _DamagedError as error:
        try:
            progress = _restore(_before(path), model, unusable)
        except _DamagedError:
            raise InputError(f"{path}: damaged training state ({error}); pass --overwrite to start again") from error
        report(f"{path}: damaged ({error}); the state before it is taken")
        _before(path).replace(path)  # lest the damaged one become the state before the next
        return progress


class UnsavedError(InputError):
    """The disk is full, or cannot be written to."""


@contextlib.contextmanager
def writing(what: str, then: str) -> Iterator[None]:
    """A block that writes files.

    Args:
        what: says what cannot be written, where that is so.
        then: says what the same command does when there is room.

    Raises:
        UnsavedError: the disk is full, or cannot be written to.
    """
    try:
        yield
    except (OSError, SafetensorError, InputError) as error:
        told = isinstance(error, InputError)  # of a model's files, by who wrote them
        if told and not isinstance(error.__cause__, (OSError, SafetensorError)):
            raise
        raise UnsavedError(f"{what} ({error}); make room there and give the same command again: {then}") from error


@contextlib.contextmanager
def saving(folder: Path, done: int) -> Iterator[None]:
    """`writing`, of round number `done` below `folder`."""
    then = f"it goes on after round {done - 1}" if done > 1 else "it goes on from the start"
    with writing(f"{folder}: cannot save round {done}", then):
        yield


def folder_checksum(folder: Path) -> str:
    """A checksum of the names and contents of all files in a folder; of none where there is no such folder."""
    checksum = 0
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            checksum = zlib.crc32(path.read_bytes(), zlib.crc32(path.relative_to(folder).as_posix().encode(), checksum))
    return f"{checksum:08x}"


class _DamagedError(Exception):
    """A state that cannot be read."""


def _before(path: Path) -> Path:
    return path.with_stem(f"{path.stem}.before")


def _restore(path: Path, model: keras.Model, unusable: Callable[[Progress], str | None]) -> Progress:
    variables = _variables(model)
    try:
        with safe_open(path, framework="np") as file:
            names, metadata = set(file.keys()), file.metadata()
            values = {name: file.get_tensor(name) for name in names}
            progress, checksum = Progress(**json.loads(metadata["progress"])), metadata["checksum"]
    except (OSError, SafetensorError, KeyError, json.JSONDecodeError, TypeError) as error:
        raise _DamagedError(str(error)) from error
    if checksum != _checksum(values):
        raise _DamagedError("the checksum is another")
    if problem := unusable(progress):
        raise _DamagedError(problem)
    if names != set(variables):
        raise InputError(f"{path}: holds the state of another model; choose another --out, or --overwrite")
    for name, variable in variables.items():
        if tuple(variable.shape) != values[name].shape:
            raise InputError(
                f"{path}: holds the state of another model: {name} is {values[name].shape}, expected "
                f"{tuple(variable.shape)}; choose another --out, or --overwrite"
            )
    for name, variable in variables.items():
        variable.assign(values[name])
    return progress


def _checksum(values: Mapping[str, np.ndarray]) -> str:
    checksum = 0
    for name in sorted(values):
        checksum = zlib.crc32(np.ascontiguousarray(values[name]).tobytes(), checksum)
    return f"{checksum:08x}"


def _variables(model: keras.Model) -> dict[str, Any]:
    """All that a step changes, by names that are the same in every process.

    Those that Keras gives random generators and the optimizer count up with each one made in a process.
    """
    named = {variable.path: variable for variable in model.weights}
    known = {id(variable) for variable in [*model.weights, *model.metrics_variables]}
    random_states = [variable for variable in model.variables if id(variable) not in known]
    named |= {f"random/{index}": variable for index, variable in enumerate(random_states)}
    named |= quantization_variables(model)
    for index, variable in enumerate(model.optimizer.variables):
        named[f"optimizer/{index}/{variable.path.partition('/')[2]}"] = variable
    return named
