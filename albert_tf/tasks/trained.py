"""A trained task of whatever kind."""

from pathlib import Path

from albert_tf.errors import InputError
from albert_tf.presets import read_task_settings
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.tasks.multiple_choice import AlbertMultipleChoice
from albert_tf.tasks.regression import AlbertTextRegressor
from albert_tf.tasks.token_classification import AlbertTokenClassifier

TASKS: dict[str, type[AlbertTask]] = {
    task.task: task for task in (AlbertTextClassifier, AlbertTextRegressor, AlbertMultipleChoice, AlbertTokenClassifier)
}


def load_task(source: str | Path) -> AlbertTask:
    """The task in a run folder.

    Raises:
        InputError: the folder is not one, or of a task that this version does not know.
    """
    saved = read_task_settings(source)
    if saved is None:
        # The message for what is no run folder at all is that of the reader, which looks at what there is.
        return AlbertTextClassifier.from_pretrained(source)
    if saved["task"] not in TASKS:
        raise InputError(f"{source}: task.json: expected a task among {', '.join(TASKS)}, found {saved['task']!r}")
    return TASKS[saved["task"]].from_pretrained(source)
