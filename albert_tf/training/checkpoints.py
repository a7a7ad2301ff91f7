"""The state of a running training, written whole, from which the same run goes on."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from albert_tf.errors import InputError
from albert_tf.files import written_whole


@dataclasses.dataclass
class Progress:
    """How far a run has come.

    Attributes:
        round: validations done.
        history: one dict of figures for each.
        best_round: the round whose weights are kept, counted from 1, or None before the first.
        data: a checksum of the examples that the run goes over.
    """

    round: int = 0
    history: list[dict[str, float]] = dataclasses.field(default_factory=list)
    best_round: int | None = None
    data: str = ""


def save_state(path: str | Path, model: keras.Model, progress: Progress) -> None:
    """Writes every variable of the model and its optimizer, random states included, and the progress."""
    with written_whole(path, overwrite=True) as temporary:
        metadata = {"progress": json.dumps(dataclasses.asdict(progress))}
        save_file({name: np.asarray(variable) for name, variable in _variables(model).items()}, temporary, metadata)


def restore_state(path: str | Path, model: keras.Model) -> Progress:
    """Puts the variables back into a model built and compiled alike, and returns the progress.

    Raises:
        InputError: the file is damaged, or belongs to a model of another shape.
    """
    variables = _variables(model)
    try:
        with safe_open(path, framework="np") as file:
            saved = set(file.keys())
            if saved != set(variables):
                raise InputError(f"{path}: holds the state of another model; choose another --out, or --overwrite")
            values = {name: file.get_tensor(name) for name in saved}
            progress = Progress(**json.loads(file.metadata()["progress"]))
    except (SafetensorError, KeyError, json.JSONDecodeError, TypeError) as error:
        raise InputError(f"{path}: damaged training state ({error}); pass --overwrite to start again") from error
    for name, variable in variables.items():
        if tuple(variable.shape) != values[name].shape:
            raise InputError(
                f"{path}: holds the state of another model: {name} is {values[name].shape}, expected "
                f"{tuple(variable.shape)}; choose another --out, or --overwrite"
            )
    for name, variable in variables.items():
        variable.assign(values[name])
    return progress


def _variables(model: keras.Model) -> dict[str, Any]:
    """All that a step changes, by names that are the same in every process.

    Those that Keras gives random generators and the optimizer count up with each one made in a process.
    """
    named = {variable.path: variable for variable in model.weights}
    known = {id(variable) for variable in [*model.weights, *model.metrics_variables]}
    random_states = [variable for variable in model.variables if id(variable) not in known]
    named |= {f"random/{index}": variable for index, variable in enumerate(random_states)}
    for index, variable in enumerate(model.optimizer.variables):
        named[f"optimizer/{index}/{variable.path.partition('/')[2]}"] = variable
    return named
