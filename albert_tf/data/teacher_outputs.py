"""What another system put out for the rows of a training file, to learn from: numbers in .npy, or JSON lines.

A JSON line is an object with `logits` or `probabilities` (a list in the order of the labels, or an object with a number for
each label) or, for regression, `value`; a `text` in it must be that of the row.
"""

import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.data.rows import json_object, split_lines, start_of
from albert_tf.data.similarity import read_vectors
from albert_tf.errors import InputError
from albert_tf.files import read_text

_LEAST = 1e-12  # of a probability in a logarithm
_NEAR = 1e-3  # how far probabilities may be from summing to 1
_KEYS = {
    "classification": ("logits", "probabilities"),
    "multi-label": ("logits", "probabilities"),
    "regression": ("value",),
}
TASKS = tuple(_KEYS)


@dataclasses.dataclass(frozen=True)
class TeacherOutputs:
    """A teacher's outputs.

    Attributes:
        values: float32 (rows, labels), logits; of regression (rows, 1).
        labels: their order, where the file names them.
    """

    values: np.ndarray
    labels: tuple[str, ...] | None = None

    def in_order(self, labels: Sequence[str], source: str | Path) -> np.ndarray:
        """The values in the order of these labels.

        Raises:
            InputError: the file has others, or another number of them.
        """
        if self.labels is None:
            if self.values.shape[1] != len(labels):
                raise InputError(
                    f"{source}: expected {len(labels)} numbers a row, for {', '.join(labels)}; found {self.values.shape[1]}"
                )
            return self.values
        if set(self.labels) != set(labels):
            raise InputError(f"{source}: has the labels {', '.join(self.labels)}; expected {', '.join(labels)}")
        return self.values[:, [self.labels.index(label) for label in labels]]


def read_teacher_outputs(path: str | Path, *, task: str, texts: Sequence[str], train: str | Path) -> TeacherOutputs:
    """Reads and checks a file of outputs.

    Args:
        path: .npy, float (rows, labels), of regression (rows, 1); or .jsonl.
        task: a key of `TASKS`.
        texts: of the training file's rows.
        train: that file.

    Raises:
        InputError: a file that cannot be read, another number of rows, a number that is not finite, what are no logits, or
            another text in a row.
    """
    kind = Path(path).suffix.lower()
    if kind not in (".npy", ".jsonl"):
        raise InputError(f"{path}: expected teacher outputs in .npy or .jsonl, got the suffix {Path(path).suffix!r}")
    outputs = _from_array(path, task) if kind == ".npy" else _from_lines(path, task, texts, train)
    if len(outputs.values) != len(texts):
        raise InputError(
            f"{path}: expected a row for each of the {len(texts)} rows of {train}, found {len(outputs.values)}"
        )
    if (bad := np.flatnonzero(~np.isfinite(outputs.values).all(axis=1))).size:
        raise InputError(f"{path}, row {bad[0] + 1}: expected finite numbers")
    return outputs


def _from_array(path: str | Path, task: str) -> TeacherOutputs:
    values = np.asarray(read_vectors(path), np.float32)
    if task == "regression" and values.shape[1] != 1:
        raise InputError(f"{path}: expected one value a row, (rows, 1); found {values.shape}")
    sums = values.sum(axis=1)
    if task == "classification" and (values >= 0).all() and (np.abs(sums - 1.0) < _NEAR).all():
        raise InputError(f"{path}: expected logits, found probabilities; save their logarithms: numpy.log")
    if task == "multi-label" and ((values >= 0) & (values <= 1)).all():
        raise InputError(f"{path}: expected logits, found probabilities; save numpy.log(p) - numpy.log1p(-p)")
    return TeacherOutputs(values)


def _from_lines(path: str | Path, task: str, texts: Sequence[str], train: str | Path) -> TeacherOutputs:
    rows: list[list[float]] = []
    first: tuple[str, tuple[str, ...] | None] | None = None  # key and labels
    for number, line in enumerate(split_lines(read_text(path)), start=1):
        where = f"{path}, line {number}"
        record = json_object(line, where)
        if number <= len(texts) and record.get("text", texts[number - 1]) != texts[number - 1]:
            raise InputError(
                f"{where}: outputs of the text {start_of(str(record['text']))}, but row {number} of {train} is "
                f"{start_of(texts[number - 1])}"
            )
        key, labels, values = _numbers(record, task, where)
        first = first or (key, labels)
        if (
            key != first[0]
            or set(labels or ()) != set(first[1] or ())
            or len(values) != len(rows[0] if rows else values)
        ):
            raise InputError(f"{where}: expected {first[0]} of the same labels as line 1, found {start_of(line)}")
        if labels and first[1]:
            values = [values[labels.index(label)] for label in first[1]]
        rows.append(_logits(values, task, where) if key == "probabilities" else values)
    if first is None:
        raise InputError(f"{path}: the file is empty; expected one JSON object a line")
    return TeacherOutputs(np.array(rows, np.float32), first[1])


def _numbers(record: dict[str, Any], task: str, where: str) -> tuple[str, tuple[str, ...] | None, list[float]]:
    """Which key there is, the labels if it has them, and the numbers."""
    found = [key for key in _KEYS[task] if key in record]
    if len(found) != 1:
        raise InputError(
            f"{where}: expected one of the keys {', '.join(_KEYS[task])}; found {', '.join(record) or 'none'}"
        )
    content = record[found[0]]
    labels = tuple(content) if isinstance(content, dict) else None
    values = (
        list(content.values()) if isinstance(content, dict) else content if isinstance(content, list) else [content]
    )
    single = task == "regression"
    if single == isinstance(content, (dict, list)) or not values or not all(_is_number(value) for value in values):
        wanted = "a number" if single else "numbers, one for each label"
        raise InputError(f"{where}: {found[0]}: expected {wanted}, found {start_of(json.dumps(content))}")
    return found[0], labels, [float(value) for value in values]


def _logits(probabilities: list[float], task: str, where: str) -> list[float]:
    """Logits that have these probabilities."""
    if min(probabilities) < 0 or max(probabilities) > 1:
        raise InputError(f"{where}: probabilities: expected numbers from 0 to 1, found {probabilities}")
    logs = [math.log(max(p, _LEAST)) for p in probabilities]
    if task == "multi-label":
        return [log - math.log(max(1.0 - p, _LEAST)) for log, p in zip(logs, probabilities, strict=True)]
    if abs(sum(probabilities) - 1.0) > _NEAR:
        raise InputError(f"{where}: probabilities: expected numbers that sum to 1, got {sum(probabilities):g}")
    return logs


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
