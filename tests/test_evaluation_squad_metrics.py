"""`albert_tf.evaluation.squad_metrics` on answers scored by hand; beside the official script in the clients' tests."""

import numpy as np
import pytest

from albert_tf.data.squad import Answer, QuestionExample
from albert_tf.errors import InputError
from albert_tf.evaluation.squad_metrics import (
    answer_metrics,
    best_scores,
    chinese_exact_match,
    chinese_f1,
    exact_match,
    f1,
    squad_metrics,
)
from albert_tf.inference.question_answering import AnswerSettings, AnswerSpan, FoundAnswer


def question(identifier: str, *answers: str) -> QuestionExample:
    return QuestionExample(identifier, "", "", tuple(Answer(answer, 0) for answer in answers))


@pytest.mark.parametrize(
    ("answer", "right", "exact", "overlap"),
    [
        ("The Normans!", "normans", 1, 1),
        ("in the 10th century", "10th century", 0, 0.8),  # "in" is one word too many: 2 · 2 / 5
        ("a b b", "b b c", 0, 0.8),  # "a" is an article: 2 · 2 / (2 + 3)
        ("Paris", "London", 0, 0),
        ("", "London", 0, 0),
        ("", "", 1, 1),
        ("the", "", 1, 1),  # nothing is left of an article
        ("U.S.A.", "USA", 1, 1),
    ],
)
def test_english(answer: str, right: str, exact: float, overlap: float) -> None:
    assert exact_match(answer, right) == exact
    assert f1(answer, right) == pytest.approx(overlap)


@pytest.mark.parametrize(
    ("answer", "right", "exact", "overlap"),
    [
        ("《战国无双3》", "战国无双3", 1, 1),
        ("光荣", "光荣和ω-force", 0, 2 * 2 / (2 + 5)),  # ω and force are words of their own
        ("二零零五年", "年", 0, 2 * 1 / 6),
        ("北京", "上海", 0, 0),
        ("", "上海", 0, 0),
    ],
)
def test_chinese(answer: str, right: str, exact: float, overlap: float) -> None:
    assert chinese_exact_match(answer, right) == exact
    assert chinese_f1(answer, right) == pytest.approx(overlap)


def test_the_best_of_several_right_answers_counts() -> None:
    figures = squad_metrics([question("a", "10th century", "in the 10th century")], {"a": "in 10th century"})
    assert figures == {"exact_match": 100.0, "f1": 100.0, "examples": 1}


def test_questions_without_an_answer() -> None:
    examples = [question("a", "Rome"), question("b"), question("c"), question("d", "red house")]
    figures = squad_metrics(examples, {"a": "Rome", "b": "", "c": "Oslo", "d": "house"})
    assert figures["exact_match"] == 50.0 and figures["f1"] == pytest.approx(100 * (1 + 1 + 0 + 2 / 3) / 4)
    assert figures["answerable_exact_match"] == 50.0 and figures["unanswerable_exact_match"] == 50.0
    assert (figures["answerable_examples"], figures["unanswerable_examples"]) == (2, 2)


def test_the_threshold_is_where_most_are_right() -> None:
    """Withheld above 0.3: "c", which has no answer; withheld from the start would be 2 of 4 right."""
    examples = [question("a", "Rome"), question("b"), question("c"), question("d", "red house")]
    scores = {"a": 0.1, "b": 0.9, "c": 0.5, "d": 0.3}
    figures = squad_metrics(examples, {"a": "Rome", "b": "x", "c": "Oslo", "d": "red house"}, scores)
    assert figures["exact_match"] == 50.0
    assert (figures["best_exact_match"], figures["best_exact_match_threshold"]) == (100.0, 0.3)
    assert (figures["best_f1"], figures["best_f1_threshold"]) == (100.0, 0.3)


def found(text: str, score: float, threshold: float | None) -> FoundAnswer:
    """The answer of a model that found `text`, with that much against it."""
    spans = (AnswerSpan(text, 0, len(text), 1.0),) if text else ()
    withheld = not text or (threshold is not None and score > threshold)
    return FoundAnswer("" if withheld else text, None, None, 1.0, score, spans)


@pytest.mark.parametrize("threshold", [None, 0.4])
def test_figures_as_answers_were_given_and_at_the_best_threshold(threshold: float | None) -> None:
    """The best of all thresholds that make a difference."""
    random = np.random.default_rng(0)
    words = ["red house", "red", "old red house", "mill"]
    examples = [question(str(i), *([str(random.choice(words))] if i % 3 else [])) for i in range(60)]
    scores = [float(random.normal(0.8 if i % 3 == 0 else 0.0)) for i in range(60)]
    texts = [str(random.choice([*words, ""])) for _ in range(60)]
    pairs = list(zip(texts, scores, strict=True))
    figures = answer_metrics(
        examples, [found(*p, threshold) for p in pairs], AnswerSettings(no_answer_threshold=threshold)
    )

    def at(limit: float) -> dict[str, float]:
        return squad_metrics(examples, {str(i): "" if s > limit else t for i, (t, s) in enumerate(pairs)})

    given = at(threshold if threshold is not None else np.inf)
    assert {name: figures[name] for name in given} == given
    assert figures.get("no_answer_threshold") == threshold
    chosen = figures["at_best_threshold"]
    assert chosen["f1"] == pytest.approx(max(at(limit)["f1"] for limit in [-np.inf, *scores]))
    assert chosen["f1"] == pytest.approx(figures["best_f1"]) and chosen["f1"] > given["f1"]
    above = min(score for score in scores if score > figures["best_f1_threshold"])
    assert chosen["no_answer_threshold"] == (figures["best_f1_threshold"] + above) / 2
    assert at(chosen["no_answer_threshold"]) | {"no_answer_threshold": chosen["no_answer_threshold"]} == chosen


def test_where_it_is_best_to_withhold_every_answer() -> None:
    """The official threshold, 0, would not."""
    examples = [question("a", "Rome"), question("b")]
    figures = answer_metrics(examples, [found("x", -2.0, None), found("y", -3.0, None)], AnswerSettings())
    assert figures["f1"] == 0.0 and (figures["best_f1"], figures["best_f1_threshold"]) == (50.0, 0.0)
    assert figures["at_best_threshold"]["f1"] == 50.0 and figures["at_best_threshold"]["no_answer_threshold"] < -3.0


def test_without_questions_that_have_no_answer_there_is_no_threshold() -> None:
    figures = answer_metrics([question("a", "Rome")], [found("Rome", 1.0, None)], AnswerSettings())
    assert figures == {"exact_match": 100.0, "f1": 100.0, "examples": 1}
    chinese = answer_metrics([question("a", "上海的")], [found("上海", 1.0, None)], AnswerSettings(language="chinese"))
    assert chinese["f1"] == pytest.approx(80.0)


def test_what_cannot_be_compared() -> None:
    with pytest.raises(InputError, match=r"an answer to each of 1 questions; 1 have none: \['a'\]"):
        squad_metrics([question("a", "x")], {})
    with pytest.raises(InputError, match="language: expected one of english, chinese; got 'french'"):
        squad_metrics([question("a", "x")], {"a": "x"}, language="french")


def test_one_answer_with_the_right_one_that_gives_most() -> None:
    assert best_scores("the red house", ["house", "red house!"], "english") == (1.0, 1.0)
    assert best_scores("red house", ["blue car", "house"], "english") == (0.0, pytest.approx(2 / 3))
    assert best_scores("", [], "english") == (1.0, 1.0) and best_scores("house", [], "english") == (0.0, 0.0)
    assert best_scores("红房子", ["红色", "房子。"], "chinese") == (0.0, 0.8)
