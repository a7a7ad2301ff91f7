"""`PretrainingData`: the folder of `pretrain-data` as batches, masked on the fly.

Everything random is decided by the seed, the epoch and the example, so batch number n is the same whoever asks for it:
a run that resumes there, or one of several workers that each make a part of it.
"""

import dataclasses
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from albert_tf.data.batching import shuffled_batches, sorted_batches
from albert_tf.data.masking import MaskingRules, MaskingVocabulary
from albert_tf.data.pretraining_examples import example_draws, masked_batch
from albert_tf.data.pretraining_manifest import FILE_NAME, HELD_OUT, TOKENIZER_FOLDER, TRAIN, Manifest, Shard
from albert_tf.data.pretraining_order import ordered_windows
from albert_tf.data.pretraining_records import read_pairs
from albert_tf.data.sentence_order import Pairs, joined_pairs
from albert_tf.errors import InputError
from albert_tf.tokenization.tokenizer import AlbertTokenizer

Array = np.ndarray

LENGTH_STEP = 32  # batches are padded to a multiple of it: few shapes, so that each is traced once
_STREAMS = {TRAIN: 0, HELD_OUT: 1}


@dataclasses.dataclass(frozen=True)
class _Held:
    """Examples in memory: their numbers, and they."""

    numbers: Array
    pairs: Pairs


class PretrainingData:
    """A folder that `albert-tf pretrain-data` wrote.

    Attributes:
        tokenizer: what made the token ids.
        manifest: settings, shards and counts.
        max_length: the most tokens of an example.
        num_examples, num_tokens: of the training split; tokens with special ones.
        num_held_out: examples of the held-out split.
        digest: tells this data from other data.

    Raises:
        InputError: not such a folder, a file is missing or of another size than the manifest says, or the masks are
            fixed already.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.manifest = Manifest.read(self.folder)
        if self.manifest.settings["static_masks"] is not None:
            raise InputError(
                f"{folder}: made with --static-masks, for other systems; training draws new masks in every epoch, so "
                "make the data without that option"
            )
        for shard in self.manifest.shards:
            path = self.folder / shard.file
            size = path.stat().st_size if path.is_file() else None
            if size != shard.bytes:
                found = "there is none" if size is None else f"it has {size:,} bytes"
                raise InputError(f"{path}: expected a file of {shard.bytes:,} bytes, but {found}; make the data anew")
        self.tokenizer = AlbertTokenizer.from_pretrained(self.folder / TOKENIZER_FOLDER)
        self.max_length = int(self.manifest.settings["max_length"])
        totals = self.manifest.totals(TRAIN)
        self.num_examples, self.num_tokens = totals["examples"], totals["tokens"]
        self.num_held_out: int = self.manifest.totals(HELD_OUT)["examples"]
        self.digest = hashlib.sha256((self.folder / FILE_NAME).read_bytes()).hexdigest()
        self._vocabulary = MaskingVocabulary(self.tokenizer.vocabulary)

    def batches(
        self,
        batch_size: int,
        rules: MaskingRules,
        seed: int,
        start_step: int = 0,
        length: int | None = None,
        shard: tuple[int, int] = (0, 1),
    ) -> Iterator[dict[str, Array]]:
        """Endless training batches of examples of like length, epoch after epoch, each in an order of its own.

        An epoch has `num_examples // batch_size` batches; the few examples that fill none wait for another epoch.

        Args:
            batch_size: examples of a whole batch.
            rules: of masking; every epoch has other masks, and swaps other texts.
            seed: with the epoch it decides order, swaps and masks.
            start_step: batches to leave out: resuming gives those that would have followed.
            length: pad every batch to this length; None: to the longest example's, up to a multiple of 32.
            shard: (i, n): only the i-th of n equal parts of each batch, for one of n workers.

        Returns:
            Batches as `pretraining_examples.masked_batch` describes them, with two float32 (B,) beside: `word_scale`, 1 /
            masked tokens of the whole batch, as many as the rules ask for, and `text_scale`, 1 / `batch_size`.

        Raises:
            InputError: a value out of range, or fewer examples than `batch_size`.
        """
        part, parts = shard
        if batch_size < 1 or not 0 <= part < parts or batch_size % parts:
            raise InputError(
                f"expected a batch size that {parts} workers share equally, got {batch_size} (part {part})"
            )
        if self.num_examples < batch_size:
            raise InputError(
                f"{self.folder}: {self.num_examples} examples, fewer than a batch of {batch_size}; make the batch smaller "
                "or give more text"
            )
        self._check_length(length)
        rows = slice(part * batch_size // parts, (part + 1) * batch_size // parts)
        return self._endless(batch_size, rules, seed, start_step, length, rows)

    def held_out_batches(
        self, batch_size: int, rules: MaskingRules, seed: int, length: int | None = None
    ) -> Iterator[dict[str, Array]]:
        """The batches of the held-out texts, the longest first, with the same swaps and masks every time; arguments and
        result as in `batches`, and the last batch may be smaller.

        Raises:
            InputError: there are none.
        """
        shards = self.manifest.of_split(HELD_OUT)
        if not shards:
            raise InputError(f"{self.folder}: no held-out texts; make the data with more text or a larger --held-out")
        if batch_size < 1:
            raise InputError(f"expected a batch size of at least 1, got {batch_size}")
        self._check_length(length)
        return self._held_out(shards, batch_size, rules, seed, length)

    def _endless(
        self, batch_size: int, rules: MaskingRules, seed: int, start_step: int, length: int | None, rows: slice
    ) -> Iterator[dict[str, Array]]:
        shards = self.manifest.of_split(TRAIN)
        held: _Held | None = None
        for window in ordered_windows([shard.examples for shard in shards], batch_size, seed, start_step):
            count = len(window.numbers)
            held = self._hold(np.concatenate([window.numbers, window.carried]), shards, held)
            lengths = held.pairs.example_lengths[:count].tolist()
            batches = shuffled_batches(lengths, batch_size, seed=seed, epoch=window.index)
            for chosen in batches[window.skipped :]:
                numbers, pairs = held.numbers[chosen], held.pairs.chosen(chosen)
                yield self._batch(numbers, pairs, rules, (seed, window.epoch), length, rows)
            held = _Held(window.carried, held.pairs.chosen(np.arange(count, len(held.numbers))).compact())

    def _held_out(
        self, shards: Sequence[Shard], batch_size: int, rules: MaskingRules, seed: int, length: int | None
    ) -> Iterator[dict[str, Array]]:
        pairs = joined_pairs([self._read(shard) for shard in shards])
        for chosen in sorted_batches(pairs.example_lengths.tolist(), batch_size):
            yield self._batch(chosen, pairs.chosen(chosen), rules, (seed, 0), length, slice(None), split=HELD_OUT)

    def _batch(
        self,
        numbers: Array,
        pairs: Pairs,
        rules: MaskingRules,
        seed_and_epoch: tuple[int, int],
        length: int | None,
        rows: slice,
        split: str = TRAIN,
    ) -> dict[str, Array]:
        """The `rows` of the batch of the examples `numbers`."""
        lengths = pairs.example_lengths
        padded = length or min(-(-int(lengths.max()) // LENGTH_STEP) * LENGTH_STEP, self.max_length)
        masked_words = sum(rules.num_predictions(tokens) for tokens in lengths.tolist())
        draws = example_draws(*seed_and_epoch, numbers[rows], padded, _STREAMS[split])
        own = pairs.chosen(np.arange(len(pairs))[rows])
        batch = masked_batch(own, rules, self._vocabulary, draws, padded, rules.num_predictions(padded))
        batch["word_scale"] = np.full(len(own), 1 / masked_words, np.float32)
        batch["text_scale"] = np.full(len(own), 1 / len(pairs), np.float32)
        return batch

    def _hold(self, numbers: Array, shards: Sequence[Shard], held: "_Held | None") -> "_Held":
        """The examples `numbers` in that order, those that are not in `held` read from their shards."""
        ends = np.cumsum([shard.examples for shard in shards])
        of_shard = np.searchsorted(ends, numbers, side="right")
        parts, places = [], []
        if held is not None:
            is_held = np.isin(numbers, held.numbers)
            of_shard[is_held] = -1
            order = np.argsort(held.numbers)
            parts.append(held.pairs.chosen(order[np.searchsorted(held.numbers, numbers[is_held], sorter=order)]))
            places.append(np.flatnonzero(is_held))
        for index in np.unique(of_shard[of_shard >= 0]).tolist():
            places.append(np.flatnonzero(of_shard == index))
            first = int(ends[index]) - shards[index].examples
            parts.append(self._read(shards[index]).chosen(numbers[places[-1]] - first))
        return _Held(numbers, joined_pairs(parts).chosen(np.argsort(np.concatenate(places))))

    def _check_length(self, length: int | None) -> None:
        if length is not None and length < self.max_length:
            raise InputError(f"length: expected at least {self.max_length}, the longest of this data, got {length}")

    def _read(self, shard: Shard) -> Pairs:
        pairs = read_pairs(self.folder / shard.file)
        if len(pairs) != shard.examples:
            raise InputError(
                f"{self.folder / shard.file}: expected {shard.examples} examples, found {len(pairs)}; make the data anew"
            )
        return pairs
