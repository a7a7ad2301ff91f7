"""Several labels a row: separators, lists, none at all, and what cannot be meant."""

import json
from pathlib import Path

import numpy as np
import pytest

from albert_tf.data.multi_label import (
    MultiLabelExample,
    discover_label_names,
    encode_label_sets,
    read_multi_label,
)
from albert_tf.errors import InputError


def written(path: Path, content: str) -> Path:
    path.write_bytes(content.encode())
    return path


def test_tables(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", "\ufefftext\tLabels\r\na\tx, y\r\nb\t\r\nc\tz\r\n")
    read = read_multi_label(path)
    assert [example.labels for example in read] == [("x", "y"), (), ("z",)]
    assert read[0] == MultiLabelExample("a", None, ("x", "y"))
    path = written(tmp_path / "a.csv", 'text_a,text_b,tags\na,b,"x|y,1"\n')
    assert read_multi_label(path, label_column="tags", label_separator="|") == [
        MultiLabelExample("a", "b", ("x", "y,1"))
    ]
    assert read_multi_label(path, labels_required=False)[0].labels is None


def test_lists(tmp_path: Path) -> None:
    rows = [["x", "y"], [], "x,y", 3, [1, True], None]
    path = written(tmp_path / "a.jsonl", "".join(json.dumps({"text": "t", "labels": row}) + "\n" for row in rows))
    assert [e.labels for e in read_multi_label(path)] == [("x", "y"), (), ("x", "y"), ("3",), ("1", "true"), ()]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.tsv", "text\tlabel\na\tx,,y\n", "line 2: label 2 is blank; the labels are 'x,,y'"),
        ("a.tsv", "text\tlabel\na\tx,y,x\n", "line 2: a label stands twice: x, y, x"),
        ("a.jsonl", '{"text": "a", "labels": [["x"]]}\n', "line 1: expected a string as the label"),
        ("a.jsonl", '{"text": "a", "labels": ["x", null]}\n', "line 1: label 2 is blank"),
        ("a.jsonl", '{"text": "a", "labels": ["x"]}\n{"text": "b"}\n', "line 2: expected labels, found no such key"),
        ("a.tsv", "text\na\n", "which column is the label"),
        ("a.tsv", "text\tlabel\n", "found only the header"),
    ],
)
def test_faults(name: str, content: str, expected: str, tmp_path: Path) -> None:
    path = written(tmp_path / name, content)
    with pytest.raises(InputError, match=expected) as caught:
        read_multi_label(path)
    assert str(path) in str(caught.value)


def test_names_and_sets(tmp_path: Path) -> None:
    examples = [MultiLabelExample("a", None, ("10", "9")), MultiLabelExample("b", None, ())]
    labels = discover_label_names(examples)
    assert labels == ["9", "10"]  # whole numbers by their value
    np.testing.assert_array_equal(encode_label_sets(examples, labels, "f"), [[1, 1], [0, 0]])
    assert encode_label_sets([], labels, "f").shape == (0, 2)
    with pytest.raises(InputError, match=r"f, row 1 \('c'\) has the label '11'; the model's labels are 9, 10"):
        encode_label_sets([MultiLabelExample("c", None, ("9", "11"))], labels, "f")
    with pytest.raises(InputError, match="has no labels"):
        encode_label_sets([MultiLabelExample("c")], labels, "f")
    with pytest.raises(InputError, match="label_separator: expected a character or more"):
        read_multi_label(tmp_path / "a.tsv", label_separator="")
