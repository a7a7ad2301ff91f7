"""One block of text into its shards of examples: what each process of `pretrain-data` does."""

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from albert_tf.data.documents import Block, Document
from albert_tf.data.masking import MaskingVocabulary
from albert_tf.data.pretraining_examples import example_draws, masked_batch
from albert_tf.data.pretraining_manifest import HELD_OUT, TRAIN, PretrainingDataSettings, Shard
from albert_tf.data.pretraining_records import pair_records, published_records
from albert_tf.data.sentence_order import Pairs, TokenizedText, next_sentence_pairs, sentence_order_pairs
from albert_tf.data.tfrecord import file_content
from albert_tf.data.word_starts import word_starts
from albert_tf.errors import InputError
from albert_tf.files import written_whole
from albert_tf.tokenization.api import Vocabulary

_PURPOSES = {TRAIN: 0, HELD_OUT: 1, "choice": 2}  # of the generators of a block
_MASKED_TOGETHER = 1 << 17  # tokens, padding included


class ShardMaker:
    """Makes the examples of blocks; they depend on the block, the settings and the vocabulary alone."""

    def __init__(self, settings: PretrainingDataSettings, vocabulary: Vocabulary) -> None:
        self.settings = settings
        self.vocabulary = vocabulary
        self._word_starts = word_starts(vocabulary, chinese_words=settings.chinese_words)
        self._masking = MaskingVocabulary(vocabulary)

    def write(self, block: Block, folder: Path) -> list[Shard]:
        """Writes the shards of `block` into `folder`, and describes them; errors as `shards`."""
        described = []
        for shard, content in self.shards(block):
            with written_whole(folder / shard.file, overwrite=True) as temporary:
                temporary.write_bytes(content)
            described.append(shard)
        return described

    def shards(self, block: Block) -> Iterator[tuple[Shard, bytes]]:
        """The shards of `block`, one for each split that has examples, and their content.

        Raises:
            InputError: the next-sentence task, and all the block is one document.
        """
        compressed = self.settings.static_masks is None  # the other systems read uncompressed files only
        for split, (records, counts) in self.records(block).items():
            content = file_content(records, compressed=compressed)
            name = f"{split}-{block.name}.tfrecord" + (".gz" if compressed else "")
            sha256 = hashlib.sha256(content).hexdigest()
            yield Shard(name, split, **counts, bytes=len(content), sha256=sha256), content

    def records(self, block: Block) -> dict[str, tuple[list[bytes], dict[str, int]]]:
        """For each split that has examples its records, in random order, and its counts as `Shard` has them."""
        text = self._tokenized(block.documents(paragraphs=self.settings.paragraphs))
        held_out = self._random(block, "choice").random(len(text.documents) - 1) < self.settings.held_out
        result = {}
        for split, chosen in ((TRAIN, ~held_out), (HELD_OUT, held_out)):
            documents = np.flatnonzero(chosen).tolist()
            others = documents if split == TRAIN else range(len(chosen))
            pairs = self._pairs(block, split, text, documents, others)
            if len(pairs):
                edges = text.sentences[text.documents]
                text_tokens = int(np.diff(edges)[chosen].sum()) * self.settings.duplicates
                counts = {
                    "examples": len(pairs),
                    "tokens": int(pairs.example_lengths.sum()),
                    "documents": len(documents),
                    "sentences": int(np.diff(text.documents)[chosen].sum()),
                    "left_out_tokens": max(0, text_tokens - int(pairs.lengths.sum())),
                }
                result[split] = (self._encoded(block, split, pairs), counts)
        return result

    def _tokenized(self, documents: Sequence[Document]) -> TokenizedText:
        encode = self.vocabulary.encode
        encoded = [[ids for sentence in sentences if (ids := encode(sentence))] for sentences in documents]
        encoded = [sentences for sentences in encoded if sentences]
        lengths = [len(ids) for sentences in encoded for ids in sentences]
        borders = np.cumsum([0, *lengths])
        chained = itertools.chain.from_iterable(itertools.chain.from_iterable(encoded))
        token_ids = np.fromiter(chained, np.int32, count=int(borders[-1]))
        starts = self._word_starts(token_ids)
        starts[borders[:-1]] = True
        return TokenizedText(token_ids, starts, borders, np.cumsum([0, *map(len, encoded)]))

    def _pairs(
        self, block: Block, split: str, text: TokenizedText, documents: Sequence[int], others: Sequence[int]
    ) -> Pairs:
        """The pairs of some documents, in random order."""
        settings = self.settings
        random = self._random(block, split)
        # Each document once after another, for every duplicate.
        own = [document for _ in range(settings.duplicates) for document in documents]
        if not settings.next_sentence:
            pairs = sentence_order_pairs(text, own, settings.max_length, settings.short_probability, random)
        else:
            if own and len(others) < 2:
                raise InputError(
                    "--nsp: expected at least two documents in the text of a shard, since second texts are taken from "
                    f"another one; block {block.name} is one document. Set blank lines between documents, or raise "
                    "--shard-megabytes"
                )
            pairs = next_sentence_pairs(text, own, others, settings.max_length, settings.short_probability, random)
        return pairs.chosen(random.permutation(len(pairs)))

    def _encoded(self, block: Block, split: str, pairs: Pairs) -> list[bytes]:
        rules, length = self.settings.static_masks, self.settings.max_length
        if rules is None:
            return pair_records(pairs)
        records: list[bytes] = []
        # The block stands for the epoch: every example of the corpus has random numbers of its own.
        place = block.group << 32 | block.number
        together = max(1, _MASKED_TOGETHER // length)
        for begin in range(0, len(pairs), together):
            numbers = np.arange(begin, min(begin + together, len(pairs)))
            draws = example_draws(self.settings.seed, place, numbers, length, stream=_PURPOSES[split])
            chosen = pairs.chosen(numbers)
            batch = masked_batch(chosen, rules, self._masking, draws, length, rules.num_predictions(length))
            records += published_records(batch)
        return records

    def _random(self, block: Block, purpose: str) -> np.random.Generator:
        return np.random.default_rng((self.settings.seed, block.group, block.number, _PURPOSES[purpose]))
