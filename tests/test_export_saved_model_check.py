"""SavedModels that must not be written: each way in which one can go wrong."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tiny_exports import new_classifier

import export.saved_model
from albert_tf.errors import CheckError, InputError
from export.saved_model import SERVED, export_saved_model, save
from export.saved_model_check import ODD_TEXTS, as_tensors, check_saved_model, texts_to_ask
from export.served import Signature
from export.validation import CHECK_TEXTS, ExportError


def left_by(tmp_path: Path) -> list[str]:
    return sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*"))


def test_other_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = new_classifier(seed=1)

    def save_another(task: Any, signatures: Any, folder: Path) -> None:
        save(other, SERVED["classification"](other).signatures(), folder)

    monkeypatch.setattr(export.saved_model, "save", save_another)
    with pytest.raises(
        ExportError, match=r"answers differ from the model's: by \d\.\d+ at most .* \(allowed: 0.001, 1e-05"
    ):
        export_saved_model(new_classifier(), tmp_path / "m")
    assert left_by(tmp_path) == ["m"]
    assert issubclass(ExportError, CheckError)


def test_numbers_that_are_not_finite(tmp_path: Path) -> None:
    task = new_classifier()
    task.classifier.bias.assign([0.0, np.nan, 0.0])
    with pytest.raises(InputError, match="the model's probabilities for row 1 of 15 are NaN or infinite"):
        export_saved_model(task, tmp_path / "m")
    assert left_by(tmp_path) == ["m"]


def module_with(**functions: Any) -> tuple[Any, dict[str, Any]]:
    module = tf.Module()
    return module, {
        name: tf.function(function).get_concrete_function(tf.TensorSpec((None,), tf.string, "texts"))
        for name, function in functions.items()
    }


def check(tmp_path: Path, function: Any, expected: list[dict[str, Any]], name: str = "one") -> Any:
    """The report on a SavedModel of one function of strings."""
    module, functions = module_with(**{name: function})
    tf.saved_model.save(module, str(tmp_path / "saved"), signatures=functions)
    inputs = {"texts": tf.TensorSpec((None,), tf.string, "texts")}
    signature = Signature(function, inputs, lambda texts: {"texts": list(texts)}, lambda columns: expected)
    return check_saved_model(tmp_path / "saved", {"one": signature}, ["a", "b\0", "c"], version=7)


def lengths(texts: Any) -> dict[str, Any]:
    return {"size": tf.cast(tf.strings.length(texts), tf.float32), "text": tf.stack([texts, texts], 1)}


RIGHT = [{"size": 1.0, "text": ["a", "a"]}, {"size": 2.0, "text": ["b\0"]}, {"size": 1.0, "text": []}]


def test_a_right_one_and_its_figures(tmp_path: Path) -> None:
    report = check(tmp_path, lengths, RIGHT)
    assert (report.version, report.signatures, report.texts) == (7, ("one",), 3)
    assert (report.max_difference, report.mean_difference, report.agreement) == (0.0, 0.0, 1.0)
    files = [path for path in (tmp_path / "saved").rglob("*") if path.is_file()]
    assert report.size_bytes == sum(path.stat().st_size for path in files)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"size": 1.1, "text": ["a", "a"]}, "by 0.091 at most"),
        ({"size": 1.0, "text": ["a", "A"]}, "75.0% of labels, words and places are the same"),
        ({"size": 1.0, "text": ["a", "a", "a"]}, r"row 1: expected text of at least \(3,\), it gives \(2,\)"),
        ({"size": 1.0}, "expected size, it gives size, text|expected size, it gives text, size"),
    ],
)
def test_one_wrong_answer(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    with pytest.raises(ExportError, match=message):
        check(tmp_path, lengths, [row, *RIGHT[1:]])


def test_what_cannot_be_asked(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="has no signature one, but other"):
        check(tmp_path, lengths, RIGHT, name="other")
    with pytest.raises(ExportError, match=r"signature one: cannot be run: [^$]*StringToNumber"):
        check(tmp_path, lambda texts: {"number": tf.strings.to_number(texts)}, RIGHT)
    with pytest.raises(ExportError, match="the SavedModel cannot be loaded"):
        check_saved_model(tmp_path / "absent", {}, ["a"], version=1)


def test_what_is_asked() -> None:
    assert texts_to_ask(None) == [*CHECK_TEXTS, *ODD_TEXTS]
    assert texts_to_ask(["one"]) == ["one", *ODD_TEXTS]
    signature = Signature(
        lambda: {}, {"options": tf.TensorSpec((None, None), tf.string)}, lambda texts: {}, lambda columns: []
    )
    columns = {"options": [["a\0", "\ud800"], ["", "b"]]}
    assert as_tensors(signature, columns)["options"].numpy().tolist() == [[b"a\0", "\ufffd".encode()], [b"", b"b"]]
    assert as_tensors(signature, columns, slice(2, 2))["options"].shape == (0, 0)
