"""Precision, recall and F1 of entities, as seqeval counts them: an entity is right when type and both ends are."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf.data.conll import entities
from albert_tf.errors import InputError


def entity_metrics(true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Compares labels in IOB2.

    Args:
        true, predicted: for each text the labels of its words.

    Returns:
        `f1`, `precision` and `recall` over all entities (0 where there are none); `accuracy` of the labels of words;
        `examples`, `words`, and `support`, type → entities in the truth; `f1_by_type`.

    Raises:
        InputError: no texts, or texts of different lengths.
    """
    from seqeval.metrics import classification_report

    if not true or len(true) != len(predicted):
        raise InputError(
            f"expected as many predictions as texts and at least one, got {len(predicted)} and {len(true)}"
        )
    for number, (ours, theirs) in enumerate(zip(true, predicted, strict=True), start=1):
        if len(ours) != len(theirs):
            raise InputError(f"text {number}: expected a label for each of {len(ours)} words, got {len(theirs)}")
    truth, guesses = ([list(labels) for labels in side] for side in (true, predicted))
    same = [a == b for row, other in zip(truth, guesses, strict=True) for a, b in zip(row, other, strict=True)]
    result: dict[str, Any] = {"f1": 0.0, "precision": 0.0, "recall": 0.0}
    support: dict[str, int] = {}
    by_type: dict[str, float] = {}
    if any(entities(labels) for labels in [*truth, *guesses]):
        report = classification_report(truth, guesses, output_dict=True, zero_division=0)
        overall = report["micro avg"]
        result = {"f1": float(overall["f1-score"])} | {n: float(overall[n]) for n in ("precision", "recall")}
        for kind, figures in report.items():
            if not kind.endswith(" avg"):
                support[kind], by_type[kind] = int(figures["support"]), float(figures["f1-score"])
    result["accuracy"] = float(np.mean(same)) if same else 0.0
    return result | {"examples": len(truth), "words": len(same), "support": support, "f1_by_type": by_type}
