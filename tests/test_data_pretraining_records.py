"""`albert_tf.data.pretraining_records`: what is written is read back, by us and by TensorFlow under the published names."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from pretraining_texts import numbered_text
from small_vocabularies import sentencepiece_vocabulary

from albert_tf.data.masking import MaskingRules, MaskingVocabulary
from albert_tf.data.pretraining_examples import example_draws, masked_batch
from albert_tf.data.pretraining_records import pair_records, published_records, read_pairs, read_published
from albert_tf.data.sentence_order import NO_LABEL, Pairs
from albert_tf.data.tfrecord import INT64, encode_example, write_records
from albert_tf.errors import InputError


def some_pairs(count: int, label: int = NO_LABEL) -> Pairs:
    """Texts of 1 to 18 tokens of 2 to 4 bytes each, with words of three tokens."""
    text = numbered_text([[18, 18]] * count, word_length=3)
    lengths = np.random.default_rng(0).integers(1, 19, size=(count, 2))
    begins = np.arange(count)[:, None] * 36 + [0, 18]
    ids = (text.token_ids * 997 % 30000).astype(np.int32)
    return Pairs(ids, text.word_starts, begins, lengths, np.full(count, label, np.int8))


@pytest.mark.parametrize("label", [NO_LABEL, 0, 1])
def test_pairs_come_back(tmp_path: Path, label: int) -> None:
    pairs = some_pairs(30, label)
    path = tmp_path / "pairs.tfrecord.gz"
    write_records(path, pair_records(pairs), compressed=True)
    back, expected = read_pairs(path), pairs.compact()
    for name in ("token_ids", "word_starts", "begins", "lengths", "labels"):
        assert getattr(back, name).tolist() == getattr(expected, name).tolist(), name
        assert getattr(back, name).dtype == getattr(expected, name).dtype, name


def test_no_pairs(tmp_path: Path) -> None:
    write_records(tmp_path / "none.gz", [], compressed=True)
    assert len(read_pairs(tmp_path / "none.gz")) == 0
    assert pair_records(some_pairs(3).chosen(np.zeros(0, np.int64))) == []


def test_published_features(tmp_path: Path) -> None:
    vocabulary = MaskingVocabulary(sentencepiece_vocabulary())
    pairs = some_pairs(20)
    pairs.token_ids[:] = vocabulary.ordinary_ids[pairs.token_ids % len(vocabulary.ordinary_ids)]
    rules = MaskingRules(max_predictions=5)
    batch = masked_batch(pairs, rules, vocabulary, example_draws(0, 0, np.arange(20), 48), 48, 5)
    path = tmp_path / "published.tfrecord"
    write_records(path, published_records(batch), compressed=False)
    # As run_pretraining.py of google-research/albert reads them.
    features = {name: tf.io.FixedLenFeature([48], tf.int64) for name in ("input_ids", "input_mask", "segment_ids")}
    features |= {name: tf.io.FixedLenFeature([5], tf.int64) for name in ("masked_lm_positions", "masked_lm_ids")}
    features |= {"masked_lm_weights": tf.io.FixedLenFeature([5], tf.float32)}
    features |= {"next_sentence_labels": tf.io.FixedLenFeature([1], tf.int64)}
    records = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    parsed = {name: value.numpy() for name, value in tf.io.parse_example(records, features).items()}
    expected = {
        "input_ids": batch["token_ids"],
        "input_mask": batch["padding_mask"],
        "segment_ids": batch["segment_ids"],
        "masked_lm_positions": batch["masked_positions"],
        "masked_lm_ids": batch["masked_ids"],
        "masked_lm_weights": batch["masked_weights"],
        "next_sentence_labels": batch["sentence_order_labels"][:, None],
    }
    assert set(parsed) == set(expected)
    for name in expected:
        assert (parsed[name] == expected[name]).all(), name
    back = read_published(path)
    for name, array in batch.items():
        assert (back[name] == array).all() and back[name].dtype == array.dtype, name


def test_records_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "other.tfrecord"
    write_records(path, [encode_example({"token_ids": (INT64, b"\1"), "other": (INT64, b"")})], compressed=False)
    with pytest.raises(
        InputError, match=r"expected the features .*first_length, word_starts missing, found other, token"
    ):
        read_pairs(path)
    with pytest.raises(InputError, match=r"input_ids, .* missing"):
        read_published(path)
    write_records(path, [encode_example({})], compressed=False)
    with pytest.raises(InputError, match="found none"):
        read_pairs(path)
    write_records(path, [b"text"], compressed=False)
    with pytest.raises(InputError, match="expected records"):
        read_pairs(path)
