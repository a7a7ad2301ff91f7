"""`albert_tf.training.traps`: each known way to a bad run is told, and a good run is told nothing."""

import dataclasses
import re
from typing import Any

import pytest
from tiny_models import TINY, randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import AlbertConfig
from albert_tf.data.schema import TextExample
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from albert_tf.tokenization.wordpiece import WordPieceVocabulary
from albert_tf.training.task_runs import ClassificationRun, QuestionAnsweringRun
from albert_tf.training.tasks.finetune_task import TrainingRows
from albert_tf.training.traps import report_start, traps

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "snow", "fire", *(f"word{n}" for n in range(53))]
LOWER_TEXTS, CASED_TEXTS = ["snow fire", "fire"], ["Snow fire", "fire"]
NO_DROPOUT = dataclasses.replace(TINY, hidden_dropout=0.0, attention_dropout=0.0)


def lines(
    *,
    config: AlbertConfig = NO_DROPOUT,
    source_config: AlbertConfig | None = NO_DROPOUT,
    words: list[str] = WORDS,
    lower: bool = True,
    texts: list[str] = LOWER_TEXTS,
    labels: tuple[str, ...] = ("a", "b"),
    source_labels: tuple[str, ...] | None = None,
    trained: bool = True,
    hidden_dim: int | None = None,
    **fields: Any,
) -> list[str]:
    """What is told of a run that has no fault but those asked for."""
    tokenizer = AlbertTokenizer(WordPieceVocabulary(words, lower=lower))
    model = AlbertTextClassifier(AlbertBackbone(config), tokenizer, labels=labels)
    if trained:
        randomize(model)
    model.source_config = source_config
    model.source_settings = None if source_labels is None else {"labels": list(source_labels)}
    if hidden_dim is not None:  # as wide as xlarge without its memory
        model.backbone.config = dataclasses.replace(config, hidden_dim=hidden_dim)
    start = {"source": "albert", "max_length": config.max_sequence_length} | fields
    run = ClassificationRun.of(train="train.tsv", out="out", **start)
    examples = [TextExample(text, label="a") for text in texts]
    return traps(run, model, examples, TrainingRows(tokenizer.encode_batch(texts), {}))


def test_a_sound_run_is_told_nothing() -> None:
    assert lines() == []
    assert lines(config=TINY, source_config=TINY) == []  # v1 has dropout
    assert (
        lines(hidden_dim=2048, learning_rate=1e-5) == lines(hidden_dim=4096, learning_rate=5e-5, batch_size=128) == []
    )
    assert lines(hidden_dim=4096, recipe="rte", epochs=1.0) == []
    assert lines(labels=("2", "10")) == lines(texts=CASED_TEXTS) == []
    assert lines(words=[*WORDS[:-1], "Snow"], texts=CASED_TEXTS, lower=False) == []


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        (
            {"config": dataclasses.replace(NO_DROPOUT, hidden_dropout=0.1)},
            "dropout in the encoder of a checkpoint trained",
        ),
        (
            {"config": dataclasses.replace(NO_DROPOUT, attention_dropout=0.1)},
            "leave out --hidden-dropout and --attention-",
        ),
        ({"hidden_dim": 2048}, "--learning-rate 2e-05: encoders of this width .* above 1e-05 with this batch size"),
        ({"hidden_dim": 4096, "learning_rate": 1e-4, "batch_size": 128}, "collapse to one answer above 5e-05"),
        (
            {"lower": False, "texts": [*LOWER_TEXTS * 15, "Snow fire"]},
            "1 of the first texts have capital letters, which the vocabulary lacks",
        ),
        ({"words": [*WORDS[:-1], "Snow"]}, "lower-cases texts, though its vocabulary has capital letters"),
        ({"texts": ["雪 と 火", "snow"]}, "[0-9]+% of the tokens are unknown to the vocabulary"),
        ({"trained": False}, "albert: its layer norms are as before any training"),
        (
            {"source": None, "from_scratch": "x", "tokenizer": "v"},
            r"encoder and head begin with random weights \(--from-scratch\)",
        ),
        ({"labels": ("10", "2", "3")}, "labels are numbers out of order: 10, 2, 3"),
        ({"source_labels": ("b", "a")}, r"the checkpoint's head has these labels in another order \(b, a\)"),
        ({"max_length": 513}, f"--max-length 513: the model takes {TINY.max_sequence_length} tokens, so longer texts"),
        ({"recipe": "cola"}, "--recipe cola: its 5,336 steps are 42688 passes over these 2 examples"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_fault_is_told_in_one_line(faults: dict[str, Any], expected: str) -> None:
    found = lines(**faults)
    assert len(found) == 1 and "\n" not in found[0], found
    assert re.search(expected, found[0]), found


def test_a_head_that_is_kept_has_its_labels_in_order() -> None:
    tokenizer = AlbertTokenizer(WordPieceVocabulary(WORDS))
    model = AlbertTextClassifier(AlbertBackbone(NO_DROPOUT), tokenizer, labels=("b", "a"))
    randomize(model)
    model.head_is_new, model.source_config, model.source_settings = False, NO_DROPOUT, {"labels": ["b", "a"]}
    run = ClassificationRun(train="t", out="o", source="albert", max_length=12)
    assert traps(run, model, [TextExample("snow")], TrainingRows(tokenizer.encode_batch(["snow"]), {})) == []


def test_the_start_is_reported() -> None:
    told: list[str] = []
    run = ClassificationRun.of(train="t", out="o", source="a", recipe="mnli", batch_size=64)
    report_start(run, ["one", "two"], told.append)
    assert told == [
        "recipe mnli: --learning-rate 3e-05, --batch-size 64, --steps 10000, --warmup 0.1, --max-length 512",
        "note: one",
        "note: two",
    ]


def test_a_recipe_that_names_a_head_is_reported() -> None:
    told: list[str] = []
    report_start(QuestionAnsweringRun.of(train="t", out="o", source="a", recipe="squad2"), [], told.append)
    assert told == [
        "recipe squad2: --learning-rate 3e-05, --batch-size 48, --steps 8144, --warmup 0.0999509, --max-length 512, "
        "--head squad2"
    ]
