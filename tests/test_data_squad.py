"""`albert_tf.data.squad`: the layouts of SQuAD and CMRC, and answers that do not stand where the file says."""

import json
from pathlib import Path
from typing import Any

import pytest

from albert_tf.data.squad import Answer, QuestionExample, read_questions
from albert_tf.errors import InputError

CONTEXT = "The mill stands by the river. The river is old, the mill is older."


def squad(*questions: dict[str, Any], context: Any = CONTEXT) -> dict[str, Any]:
    return {"version": "v2.0", "data": [{"title": "t", "paragraphs": [{"context": context, "qas": list(questions)}]}]}


def qa(identifier: Any = "1", text: Any = "the river", start: Any = 19, **fields: Any) -> dict[str, Any]:
    return {"id": identifier, "question": "Where?", "answers": [{"text": text, "answer_start": start}]} | fields


def read(tmp_path: Path, content: Any, **kwargs: Any) -> list[QuestionExample]:
    (tmp_path / "q.json").write_text(json.dumps(content), encoding="utf-8")
    return read_questions(tmp_path / "q.json", **kwargs)


def test_answers_and_none(tmp_path: Path) -> None:
    nothing = {"id": "2", "question": "Who?", "answers": [], "is_impossible": True}
    plausible = {"id": "3", "question": "Why?", "answers": [{"text": "old", "answer_start": 43}], "is_impossible": True}
    first, second, third = read(tmp_path, squad(qa(), nothing, plausible))
    assert first == QuestionExample("1", CONTEXT, "Where?", (Answer("the river", 19),))
    assert second.answers == third.answers == ()


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        ("the mill", 40, ("the mill", 48)),  # the nearest of two would be at 0 but for the capital
        ("river", 0, ("river", 23)),
        ("river", 36, ("river", 34)),
        (" older ", 3, ("older", 60)),
        ("older", -1, ("older", 60)),
        ("older", None, ("older", 60)),
    ],
)
def test_a_wrong_place_is_put_right(text: str, start: Any, expected: tuple[str, int], tmp_path: Path) -> None:
    (example,) = read(tmp_path, squad(qa(text=text, start=start)))
    assert example.answers == (Answer(*expected),)
    assert CONTEXT.startswith(expected[0], expected[1])


def test_the_layouts_of_cmrc(tmp_path: Path) -> None:
    old = [{"context_id": "D0", "context_text": CONTEXT, "qas": [
        {"query_id": "D0_1", "query_text": "哪里?", "answers": ["the river", "river"]}
    ]}]  # fmt: skip
    (example,) = read(tmp_path, old)
    assert example.identifier == "D0_1" and example.question == "哪里?"
    assert example.answers == (Answer("the river", 19), Answer("river", 23))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            squad(qa(text="the sea")),
            r"article 1, paragraph 1, question 1 \('Where\?'\): the answer 'the sea' is not in",
        ),
        (squad(qa(text="")), "the answer '' is not in the passage"),
        (squad(qa(text=" ", start=3)), "the answer ' ' is not in the passage"),
        (squad(qa(), qa()), "question 2: the id '1' comes twice"),
        (squad(qa(text=3)), 'expected an answer with "text", a string'),
        (squad(qa(start="0")), '"answer_start", a number'),
        (squad(qa(identifier=None)), "expected an id, got None"),
        (squad(qa(question=None)), "expected a string as the question, got NoneType"),
        (squad(qa(), context=None), "expected a string as the passage, got NoneType"),
        (squad(qa(answers="x")), "expected a list of answers, got str"),
        (squad(), "expected questions, found none"),
        ({"data": [{"paragraphs": {}}]}, 'article 1: expected "paragraphs", a list of objects'),
        ({"data": ["x"]}, "article 1: expected an object, got str"),
        ({"rows": []}, 'expected an object with "data"'),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong(content: Any, expected: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=expected) as error:
        read(tmp_path, content)
    assert "q.json" in str(error.value)


def test_leaving_out(tmp_path: Path) -> None:
    left_out: list[str] = []
    examples = read(tmp_path, squad(qa(text="the sea"), qa("2"), qa("2")), left_out=left_out)
    assert [example.identifier for example in examples] == ["2"]
    assert len(left_out) == 2 and "the sea" in left_out[0] and "twice" in left_out[1]


def test_real_questions(shared_data: Path) -> None:
    examples = read_questions(shared_data / "squad2" / "cs224n_dev-v2.0.json")
    assert len(examples) == 6078 and sum(not example.answers for example in examples) == 3168
    for example in examples:
        assert all(example.context.startswith(answer.text, answer.start) for answer in example.answers)
