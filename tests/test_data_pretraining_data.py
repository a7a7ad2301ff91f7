"""`albert_tf.data.pretraining_data`: batches of an epoch, resumed, shared between workers, held out; damage."""

import dataclasses
import itertools
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from pretraining_texts import documents, tokenizer, write_documents
from scipy.stats import chisquare

from albert_tf.data.masking import MaskingRules
from albert_tf.data.pretraining_data import PretrainingData
from albert_tf.data.pretraining_making import make_pretraining_data
from albert_tf.data.pretraining_manifest import FILE_NAME, HELD_OUT, TRAIN, PretrainingDataSettings
from albert_tf.errors import InputError
from albert_tf.tokenization.tokenizer import AlbertTokenizer

RULES = MaskingRules()
BATCH = 8
Batch = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More shards than a window holds; no test changes it."""
    base = tmp_path_factory.mktemp("pretraining")
    text = write_documents(base / "text.txt", documents(100, seed=1))
    settings = PretrainingDataSettings((str(text),), max_length=80, held_out=0.1, shard_megabytes=0.005)
    make_pretraining_data(settings, tokenizer(), base / "data", workers=1)
    return base / "data"


@pytest.fixture(scope="module")
def data(folder: Path) -> PretrainingData:
    return PretrainingData(folder)


def equal(first: Batch, second: Batch) -> bool:
    return list(first) == list(second) and all(np.array_equal(first[name], second[name]) for name in first)


def plain_rows(batch: Batch) -> list[tuple[int, ...]]:
    """The texts of each row without masks and in their order: what the row is an example of."""
    rows = []
    for row, length in enumerate(batch["padding_mask"].sum(axis=1).tolist()):
        ids = batch["token_ids"][row].copy()
        count = int(batch["masked_weights"][row].sum())
        ids[batch["masked_positions"][row, :count]] = batch["masked_ids"][row, :count]
        middle = length - int(batch["segment_ids"][row].sum())
        first, second = ids[1 : middle - 1].tolist(), ids[middle : length - 1].tolist()
        rows.append((*second, *first) if batch["sentence_order_labels"][row] else (*first, *second))
    return rows


def test_what_it_says_about_itself(data: PretrainingData) -> None:
    assert data.max_length == 80
    assert data.num_examples == data.manifest.totals(TRAIN)["examples"] > 20 * BATCH
    assert data.num_held_out == data.manifest.totals(HELD_OUT)["examples"] > BATCH
    assert data.num_tokens == data.manifest.totals(TRAIN)["tokens"]
    assert data.manifest.totals(TRAIN)["shards"] > 8
    assert data.tokenizer.vocabulary.size == tokenizer().vocabulary.size


def test_an_epoch_has_every_example_once(data: PretrainingData) -> None:
    steps = data.num_examples // BATCH
    batches = list(itertools.islice(data.batches(BATCH, RULES, 1), 2 * steps))
    epochs = [
        Counter(row for batch in part for row in plain_rows(batch)) for part in (batches[:steps], batches[steps:])
    ]
    assert [sum(epoch.values()) for epoch in epochs] == [steps * BATCH] * 2
    assert sum((epochs[0] - epochs[1]).values()) <= data.num_examples % BATCH
    assert all(batch["token_ids"].shape[0] == BATCH for batch in batches)


def test_epochs_have_other_masks_and_other_orders(data: PretrainingData) -> None:
    steps = data.num_examples // BATCH
    masks: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for batch in itertools.islice(data.batches(BATCH, RULES, 1), 2 * steps):
        for row, plain in enumerate(plain_rows(batch)):
            masks.setdefault(plain, []).append(tuple(batch["masked_positions"][row].tolist()))
    both = [positions for positions in masks.values() if len(positions) == 2]
    assert len(both) > 50
    assert sum(first == second for first, second in both) < 0.1 * len(both)


def test_seeds(data: PretrainingData) -> None:
    def start(seed: int) -> list[Batch]:
        return list(itertools.islice(data.batches(BATCH, RULES, seed), 5))

    assert all(equal(first, second) for first, second in zip(start(3), start(3), strict=True))
    assert not any(equal(first, second) for first, second in zip(start(3), start(4), strict=True))


def test_resuming_gives_the_batches_that_would_have_followed(data: PretrainingData) -> None:
    steps = data.num_examples // BATCH
    whole = list(itertools.islice(data.batches(BATCH, RULES, 1), 2 * steps + 5))
    for start in (1, steps // 2, steps - 1, steps, steps + 3, 2 * steps):
        resumed = itertools.islice(data.batches(BATCH, RULES, 1, start), 4)
        assert all(equal(batch, whole[start + n]) for n, batch in enumerate(resumed)), start


@pytest.mark.parametrize("workers", [2, 4])
def test_workers_together_see_the_batches_of_one(data: PretrainingData, workers: int) -> None:
    steps = data.num_examples // BATCH + 2
    alone = itertools.islice(data.batches(BATCH, RULES, 1), steps)
    parts = [data.batches(BATCH, RULES, 1, shard=(worker, workers)) for worker in range(workers)]
    for whole, *own in zip(alone, *parts, strict=False):
        assert all(len(part["token_ids"]) == BATCH // workers for part in own)
        assert equal({name: np.concatenate([part[name] for part in own]) for name in whole}, whole)


def test_shapes_and_scales(data: PretrainingData) -> None:
    shapes = set()
    for batch in itertools.islice(data.batches(BATCH, RULES, 1), data.num_examples // BATCH):
        rows, length = batch["token_ids"].shape
        shapes.add((length, batch["masked_ids"].shape[1]))
        longest = int(batch["padding_mask"].sum(axis=1).max())
        assert length == min(80, -(-longest // 32) * 32)
        assert batch["text_scale"].tolist() == pytest.approx([1 / rows] * rows)
        masked = batch["masked_weights"].sum()
        assert (
            1 / batch["word_scale"][0] == pytest.approx(masked, rel=0.1) and 1 / batch["word_scale"][0] >= masked - 1e-3
        )
        assert len(set(batch["word_scale"].tolist())) == 1
    assert shapes <= {(32, 5), (64, 10), (80, 12)} and len(shapes) > 1
    fixed = next(data.batches(BATCH, RULES, 1, length=100))
    assert fixed["token_ids"].shape == (BATCH, 100) and fixed["masked_ids"].shape == (BATCH, 15)


def test_examples_of_like_length_come_together(data: PretrainingData) -> None:
    filled = [batch["padding_mask"].mean() for batch in itertools.islice(data.batches(BATCH, RULES, 1), 100)]
    assert np.mean(filled) > 0.85


def test_rules_are_followed(data: PretrainingData) -> None:
    rules = MaskingRules(rate=0.3, max_predictions=4)
    batch = next(data.batches(BATCH, rules, 1))
    assert batch["masked_ids"].shape[1] == 4
    assert batch["masked_weights"].sum(axis=1).max() <= 4


def test_held_out_batches_are_the_same_every_time(data: PretrainingData) -> None:
    first, second = (list(data.held_out_batches(BATCH, RULES, 1)) for _ in range(2))
    assert all(equal(a, b) for a, b in zip(first, second, strict=True))
    assert sum(len(batch["token_ids"]) for batch in first) == data.num_held_out
    assert len(first) == -(-data.num_held_out // BATCH)
    longest = [int(batch["padding_mask"].sum(axis=1).max()) for batch in first]
    assert longest == sorted(longest, reverse=True)
    other_sizes = [row for batch in data.held_out_batches(5, RULES, 1) for row in plain_rows(batch)]
    assert Counter(other_sizes) == Counter(row for batch in first for row in plain_rows(batch))
    trained = {row for batch in itertools.islice(data.batches(BATCH, RULES, 1), 100) for row in plain_rows(batch)}
    assert not trained & set(other_sizes)
    last = first[-1]
    assert last["text_scale"].tolist() == pytest.approx([1 / len(last["token_ids"])] * len(last["token_ids"]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 0}, "expected a batch size that 1 workers share equally, got 0"),
        ({"batch_size": 10**9}, "examples, fewer than a batch of 1000000000"),
        ({"shard": (0, 3)}, "expected a batch size that 3 workers share equally, got 8"),
        ({"shard": (2, 2)}, "(part 2)"),
        ({"length": 79}, "length: expected at least 80, the longest of this data, got 79"),
    ],
)
def test_wrong_arguments(data: PretrainingData, arguments: dict, message: str) -> None:
    with pytest.raises(InputError) as error:
        next(data.batches(**{"batch_size": BATCH, "rules": RULES, "seed": 0, **arguments}))
    assert message in str(error.value)


def test_wrong_arguments_are_told_at_once(data: PretrainingData) -> None:
    with pytest.raises(InputError):
        data.batches(0, RULES, 0)
    with pytest.raises(InputError):
        data.held_out_batches(0, RULES, 0)


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def test_no_data(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a folder that albert-tf pretrain-data wrote"):
        PretrainingData(tmp_path)
    with pytest.raises(InputError, match="expected a folder"):
        PretrainingData(tmp_path / "none")


def test_missing_and_damaged_shards(copy: Path) -> None:
    path = sorted(copy.glob("train-*"))[1]
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(InputError, match=rf"{path.name}: expected a file of {len(whole):,} bytes, but it has"):
        PretrainingData(copy)
    path.unlink()
    with pytest.raises(InputError, match="but there is none"):
        PretrainingData(copy)
    path.write_bytes(whole[:-20] + bytes(20))
    with pytest.raises(InputError, match=rf"{path.name}: expected a whole GZIP file, but it is damaged"):
        list(itertools.islice(PretrainingData(copy).batches(BATCH, RULES, 0), 1000))


def test_a_manifest_with_other_counts(copy: Path) -> None:
    data = PretrainingData(copy)
    first = data.manifest.shards[0]
    wrong = dataclasses.replace(first, examples=first.examples + 1)
    manifest = dataclasses.replace(data.manifest, shards=(wrong, *data.manifest.shards[1:]))
    (copy / FILE_NAME).write_text(manifest.to_json(), encoding="utf-8")
    with pytest.raises(InputError, match=rf"expected {first.examples + 1} examples, found {first.examples}"):
        list(itertools.islice(PretrainingData(copy).batches(BATCH, RULES, 0), 1000))
    assert PretrainingData(copy).digest != data.digest


def test_no_held_out_text(copy: Path) -> None:
    data = PretrainingData(copy)
    manifest = dataclasses.replace(data.manifest, shards=tuple(data.manifest.of_split(TRAIN)))
    (copy / FILE_NAME).write_text(manifest.to_json(), encoding="utf-8")
    with pytest.raises(InputError, match="no held-out texts; make the data with more text or a larger --held-out"):
        PretrainingData(copy).held_out_batches(BATCH, RULES, 0)


def test_static_masks_are_for_others(copy: Path) -> None:
    data = PretrainingData(copy)
    settings = data.manifest.settings | {"static_masks": dataclasses.asdict(RULES)}
    (copy / FILE_NAME).write_text(dataclasses.replace(data.manifest, settings=settings).to_json(), encoding="utf-8")
    with pytest.raises(InputError, match="made with --static-masks, for other systems"):
        PretrainingData(copy)


def test_statistics_of_real_text(shared_data: Path, tmp_path: Path) -> None:
    """Encyclopedia text with the published vocabulary: rates as published, by χ²."""
    text = (shared_data / "corpora_en/wiki_vital.txt").read_bytes()[:600_000].rpartition(b"\n\n")[0]
    (tmp_path / "text.txt").write_bytes(text)
    published = AlbertTokenizer.from_pretrained(shared_data / "albert_vocab_en/30k-clean.model")
    settings = PretrainingDataSettings((str(tmp_path / "text.txt"),), max_length=128)
    make_pretraining_data(settings, published, tmp_path / "data", workers=1)
    data = PretrainingData(tmp_path / "data")
    labels: Counter[int] = Counter()
    actions: Counter[str] = Counter()
    masked = tokens = 0
    for batch in itertools.islice(data.batches(16, RULES, 0), 5 * (data.num_examples // 16)):
        labels.update(batch["sentence_order_labels"].tolist())
        tokens += int(batch["padding_mask"].sum())
        masked += int(batch["masked_weights"].sum())
        now = np.take_along_axis(batch["token_ids"], batch["masked_positions"], axis=1)[batch["masked_weights"] > 0]
        before = batch["masked_ids"][batch["masked_weights"] > 0]
        kinds = np.where(now == published.vocabulary.mask_id, "mask", np.where(now == before, "same", "random"))
        actions.update(kinds.tolist())
    assert chisquare([labels[0], labels[1]]).pvalue > 1e-3
    shares = np.array([0.8, 0.1, 0.1]) * masked
    assert chisquare([actions[kind] for kind in ("mask", "same", "random")], shares).pvalue > 1e-3
    assert masked / tokens == pytest.approx(0.15, abs=0.002)
