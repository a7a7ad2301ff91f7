"""Answers from a model's outputs, written from run_squad of google-research/albert one span at a time: what tests compare
the pipeline with.

A row is (outputs, first token, tokens before the passage, tokens of the passage in the row); outputs are lists.
"""

import math
from typing import Any

Row = tuple[dict[str, Any], int, int, int]


def counts_here(rows: list[Row], number: int, token: int) -> bool:
    """Whether a token of the passage, counted in row `number`, has its most context there."""
    best, winner = None, None
    place = rows[number][1] + token
    for other, (_, first, _, length) in enumerate(rows):
        if first <= place <= first + length - 1:
            score = min(place - first, first + length - 1 - place) + 0.01 * length
            if best is None or score > best:
                best, winner = score, other
    return winner == number


def highest(values: list[float], count: int) -> list[int]:
    return [index for index, _ in sorted(enumerate(values), key=lambda pair: pair[1], reverse=True)][:count]


def answers(
    rows: list[Row],
    spans: list[tuple[int, int]],
    passage: str,
    *,
    n_best: int,
    longest: int,
    beams: tuple[int, int] | None,
) -> tuple[list[tuple[str, float]], float]:
    """The best texts with their shares, and the no-answer score; `beams` for the head of SQuAD 2.0."""
    found, against = [], math.inf
    for number, (outputs, first, before, length) in enumerate(rows):
        if beams is None:
            starts, ends = outputs["start_logits"], outputs["end_logits"]
            against = min(against, starts[0] + ends[0])
            pairs = [
                (start, end, starts[start] + ends[end])
                for start in highest(starts, n_best)
                for end in highest(ends, n_best)
            ]
        else:
            starts = outputs["start_log_probs"]
            against = min(against, outputs["no_answer_logit"][0])
            pairs = []
            for k, start in enumerate(highest(starts, beams[0])):
                column = [row[k] for row in outputs["end_log_probs"]]
                pairs += [(start, end, starts[start] + column[end]) for end in highest(column, beams[1])]
        for start, end, score in pairs:
            start, end = start - before, end - before
            if 0 <= start <= end < length and end - start + 1 <= longest and counts_here(rows, number, start):
                found.append((first + start, first + end, score))
    found.sort(key=lambda span: span[2], reverse=True)
    texts: dict[str, float] = {}
    for start, end, score in found:
        text = passage[spans[start][0] : spans[end][1]].strip()
        if text and text not in texts and len(texts) < n_best:
            texts[text] = score
    if beams is None and texts:
        against -= max(texts.values())
    total = sum(math.exp(score) for score in texts.values())
    return [(text, math.exp(score) / total) for text, score in texts.items()], against
