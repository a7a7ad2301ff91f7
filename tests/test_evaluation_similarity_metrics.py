"""`albert_tf.evaluation.similarity_metrics`: correlations against SciPy, retrieval against a search by hand."""

import numpy as np
import pytest
from scipy import stats

from albert_tf.errors import InputError
from albert_tf.evaluation import similarity_metrics as module
from albert_tf.evaluation.similarity_metrics import retrieval_metrics, retrieval_ranks, similarity_metrics


def test_correlations_are_scipys() -> None:
    random = np.random.default_rng(0)
    scores = random.integers(0, 6, 50).astype(float)
    cosines = 0.1 * scores + random.standard_normal(50)
    found = similarity_metrics(scores.tolist(), cosines.tolist())
    assert found == {
        "spearman": pytest.approx(stats.spearmanr(scores, cosines).statistic),
        "pearson": pytest.approx(stats.pearsonr(scores, cosines).statistic),
        "examples": 50,
    }
    assert similarity_metrics([1, 2], [0.5, 0.5]) == {"spearman": 0.0, "pearson": 0.0, "examples": 2}


def by_hand(vectors: np.ndarray, texts: np.ndarray) -> dict[str, float]:
    """Every query against every text, one by one."""
    place = {int(text): vectors[spot] for spot, text in np.ndenumerate(texts)}

    def cosine(first: int, second: int) -> float:
        a, b = place[first].astype(float), place[second].astype(float)
        return float(a @ b / np.sqrt(a @ a) / np.sqrt(b @ b))

    searched = {int(text) for text in texts[:, 1:].ravel()}
    recalls, reciprocals = [], []
    for query in {int(text) for text in texts[:, 0]}:
        right = {int(row[1]) for row in texts if row[0] == query} - {query}
        if right:
            ordered = sorted(searched - {query}, key=lambda text: -cosine(query, text))
            recalls.append([len(right & set(ordered[:limit])) / len(right) for limit in (1, 5, 10)])
            reciprocals.append(1 / (1 + min(ordered.index(text) for text in right)))
    names = ("recall_at_1", "recall_at_5", "recall_at_10")
    return dict(zip(names, np.mean(recalls, axis=0), strict=True)) | {
        "mean_reciprocal_rank": float(np.mean(reciprocals))
    }


@pytest.mark.parametrize("rows", [2, 3])
def test_retrieval_is_that_of_a_search_by_hand(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeated queries and answers, queries that are answers, a pair of one text; in one go and in parts."""
    random = np.random.default_rng(1)
    texts = random.integers(0, 40, (60, rows))
    texts[:20, 0] += 100
    texts[0] = [7, *[7] * (rows - 1)]
    of_text = random.standard_normal((200, 8)).astype(np.float32)
    of_text[100:] += 0.3 * of_text[:100]
    vectors = of_text[texts]
    expected = by_hand(vectors, texts)
    found = retrieval_metrics(vectors, texts)
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert 0 < found["recall_at_1"] < found["recall_at_10"] < 1
    assert (found["candidates"], found["examples"]) == (len(np.unique(texts[:, 1:])), 60)
    monkeypatch.setattr(module, "_QUERIES_AT_ONCE", 7)
    assert retrieval_metrics(vectors, texts) == pytest.approx(found)


def test_the_extremes() -> None:
    texts = np.arange(40).reshape(20, 2)
    same = np.ones((20, 2, 4), np.float32)
    found = retrieval_metrics(same, texts)
    assert (found["recall_at_10"], found["mean_reciprocal_rank"]) == (0.0, pytest.approx(1 / 20))
    perfect = np.repeat(np.eye(20, dtype=np.float32)[:, None], 2, axis=1)
    found = retrieval_metrics(perfect, texts)
    assert (found["recall_at_1"], found["mean_reciprocal_rank"], found["queries"]) == (1.0, 1.0, 20)


def test_wrong_use() -> None:
    with pytest.raises(InputError, match="expected at least one pair of texts"):
        retrieval_metrics(np.zeros((0, 2, 4)), np.zeros((0, 2), int))
    with pytest.raises(InputError, match="expected pairs of two different texts, found none"):
        retrieval_metrics(np.ones((1, 2, 4)), np.zeros((1, 2), int))


def test_what_each_search_found() -> None:
    vectors = np.array([[[1, 0], [0, 1], [1, 0]], [[0, 1], [1, 1], [0, 2]], [[1, 0], [1, 0.1], [5, 5]]], float)
    texts = np.array([[0, 1, 2], [3, 4, 1], [0, 5, 4]])
    first, second = retrieval_ranks(vectors, texts)
    assert (first.row, sorted(first.ranks.tolist()), first.first) == (2, [2, 4], (0, 2))
    assert (second.row, second.ranks.tolist(), second.first) == (1, [2], (0, 1))
