"""`albert_tf.evaluation.squad_metrics` beside the official script for SQuAD 2.0, as TF Model Garden ships it."""

import json
from pathlib import Path

import numpy as np
import pytest

from albert_tf.data.squad import QuestionExample, read_questions
from albert_tf.evaluation.squad_metrics import squad_metrics

pytestmark = pytest.mark.clients


def noisy_answers(examples: list[QuestionExample]) -> tuple[dict[str, str], dict[str, float]]:
    """Right, shifted, cut, foreign and empty answers, and scores that go with them loosely."""
    random = np.random.default_rng(0)
    answers, scores = {}, {}
    for example in examples:
        kind = random.integers(5)
        right = example.answers[0].text if example.answers else ""
        words = example.context.split()
        start = int(random.integers(len(words)))
        foreign = " ".join(words[start : start + int(random.integers(1, 6))])
        answers[example.identifier] = [right, f"the {right},", right[len(right) // 2 :], foreign, ""][kind]
        scores[example.identifier] = float(random.normal(0.0 if example.answers else 1.0))
    return answers, scores


def test_the_same_figures(shared_data: Path) -> None:
    from official.nlp.tools.squad_evaluate_v2_0 import evaluate

    path = shared_data / "squad2" / "cs224n_dev-v2.0.json"
    examples = read_questions(path)
    answers, scores = noisy_answers(examples)
    ours = squad_metrics(examples, answers, scores)
    dataset = json.loads(path.read_text(encoding="utf-8"))["data"]
    # Its own threshold withholds answers above 1; without scores all are given.
    plain = evaluate(dataset, answers)
    theirs = evaluate(dataset, answers, scores)
    names = {"exact": "exact_match", "f1": "f1", "total": "examples"}
    for name, own in names.items():
        assert ours[own] == pytest.approx(plain[name], abs=1e-9)
        for prefix, kind in (("HasAns", "answerable"), ("NoAns", "unanswerable")):
            assert ours[f"{kind}_{own}"] == pytest.approx(plain[f"{prefix}_{name}"], abs=1e-9)
    for name, own in (("exact", "exact_match"), ("f1", "f1")):
        assert ours[f"best_{own}"] == pytest.approx(theirs[f"final_{name}"], abs=1e-9)
        assert ours[f"best_{own}_threshold"] == theirs[f"final_{name}_thresh"]
    assert 20 < ours["exact_match"] < ours["f1"] < 80 and 20 < ours["best_exact_match"] < 80
