"""What a command writes must not be what it reads: `--overwrite` with a slip of a name would cost the user's own file."""

import argparse
import errno
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from albert_tf.errors import InputError
from albert_tf.files import resolved

_OUTPUTS = ("out", "json", "plot")
# Written out: a command that refuses its arguments should not load what loads models.
_OF_MODELS = ("config.json", "weights.safetensors", "tokenizer.json", "task.json", "vocabulary.spm", "vocab.txt")


def refuse_clashes(args: argparse.Namespace) -> None:
    """Compares the outputs that were asked for with each other, and with every file and folder among the other arguments.

    Raises:
        InputError: two of them are the same file, or an output is a part of a model that is read.
    """
    outputs = [(f"--{name}", value) for name in _OUTPUTS if (value := getattr(args, name, None))]
    for (one, path), (other, second) in itertools.combinations(outputs, 2):
        if resolved(path) == resolved(second):
            raise InputError(f"{one} and {other}: expected two files, got {path} for both")
    read = [entry for name, value in vars(args).items() if name not in _OUTPUTS for entry in _existing(value)]
    folders = [entry for entry in read if entry.is_dir()]
    for option, path in outputs:
        if any(output.is_file() and output.samefile(file) for output in _existing(path) for file in read):
            raise InputError(f"{option}: {path} is what this command reads, so it is not replaced; choose another name")
        # Of a model's folder only what makes the model: a report may be written there again.
        if Path(path).name in _OF_MODELS and any(resolved(Path(path).parent) == resolved(one) for one in folders):
            raise InputError(f"{option}: {path} is a part of the model that is read; choose another name")


def with_place(error: OSError, args: argparse.Namespace) -> str:
    """What an error says; of a write to a full disk, which does not say where, also what may have been written."""
    if error.errno != errno.ENOSPC or error.filename is not None:
        return str(error)
    places = [f"{value}" for name in _OUTPUTS if (value := getattr(args, name, None))]
    written = " or ".join([*places, "standard output", "a temporary file"])
    return f"{error.strerror}: cannot write {written} (TMPDIR says where those are)"


def _existing(value: Any) -> Iterator[Path]:
    """The files and folders that are there among the values of an argument."""
    for entry in value if isinstance(value, list) else [value]:
        # An argument may be a text of any length, which Path.exists takes for an error.
        if isinstance(entry, (str, os.PathLike)) and (os.path.isfile(entry) or os.path.isdir(entry)):  # noqa: PTH112, PTH113
            yield Path(entry)
