"""Real sentences and questions, with capitals and letters beyond ASCII, and models that can read them."""

import json
import random
from pathlib import Path
from typing import Any

from tiny_models import randomize

from albert_tf.config import AlbertConfig
from albert_tf.tokenization.tokenizer import AlbertTokenizer


def real_sentences(shared_data: Path, count: int = 200) -> list[str]:
    """A third is of SST-2's dev set, the others are of Wikipedia, half of these with letters beyond ASCII."""
    rows = (shared_data / "glue_canonical" / "SST-2" / "dev.tsv").read_text("utf-8").splitlines()[1:]
    lines = (shared_data / "corpora_en" / "wiki_vital.txt").read_text("utf-8").splitlines()
    lines = [line for line in lines if line != line.lower()]
    chosen = random.Random(0)
    third = count // 3
    beyond = chosen.sample([line for line in lines if not line.isascii()], third)
    return [
        *chosen.sample([row.split("\t")[0] for row in rows], third),
        *chosen.sample(lines, count - 2 * third),
        *beyond,
    ]


def real_questions(shared_data: Path, count: int = 200) -> list[tuple[str, str]]:
    """Questions with their passages, of SQuAD, as many of passages beyond ASCII as there are."""
    articles = json.loads((shared_data / "squad2" / "cs224n_dev-v2.0.json").read_text("utf-8"))["data"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    found = [(asked["question"], paragraph["context"]) for paragraph in paragraphs for asked in paragraph["qas"]]
    found = [(question, passage) for question, passage in found if len(passage) < 1200]
    random.Random(0).shuffle(found)
    return sorted(found, key=lambda pair: pair[1].isascii())[:count]


def english_tokenizer(shared_data: Path, max_length: int) -> AlbertTokenizer:
    return AlbertTokenizer.from_pretrained(shared_data / "albert_vocab_en" / "30k-clean.model", max_length=max_length)


def reader_of_english(
    shared_data: Path, task: str, *, max_length: int = 64, scale: float = 0.3, **settings: Any
) -> Any:
    """A small model with random weights and the published English vocabulary."""
    from albert_tf.backbone import AlbertBackbone
    from albert_tf.tasks.trained import TASKS

    config = AlbertConfig(
        vocabulary_size=30000,
        hidden_dim=32,
        intermediate_dim=64,
        num_layers=2,
        num_heads=2,
        embedding_dim=16,
        max_sequence_length=max_length,
    )
    model = TASKS[task](AlbertBackbone(config), english_tokenizer(shared_data, max_length), **settings)
    randomize(model, scale=scale)
    return model
