"""Rows of .tsv, .csv and .jsonl files, read through `read_examples`: line ends, quoting, odd texts, faults by line."""

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.data.schema import TextExample
from albert_tf.data.tables import read_examples
from albert_tf.errors import InputError

# Any text that UTF-8 can hold; the odd ones are drawn often. A byte order mark at a file's start is not text.
ODD = st.sampled_from(
    ['"', '""', "\t", "\n", "\r", "\0", ",", "\\", "🙂", "שלום", "\u2028", "\x85", "\x1c", "中文", " "]
)
TEXTS = (
    st.lists(ODD | st.characters(codec="utf-8"), max_size=12).map("".join).filter(lambda t: not t.startswith("\ufeff"))
)


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


def test_tsv_has_no_quoting_and_keeps_spaces(tmp_path: Path) -> None:
    path = written(tmp_path, "a.tsv", 'sentence\tlabel\n"one\t 1 \n two" \t0\n\t1\n')
    assert read_examples(path) == [
        TextExample('"one', None, "1"),
        TextExample(' two" ', None, "0"),
        TextExample("", None, "1"),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize(("suffix", "tab"), [("tsv", "\t"), ("csv", ",")])
def test_line_ends_and_byte_order_mark(tmp_path: Path, end: str, mark: str, last: bool, suffix: str, tab: str) -> None:
    rows = [f"text{tab}label", f"a{tab}x", f"b{tab}y"]
    path = written(tmp_path, f"a.{suffix}", mark + end.join(rows) + end * last)
    assert read_examples(path) == [TextExample("a", None, "x"), TextExample("b", None, "y")]


def test_characters_that_only_look_like_line_breaks_are_text(tmp_path: Path) -> None:
    text = "a\u2028b\x0bc\x0cd\x1ce\x85f\0g\rh"
    path = written(tmp_path, "a.tsv", f"text\tlabel\n{text}\t1\n")
    assert read_examples(path) == [TextExample(text, None, "1")]


def test_csv_quotes_commas_and_line_breaks(tmp_path: Path) -> None:
    path = written(tmp_path, "a.CSV", 'label,text\r\n1,"say ""hi"", then\r\ngo\ton"\r\n0,plain\r\n')
    assert read_examples(path) == [TextExample('say "hi", then\r\ngo\ton', None, "1"), TextExample("plain", None, "0")]


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl"])
def test_a_text_longer_than_the_csv_modules_limit(tmp_path: Path, suffix: str) -> None:
    text = " ".join(["word"] * 60_000)
    row = (
        json.dumps({"text": text, "label": "1"})
        if suffix == "jsonl"
        else f"{text}{',' if suffix == 'csv' else chr(9)}1"
    )
    header = "" if suffix == "jsonl" else "text,label\n" if suffix == "csv" else "text\tlabel\n"
    limit = csv.field_size_limit()
    assert read_examples(written(tmp_path, f"a.{suffix}", header + row))[0].text == text
    assert csv.field_size_limit() == limit


def test_jsonl_objects_may_have_other_keys(tmp_path: Path) -> None:
    rows = [{"id": 7, "sentence1": "a", "sentence2": "b", "label": 1}, {"sentence2": "d", "label": 0, "sentence1": "c"}]
    path = written(tmp_path, "a.jsonl", "\r\n".join(map(json.dumps, rows)))
    assert read_examples(path) == [TextExample("a", "b", "1"), TextExample("c", "d", "0")]


def test_blank_lines_at_the_end_are_no_rows(tmp_path: Path) -> None:
    for suffix, tab in (("tsv", "\t"), ("csv", ",")):
        path = written(tmp_path, f"a.{suffix}", f"text{tab}label\na{tab}1\n\n\r\n")
        assert len(read_examples(path)) == 1


@pytest.mark.parametrize(
    ("name", "content", "line", "says"),
    [
        ("a.tsv", "", 0, "empty"),
        ("a.csv", "", 0, "empty"),
        ("a.jsonl", "", 0, "empty"),
        ("a.jsonl", "\n \n", 0, "empty"),
        ("a.tsv", "\ufeff", 0, "empty"),
        ("a.tsv", "text\tlabel\n", 0, "only the header"),
        ("a.csv", "text,label\n\n", 0, "only the header"),
        ("a.tsv", "\ntext\tlabel\n", 1, "expected the header, found a blank line"),
        ("a.tsv", "text\tlabel\na\t1\nb\n", 3, "expected 2 fields like line 1, got 1 (too few)"),
        ("a.tsv", "text\tlabel\na\tb\t1\n", 2, "got 3 (too many: a tab inside a text?)"),
        ("a.csv", "text,label\n\n\na, b,1\n", 2, "blank line between rows"),
        ("a.csv", 'text,label\n"a\nb",1\nc, d,1\n', 4, "got 3 (too many"),
        ("a.csv", 'text,label\na,1\n"b,1\nc,1\n', 3, "not valid CSV"),
        ("a.csv", 'text,label\n"a"b,1\n', 2, "not valid CSV"),
        ("a.tsv", "text\tlabel\na\t1\nb\t \n", 3, "expected a label, found none"),
        ("a.jsonl", '{"text": "a", "label": 1}\n["b", 1]\n', 2, "expected a JSON object"),
        ("a.jsonl", '{"text": "a", "label": 1}\n{"text": \n', 2, "not JSON"),
        ("a.jsonl", '{"text": "a", "label": 1}\n\n{"text": "b", "label": 1}\n', 2, "blank line"),
        ("a.jsonl", '{"text": "a", "label": 1}\n{"label": 1}\n', 2, "a string as the text, got none"),
        ("a.jsonl", '{"text": 5, "label": 1}\n', 1, "a string as the text, got 5"),
        ("a.jsonl", '{"text": "a", "sentence2": null, "label": 1}\n', 1, "as the second text, got null"),
        ("a.jsonl", '{"text": "a", "label": [1]}\n', 1, "a string as the label, got [1]"),
        ("a.jsonl", '{"text": "a", "label": ""}\n', 1, "expected a label, found none"),
        ("a.jsonl", '{"text": "a", "label": 1e999}\n', 1, "finite label"),
        ("a.jsonl", '{"text": "a", "label": NaN}\n', 1, "finite label"),
        ("a.jsonl", '{"text": "a", "text": "b", "label": 1}\n', 1, "'text' stands twice"),
        ("a.jsonl", '{"text": "\\ud83d", "label": 1}\n', 1, "surrogate"),
        ("a.jsonl", "[" * 100_000, 1, "not JSON"),
        ("a.jsonl", '{"text": "a", "label": ' + "9" * 5000 + "}", 1, "not JSON"),
    ],
)
def test_faults_name_file_and_line(tmp_path: Path, name: str, content: str, line: int, says: str) -> None:
    message = fault(written(tmp_path, name, content))
    assert says in message
    assert (f"line {line}:" in message) == bool(line)


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    assert "line 2: expected UTF-8" in fault(written(tmp_path, "a.tsv", b"text\tlabel\ncaf\xe9\t1\n"))


def test_formats(tmp_path: Path) -> None:
    path = written(tmp_path, "a.txt", "text\tlabel\na\t1\n")
    assert "'.txt'" in fault(path) and "rename the file" in fault(path)
    assert "'xml'" in fault(path, format="xml")
    assert read_examples(path, format="tsv") == [TextExample("a", None, "1")]
    assert "cannot read" in fault(tmp_path / "absent.tsv")
    for suffix in (".gz", ".zip"):
        assert "unpack it first" in fault(written(tmp_path, f"a.tsv{suffix}", b"\x1f\x8b"))
    assert f"{tmp_path}: expected a file, got a folder" in fault(tmp_path)


@settings(deadline=None, max_examples=150)
@given(rows=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4))
def test_any_text_survives_csv_and_jsonl(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]) -> None:
    """Written by Python's own csv and json modules, read back unchanged."""
    folder = tmp_path_factory.mktemp("odd")
    expected = [TextExample(text, pair, "x") for text, pair in rows]
    buffer = io.StringIO(newline="")
    csv.writer(buffer, quoting=csv.QUOTE_ALL).writerows(
        [("sentence1", "sentence2", "label"), *((*r, "x") for r in rows)]
    )
    assert read_examples(written(folder, "a.csv", buffer.getvalue())) == expected
    for ascii_only in (True, False):
        objects = [{"sentence1": text, "sentence2": pair, "label": "x"} for text, pair in rows]
        lines = "\n".join(json.dumps(item, ensure_ascii=ascii_only) for item in objects)
        assert read_examples(written(folder, "a.jsonl", lines)) == expected


@settings(deadline=None, max_examples=150)
@given(texts=st.lists(TEXTS.map(lambda t: t.replace("\t", "").replace("\n", "")), min_size=1, max_size=4))
def test_any_text_without_tab_and_line_break_survives_tsv(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    content = "text\tlabel\n" + "".join(f"{text}\tx\n" for text in texts)
    path = written(tmp_path_factory.mktemp("odd"), "a.tsv", content)
    assert read_examples(path) == [TextExample(text, None, "x") for text in texts]


@settings(deadline=None, max_examples=300)
@given(content=st.binary(max_size=60) | TEXTS.map(str.encode), suffix=st.sampled_from(["tsv", "csv", "jsonl"]))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes, suffix: str) -> None:
    """Nothing but InputError comes out, and every row that is read has a text and a label."""
    head = {"tsv": b"text\tlabel\n", "csv": b"text,label\n", "jsonl": b'{"text": "a", "label": 1}\n'}[suffix]
    path = written(tmp_path_factory.mktemp("bytes"), f"a.{suffix}", head + content)
    try:
        examples = read_examples(path)
    except InputError as error:
        assert str(path) in str(error)
    else:
        assert all(example.label for example in examples)
