"""Tasks with random weights, saved as folders."""

import functools
from pathlib import Path
from typing import Any

from small_vocabularies import sentencepiece_vocabulary
from tiny_exports import BASE, MAX_LENGTH
from tiny_models import randomize

from albert_tf.data.choices import ChoiceExample
from albert_tf.data.conll import TaggedExample
from albert_tf.data.multi_label import MultiLabelExample
from albert_tf.data.schema import TextExample
from albert_tf.data.similarity import SimilarityExample
from albert_tf.data.squad import Answer, QuestionExample
from albert_tf.tokenization.tokenizer import AlbertTokenizer

TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
# Every task that metrics are taken of, with the settings of its head and examples with answers.
EXAMPLES: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "classification": (
        {"labels": ["no", "yes"]},
        [TextExample("the old mill", None, "yes"), TextExample("by the river", "the wheel", "no")],
    ),
    "multi-label": (
        {"labels": ["a", "b"]},
        [MultiLabelExample("the old mill", None, ("a",)), MultiLabelExample("by the river", None, ("a", "b"))],
    ),
    "regression": (
        {},
        [TextExample("the old mill", None, "1.5"), TextExample("the wheel", None, "0"), TextExample("12", None, "3")],
    ),
    "multiple-choice": (
        {},
        [ChoiceExample("the mill", "what turns", ("the wheel", "water"), 0), ChoiceExample("", "a _", ("b", "c"), 1)],
    ),
    "tagging": (
        {"labels": TAGS},
        [TaggedExample(("the", "mill"), ("O", "B-LOC")), TaggedExample(("river",) * 30, ("O",) * 30)],
    ),
    "question-answering": (
        {"doc_stride": 5, "max_question_length": 9},
        [QuestionExample("1", "the old mill by the river " * 6, "where is the mill", (Answer("by the river", 13),))],
    ),
    "similarity": (
        {},
        [
            SimilarityExample("the old mill", "the mill", "4.0"),
            SimilarityExample("a river", "the wheel", "1.0"),
            SimilarityExample("the people", "12", "0.0"),
        ],
    ),
}


@functools.cache
def tiny_task(name: str) -> Any:
    """A model of the task called `name` with random weights; tests must not change it."""
    return new_task(name, **(EXAMPLES[name][0] if name in EXAMPLES else {}))


def new_task(name: str, **settings: Any) -> Any:
    """A model of the task called `name`, with these settings and random weights."""
    from albert_tf.backbone import AlbertBackbone
    from albert_tf.tasks.trained import TASKS

    tokenizer = AlbertTokenizer(sentencepiece_vocabulary(), max_length=MAX_LENGTH)
    task = TASKS[name](AlbertBackbone(BASE), tokenizer, **settings)
    randomize(task, scale=0.4)
    return task


def save_task(folder: Path, name: str) -> Path:
    """Writes a model of the task called `name` to `folder`."""
    from albert_tf.backbone import AlbertBackbone
    from albert_tf.tasks.multiple_choice import AlbertMultipleChoice
    from albert_tf.tasks.regression import AlbertTextRegressor
    from albert_tf.tasks.token_classification import AlbertTokenClassifier

    backbone, tokenizer = AlbertBackbone(BASE), AlbertTokenizer(sentencepiece_vocabulary(), max_length=MAX_LENGTH)
    task: Any
    if name == "tagging":
        task = AlbertTokenClassifier(backbone, tokenizer, labels=TAGS)
    else:
        task = {"multiple-choice": AlbertMultipleChoice, "regression": AlbertTextRegressor}[name](backbone, tokenizer)
    randomize(task, scale=0.4)
    task.save_pretrained(folder)
    return folder
