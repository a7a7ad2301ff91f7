"""`albert_tf.data.pretraining_shards`: counts, splits and records of one block."""

import dataclasses
import hashlib
from pathlib import Path

import numpy as np
import pytest
from pretraining_texts import documents, tokenizer
from scipy.stats import binomtest

from albert_tf.data.documents import Block
from albert_tf.data.masking import MaskingRules
from albert_tf.data.pretraining_manifest import HELD_OUT, TRAIN, PretrainingDataSettings
from albert_tf.data.pretraining_records import read_pairs, read_published
from albert_tf.data.pretraining_shards import ShardMaker
from albert_tf.errors import InputError
from albert_tf.tokenization.wordpiece import WordPieceVocabulary

SETTINGS = PretrainingDataSettings(("text.txt",), max_length=48, held_out=0.2)
TEXTS = documents(60, seed=1)


def block_of(texts: list[list[str]], group: int = 0, number: int = 0) -> Block:
    return Block(group, number, "\n\n".join("\n".join(sentences) for sentences in texts).encode())


def maker(**changes) -> ShardMaker:
    return ShardMaker(dataclasses.replace(SETTINGS, **changes), tokenizer().vocabulary)


def test_shards_and_their_counts(tmp_path: Path) -> None:
    shards = maker().write(block_of(TEXTS), tmp_path)
    assert [(shard.file, shard.split) for shard in shards] == [
        ("train-00000-00000.tfrecord.gz", TRAIN),
        ("held_out-00000-00000.tfrecord.gz", HELD_OUT),
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(shard.file for shard in shards)
    encoded = [sum(len(tokenizer().vocabulary.encode(s)) for s in sentences) for sentences in TEXTS]
    assert sum(shard.documents for shard in shards) == len(TEXTS)
    assert sum(shard.sentences for shard in shards) == sum(map(len, TEXTS))
    assert sum(shard.tokens - 3 * shard.examples + shard.left_out_tokens for shard in shards) == sum(encoded)
    for shard in shards:
        content = (tmp_path / shard.file).read_bytes()
        assert (shard.bytes, shard.sha256) == (len(content), hashlib.sha256(content).hexdigest())
        pairs = read_pairs(tmp_path / shard.file)
        assert (shard.examples, shard.tokens) == (len(pairs), pairs.example_lengths.sum())
        assert pairs.example_lengths.max() <= 48


def test_held_out_documents_are_in_no_training_example(tmp_path: Path) -> None:
    """Each document is one word, again and again."""
    names = [f"{a}{b}" for a in "abcdefghij" for b in "klmnop"]
    vocabulary = WordPieceVocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *names])
    train, held_out = ShardMaker(SETTINGS, vocabulary).write(
        block_of([[f"{name} " * 9] * 9 for name in names]), tmp_path
    )
    tokens = [set(read_pairs(tmp_path / shard.file).token_ids.tolist()) for shard in (train, held_out)]
    assert tokens[0].isdisjoint(tokens[1])
    assert tokens[0] | tokens[1] == set(range(5, 65))
    assert (len(tokens[0]), len(tokens[1])) == (train.documents, held_out.documents)


def test_the_held_out_share() -> None:
    texts = [["a b c d e f g h", "the mill"]] * 4000
    counts = {split: entry["documents"] for split, (_, entry) in maker(held_out=0.05).records(block_of(texts)).items()}
    assert binomtest(counts[HELD_OUT], 4000, 0.05).pvalue > 1e-3
    assert set(maker(held_out=0.0).records(block_of(TEXTS))) == {TRAIN}
    assert set(maker(held_out=1.0).records(block_of(TEXTS))) == {HELD_OUT}


def test_blocks_and_seeds_differ_and_repeat() -> None:
    def train(maker: ShardMaker, *place: int) -> list[bytes]:
        return maker.records(block_of(TEXTS, *place))[TRAIN][0]

    assert train(maker()) == train(maker())
    assert train(maker()) != train(maker(), 0, 1)
    assert train(maker(), 0, 1) != train(maker(), 1, 0)
    assert train(maker()) != train(maker(seed=1))


def test_duplicates_have_other_borders(tmp_path: Path) -> None:
    (single,) = maker(held_out=0.0).write(block_of(TEXTS), tmp_path)
    (double,) = maker(held_out=0.0, duplicates=3).write(block_of(TEXTS), tmp_path / "three")
    assert double.documents == single.documents and double.sentences == single.sentences
    assert double.examples == pytest.approx(3 * single.examples, rel=0.1)
    pairs = read_pairs(tmp_path / "three" / double.file).compact()
    firsts = {tuple(pairs.token_ids[b : b + n]) for b, n in zip(pairs.begins[:, 0], pairs.lengths[:, 0], strict=True)}
    assert len(firsts) > 2 * single.examples


def test_examples_are_in_random_order(tmp_path: Path) -> None:
    """Some shards are mixed in training; the examples of a document must not stand together in them."""
    vocabulary = WordPieceVocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij"])
    settings = dataclasses.replace(SETTINGS, held_out=0.0)
    ShardMaker(settings, vocabulary).write(block_of([[f"{word} " * 9] * 50 for word in "abcdefghij"]), tmp_path)
    pairs = read_pairs(tmp_path / "train-00000-00000.tfrecord.gz")
    of_document = pairs.token_ids[pairs.begins[:, 0]]
    neighbours = np.mean(of_document[1:] == of_document[:-1])
    assert neighbours < 0.3, "a tenth by chance, nine tenths in the order of the text"


def test_static_masks(tmp_path: Path) -> None:
    rules = MaskingRules(max_predictions=6)
    (shard,) = maker(held_out=0.0, duplicates=2, static_masks=rules).write(block_of(TEXTS), tmp_path)
    assert shard.file == "train-00000-00000.tfrecord", "other systems read uncompressed files only"
    arrays = read_published(tmp_path / shard.file)
    assert arrays["token_ids"].shape == (shard.examples, 48)
    assert arrays["masked_ids"].shape == (shard.examples, 6)
    assert arrays["padding_mask"].sum() == shard.tokens
    mask_id = tokenizer().vocabulary.mask_id
    assert (arrays["token_ids"] == mask_id).sum() == pytest.approx(0.8 * arrays["masked_weights"].sum(), rel=0.1)
    assert 0 < arrays["sentence_order_labels"].mean() < 1
    unmasked = maker(held_out=0.0, duplicates=2).records(block_of(TEXTS))[TRAIN][1]
    assert unmasked["tokens"] == shard.tokens, "the same pairs, masked"


def test_static_masks_are_made_in_lots(tmp_path: Path, monkeypatch) -> None:
    rules = MaskingRules(max_predictions=6)
    whole = maker(static_masks=rules).records(block_of(TEXTS))
    monkeypatch.setattr("albert_tf.data.pretraining_shards._MASKED_TOGETHER", 48 * 5)
    assert maker(static_masks=rules).records(block_of(TEXTS)) == whole


def test_next_sentence_task(tmp_path: Path) -> None:
    for shard in maker(next_sentence=True).write(block_of(TEXTS), tmp_path):
        labels = read_pairs(tmp_path / shard.file).labels
        assert set(labels.tolist()) == {0, 1}
    with pytest.raises(
        InputError, match=r"--nsp: expected at least two documents .* block 00000-00003 is one document"
    ):
        maker(next_sentence=True, held_out=0.0).records(block_of(TEXTS[:1], number=3))


def test_a_lone_held_out_document_is_paired_with_training_text(tmp_path: Path) -> None:
    """The other way round, held-out text would be trained on."""
    rest = [documents(1, seed=seed, sentences=30)[0] for seed in range(12)]
    for seed in range(50):
        shards = maker(next_sentence=True, held_out=0.1, seed=seed).write(block_of(rest), tmp_path / str(seed))
        held_out = [shard for shard in shards if shard.split == HELD_OUT and shard.documents == 1]
        if held_out:
            labels = read_pairs(tmp_path / str(seed) / held_out[0].file).labels
            assert set(labels.tolist()) == {0, 1}
            return
    pytest.fail("no seed holds out one document of twelve")


def test_text_without_words() -> None:
    assert maker().records(block_of([["\u200b"], ["\u0301", "\u200b"]])) == {}
    texts = [["\u0301", "the old mill by the river has been turning", "\u0301", "since a day"], ["\u0301"]]
    (entry,) = maker(held_out=0.0).records(block_of(texts)).values()
    assert (entry[1]["documents"], entry[1]["sentences"]) == (1, 2)


def test_word_starts_are_kept(tmp_path: Path) -> None:
    maker(held_out=0.0).write(block_of(TEXTS), tmp_path)
    pairs = read_pairs(tmp_path / "train-00000-00000.tfrecord.gz")
    pieces = tokenizer().vocabulary.pieces(pairs.token_ids.tolist())
    begins = np.array([piece.startswith("▁") for piece in pieces])
    inside = np.ones(len(pieces), bool)
    inside[pairs.begins.reshape(-1)] = False
    assert pairs.word_starts[begins].all()
    assert not pairs.word_starts[inside & np.array([piece.isalpha() and piece.isascii() for piece in pieces])].any()
