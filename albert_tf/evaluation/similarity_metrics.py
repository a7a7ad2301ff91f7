"""How well embeddings order texts: correlation with scores, and retrieval of what belongs together."""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from albert_tf.errors import InputError
from albert_tf.evaluation.regression_metrics import regression_metrics

RANKS = (1, 5, 10)
_QUERIES_AT_ONCE = 512


@dataclasses.dataclass(frozen=True)
class Query:
    """What a search for one text found.

    Attributes:
        row: an example whose first text it is, the last one.
        ranks: of its right texts, from 1.
        first: the text found before all others: an example that has it, and its place there, 1 for the second text.
    """

    row: int
    ranks: np.ndarray
    first: tuple[int, int]


def similarity_metrics(scores: Sequence[float], cosines: Sequence[float]) -> dict[str, float]:
    """`spearman` and `pearson` correlation of cosines with scores, as SciPy computes them (0 where one side is constant);
    `examples`.

    Raises:
        InputError: no examples, or numbers that are not finite.
    """
    found = regression_metrics(scores, cosines)
    return {name: found[name] for name in ("spearman", "pearson", "examples")}


def retrieval_metrics(vectors: np.ndarray, texts: np.ndarray) -> dict[str, float]:
    """How high the texts that belong to a query stand among all others, by cosine.

    The queries are the different first texts; what is searched are the different other texts, of which those that stand
    in a row with the query are right. A text that is the query itself is neither searched nor right. Of equal cosines the
    worst rank counts, so that vectors which are all the same find nothing.

    Args:
        vectors: (examples, rows, H): of first texts, second texts and, maybe, third ones, which are right for none.
        texts: int (examples, rows): equal where texts are.

    Returns:
        `recall_at_1`, `recall_at_5`, `recall_at_10`: the share of a query's right texts among the first so many, in the
        mean over queries; `mean_reciprocal_rank` of the first right one; `queries`, `candidates`, `examples`.

    Raises:
        InputError: no examples, or none whose second text is another than the first.
    """
    recalls, reciprocals = [], []
    for query in retrieval_ranks(vectors, texts):
        recalls.append([float(np.mean(query.ranks <= limit)) for limit in RANKS])
        reciprocals.append(1 / query.ranks.min())
    return {
        **{f"recall_at_{limit}": float(share) for limit, share in zip(RANKS, np.mean(recalls, axis=0), strict=True)},
        "mean_reciprocal_rank": float(np.mean(reciprocals)),
        "queries": len(recalls),
        "candidates": len(np.unique(texts[:, 1:])),
        "examples": len(texts),
    }


def retrieval_ranks(vectors: np.ndarray, texts: np.ndarray) -> Iterator[Query]:
    """What `retrieval_metrics` counts, query by query; arguments and errors as there."""
    if texts.ndim != 2 or texts.shape[1] < 2 or vectors.shape[:2] != texts.shape or not len(texts):
        raise InputError(f"expected at least one pair of texts and their vectors, got {texts.shape}, {vectors.shape}")
    units = (vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)).astype(np.float32)
    candidates, places = np.unique(texts[:, 1:], return_index=True)
    searched = units[:, 1:].reshape(-1, units.shape[-1])[places]
    columns = {text: column for column, text in enumerate(candidates.tolist())}
    right: dict[int, set[int]] = {}
    rows: dict[int, int] = {}
    for row, (query, positive) in enumerate(texts[:, :2].tolist()):
        if query != positive:
            right.setdefault(query, set()).add(columns[positive])
            rows[query] = row
    if not right:
        raise InputError("expected pairs of two different texts, found none")
    queries = list(right)
    for start in range(0, len(queries), _QUERIES_AT_ONCE):
        chunk = queries[start : start + _QUERIES_AT_ONCE]
        cosines = units[[rows[query] for query in chunk], 0] @ searched.T
        for values, query in zip(cosines, chunk, strict=True):
            if query in columns:
                values[columns[query]] = -np.inf
            ranks = np.array([np.count_nonzero(values >= values[column]) for column in right[query]])
            row, place = divmod(int(places[values.argmax()]), texts.shape[1] - 1)
            yield Query(rows[query], ranks, (row, place + 1))
