"""Tiny classifiers of every structure, and their exported files, each made once in a test process."""

import dataclasses
import functools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from small_vocabularies import sentencepiece_vocabulary
from tiny_models import randomize

from albert_tf.config import AlbertConfig
from albert_tf.tokenization.tokenizer import AlbertTokenizer

MAX_LENGTH = 24
FIXED_LENGTH = 16
LABELS = ("no", "yes", "是")
# Matrices of at least 1,024 values: smaller ones are left as they are by dynamic int8.
BASE = AlbertConfig(
    vocabulary_size=140,
    hidden_dim=32,
    intermediate_dim=64,
    num_layers=3,
    num_heads=4,
    embedding_dim=16,
    max_sequence_length=MAX_LENGTH,
)
CONFIGS = {
    "all": BASE,
    "attention, E=H, relu": dataclasses.replace(
        BASE, sharing="attention", embedding_dim=32, activation="relu", num_layers=2
    ),
    "none, inner 2": dataclasses.replace(BASE, sharing="none", num_inner_repetitions=2, num_layers=2),
    "groups 2, inner 2, erf": dataclasses.replace(
        BASE, num_groups=2, num_inner_repetitions=2, num_layers=4, activation="gelu_erf"
    ),
    "ffn": dataclasses.replace(BASE, sharing="ffn", num_layers=2),
    "words": dataclasses.replace(BASE, factorization="words"),
    "pruned": dataclasses.replace(BASE, num_heads=3, attention_dim=24, intermediate_dim=52),
}
_files = tempfile.TemporaryDirectory(prefix="tiny_exports.")


def new_classifier(config: AlbertConfig = BASE, *, seed: int = 0, scale: float = 0.15, **options: Any) -> Any:
    """A classifier with a tokenizer and random weights; `options` are the backbone's."""
    from albert_tf.backbone import AlbertBackbone
    from albert_tf.tasks.classification import AlbertTextClassifier

    tokenizer = AlbertTokenizer(sentencepiece_vocabulary(), max_length=MAX_LENGTH)
    task = AlbertTextClassifier(AlbertBackbone(config, **options), tokenizer, labels=LABELS)
    randomize(task, seed, scale)
    return task


@functools.cache
def classifier(name: str = "all") -> Any:
    """The classifier of `CONFIGS[name]`; tests must not change it."""
    return new_classifier(CONFIGS[name])


def exported(
    name: str = "all", recipe: str = "float32", form: str = "loop", length: int | None = None, runtime: str = "litert"
) -> Path:
    """The exported file of `classifier(name)`; tests must not change it."""
    from export.tflite import export_tflite

    path = Path(_files.name) / f"{name}-{recipe}-{form}-{length}-{runtime}.tflite"
    if not path.exists():
        export_tflite(classifier(name), path, recipe=recipe, form=form, length=length, runtime=runtime, measure=False)
    return path


def random_inputs(length: int, seed: int = 0) -> tuple[list[int], list[int]]:
    """Token ids and segment ids of one input with both segments."""
    random = np.random.default_rng(seed)
    first = int(random.integers(1, length + 1))
    return random.integers(0, BASE.vocabulary_size, length).tolist(), [0] * first + [1] * (length - first)


def keras_probabilities(task: Any, token_ids: list[int], segment_ids: list[int]) -> np.ndarray:
    """What the Keras model answers to one input, (labels,), from its logits."""
    inputs = {"token_ids": [token_ids], "segment_ids": [segment_ids], "padding_mask": [[1] * len(token_ids)]}
    logits = np.asarray(task({k: np.array(v, np.int32) for k, v in inputs.items()}, training=False), np.float64)[0]
    exponentials = np.exp(logits - logits.max())
    return exponentials / exponentials.sum()


@functools.cache
def wide_classifier() -> Any:
    """1.25 million parameters, most of them in a word table of 8,000 rows: enough for the graph to hardly count."""
    from albert_tf.backbone import AlbertBackbone
    from albert_tf.tasks.classification import AlbertTextClassifier
    from albert_tf.tokenization.wordpiece import WordPieceVocabulary

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz"]
    words = special + [f"##{i}" for i in range(10)] + [f"word{i}" for i in range(8000 - len(special) - 10)]
    config = AlbertConfig(
        vocabulary_size=8000,
        hidden_dim=128,
        intermediate_dim=512,
        num_layers=2,
        num_heads=4,
        embedding_dim=128,
        max_sequence_length=32,
    )
    tokenizer = AlbertTokenizer(WordPieceVocabulary(words), max_length=32)
    task = AlbertTextClassifier(AlbertBackbone(config), tokenizer, labels=["a", "b"])
    randomize(task, scale=0.05)
    return task
