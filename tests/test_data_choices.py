"""`albert_tf.data.choices`: RACE and ARC files as they are found, and what is wrong with one."""

import csv
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from albert_tf.data.choices import ChoiceExample, choice_of, read_choices
from albert_tf.errors import InputError

RACE: dict[str, Any] = {
    "article": "Tom has a dog. It is brown.",
    "questions": ["What colour is the dog?", "Tom has a _ ."],
    "options": [["red", "brown", "black", "white"], ["cat", "dog"]],
    "answers": ["B", "B"],
    "id": "high1.txt",
}


def test_race_file_and_folder(tmp_path: Path) -> None:
    """RACE has a file for each passage, in folders by grade; questions with two or three options do occur."""
    folder = tmp_path / "dev" / "high"
    folder.mkdir(parents=True)
    (folder / "10.txt").write_text(json.dumps(RACE), encoding="utf-8")
    (folder / "9.txt").write_text(json.dumps(RACE | {"article": "Other."}), encoding="utf-8-sig")
    first, second = read_choices(folder / "10.txt")
    assert first == ChoiceExample(RACE["article"], "What colour is the dog?", ("red", "brown", "black", "white"), 1)
    assert second.options == ("cat", "dog") and second.answer == 1
    assert [example.context for example in read_choices(tmp_path / "dev")] == [RACE["article"]] * 2 + ["Other."] * 2


def test_the_option_goes_into_the_blank_or_after_the_question() -> None:
    assert ChoiceExample("", "Tom has a _ .", ("cat", "dog")).statements() == ["Tom has a cat .", "Tom has a dog ."]
    assert ChoiceExample("", "Who?", ("Tom", "")).statements() == ["Who? Tom", "Who? "]


def test_a_list_of_passages(tmp_path: Path) -> None:
    for content in ([RACE, RACE], {"version": "dev", "data": [RACE, RACE]}):
        (tmp_path / "all.json").write_text(json.dumps(content))
        assert len(read_choices(tmp_path / "all.json")) == 4
    without = {name: value for name, value in RACE.items() if name != "answers"}
    (tmp_path / "test.json").write_text(json.dumps(without))
    assert [example.answer for example in read_choices(tmp_path / "test.json")] == [None, None]


def test_arc_tables(tmp_path: Path) -> None:
    """No header; three to five options in one file; quoted cells with commas and line breaks; letters or numbers."""
    rows = [
        ["Which, then?", "a, b", "c", "d\ne", "f", "C"],
        ["Who?", "I", "you", "", "", "1"],
        ["What?", "1", "2", "3", "4", "5", "E"],
    ]
    with (tmp_path / "arc.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    examples = read_choices(tmp_path / "arc.csv")
    assert [len(example.options) for example in examples] == [4, 2, 5]
    assert [example.answer for example in examples] == [2, 0, 4]
    assert examples[0].options[2] == "d\ne" and examples[0].context == ""


def test_arc_tables_with_a_header_full_width_letters_and_gaps(tmp_path: Path) -> None:
    path = tmp_path / "arc.csv"
    path.write_bytes("\ufeffQuestion,A,B,C,AnswerKey\r\nWho?,I,you,,\uff22\r\nWhat?,a,b,c,\uff13\r\n".encode())
    assert [(e.options, e.answer) for e in read_choices(path)] == [(("I", "you"), 1), (("a", "b", "c"), 2)]
    path.write_text("Who?,I,,you,B\n")
    with pytest.raises(InputError, match=r"line 1 \('Who\?'\): option B is blank, though others follow"):
        read_choices(path)
    left_out: list[str] = []
    path.write_text("Who?,I,,you,B\nWho?,I,you,,B\n")
    assert len(read_choices(path, left_out=left_out)) == len(left_out) == 1


def test_json_lines(tmp_path: Path) -> None:
    """Our own, and ARC as AI2 and the Hub spread it; labels of ARC's options are letters or numbers."""
    choices = [("red", "1"), ("blue", "2"), ("green", "3")]
    rows = [
        {"passage": "A dog.", "question": "Who?", "options": ["dog", "cat"], "answer": "A", "id": 1},
        {"question": {"stem": "Which?", "choices": [{"text": t, "label": n} for t, n in choices]}, "answerKey": "2"},
        {
            "question": "Which?",
            "choices": {"text": ["a", "b", "c", "d", "e"], "label": list("ABCDE")},
            "answerKey": "E",
        },
        {"question": "Who?", "options": ["dog", "cat"]},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_choices(tmp_path / "a.jsonl") == [
        ChoiceExample("A dog.", "Who?", ("dog", "cat"), 0),
        ChoiceExample("", "Which?", ("red", "blue", "green"), 1),
        ChoiceExample("", "Which?", ("a", "b", "c", "d", "e"), 4),
        ChoiceExample("", "Who?", ("dog", "cat"), None),
    ]
    for row, example in zip(rows, read_choices(tmp_path / "a.jsonl"), strict=True):
        assert choice_of(row) == dataclasses.replace(example, answer=None)
    labels = [f"L{number}" for number in range(30)]
    many = {"question": "Which?", "choices": {"text": labels, "label": labels}, "answerKey": "L29"}
    (tmp_path / "a.jsonl").write_text(json.dumps(many))
    with pytest.raises(InputError, match=r"line 1 .*: expected 2 to 26 options, found 30"):
        read_choices(tmp_path / "a.jsonl")
    for name, value in (("question", "\ud800"), ("options", ["a", "\ud800"]), ("passage", "\ud800")):
        (tmp_path / "a.jsonl").write_text(json.dumps(rows[0] | {name: value}))
        with pytest.raises(InputError, match=r"line 1.*is half of a surrogate pair"):
            read_choices(tmp_path / "a.jsonl")
    (tmp_path / "a.jsonl").write_text(json.dumps(rows[0] | {"answer": "C"}))
    with pytest.raises(InputError, match=r"a.jsonl, line 1 \('Who\?'\): expected an answer from A to B, got 'C'"):
        read_choices(tmp_path / "a.jsonl")


def test_c3(tmp_path: Path) -> None:
    passage = [
        ["\u5973\uff1a\u4f60\u597d", "\u7537\uff1a\u597d"],
        [{"question": "q?", "choice": ["a", "b", "c"], "answer": "c"}],
        "1-1",
    ]
    (tmp_path / "m.json").write_text(json.dumps([passage]))
    assert read_choices(tmp_path / "m.json") == [ChoiceExample("\n".join(passage[0]), "q?", ("a", "b", "c"), 2)]
    (tmp_path / "m.json").write_text(json.dumps([[["a"], [{"question": "q?", "choice": ["a", "b"], "answer": "x"}]]]))
    with pytest.raises(InputError, match=r"passage 1, question 1 \('q\?'\): expected an answer from A to B, got 'x'"):
        read_choices(tmp_path / "m.json")
    many = [str(number) for number in range(30)]
    (tmp_path / "m.json").write_text(json.dumps([[["a"], [{"question": "q?", "choice": many, "answer": "29"}]]]))
    with pytest.raises(InputError, match=r"question 1 \('q\?'\): expected 2 to 26 options, found 30"):
        read_choices(tmp_path / "m.json")
    (tmp_path / "m.json").write_text(json.dumps([[[None], [{"question": "q?", "choice": ["a", "b"], "answer": "a"}]]]))
    with pytest.raises(InputError, match="passage 1: expected a string as the sentence, got null"):
        read_choices(tmp_path / "m.json")
    (tmp_path / "m.json").write_text("[[3]]")
    with pytest.raises(InputError, match="passage 1: expected a list of sentences and one of questions"):
        read_choices(tmp_path / "m.json")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"answers": ["B", "C"]},
            r"passage 1, question 2 \('Tom has a _ .'\): expected an answer from A to B, got 'C'",
        ),
        ({"answers": ["B"]}, 'expected as many "answers" as questions'),
        ({"options": [["red"], ["a", "b"]]}, r"question 1 .*: expected 2 to 26 options, found 1"),
        ({"options": [["red", "blue"]]}, 'as many lists in "options"'),
        ({"options": [["red", 1], ["a", "b"]]}, "expected a list of strings as options"),
        ({"questions": [3, "b"]}, "question 1: expected a string as the question, got 3"),
        ({"article": None}, "expected a string as the passage, got null"),
        ({"answers": ["9" * 5000, "A"]}, "question 1 .*: expected an answer from A to"),
        ({"questions": None}, 'expected an object with "questions"'),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_file(changes: dict[str, Any], expected: str, tmp_path: Path) -> None:
    (tmp_path / "race.json").write_text(json.dumps(RACE | changes))
    with pytest.raises(InputError, match=expected) as error:
        read_choices(tmp_path / "race.json")
    assert "race.json" in str(error.value)


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="in the folder, found none"):
        read_choices(tmp_path)
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(InputError, match="expected questions with options, found none"):
        read_choices(tmp_path / "empty.csv")
    (tmp_path / "list.json").write_text("[3]")
    with pytest.raises(InputError, match='passage 1: expected an object with "questions"'):
        read_choices(tmp_path / "list.json")
    with pytest.raises(InputError, match="cannot read"):
        read_choices(tmp_path / "absent.json")


def test_real_files(shared_data: Path) -> None:
    with pytest.raises(InputError, match=r"arc_easy_dev.csv, line 5 .*: expected 2 to 26 options, found 0"):
        read_choices(shared_data / "arc" / "arc_easy_dev.csv")
    left_out: list[str] = []
    arc = read_choices(shared_data / "arc" / "arc_easy_dev.csv", left_out=left_out)
    assert len(arc) + len(left_out) == 2251 and len(left_out) == 104
    assert {len(example.options) for example in arc} <= {3, 4, 5}
    c3 = read_choices(shared_data / "expmrc" / "expmrc-c3-dev.json")
    assert len(c3) > 400 and {len(example.options) for example in c3} <= {2, 3, 4}
    assert all(example.context for example in c3)
