"""`albert_tf.data.conll`: columns, JSON lines and every scheme of labels."""

from pathlib import Path

import pytest
from seqeval.metrics.sequence_labeling import get_entities

from albert_tf.data.conll import TaggedExample, entities, read_tagged, scheme_of, to_iob2
from albert_tf.errors import InputError

COLUMNS = """-DOCSTART- -X- O O

EU NNP I-NP I-ORG
rejects VBZ I-VP O \t

Peter NNP I-NP I-PER
Blackburn NNP I-NP I-PER
"""


def test_columns(tmp_path: Path) -> None:
    """CoNLL 2003 as it is spread: a line for documents, spaces at ends, IOB1."""
    expected = [
        TaggedExample(("EU", "rejects"), ("B-ORG", "O")),
        TaggedExample(("Peter", "Blackburn"), ("B-PER", "I-PER")),
    ]
    for text in (COLUMNS, COLUMNS.replace("\n", "\r\n"), "\ufeff" + COLUMNS.rstrip("\n")):
        (tmp_path / "train.txt").write_bytes(text.encode())
        assert read_tagged(tmp_path / "train.txt") == expected


def test_only_spaces_and_tabs_part_columns(tmp_path: Path) -> None:
    """Chinese corpora have the ideographic space among their characters; a document's start ends a text by itself."""
    (tmp_path / "a.txt").write_bytes("\u3000 O\r\n\u6c34\tB-X  \r\n \t\r\na O\n-DOCSTART- O\nb\u00a0c\t\tO\n".encode())
    assert [example.words for example in read_tagged(tmp_path / "a.txt")] == [
        ("\u3000", "\u6c34"),
        ("a",),
        ("b\u00a0c",),
    ]


@pytest.mark.parametrize(
    ("texts", "scheme"),
    [
        (["B-A I-A O B-B", "O"], "IOB2"),
        (["B-A I-A B-A"], "IOB2"),
        (["O I-A I-A B-A O", "I-B"], "IOB1"),
        (["I-A", "B-A"], "IOB1 and IOB2 mixed"),
        (["B-A E-A S-B"], "BIOES"),
        (["B-A M-A E-A"], "BIOES"),
        (["B-A I-A L-A", "U-B"], "BILOU"),
        (["O O", ""], "IOB2"),
    ],
)
def test_schemes_are_recognised_and_said(texts: list[str], scheme: str, tmp_path: Path) -> None:
    assert scheme_of([text.split() for text in texts]) == scheme
    lines = "\n\n".join("\n".join(f"w {label}" for label in text.split()) for text in texts)
    (tmp_path / "a.txt").write_text(lines)
    notes: list[str] = []
    read_tagged(tmp_path / "a.txt", notes.append)
    assert notes == ([] if scheme == "IOB2" else [f"{tmp_path / 'a.txt'}: labels are {scheme}, read as IOB2"])


def test_two_schemes_in_one_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a B-X\nb L-X\n\na B-X\nb E-X\n")
    with pytest.raises(InputError, match=r"a.txt: labels of BIOES and BILOU in one file: prefixes B, E, L"):
        read_tagged(tmp_path / "a.txt")


def test_json_lines(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"tokens": ["a", "b"], "ner_tags": ["S-X", "O"]}\n\n{"text": ["水"], "label": ["B-Y"]}\n{"words": ["c"]}\n'
    )
    assert read_tagged(tmp_path / "a.jsonl") == [
        TaggedExample(("a", "b"), ("B-X", "O")),
        TaggedExample(("水",), ("B-Y",)),
        TaggedExample(("c",), None),
    ]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("O I-A I-A O I-B I-A B-A I-A", "O B-A I-A O B-B B-A B-A I-A"),  # IOB1
        ("B-A I-A O B-A B-A I-A", "B-A I-A O B-A B-A I-A"),  # IOB2
        ("B-A I-A E-A S-B S-B O B-A E-A B-A E-A", "B-A I-A I-A B-B B-B O B-A I-A B-A I-A"),  # BIOES
        ("B-A I-A L-A U-B L-A", "B-A I-A I-A B-B B-A"),  # BILOU
        ("B-A I-B", "B-A B-B"),
        ("I-A-B I-A-B", "B-A-B I-A-B"),
    ],
)
def test_schemes(labels: str, expected: str) -> None:
    assert to_iob2(labels.split()) == tuple(expected.split())
    assert to_iob2(expected.split()) == tuple(expected.split())


def test_entities_are_those_of_seqeval() -> None:
    labels = ["B-A", "I-A", "O", "B-A", "B-B", "I-B", "I-A", "O", "I-C", "I-C"]
    assert entities(labels) == [(kind, start, end + 1) for kind, start, end in get_entities(labels)]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", "EU B-X\nonly\n", "line 2: expected a word and its label, found only 'only'"),
        ("a.txt", "a O\n\nEU Q-X\n", "line 3: label 'Q-X': expected O, or a prefix of B, I, E, S, L, U, M"),
        ("a.txt", "EU PER\n", "label 'PER': expected O"),
        ("a.txt", "EU \uff22-PER\n", "its characters are full-width, write 'B-PER'"),
        ("a.txt", "EU \uff2f\n", "its characters are full-width, write 'O'"),
        ("a.txt", "EU  \n", "line 1: expected a word and its label, found only 'EU'"),
        ("a.txt", "\n\n", "expected texts with labels, found none"),
        ("a.jsonl", "[1]", r"line 1: expected a JSON object, got '\[1\]'"),
        ("a.jsonl", "[" * 100_000, "line 1: not JSON"),
        ("a.jsonl", '{"tokens": ["a"], "tokens": ["b"]}', "line 1: the key 'tokens' stands twice in one object"),
        ("a.jsonl", '{"tokens": ["a", "\\ud800"]}', "line 1: character 0 of the tokens is half of a surrogate pair"),
        ("a.jsonl", "{", "line 1: not JSON"),
        ("a.jsonl", '{"tokens": ["a"], "labels": ["O", "O"]}', "line 1: .* got 1 words and 2 labels"),
        ("a.jsonl", '{"tokens": "a b"}', "line 1: tokens: expected a list of strings"),
        ("a.jsonl", '{"labels": ["O"]}', "line 1: expected a list of words as one of tokens, words, text"),
    ],
)
def test_what_is_wrong(name: str, content: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=expected) as error:
        read_tagged(tmp_path / name)
    assert name in str(error.value)


def test_real_files(shared_data: Path) -> None:
    rows, columns = (read_tagged(shared_data / "msra_ner" / name) for name in ("dev.json", "dev.ner"))
    assert len(rows) == len(columns) == 4636
    assert {label for example in rows for label in example.labels or ()} == {
        "O", "B-NR", "I-NR", "B-NS", "I-NS", "B-NT", "I-NT"
    }  # fmt: skip
