"""`albert_tf.layers.embeddings`: the three tables and the projection against NumPy."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from references import numpy_albert
from tiny_models import TINY, example_inputs, randomize

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.layers.embeddings import AlbertEmbeddings

# float32 against float64: measured at most 7e-7.
TOLERANCE = 3e-6


def built(config: AlbertConfig, **kwargs: Any) -> tuple[AlbertEmbeddings, dict[str, np.ndarray]]:
    embeddings = AlbertEmbeddings(config, name="embeddings", **kwargs)
    embeddings.build()
    return embeddings, randomize(embeddings)


@pytest.mark.parametrize("fields", [{}, {"embedding_dim": 16}, {"num_segments": 3}], ids=str)
def test_against_numpy(fields: dict[str, Any]) -> None:
    config = dataclasses.replace(TINY, **fields)
    embeddings, weights = built(config)
    inputs = example_inputs()
    inputs["segment_ids"][0, 0] = config.num_segments - 1
    word, segment, position = (
        weights[f"embeddings/{name}_embedding/embeddings"].astype(np.float64)
        for name in ("word", "segment", "position")
    )
    total = word[inputs["token_ids"]] + segment[inputs["segment_ids"]] + position[:7]
    normalized = numpy_albert.layer_norm(weights, "embeddings/layer_norm", total, config.layer_norm_epsilon)
    ours = embeddings.normalized(inputs["token_ids"], inputs["segment_ids"])
    np.testing.assert_allclose(np.asarray(ours), normalized, rtol=0, atol=TOLERANCE)
    projected = (
        numpy_albert.dense(weights, "embeddings/projection", normalized) if config.has_projection else normalized
    )
    ours = embeddings(inputs["token_ids"], inputs["segment_ids"])
    np.testing.assert_allclose(np.asarray(ours), projected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("fields", [{}, {"embedding_dim": 16, "num_segments": 3}], ids=str)
def test_factorized_words_against_numpy(fields: dict[str, Any]) -> None:
    config = dataclasses.replace(TINY, factorization="words", **fields)
    embeddings, weights = built(config)
    inputs = example_inputs()
    word, segment, position = (
        weights[f"embeddings/{name}_embedding/embeddings"].astype(np.float64)
        for name in ("word", "segment", "position")
    )
    projected = word[inputs["token_ids"]] @ weights["embeddings/projection/kernel"]
    total = projected + segment[inputs["segment_ids"]] + position[:7]
    normalized = numpy_albert.layer_norm(weights, "embeddings/layer_norm", total, config.layer_norm_epsilon)
    for ours in (
        embeddings(inputs["token_ids"], inputs["segment_ids"]),
        embeddings.normalized(*list(inputs.values())[:2]),
    ):
        np.testing.assert_allclose(np.asarray(ours), normalized, rtol=0, atol=TOLERANCE)
    table, kernel = embeddings.output_matrices()
    assert table is embeddings.word_embedding.embeddings and kernel is embeddings.projection.kernel


def test_dropout_acts_on_the_sum_where_words_are_factorized() -> None:
    embeddings, _ = built(dataclasses.replace(TINY, factorization="words", hidden_dropout=0.5))
    arguments = list(example_inputs().values())[:2]
    plain, dropped = (np.asarray(embeddings(*arguments, training=training)) for training in (False, True))
    kept = dropped != 0
    assert 0.3 < kept.mean() < 0.7
    np.testing.assert_allclose(dropped[kept], 2 * plain[kept], rtol=1e-5)


def test_projection_exists_only_where_widths_differ() -> None:
    assert built(TINY)[0].projection is not None
    assert built(dataclasses.replace(TINY, embedding_dim=16))[0].projection is None
    assert built(dataclasses.replace(TINY, embedding_dim=16, factorization="words"))[0].projection is not None


def test_dropout_acts_before_the_projection_and_in_training_only() -> None:
    embeddings, _ = built(dataclasses.replace(TINY, hidden_dropout=0.5))
    embeddings.projection.kernel.assign(np.eye(8, 16))  # the projection hands the 8 columns through
    embeddings.projection.bias.assign(np.zeros(16))
    inputs = example_inputs()
    arguments = inputs["token_ids"], inputs["segment_ids"]
    plain = np.asarray(embeddings(*arguments, training=False))
    np.testing.assert_array_equal(np.asarray(embeddings(*arguments)), plain)
    dropped = np.asarray(embeddings(*arguments, training=True))[..., :8]
    kept = dropped != 0
    assert 0.3 < kept.mean() < 0.7
    np.testing.assert_allclose(dropped[kept], 2 * plain[..., :8][kept], rtol=1e-5)


def test_longest_sequence_and_one_more() -> None:
    embeddings, _ = built(TINY)
    ids = np.zeros((2, 12), np.int32)
    assert embeddings(ids, ids).shape == (2, 12, 16)
    longer = np.zeros((2, 13), np.int32)
    with pytest.raises(InputError, match=r"token_ids: expected at most 12 positions \(max_sequence_length\), got 13"):
        embeddings(longer, longer)


def test_too_long_a_sequence_in_a_graph_of_unknown_length() -> None:
    embeddings, _ = built(TINY)
    run = tf.function(lambda ids: embeddings(ids, ids), input_signature=[tf.TensorSpec((None, None), tf.int32)])
    assert run(tf.zeros((2, 12), tf.int32)).shape == (2, 12, 16)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Incompatible shapes"):
        run(tf.zeros((2, 13), tf.int32))
