"""`albert_tf.evaluation.entity_metrics` on entities counted by hand."""

import pytest

from albert_tf.errors import InputError
from albert_tf.evaluation.entity_metrics import entity_metrics


def test_figures() -> None:
    """Three entities, three found: one right, one of another type, one too short."""
    true = [["B-A", "I-A", "O", "B-B"], ["O", "B-A", "I-A"]]
    found = [["B-A", "I-A", "O", "B-A"], ["O", "B-A", "O"]]
    figures = entity_metrics(true, found)
    assert figures["precision"] == figures["recall"] == figures["f1"] == pytest.approx(1 / 3)
    assert figures["accuracy"] == pytest.approx(5 / 7)
    assert figures["support"] == {"A": 2, "B": 1} and figures["f1_by_type"]["A"] == pytest.approx(2 / 5)
    assert (figures["examples"], figures["words"]) == (2, 7)


def test_no_entities() -> None:
    figures = entity_metrics([["O", "O"], []], [["O", "O"], []])
    assert figures["f1"] == 0.0 and figures["accuracy"] == 1.0 and figures["support"] == {}


def test_what_cannot_be_compared() -> None:
    with pytest.raises(InputError, match="at least one, got 0 and 0"):
        entity_metrics([], [])
    with pytest.raises(InputError, match="text 1: expected a label for each of 2 words, got 1"):
        entity_metrics([["O", "O"]], [["O"]])
