"""`albert_tf.data.teacher_outputs`: files of another system's outputs, and what is wrong with some."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from albert_tf.data.teacher_outputs import read_teacher_outputs
from albert_tf.errors import InputError

TEXTS = ["a mill", "a river", "a wheel"]


def read(path: Path, task: str = "classification") -> Any:
    return read_teacher_outputs(path, task=task, texts=TEXTS, train="train.tsv")


def lines(folder: Path, *records: Any) -> Path:
    path = folder / "outputs.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def array(folder: Path, values: Any) -> Path:
    np.save(folder / "outputs.npy", np.asarray(values))
    return folder / "outputs.npy"


def test_logits_of_an_array(tmp_path: Path) -> None:
    values = np.array([[1.0, -2.0], [0.5, 0.25], [3.0, 4.0]])
    outputs = read(array(tmp_path, values))
    assert outputs.labels is None and outputs.values.dtype == np.float32
    np.testing.assert_array_equal(outputs.in_order(["no", "yes"], "f"), values)
    with pytest.raises(InputError, match=r"outputs\.npy: expected 3 numbers a row, for a, b, c; found 2"):
        outputs.in_order(["a", "b", "c"], tmp_path / "outputs.npy")


def test_named_logits_are_found_whatever_their_order(tmp_path: Path) -> None:
    path = lines(
        tmp_path,
        {"text": "a mill", "logits": {"yes": 1, "no": 2}},
        {"logits": {"no": 3.5, "yes": 4}},
        {"id": 7, "logits": {"yes": 5, "no": 6}},
    )
    outputs = read(path)
    assert outputs.labels == ("yes", "no")
    np.testing.assert_array_equal(outputs.in_order(["no", "yes"], path), [[2, 1], [3.5, 4], [6, 5]])
    with pytest.raises(InputError, match="has the labels yes, no; expected bad, good"):
        outputs.in_order(["bad", "good"], path)


def test_probabilities_become_logits_that_have_them(tmp_path: Path) -> None:
    rows = np.array([[0.9, 0.1], [1.0, 0.0], [0.25, 0.75]])
    outputs = read(lines(tmp_path, *({"probabilities": row.tolist()} for row in rows)))
    powers = np.exp(outputs.values.astype(np.float64))
    np.testing.assert_allclose(powers / powers.sum(axis=1, keepdims=True), rows, atol=1e-6)
    own = read(lines(tmp_path, *({"probabilities": row.tolist()} for row in rows)), "multi-label")
    np.testing.assert_allclose(1 / (1 + np.exp(-own.values.astype(np.float64))), rows, atol=1e-6)


def test_values(tmp_path: Path) -> None:
    np.testing.assert_array_equal(
        read(lines(tmp_path, {"value": 1}, {"value": 2.5}, {"value": -3}), "regression").values, [[1], [2.5], [-3]]
    )


GOOD = [{"logits": [1.0, 2.0]}, {"logits": [1.0, 2.0]}]


@pytest.mark.parametrize(
    ("task", "records", "message"),
    [
        ("classification", GOOD, "expected a row for each of the 3 rows of train.tsv, found 2"),
        ("classification", [*GOOD, {"logits": [1.0]}], "line 3: expected logits of the same labels as line 1"),
        ("classification", [*GOOD, {"probabilities": [0.5, 0.5]}], "line 3: expected logits of the same labels"),
        (
            "classification",
            [*GOOD, {"scores": [1]}],
            "line 3: expected one of the keys logits, probabilities; found scores",
        ),
        ("classification", [*GOOD, {"logits": [1.0, "a"]}], "line 3: logits: expected numbers, one for each label"),
        ("classification", [*GOOD, {"logits": 1.0}], "line 3: logits: expected numbers"),
        ("classification", [*GOOD, {"logits": [1.0, 2.0], "text": "a wheel "}], "row 3 of train.tsv is 'a wheel'"),
        (
            "classification",
            [{"probabilities": [0.5, 0.6]}],
            "line 1: probabilities: expected numbers that sum to 1",
        ),
        ("classification", [{"probabilities": [1.5, -0.5]}], "expected numbers from 0 to 1"),
        ("classification", [*GOOD, {"logits": [1e999, 0.0]}], "row 3: expected finite numbers"),
        ("regression", [{"value": [1]}], "value: expected a number"),
        ("classification", [], "the file is empty"),
    ],
)
def test_lines_that_cannot_be_used(task: str, records: list[Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read(lines(tmp_path, *records), task)


@pytest.mark.parametrize(
    ("task", "values", "message"),
    [
        ("classification", np.zeros((2, 2)), "expected a row for each of the 3 rows"),
        ("classification", [[0.5, 0.5]] * 3, "expected logits, found probabilities"),
        ("multi-label", [[0.5, 0.9]] * 3, "expected logits, found probabilities"),
        ("classification", [[1.0, np.nan]] * 3, "row 1: expected finite numbers"),
        ("classification", [[1, 2]] * 3, "expected an array of float numbers"),
        ("regression", [[1.0, 2.0]] * 3, "expected one value a row"),
    ],
)
def test_arrays_that_cannot_be_used(task: str, values: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read(array(tmp_path, values), task)


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "outputs.txt").write_text("1 2\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"expected teacher outputs in .npy or .jsonl, got the suffix '.txt'"):
        read(tmp_path / "outputs.txt")
