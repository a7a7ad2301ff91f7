"""Does a SavedModel answer as the task it was made from? Asked of every one before it is in its place."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.tokenization.rules import to_utf8
from export.served import Answer, Columns, Signature
from export.validation import CHECK_TEXTS, ExportError

# Both are float32 and the same operations, but not in the same order, nor on rows of the same length.
TOLERANCE = 1e-3
MEAN_TOLERANCE = 1e-5
# Of what is no float: candidates of equal probability may change places, nothing else.
LEAST_AGREEMENT = 0.98

# Asked beside every text: nothing, spaces, signs beyond the first plane, writing from right to left, NUL and other
# control characters, half of a character, and a text that is far longer than any model takes.
ODD_TEXTS = (
    "",
    " \t\u3000",
    "🎬👩🏽‍🚀 five stars",
    "\u202bفيلم جميل جدا، שווה צפייה\u202c",
    "NUL\0in\x07side\ufeff, ﬁne ½ Ａ",
    "\ud800 half of a character",
    "the same long story again, and again, " * 60,
)


@dataclasses.dataclass(frozen=True)
class SavedModelReport:
    """Figures of one SavedModel.

    Attributes:
        version: its number.
        size_bytes: of all its files.
        signatures: their names.
        texts: how many texts it was asked, by every signature.
        max_difference, mean_difference: of all numbers from the task's own, relative where these are above 1.
        agreement: share of labels, words, places and other answers that are no such numbers, which are the same.
    """

    version: int
    size_bytes: int
    signatures: tuple[str, ...]
    texts: int
    max_difference: float
    mean_difference: float
    agreement: float


def texts_to_ask(texts: Sequence[str] | None) -> list[str]:
    """The user's texts, or built-in ones, and odd ones.

    Raises:
        InputError: `texts` is empty.
    """
    if texts is not None and not len(texts):
        raise InputError("texts: expected at least one text to compare the SavedModel and the model on")
    return [*(CHECK_TEXTS if texts is None else texts), *ODD_TEXTS]


def check_saved_model(
    folder: Path, signatures: Mapping[str, Signature], texts: Sequence[str], *, version: int
) -> SavedModelReport:
    """Asks a SavedModel and the task it was made from the same, by every signature.

    Args:
        folder: the SavedModel.
        signatures: by name, those that it must have.
        texts: what to ask.
        version: its number.

    Raises:
        ExportError: it cannot be loaded or run, lacks a signature, or answers otherwise.
    """
    try:
        loaded = tf.saved_model.load(str(folder))
    except (OSError, ValueError, tf.errors.OpError) as error:
        raise ExportError(f"the SavedModel cannot be loaded: {error}") from error
    differences: list[np.ndarray] = []
    same: list[np.ndarray] = []
    for name, signature in signatures.items():
        if name not in loaded.signatures:
            raise ExportError(f"the SavedModel has no signature {name}, but {', '.join(loaded.signatures)}")
        columns = signature.example(texts)
        try:
            found = answers_of(loaded.signatures[name], signature, columns)
        except tf.errors.OpError as error:
            raise ExportError(f"signature {name}: cannot be run: {error.message}") from error
        _compare(name, found, signature.expected(columns), differences, same)
    everything = np.concatenate([np.zeros(1), *differences])
    report = SavedModelReport(
        version=version,
        size_bytes=sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
        signatures=tuple(signatures),
        texts=len(texts),
        max_difference=float(everything.max()),
        mean_difference=float(everything.mean()),
        agreement=float(np.mean(np.concatenate([np.ones(1, bool), *same]))),
    )
    fits = report.max_difference <= TOLERANCE and report.mean_difference <= MEAN_TOLERANCE
    if not fits or report.agreement < LEAST_AGREEMENT:
        raise ExportError(
            f"the SavedModel's answers differ from the model's: by {report.max_difference:.2g} at most and "
            f"{report.mean_difference:.2g} in the mean (allowed: {TOLERANCE:.2g}, {MEAN_TOLERANCE:.2g}); "
            f"{report.agreement:.1%} of labels, words and places are the same"
        )
    return report


def as_tensors(signature: Signature, columns: Columns, rows: slice = slice(None)) -> dict[str, tf.Tensor]:
    """Some rows of inputs as the tensors that a signature takes."""
    tensors = {}
    for name, spec in signature.inputs.items():
        values = columns[name] if spec.shape.rank == 0 else columns[name][rows]
        if spec.dtype == tf.string:
            values = _as_bytes(values)
            if spec.shape.rank == 2 and not values:
                values = np.zeros((0, 0), object)
        tensors[name] = tf.constant(values, spec.dtype)
    return tensors


def answers_of(function: Any, signature: Signature, columns: Columns) -> list[Answer]:
    """What a signature of a loaded SavedModel answers, a row each: the first and the last alone, the others together."""
    count = len(next(iter(columns.values())))
    cuts = sorted({0, min(1, count), max(count - 1, 0), count})
    answers: list[Answer] = []
    for start, end in itertools.pairwise(cuts):
        outputs = function(**as_tensors(signature, columns, slice(start, end)))
        arrays = {name: tensor.numpy() for name, tensor in outputs.items()}
        answers += [{name: array[row] for name, array in arrays.items()} for row in range(end - start)]
    return answers


def _compare(
    name: str, found: list[Answer], expected: list[Answer], differences: list[np.ndarray], same: list[np.ndarray]
) -> None:
    """Appends how far numbers are off, and whether other values are the same."""
    for number, (mine, wanted) in enumerate(zip(found, expected, strict=True), start=1):
        if mine.keys() != wanted.keys():
            raise ExportError(f"signature {name}: expected {', '.join(wanted)}, it gives {', '.join(mine)}")
        for output, value in wanted.items():
            right = _as_array(value)
            own = np.asarray(mine[output])[tuple(slice(size) for size in right.shape)]
            if own.shape != right.shape:
                raise ExportError(
                    f"signature {name}, row {number}: expected {output} of at least {right.shape}, it gives {own.shape}"
                )
            if right.dtype.kind != "f":
                same.append(np.asarray(own == right).ravel())
            elif right.size:
                if not np.isfinite(own).all():
                    raise ExportError(f"signature {name}, row {number}: {output} is not finite")
                off = np.abs(own.astype(np.float64) - right) / np.maximum(1.0, np.abs(right))
                differences.append(off.ravel())


def _as_array(value: Any) -> np.ndarray:
    """An array of numbers, or of bytes where there are texts: NumPy's own texts lose zero bytes at their ends."""
    value = _as_bytes(value)
    first = value
    while isinstance(first, list) and first:
        first = first[0]
    array = np.array(value, object) if isinstance(first, bytes) else np.asarray(value)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _as_bytes(value: Any) -> Any:
    """Texts as UTF-8, in lists of any depth; anything else as it is."""
    if isinstance(value, str):
        return to_utf8(value)
    return [_as_bytes(entry) for entry in value] if isinstance(value, list) else value
