"""Text to pretrain on: documents of random sentences over a small vocabulary, as files and as token ids."""

import functools
from pathlib import Path

import numpy as np
from small_vocabularies import LINES, sentencepiece_vocabulary

from albert_tf.data.sentence_order import TokenizedText
from albert_tf.tokenization.tokenizer import AlbertTokenizer

WORDS = [word for line in LINES[:5] for word in line.split()]


def documents(count: int, *, seed: int = 0, sentences: int = 12, words: int = 14) -> list[list[str]]:
    """Documents of 1 to 2 · `sentences` - 1 sentences of 1 to 2 · `words` - 1 words."""
    random = np.random.default_rng(seed)
    return [
        [
            " ".join(str(random.choice(WORDS)) for _ in range(random.integers(1, 2 * words)))
            for _ in range(random.integers(1, 2 * sentences))
        ]
        for _ in range(count)
    ]


def write_documents(path: Path, texts: list[list[str]]) -> Path:
    path.write_text("\n\n".join("\n".join(sentences) for sentences in texts) + "\n", encoding="utf-8")
    return path


@functools.cache
def tokenizer() -> AlbertTokenizer:
    return AlbertTokenizer(sentencepiece_vocabulary())


def numbered_text(lengths: list[list[int]], *, word_length: int = 2) -> TokenizedText:
    """Documents with sentences of those lengths; token n of the text has the id n, and begins a word if n is a multiple of
    `word_length` or a sentence begins there."""
    sentences = np.cumsum([0, *(length for document in lengths for length in document)])
    token_ids = np.arange(sentences[-1], dtype=np.int32)
    starts = token_ids % word_length == 0
    starts[sentences[:-1]] = True
    return TokenizedText(token_ids, starts, sentences, np.cumsum([0, *map(len, lengths)]))
