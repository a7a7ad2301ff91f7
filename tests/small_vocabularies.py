"""Vocabularies small enough to make in a test, and texts meant to break them."""

import functools
import random

import numpy as np

from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary
from albert_tf.tokenization.training import train_sentencepiece
from albert_tf.tokenization.unigram import UnigramModel
from albert_tf.tokenization.wordpiece import WordPieceVocabulary

LINES = [
    "The old mill by the river has been turning since 1807, they say.",
    "In 1999, 12,000 people came (most of them twice) to see the great wheel.",
    "Who would not want to hear the water, the wood and the stones at work?",
    "Café prices rose from £3.50 to €4.20 – nobody knows why, “naïve” or not.",
    'She said: "Never again!" - and went home; hahaha, hahaha, hahaha!!!',
    "aaa bbb aaaa bbbb aab abb ooo oooo 000 0000 111, 1111, 22, 222,",
    "Ο ΟΔΥΣΣΕΥΣ ΗΤΑΝ ΜΕΓΑΣ ΗΡΩΑΣ και οι σύντροφοί του τον ακολούθησαν.",
    "한국어 문장도 있고 가나다라 마바사 아자차카 타파하.",
]

TOKENS = [
    *(
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "\u2028",
        "我",
        "爱",
        "你",
        "中",
        "国",
        "人",
        "，",
        "。",
        "!",
        "'",
        ".",
    ),
    *(
        "the",
        "mill",
        "##s",
        "##er",
        "wheel",
        "cafe",
        "café",
        "The",
        "a",
        "##a",
        "##aa",
        "b",
        "##b",
        "ab",
        "0",
        "##0",
        "1",
    ),
    *("ο", "##δ", "##υ", "##σ", "##ς", "σ", "ς", "##e", "n", "##ive", "😀", "x", "##x", "한", "ᄒ", "##ᅡ", "##ᆫ"),
]

_FRAGMENTS = [
    *(
        "the",
        "9,000",
        "12,",
        "Hello",
        "[CLS]",
        "<pad>",
        "▁the",
        "...",
        "--",
        "((",
        "２，",
        "½",
        "ΑΣ",
        "ΑΣ.",
        "Σ\u0301",
        "A'Σ",
    ),
    *(
        "``",
        "''",
        "\ud800",
        "!" * 9,
        "haha" * 5,
        "0" * 14,
        "中国",
        "我愛你",
        " ",
        "x" * 201,
        "😀" + "a" * 8,
        "–000000000",
    ),
]
_CHARACTERS = (
    "\0\u2581\u200b\ufeff\u0301\u1100\u1161\u3002,019.①ΣσςΑ😀\u200d\ufe0f \t\n\r\x0b\x1c\x85\u2028\u302e\U0001d165'`"
)


@functools.cache
def sentencepiece_vocabulary(**options: bool) -> SentencePieceVocabulary:
    return train_sentencepiece(LINES * 20, 140, **options)


@functools.cache
def wordpiece_vocabulary(*, lower: bool = True) -> WordPieceVocabulary:
    return WordPieceVocabulary(TOKENS, lower=lower)


def unigram_model(scores: dict[str, float]) -> UnigramModel:
    """Pieces with these scores and the ids 1, 2, 3 …; 0 is unknown."""
    ids = np.arange(1, len(scores) + 1, dtype=np.int32)
    return UnigramModel(list(scores), ids, np.array(list(scores.values()), np.float32), 0)


def fuzzed_texts(count: int, seed: int) -> list[str]:
    """Strings of mixed scripts, marks, control characters, lone surrogates and repetitions; the first two are empty."""
    rng = random.Random(seed)
    makers = [
        lambda: chr(rng.randrange(0x20, 0x7F)),
        lambda: chr(rng.randrange(0x300)),
        lambda: chr(rng.randrange(0x3000)),
        lambda: chr(rng.randrange(0x30000)),
        lambda: chr(rng.randrange(0x110000)),
        lambda: rng.choice(_CHARACTERS),
        lambda: rng.choice(_FRAGMENTS),
        lambda: rng.choice(rng.choice(LINES).split()),
    ]
    texts = ["", "   "]
    while len(texts) < count:
        chosen = rng.sample(makers, rng.randrange(1, len(makers)))
        texts.append("".join(rng.choice(chosen)() for _ in range(rng.randrange(60))))
    return texts
