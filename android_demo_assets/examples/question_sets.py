"""Templates of passages with questions → SQuAD 2.0 JSON."""

import dataclasses
import json
import random
import re
from pathlib import Path
from typing import Any

from grammar import Drawing, Lists, capitalized, plain

ANSWERABLE_EACH = 4  # most questions with an answer about one passage
SHARE_WITH_UNANSWERABLE = 0.95  # of the passages; about every fifth question of a set then has no answer
SHARE_FROM_ELSEWHERE = 0.12  # of these questions: asked of another passage
SENTENCES_OF_EXTRACTS = (0.45, 0.4, 0.15)  # share of those with one, two, three
LEAVE_OUT = 0.25  # of sentences that may be left out
WITHOUT_QUESTION_MARK = 0.08
_PLACE = re.compile(r"\{(\w+(?:\.\w+)?)\}")


@dataclasses.dataclass(frozen=True)
class PassageTemplate:
    """Sentences, each with whether it may be left out; questions with their answers, "-" where there is none."""

    where: str
    sentences: tuple[tuple[str, bool], ...]
    questions: tuple[tuple[str, str], ...]


def read_passages(path: Path) -> list[PassageTemplate]:
    """Blocks with blank lines between them: sentences, `~ sentence that may be left out`, `? questions => answer`."""
    templates = []
    number = 1
    for block in re.split(r"\n[ \t]*\n", path.read_text(encoding="utf-8")):
        lines = [line for line in block.split("\n") if line.strip() and not line.startswith("#")]
        where = f"{path.name}, line {number}"
        number += block.count("\n") + 2
        if not lines:
            continue
        questions = [tuple(part.strip() for part in line[2:].split("=>")) for line in lines if line.startswith("? ")]
        if bad := [question for question in questions if len(question) != 2]:
            raise ValueError(f"{where}: expected '? question => answer', got {bad[0]}")
        sentences = [(line.removeprefix("~ "), line.startswith("~ ")) for line in lines if not line.startswith("? ")]
        templates.append(PassageTemplate(where, tuple(sentences), tuple((q, a) for q, a in questions)))
    return templates


def question_set(
    templates: list[PassageTemplate], lists: Lists, drawings: int, seed: int, extracts: bool = False
) -> str:
    """The JSON text of `drawings` passages from each template, or of an extract of each passage."""
    numbers = random.Random(seed)
    passages = [_passage(template, lists, numbers) for _ in range(drawings) for template in templates]
    if extracts:
        passages = [passage for passage in (_extract(each, numbers) for each in passages) if passage[1]]
    paragraphs: list[dict[str, Any]] = []
    count = 0
    for place, (context, answerable, unanswerable) in enumerate(passages):
        asked = numbers.sample(answerable, min(ANSWERABLE_EACH, len(answerable)))
        if numbers.random() < SHARE_WITH_UNANSWERABLE:
            if not unanswerable or numbers.random() < SHARE_FROM_ELSEWHERE:
                unanswerable = [(q, "", 0) for q in _foreign(place, passages, len(templates))]
            asked.append(numbers.choice(unanswerable))
        numbers.shuffle(asked)
        rows = []
        for question, text, start in asked:
            count += 1
            if numbers.random() < WITHOUT_QUESTION_MARK:
                question = question.removesuffix("?")
            answers = [{"text": text, "answer_start": start}] if text else []
            rows.append({"id": f"{count}", "question": question, "answers": answers, "is_impossible": not text})
        paragraphs.append({"context": context, "qas": rows})
    numbers.shuffle(paragraphs)
    content = {"version": "v2.0", "data": [{"title": "examples", "paragraphs": paragraphs}]}
    lines = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return lines.replace('{"context"', '\n{"context"') + "\n"


_Row = tuple[str, str, int]  # question, answer, where it begins
_Passage = tuple[str, list[_Row], list[_Row]]  # text, questions that it answers, questions that it does not


def _passage(template: PassageTemplate, lists: Lists, numbers: random.Random) -> _Passage:
    drawing = Drawing(lists, numbers)
    context, places = "", []  # of each sentence: its template, its text and where it begins; None where it is left out
    for written, optional in template.sentences:
        text = capitalized(plain(drawing.text(written))).replace(".m..", ".m.")
        kept = not optional or numbers.random() >= LEAVE_OUT
        if kept and context:
            context += " "
        places.append((written, text, len(context) if kept else None))
        context += text if kept else ""
    answerable: list[_Row] = []
    unanswerable: list[_Row] = []
    for variants, answer in template.questions:
        question = capitalized(plain(drawing.choice(variants)).strip())
        if answer == "-":
            unanswerable.append((question, "", 0))
            continue
        wanted = plain(drawing.text(answer))
        meant = [(start, _found(wanted, text)) for written, text, start in places if _may_answer(written, answer)]
        if not any(found for _, found in meant):
            raise ValueError(f"{template.where}: {question!r}: no {wanted!r} in the sentences that it could be in")
        there = [(start + found[0], start + found[1]) for start, found in meant if found and start is not None]
        if there:
            answerable.append((question, context[there[0][0] : there[0][1]], there[0][0]))
        else:
            unanswerable.append((question, "", 0))
    return context, answerable, unanswerable


def _extract(passage: _Passage, numbers: random.Random) -> _Passage:
    """A sentence or some of a passage; questions that the others answer have no answer in it."""
    context, answerable, unanswerable = passage
    ends = [found.end() for found in re.finditer(r'[.!?]["”)]?(?= [A-Z“"(])', context)]
    begins = [0, *(end + 1 for end in ends)]
    ends.append(len(context))
    number = numbers.choices((1, 2, 3), SENTENCES_OF_EXTRACTS)[0]
    first = numbers.randrange(max(len(begins) - number, 0) + 1)
    start, end = begins[first], ends[min(first + number, len(begins)) - 1]
    text = context[start:end]
    inside = [(question, answer, at - start) for question, answer, at in answerable if start <= at < end]
    outside = [(question, "", 0) for question, answer, _ in answerable if answer not in text]
    return text, inside, [*outside, *unanswerable]


def _may_answer(sentence: str, answer: str) -> bool:
    """Whether the sentence has all places of the answer: a number elsewhere may be the same by chance."""
    return all(re.search(rf"{{{re.escape(name)}[=}}]", sentence) for name in _PLACE.findall(answer))


def _found(answer: str, text: str) -> tuple[int, int] | None:
    """Where the answer stands, or of `before <answer> after` the part between the signs, as whole words and numbers."""
    before, sign, rest = answer.partition("<")
    part, _, _ = rest.partition(">")
    pattern = re.escape(answer.replace("<", "").replace(">", ""))
    found = re.search(rf"(?<![\w$£€])(?<!\d[.:,]){pattern}(?!\w)(?![.:,]\d)", text, re.IGNORECASE)
    if not found:
        return None
    if not sign:
        return found.span()
    start = found.start() + len(before)
    return start, start + len(part)


def _foreign(place: int, passages: list[_Passage], templates: int) -> list[str]:
    """Questions about the passage of a template some way off, so that it is of another kind."""
    other = passages[(place + templates // 2) % len(passages)]
    return [max((question for question, _, _ in other[1]), key=len)]  # long ones fit no other passage by chance
