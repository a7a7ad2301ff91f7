"""Tables of labelled texts: which columns are taken, labels and their ids, and real files."""

import json
from pathlib import Path

import numpy as np
import pytest

from albert_tf.data.schema import TextExample
from albert_tf.data.tables import (
    discover_labels,
    encode_labels,
    encode_values,
    example_of,
    read_examples,
    read_labels,
    write_labels,
)
from albert_tf.errors import InputError


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def fault(path: Path, **options: object) -> str:
    """The message of the InputError that reading raises."""
    with pytest.raises(InputError) as caught:
        read_examples(path, **options)  # type: ignore[arg-type]
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_jsonl_labels_of_every_type(tmp_path: Path) -> None:
    labels = ["yes", 1, 0, -3, 1.0, 0.5, True, False, 1e300, "1", 10**400]
    path = written(
        tmp_path, "a.jsonl", "\n".join(json.dumps({"text": "t", "label": label}) for label in labels) + "\n\n"
    )
    expected = ["yes", "1", "0", "-3", "1", "0.5", "true", "false", "1e+300", "1", "1" + "0" * 400]
    assert [example.label for example in read_examples(path)] == expected


@pytest.mark.parametrize(
    ("header", "text", "pair", "label"),
    [
        ("sentence label", 0, None, 1),
        ("Index SENTENCE1 Sentence2 Label", 1, 2, 3),
        ("index question sentence label", 1, 2, 3),  # QNLI
        ("gold_label premise hypothesis", 1, 2, 0),
        ("class text_b text_a", 2, 1, 0),
        ("text sentence1 labels", 0, None, 2),
        ("question answer score", 0, None, 2),
        ("score sentence label", 1, None, 2),  # "label" is looked for before "score"
        ("text sentence2 label", 0, 1, 2),
    ],
)
def test_columns_found_by_their_usual_names(
    tmp_path: Path, header: str, text: int, pair: int | None, label: int
) -> None:
    names = header.split()
    row = [f"v{n}" for n in range(len(names))]
    path = written(tmp_path, "a.tsv", "\t".join(names) + "\n" + "\t".join(row))
    expected = TextExample(row[text], None if pair is None else row[pair], row[label])
    assert read_examples(path) == [expected]


def test_columns_chosen_by_name_number_and_header(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "body,title,topic\nb1,t1,x\nb2,t2,y\n")
    first = TextExample("b1", "t1", "x")
    assert read_examples(path, text_column="body", pair_column=" Title", label_column="TOPIC")[0] == first
    assert read_examples(path, text_column=0, pair_column="1", label_column="2", header=True)[0] == first
    assert read_examples(path, text_column="0", label_column=2)[0] == TextExample("body", None, "topic")
    assert read_examples(path, text_column="body", label_column=2)[0] == TextExample("b1", None, "x")
    assert read_examples(path, text_column=1, labels_required=False)[0] == TextExample("title")


def test_a_text_column_given_alone_means_no_pair_and_a_pair_column_is_no_text(tmp_path: Path) -> None:
    path = written(tmp_path, "a.tsv", "sentence\tquestion\tsentence1\tsentence2\tlabel\na\tb\tc\td\t1\n")
    assert read_examples(path) == [TextExample("c", "d", "1")]
    assert read_examples(path, text_column="sentence1") == [TextExample("c", None, "1")]
    assert read_examples(path, pair_column="sentence") == [TextExample("c", "a", "1")]


def test_an_exact_name_wins_over_one_that_differs_in_case(tmp_path: Path) -> None:
    path = written(tmp_path, "a.tsv", "Text\ttext\tlabel\na\tb\t1\n")
    assert read_examples(path)[0].text == "b"
    assert read_examples(path, text_column="Text")[0].text == "a"
    assert "all called 'TEXT'" in fault(path, text_column="TEXT")


def test_labels_not_required(tmp_path: Path) -> None:
    assert read_examples(written(tmp_path, "a.tsv", "text\na\n\nb\n"), labels_required=False) == [
        TextExample("a"),
        TextExample(""),  # in a table of one column a blank line is an empty text
        TextExample("b"),
    ]
    blank = written(tmp_path, "b.tsv", "text\tlabel\na\t \nb\t1\n")
    assert read_examples(blank, labels_required=False) == [TextExample("a"), TextExample("b", None, "1")]
    objects = written(tmp_path, "c.jsonl", '{"text": "a"}\n{"text": "b", "label": null}\n{"text": "c", "label": 2}\n')
    assert [example.label for example in read_examples(objects, labels_required=False)] == [None, None, "2"]


def test_full_width_characters_of_chinese_files(tmp_path: Path) -> None:
    """Labels are kept as they are written, but two that look the same are no two classes; numbers are numbers."""
    alike = [TextExample("a", None, "1"), TextExample("b", None, "\uff11"), TextExample("c", None, "0")]
    with pytest.raises(InputError, match="the labels '1' and '\uff11' differ only in the width of characters"):
        discover_labels(alike)
    assert discover_labels([TextExample("a", None, "\uff10"), TextExample("b", None, "\uff11")]) == ["\uff10", "\uff11"]
    with pytest.raises(InputError, match=r"row 2 \('b'\) has the label '\uff11' in full-width characters; the model's"):
        encode_labels(alike, ["0", "1"], "f")
    assert encode_values([TextExample("a", None, "\uff13\uff0e\uff15"), TextExample("b", None, "-2")], "f") == [
        3.5,
        -2.0,
    ]


def test_pairs_as_predict_prints_them(tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", '{"text": "a", "pair": "b", "label": "x"}\n')
    assert read_examples(path) == [TextExample("a", "b", "x")]
    assert example_of({"Premise": "a", "hypothesis": "b", "label": ["?"]}) == TextExample("a", "b")
    assert example_of({"a": "x", "b": "y"}, text_column="b") == TextExample("y")
    assert example_of({"class": "x", "label": 1}, text_column="class") == TextExample("x")
    with pytest.raises(InputError, match="the object: which column is the text"):
        example_of({"a": "x"})


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    path = written(tmp_path, "a.tsv", "body\ttopic\na\tx\n")
    message = fault(path)
    assert "0 'body', 1 'topic'" in message and "--text-column" in message
    assert "--label-column" in fault(path, text_column="body")
    assert "--pair-column" in fault(path, text_column="body", pair_column="title", label_column="topic")
    assert "no column 2" in fault(path, text_column=0, label_column=2)
    assert "no column -1" in fault(path, text_column=-1, label_column=1)
    assert "no column 'body'" in fault(path, text_column="body", label_column=1, header=False)
    assert "the file has no header" in fault(path, label_column=1)
    assert "the file has no header" in fault(path, header=False)
    assert "different columns" in fault(path, text_column=0, label_column=0)
    objects = written(tmp_path, "a.jsonl", '{"body": "a", "label": 1}\n')
    assert "0 'body', 1 'label'" in fault(objects)
    assert "choose columns by name" in fault(objects, text_column=0)
    assert "no column '0'" in fault(objects, text_column="0")
    assert "header" in fault(objects, header=True)


def test_discovered_labels_are_sorted() -> None:
    def labels(*found: str) -> list[str]:
        return discover_labels([TextExample("t", None, label) for label in found])

    assert labels("10", "0", "1", "0") == ["0", "1", "10"]
    assert labels("2", "-1", "10") == ["-1", "2", "10"]
    assert labels("b", "10", "9") == ["10", "9", "b"]
    assert labels("pos", "neg", "neg") == ["neg", "pos"]


def test_what_is_wrong_with_labels_is_said_of_a_file() -> None:
    for examples in ([TextExample("t", None, "a")], [TextExample("t")], [TextExample("t", None, "a\nb")]):
        with pytest.raises(InputError, match=r"^train\.tsv: "):
            discover_labels(examples, source="train.tsv")


def test_discovered_labels_follow_a_label_file(tmp_path: Path) -> None:
    examples = [TextExample("t", None, label) for label in ("yes", "no", "no")]
    path = written(tmp_path, "labels.txt", "yes\r\nmaybe\r\nno\r\n")
    assert discover_labels(examples, path) == ["yes", "maybe", "no"]
    with pytest.raises(InputError, match=r"'no' \(2 examples\)"):
        discover_labels(examples, written(tmp_path, "short.txt", "yes\nmaybe\n"))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a\n\nb\n", "line 2: expected a label"),
        ("a\nb\na\n", "line 3: 'a' stands on line 1"),
        ("a\n", "at least two"),
        ("", "at least two"),
    ],
)
def test_faulty_label_files(tmp_path: Path, content: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_labels(written(tmp_path, "labels.txt", content))


@pytest.mark.parametrize(
    ("labels", "says"),
    [(["a", "a"], "one class only: a"), ([], "one class only: none"), (["a", None, "b"], "1 of the")],
)
def test_labels_that_cannot_be_trained_on(labels: list[str | None], says: str) -> None:
    with pytest.raises(InputError, match=says):
        discover_labels([TextExample("t", None, label) for label in labels])


def test_encode_labels() -> None:
    examples = [TextExample("first", None, "no"), TextExample("second", None, "yes")]
    assert encode_labels(examples, ["yes", "no"], "a.tsv") == [1, 0]
    with pytest.raises(InputError, match=r"a\.tsv, row 2 \('second'\) has the label 'yes'"):
        encode_labels(examples, ["no", "maybe"], "a.tsv")
    with pytest.raises(InputError, match=r"row 1 \('third'\) has no label"):
        encode_labels([TextExample("third")], ["no", "yes"], "a.tsv")


def test_values_that_float32_cannot_square() -> None:
    assert encode_values([TextExample("t", None, "-1e18")], "a.tsv") == [-1e18]
    assert np.isfinite(np.square(np.float32(1e18)))
    for label in ("1e300", "-1e20", "1e19"):
        with pytest.raises(InputError, match=r"a\.tsv, row 1 \('t'\): expected a number of at most 1e\+18, got "):
            encode_values([TextExample("t", None, label)], "a.tsv")


def test_written_labels_are_read_back(tmp_path: Path) -> None:
    labels = ["b", "a b", "中文", '"', "é–ü"]
    write_labels(tmp_path / "labels.txt", labels)
    assert read_labels(tmp_path / "labels.txt") == labels
    with pytest.raises(InputError, match="exists already"):
        write_labels(tmp_path / "labels.txt", ["c", "d"])
    write_labels(tmp_path / "labels.txt", ["c", "d"], overwrite=True)
    assert (tmp_path / "labels.txt").read_bytes() == b"c\nd\n"
    for wrong in ([" a", "b"], ["", "b"], ["a\nc", "b"], ["a\tc", "b"], ["x\u2028y", "b"], ["a", "a"]):
        with pytest.raises(InputError):
            write_labels(tmp_path / "other.txt", wrong)
    assert not (tmp_path / "other.txt").exists()


# Published row counts, and label counts that a line of awk over the same files gives.
@pytest.mark.parametrize(
    ("file", "options", "rows", "counts"),
    [
        ("glue_canonical/SST-2/dev.tsv", {}, 872, {"0": 428, "1": 444}),
        ("glue_canonical/CoLA/dev.tsv", {"text_column": "3", "label_column": 1}, 1043, {"0": 322, "1": 721}),
        ("glue_canonical/RTE/dev.tsv", {}, 277, {"entailment": 146, "not_entailment": 131}),
        ("chnsenticorp/dev.tsv", {"text_column": 0, "label_column": 1}, 1200, {"negative": 607, "positive": 593}),
    ],
)
def test_real_files(shared_data: Path, file: str, options: dict, rows: int, counts: dict[str, int]) -> None:
    examples = read_examples(shared_data / file, **options)
    assert len(examples) == rows
    assert discover_labels(examples) == sorted(counts)
    ids = encode_labels(examples, sorted(counts), file)
    assert {label: ids.count(n) for n, label in enumerate(sorted(counts))} == counts
    assert all(example.text for example in examples)
    assert all((example.pair is not None) == ("RTE" in file) for example in examples)


def test_real_scores(shared_data: Path) -> None:
    examples = read_examples(shared_data / "glue_canonical/STS-B/dev.tsv")
    assert len(examples) == 1500
    scores = [float(example.label or "nan") for example in examples]
    assert min(scores) == 0.0 and max(scores) == 5.0
    assert (examples[0].text, examples[0].pair) != ("none", "none")  # the columns source1 and source2 are other ones
    assert all(example.text and example.pair for example in examples)


def test_a_real_file_without_header_is_not_guessed_at(shared_data: Path) -> None:
    assert "--text-column" in fault(shared_data / "glue_canonical/CoLA/dev.tsv")
    assert "--text-column" in fault(shared_data / "chnsenticorp/dev.tsv")
