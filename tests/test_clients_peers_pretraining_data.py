"""Pretraining data beside official.nlp.data.create_pretraining_data of the TF Model Garden: it reads ours, and the
statistics of both are the same (χ²)."""

import dataclasses
import itertools
import random as python_random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pretraining_texts import write_documents
from scipy.stats import chi2_contingency

from albert_tf.data.masking import MaskingRules
from albert_tf.data.pretraining_making import make_pretraining_data
from albert_tf.data.pretraining_manifest import PretrainingDataSettings
from albert_tf.data.pretraining_records import read_published
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from albert_tf.tokenization.wordpiece import WordPieceVocabulary

pytestmark = pytest.mark.clients

MAX_LENGTH = 128
RULES = MaskingRules(max_predictions=19)
# Words of one token or of two, "ab" and "ab" "##x".
WORDS = [f"{a}{b}" for a in "bcdfghjklm" for b in "aeiou"]
VOCABULARY = WordPieceVocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "##x"])


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of 30 to 60 sentences of 3 to 20 words."""
    random = np.random.default_rng(0)

    def sentence() -> str:
        words = random.choice(WORDS, size=random.integers(3, 21))
        return " ".join(word + "x" * int(random.random() < 0.3) for word in words.tolist())

    texts = [[sentence() for _ in range(random.integers(30, 61))] for _ in range(200)]
    return write_documents(tmp_path_factory.mktemp("text") / "text.txt", texts)


@pytest.fixture(scope="module")
def ours(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The next-sentence task, which is theirs, with masks."""
    settings = PretrainingDataSettings(
        (str(text),), max_length=MAX_LENGTH, held_out=0.0, next_sentence=True, static_masks=RULES, duplicates=2
    )
    # A short target is a whole document's: its examples are no independent draws of a length.
    settings = dataclasses.replace(settings, short_probability=0.0)
    out = tmp_path_factory.mktemp("ours") / "data"
    make_pretraining_data(settings, AlbertTokenizer(VOCABULARY), out, workers=1)
    return out / "train-00000-00000.tfrecord"


@dataclasses.dataclass(frozen=True)
class Statistics:
    """What the two are compared in, counted over examples."""

    lengths: np.ndarray
    labels: Counter[int]
    masked: Counter[int]
    runs: Counter[int]
    actions: Counter[str]


def statistics(rows: list[tuple[list[str], list[int], list[str], int]]) -> Statistics:
    """Of (tokens with masks, positions, tokens that stood there, label)."""
    random = np.random.default_rng(1)
    runs: Counter[int] = Counter()
    actions: Counter[str] = Counter()
    for tokens, positions, labels, _ in rows:
        before = list(tokens)
        for position, label in zip(positions, labels, strict=True):
            before[position] = label
        # Words, numbered; a run is of neighbouring words that are masked.
        words = np.cumsum([not token.startswith("##") for token in before])
        masked_words = sorted({int(words[position]) for position in positions})
        edges = [n for n, (a, b) in enumerate(itertools.pairwise(masked_words), 1) if b > a + 1]
        runs.update(min(len(run), 6) for run in np.split(np.array(masked_words), edges) if len(run))
        # One token of each example: theirs decides for whole n-grams.
        place = int(random.integers(len(positions)))
        token = tokens[positions[place]]
        actions["mask" if token == "[MASK]" else "same" if token == labels[place] else "random"] += 1
    lengths = np.array([len(tokens) for tokens, *_ in rows])
    masked = Counter(len(positions) - min(19, max(1, round(len(tokens) * 0.15))) for tokens, positions, *_ in rows)
    return Statistics(lengths, Counter(label for *_, label in rows), masked, runs, actions)


@pytest.fixture(scope="module")
def both(text: Path, ours: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Statistics, Statistics]:
    """(ours, theirs)."""
    from official.nlp.data import create_pretraining_data
    from official.nlp.tools import tokenization

    folder = tmp_path_factory.mktemp("theirs")
    VOCABULARY.save(folder)
    python_random.seed(3)  # theirs draws from the global generator as well
    instances = create_pretraining_data.create_training_instances(
        [str(text)],
        tokenization.FullTokenizer(vocab_file=str(folder / "vocab.txt"), do_lower_case=True),
        create_pretraining_data.get_processor_text_fn(False, True),
        MAX_LENGTH,
        2,
        0.0,
        0.15,
        19,
        python_random.Random(4),
        do_whole_word_mask=True,
        max_ngram_size=3,
    )
    theirs = [
        (list(i.tokens), list(i.masked_lm_positions), list(i.masked_lm_labels), int(i.is_random_next))
        for i in instances
        if i.masked_lm_positions
    ]
    arrays = read_published(ours)
    own = []
    for row, length in enumerate(arrays["padding_mask"].sum(axis=1).tolist()):
        count = int(arrays["masked_weights"][row].sum())
        tokens = VOCABULARY.pieces(arrays["token_ids"][row, :length].tolist())
        labels = VOCABULARY.pieces(arrays["masked_ids"][row, :count].tolist())
        if count:
            label = int(arrays["sentence_order_labels"][row])
            own.append((tokens, arrays["masked_positions"][row, :count].tolist(), labels, label))
    return statistics(own), statistics(theirs)


def agree(first: Counter[Any], second: Counter[Any], least: int = 10) -> None:
    kinds = sorted(kind for kind in {*first, *second} if first[kind] + second[kind] >= least)
    assert len(kinds) > 1
    table = [[counts[kind] for kind in kinds] for counts in (first, second)]
    assert chi2_contingency(table).pvalue > 1e-3, dict(zip(kinds, zip(*table, strict=True), strict=True))


def test_lengths(both: tuple[Statistics, Statistics]) -> None:
    edges = [0, 40, 80, 100, 115, 120, 124, 126, 127, 128, 129]
    first, second = (np.histogram(side.lengths, edges)[0] for side in both)
    agree(Counter(dict(enumerate(first.tolist()))), Counter(dict(enumerate(second.tolist()))))
    assert len(both[0].lengths) == pytest.approx(len(both[1].lengths), rel=0.05)


def test_random_next_sentences(both: tuple[Statistics, Statistics]) -> None:
    agree(both[0].labels, both[1].labels)


def test_masked_tokens_of_an_example(both: tuple[Statistics, Statistics]) -> None:
    """As many as the rate asks for, almost always."""
    for side in both:
        assert side.masked[0] / sum(side.masked.values()) > 0.97
        assert max(side.masked) == 0


def test_runs_of_masked_words(both: tuple[Statistics, Statistics]) -> None:
    agree(both[0].runs, both[1].runs)


def test_masked_same_and_random(both: tuple[Statistics, Statistics]) -> None:
    """Theirs may draw a special token at random, ours never; that is still a random token."""
    agree(both[0].actions, both[1].actions)


def test_the_garden_reads_ours(ours: Path) -> None:
    from official.nlp.data import pretrain_dataloader

    config = pretrain_dataloader.BertPretrainDataConfig(
        input_path=str(ours), global_batch_size=32, is_training=False, seq_length=MAX_LENGTH, max_predictions_per_seq=19
    )
    arrays = read_published(ours)
    read = 0
    for batch in pretrain_dataloader.BertPretrainDataLoader(config).load():
        rows = slice(read, read + len(batch["input_word_ids"]))
        for theirs, name in (
            ("input_word_ids", "token_ids"),
            ("input_mask", "padding_mask"),
            ("input_type_ids", "segment_ids"),
            ("masked_lm_positions", "masked_positions"),
            ("masked_lm_ids", "masked_ids"),
            ("masked_lm_weights", "masked_weights"),
        ):
            assert (batch[theirs].numpy() == arrays[name][rows]).all(), name
        assert (batch["next_sentence_labels"].numpy()[:, 0] == arrays["sentence_order_labels"][rows]).all()
        read = rows.stop
    assert read > 0.9 * len(arrays["token_ids"])
