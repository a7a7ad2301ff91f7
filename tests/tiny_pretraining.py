"""A pretraining that takes seconds."""

from pathlib import Path
from typing import Any

import numpy as np
from pretraining_texts import tokenizer, write_documents
from small_vocabularies import LINES

from albert_tf.data.pretraining_making import make_pretraining_data
from albert_tf.data.pretraining_manifest import PretrainingDataSettings
from albert_tf.training.pretrain_config import PretrainConfig

SHAPE = {
    "vocabulary_size": 1,  # a run takes the data's
    "embedding_dim": 16,
    "hidden_dim": 32,
    "intermediate_dim": 64,
    "num_layers": 2,
    "num_heads": 2,
    "max_sequence_length": 48,
    "initializer_range": 0.1,
}
MAX_LENGTH = 40


def make_data(folder: Path, **changes: Any) -> Path:
    """Every document is of one word: what is masked can be told from what is left."""
    folder.mkdir(parents=True, exist_ok=True)
    random, encode = np.random.default_rng(0), tokenizer().vocabulary.encode
    pieces = [word for word in sorted({w for line in LINES[:5] for w in line.split()}) if len(encode(word)) == 1]
    texts = [[" ".join([word] * 6)] * 16 for word in random.choice(pieces, 160)]
    inputs = (str(write_documents(folder / "text.txt", texts)),)
    settings = PretrainingDataSettings(inputs, **{"max_length": MAX_LENGTH, "held_out": 0.1} | changes)
    make_pretraining_data(settings, tokenizer(), folder / "data", workers=1)
    return folder / "data"


def tiny_run(data: Path, shape: Path, out: Path, **changes: Any) -> PretrainConfig:
    fields: dict[str, Any] = {
        "data": str(data),
        "from_scratch": str(shape),
        "out": str(out),
        "steps": 30,
        "round_steps": 10,
        "batch_size": 16,
        "optimizer": "adamw",
        "learning_rate": 1e-2,
        "hidden_dropout": 0.05,
    }
    return PretrainConfig(**fields | changes)
