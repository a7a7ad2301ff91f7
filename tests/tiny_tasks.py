"""Tasks with random weights, saved as folders."""

from pathlib import Path
from typing import Any

from small_vocabularies import sentencepiece_vocabulary
from tiny_exports import BASE, MAX_LENGTH
from tiny_models import randomize

from albert_tf.tokenization.tokenizer import AlbertTokenizer

TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


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
