"""`albert_tf.data.similarity`: every kind of file, triples made of labelled pairs, scores."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from albert_tf.data.schema import TextExample
from albert_tf.data.similarity import (
    SimilarityExample,
    belonging_together,
    columns_there,
    read_embedded,
    read_similarity,
    scores_of,
)
from albert_tf.errors import InputError


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_pairs_with_scores_as_glue_has_them(tmp_path: Path) -> None:
    path = write(tmp_path / "sts.tsv", "index\tsentence1\tsentence2\tscore", '0\tA man.\tA "man".\t4.750', "1\ta\tb\t0")
    assert read_similarity(path) == [SimilarityExample("A man.", 'A "man".', "4.750"), SimilarityExample("a", "b", "0")]
    assert scores_of(read_similarity(path), path) == [4.75, 0.0]


@pytest.mark.parametrize(
    "header",
    ["anchor,positive,negative", "query,positive,negative", "sent0,sent1,hard_neg", "Negative,Anchor,Positive"],
)
def test_triples_by_their_usual_names(header: str, tmp_path: Path) -> None:
    cells = dict(zip(("anchor", "positive", "negative"), ("a", "b, too", "c"), strict=True))
    order = {"query": "anchor", "sent0": "anchor", "sent1": "positive", "hard_neg": "negative"}
    row = ",".join(f'"{cells[order.get(name.lower(), name.lower())]}"' for name in header.split(","))
    assert read_similarity(write(tmp_path / "nli.csv", header, row)) == [SimilarityExample("a", "b, too", None, "c")]


def test_json_objects(tmp_path: Path) -> None:
    path = write(
        tmp_path / "pairs.jsonl",
        json.dumps({"anchor": "问题", "positive": "回答"}, ensure_ascii=False),
        json.dumps({"anchor": "", "positive": "b"}),
    )
    assert read_similarity(path) == [SimilarityExample("问题", "回答"), SimilarityExample("", "b")]
    path = write(tmp_path / "scored.jsonl", json.dumps({"text": "a", "pair": "b", "score": 1}))
    assert read_similarity(path) == [SimilarityExample("a", "b", "1")]


def test_columns_by_name_and_number(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tsv", "a\tb\tc\td", "one\ttwo\tthree\t3.5")
    by_name: dict[str, Any] = {
        "text_column": "b",
        "pair_column": "a",
        "negative_column": "c",
        "label_column": "d",
    }
    assert read_similarity(path, **by_name) == [SimilarityExample("two", "one", "3.5", "three")]
    bare = write(tmp_path / "bare.tsv", "one\ttwo\tthree", "four\tfive\tsix")
    found = read_similarity(bare, text_column="0", pair_column=1, negative_column="2")
    assert found == [SimilarityExample("one", "two", None, "three"), SimilarityExample("four", "five", None, "six")]


@pytest.mark.parametrize(
    ("header", "left_out"),
    [
        ("sentence1\tsentence2\tscore", {"text_column", "pair_column", "negative_column"}),
        (" A\tb", {"negative_column"}),
        ("a\tb\tc", set()),
        ("a\tc", set()),
    ],
)
def test_columns_of_another_file(header: str, left_out: set[str], tmp_path: Path) -> None:
    path = write(tmp_path / "other.tsv", header, "\t".join("xyz"[: header.count("\t") + 1]))
    asked = {"text_column": "a", "pair_column": "b", "label_column": None, "negative_column": "c"}
    assert columns_there(path, asked) == {role: None if role in left_out else c for role, c in asked.items()}
    by_number = {"text_column": "0", "pair_column": 1, "negative_column": "2"}
    assert columns_there(path, by_number) == by_number


@pytest.mark.parametrize(
    ("lines", "options", "expected"),
    [
        (
            ("text\tlabel", "a\t1"),
            {},
            "expected two texts in each row, found one; choose the second with --pair-column",
        ),
        (
            ("anchor\tpositive\tnegative", "a\tb\t "),
            {},
            "row 1: expected a third text that does not belong to the first",
        ),
        (("sentence1\tsentence2", "a\tb"), {"negative_column": "c"}, "no column 'c'"),
        (("sentence1\tsentence2", "a"), {}, "line 2: expected 2 fields like line 1, got 1"),
    ],
    ids=str,
)
def test_what_cannot_be_read(lines: tuple[str, ...], options: dict[str, Any], expected: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=expected):
        read_similarity(write(tmp_path / "x.tsv", *lines), **options)


NLI = [
    SimilarityExample("p1", "e1", "entailment"),
    SimilarityExample("p1", "n1", "neutral"),
    SimilarityExample("p1", "c1", "contradiction"),
    SimilarityExample("p1", "e2", "entailment"),
    SimilarityExample("p2", "e3", "entailment"),
    SimilarityExample("p3", "c3", "contradiction"),
    SimilarityExample("p1", "c2", "contradiction"),
    SimilarityExample("p1", "e4", "entailment"),
]


def test_triples_of_labelled_pairs() -> None:
    found = belonging_together(NLI, "entailment", "contradiction", "nli.tsv")
    assert [(e.text, e.pair, e.negative) for e in found] == [("p1", "e1", "c1"), ("p1", "e2", "c2"), ("p1", "e4", "c2")]
    assert all(example.label is None for example in found)
    found = belonging_together(NLI, "entailment", None, "nli.tsv")
    assert [(e.pair, e.negative) for e in found] == [("e1", None), ("e2", None), ("e3", None), ("e4", None)]
    with pytest.raises(
        InputError, match=r"nli.tsv: no row has the label 'yes'; the labels found are contradiction, ent"
    ):
        belonging_together(NLI, "yes", None, "nli.tsv")
    with pytest.raises(InputError, match="no text has both a pair labelled 'entailment' and one labelled 'neutral'"):
        belonging_together(NLI[1:2] + NLI[4:5], "entailment", "neutral", "nli.tsv")


def test_scores() -> None:
    assert scores_of([TextExample("a", "b")], "x") is None
    with pytest.raises(InputError, match=r"x, row 2 \('c'\): expected a score, found none; give all rows one or none"):
        scores_of([TextExample("a", "b", "1"), TextExample("c", "d")], "x")
    with pytest.raises(InputError, match=r"x, row 1 \('a'\): expected a number as the label, got 'yes'"):
        scores_of([TextExample("a", "b", "yes")], "x")


def embedded(folder: Path, text: str, vectors: Any) -> list[SimilarityExample]:
    (folder / "texts.txt").write_text(text, encoding="utf-8")
    np.save(folder / "vectors.npy", np.asarray(vectors), allow_pickle=True)
    return read_embedded(folder / "texts.txt", folder / "vectors.npy")


def test_texts_with_vectors(tmp_path: Path) -> None:
    found = embedded(tmp_path, "a b\n\tc\n", np.float16([[1, 2, 3], [4, 5, 6]]))
    assert [example.text for example in found] == ["a b", "\tc"]
    np.testing.assert_array_equal([example.vector for example in found], [[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize(
    ("text", "vectors", "expected"),
    [
        ("a\nb\n", np.ones((3, 2)), "vectors.npy: expected a row for each of the 2 lines of .*texts.txt, found 3"),
        ("", np.ones((0, 2)), "vectors.npy: expected a row for each of the 0 lines"),
        ("a\n \nb\n", np.ones((3, 2)), "texts.txt, line 2: expected a text, found a blank line"),
        ("a\nb\n", [[1.0, 2.0], [np.nan, 1.0]], "vectors.npy, row 1: expected finite numbers that are not all 0"),
        ("a\nb\n", [[0.0, 0.0], [1.0, 1.0]], "vectors.npy, row 0: expected finite numbers that are not all 0"),
        ("a\n", [1.0], r"expected an array of float numbers \(texts, length of a vector\), found float64 \(1,\)"),
        ("a\n", [[1, 2]], r"expected an array of float numbers .*, found int64 \(1, 2\)"),
        ("a\n", np.array([[{}]], object), "vectors.npy: expected a NumPy file"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_texts_with_unusable_vectors(text: str, vectors: Any, expected: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=expected):
        embedded(tmp_path, text, vectors)


@pytest.mark.parametrize(
    "content", [b"", b"\x93NUMPY\x01\x00", b"\x93NUMPY\x01\x00\x04\x00{((\n", b"text\n", b"PK\x03\x04"]
)
def test_damaged_vectors(content: bytes, tmp_path: Path) -> None:
    embedded(tmp_path, "a\n", np.ones((1, 2)))
    (tmp_path / "vectors.npy").write_bytes(content)
    with pytest.raises(InputError, match=r"vectors\.npy: expected a NumPy file"):
        read_embedded(tmp_path / "texts.txt", tmp_path / "vectors.npy")
    with pytest.raises(InputError, match=r"cannot read .*none\.npy: No such file"):
        read_embedded(tmp_path / "texts.txt", tmp_path / "none.npy")
