"""Exact match and F1 of answers to questions, with the figures of the official scripts.

SQuAD: evaluate-v1.1.py and evaluate-v2.0.py (Rajpurkar et al., 2016, 2018). Chinese: cmrc2018_evaluate.py (Cui et al.,
2019), where each ideograph is a word and F1 is over the longest common run of words; other scripts are cut at spaces here,
by nltk there.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from albert_tf.data.squad import QuestionExample
from albert_tf.errors import InputError
from albert_tf.inference.question_answering import AnswerSettings, FoundAnswer

_ARTICLES = re.compile(r"\b(a|an|the)\b", re.UNICODE)
_PUNCTUATION = frozenset(string.punctuation)
_IDEOGRAPH = re.compile("[\u4e00-\u9fa5]")
# What the script for CMRC takes out, in this order of its own.
_CHINESE_PUNCTUATION = frozenset("-:_*^/\\~`+=，。：？！“”；’《》……·、「」（）－～『』")


def normalize_answer(text: str) -> str:
    """Lower case, no punctuation, no articles, single spaces."""
    text = "".join(character for character in text.lower() if character not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def exact_match(answer: str, right: str) -> float:
    """1 if the two are the same after `normalize_answer`, else 0."""
    return float(normalize_answer(answer) == normalize_answer(right))


def f1(answer: str, right: str) -> float:
    """F1 over the words that both have; where one has none, whether the other has none either."""
    ours, theirs = normalize_answer(answer).split(), normalize_answer(right).split()
    if not ours or not theirs:
        return float(ours == theirs)
    common = sum((Counter(ours) & Counter(theirs)).values())
    return 2.0 * common / (len(ours) + len(theirs))


def chinese_exact_match(answer: str, right: str) -> float:
    """1 if the two are the same without punctuation and in lower case, else 0."""
    return float(_without_punctuation(answer) == _without_punctuation(right))


def chinese_f1(answer: str, right: str) -> float:
    """F1 of the longest run of words, ideographs each on its own, that both have."""
    ours, theirs = _chinese_words(answer), _chinese_words(right)
    common = _longest_common_run(ours, theirs)
    return 2.0 * common / (len(ours) + len(theirs)) if common else 0.0


# How far a threshold is from all scores where it is below or above them all.
_MARGIN = 1.0
_Score = Callable[[str, str], float]
# Language → exact match, F1, and which right answers count.
_SCORES: dict[str, tuple[_Score, _Score, Callable[[str], object]]] = {
    "english": (exact_match, f1, normalize_answer),
    "chinese": (chinese_exact_match, chinese_f1, str.strip),
}


def squad_metrics(
    examples: Sequence[QuestionExample],
    answers: Mapping[str, str],
    no_answer_scores: Mapping[str, float] | None = None,
    *,
    language: str = "english",
) -> dict[str, Any]:
    """Compares answers with the right ones.

    Args:
        examples: the questions; one without right answers has none in its passage.
        answers: question id → answer, "" for none.
        no_answer_scores: question id → how much speaks against an answer; with it the best threshold is looked for.
        language: "english" or "chinese": whose script.

    Returns:
        `exact_match` and `f1` in percent, `examples`; where some questions have answers and some have none, the same of
        each kind: `answerable_…`, `unanswerable_…`; with `no_answer_scores` `best_exact_match`, `best_f1` and the scores
        above which an answer is withheld for them, `best_exact_match_threshold`, `best_f1_threshold`.

    Raises:
        InputError: an unknown language, no examples, or a question without an answer.
    """
    if language not in _SCORES:
        raise InputError(f"language: expected one of {', '.join(_SCORES)}; got {language!r}")
    missing = [example.identifier for example in examples if example.identifier not in answers]
    if missing or not examples:
        raise InputError(
            f"expected an answer to each of {len(examples)} questions; {len(missing)} have none: {missing[:3]}"
        )
    pairs = {e.identifier: best_scores(answers[e.identifier], [a.text for a in e.answers], language) for e in examples}
    kinds = {
        kind: {name: scores[number] for name, scores in pairs.items()}
        for number, kind in enumerate(("exact_match", "f1"))
    }
    answerable = {example.identifier: bool(example.answers) for example in examples}
    result: dict[str, Any] = {name: _mean(scores) for name, scores in kinds.items()} | {"examples": len(examples)}
    if len(set(answerable.values())) > 1:
        for prefix, wanted in (("answerable", True), ("unanswerable", False)):
            own = [name for name, has in answerable.items() if has is wanted]
            result |= {
                f"{prefix}_{kind}": _mean({name: scores[name] for name in own}) for kind, scores in kinds.items()
            }
            result[f"{prefix}_examples"] = len(own)
    if no_answer_scores is not None:
        for kind, scores in kinds.items():
            best, threshold = best_threshold(scores, answers, no_answer_scores, answerable)
            result |= {f"best_{kind}": best, f"best_{kind}_threshold": threshold}
    return result


def best_scores(answer: str, right: Sequence[str], language: str) -> tuple[float, float]:
    """Exact match and F1 of one answer, each with the right answer that gives most.

    Args:
        answer: "" for none.
        right: the right answers; without one, "" is right.
        language: "english" or "chinese".
    """
    exact, overlap, counts = _SCORES[language]
    texts = [text for text in right if counts(text)] or [""]
    return max(exact(answer, text) for text in texts), max(overlap(answer, text) for text in texts)


def answer_metrics(
    examples: Sequence[QuestionExample], found: Sequence[FoundAnswer], settings: AnswerSettings
) -> dict[str, Any]:
    """`squad_metrics` of the answers as they were given, and what they would be with other thresholds.

    Returns:
        Figures as in `squad_metrics`; where some questions have answers and some have none, also `at_best_threshold`:
        the same figures with a threshold that is best for F1, and that threshold, `no_answer_threshold`.

    Raises:
        InputError: see `squad_metrics`; or two questions with one id.
    """
    names = [example.identifier for example in examples]
    if len(set(names)) < len(names):
        raise InputError(f"expected questions with different ids, got {len(names)} with {len(set(names))}")
    pairs = list(zip(names, found, strict=True))
    language = settings.language
    result = squad_metrics(examples, {name: answer.text for name, answer in pairs}, language=language)
    unanswerable = sum(not example.answers for example in examples)
    if settings.no_answer_threshold is not None:
        result["no_answer_threshold"] = settings.no_answer_threshold
    if not 0 < unanswerable < len(examples):
        return result
    spans = {name: answer.spans[0].text if answer.spans else "" for name, answer in pairs}
    scores = {name: answer.no_answer_score for name, answer in pairs}
    best = squad_metrics(examples, spans, scores, language=language)
    threshold = _between(best["best_f1_threshold"], scores.values())
    # The official script gives 0 where it is best to withhold every answer.
    if best["best_f1"] <= 100.0 * unanswerable / len(examples):
        threshold = min(scores.values()) - _MARGIN
    given = {name: "" if scores[name] > threshold else text for name, text in spans.items()}
    chosen = squad_metrics(examples, given, language=language) | {"no_answer_threshold": threshold}
    figures = {name: value for name, value in best.items() if name.startswith("best_")}
    return result | figures | {"at_best_threshold": chosen}


def best_threshold(
    scores: Mapping[str, float],
    answers: Mapping[str, str],
    no_answer_scores: Mapping[str, float],
    answerable: Mapping[str, bool],
) -> tuple[float, float]:
    """The best mean score in percent, and the no-answer score above which answers are withheld for it
    (find_best_thresh of evaluate-v2.0.py)."""
    current = best = float(sum(not has for has in answerable.values()))
    threshold = 0.0
    for name in sorted(no_answer_scores, key=lambda name: no_answer_scores[name]):
        if name not in scores:
            continue
        current += scores[name] if answerable[name] else -1.0 if answers[name] else 0.0
        if current > best:
            best, threshold = current, no_answer_scores[name]
    return 100.0 * best / len(scores), threshold


def _between(score: float, scores: Collection[float]) -> float:
    """A threshold that parts the scores as the one at `score` does, but lies halfway to the next: at one of the scores
    itself it would depend on the last digit, which is another on a device."""
    above = [other for other in scores if other > score]
    return (score + min(above)) / 2 if above else score + _MARGIN


def _mean(scores: Mapping[str, float]) -> float:
    return 100.0 * sum(scores.values()) / len(scores)


def _without_punctuation(text: str) -> str:
    return "".join(c for c in text.lower().strip() if c not in _CHINESE_PUNCTUATION and c not in ".,:?!\"'()[]<>;")


def _chinese_words(text: str) -> list[str]:
    """Ideographs and punctuation are dropped or stand alone; runs of anything else are words between spaces."""
    words: list[str] = []
    run = ""
    for character in text.lower().strip():
        if _IDEOGRAPH.match(character) or character in _CHINESE_PUNCTUATION:
            words += run.split()
            run = ""
            if character not in _CHINESE_PUNCTUATION:
                words.append(character)
        else:
            run += character
    return words + run.split()


def _longest_common_run(ours: Sequence[str], theirs: Sequence[str]) -> int:
    longest = 0
    row = [0] * (len(theirs) + 1)
    for word in ours:
        previous = 0
        for column, other in enumerate(theirs, start=1):
            previous, row[column] = row[column], previous + 1 if word == other else 0
            longest = max(longest, row[column])
    return longest
