"""A trained task of whatever kind."""

from pathlib import Path

from albert_tf.errors import InputError
from albert_tf.presets import load_checkpoint, read_task_settings
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.tasks.fill_mask import AlbertMaskedLM
from albert_tf.tasks.multi_label import AlbertMultiLabelClassifier
from albert_tf.tasks.multiple_choice import AlbertMultipleChoice
from albert_tf.tasks.question_answering import AlbertQuestionAnswerer
from albert_tf.tasks.regression import AlbertTextRegressor
from albert_tf.tasks.similarity import AlbertTextEmbedder
from albert_tf.tasks.token_classification import AlbertTokenClassifier

TASKS: dict[str, type[AlbertTask]] = {
    task.task: task
    for task in (
        AlbertTextClassifier,
        AlbertMultiLabelClassifier,
        AlbertTextRegressor,
        AlbertMultipleChoice,
        AlbertTokenClassifier,
        AlbertQuestionAnswerer,
        AlbertTextEmbedder,
        AlbertMaskedLM,
    )
}


def load_task(source: str | Path) -> AlbertTask:
    """The task in a run folder, or in any other checkpoint that says what task its head is for.

    A pretrained checkpoint fills masks.

    Raises:
        InputError: it says none, or one that this version does not know.
    """
    saved = read_task_settings(source)
    if saved is not None and saved["task"] not in TASKS:
        raise InputError(f"{source}: task.json: expected a task among {', '.join(TASKS)}, found {saved['task']!r}")
    checkpoint = load_checkpoint(source)
    if checkpoint.task is None and any(name.startswith("masked_lm/") for name in checkpoint.weights):
        return AlbertMaskedLM.from_checkpoint(checkpoint)
    if checkpoint.task is None:
        raise InputError(
            f"{source}: holds no trained model, but weights alone ({checkpoint.form}, head: {checkpoint.head}); expected a "
            f"run folder of albert-tf finetune, or a checkpoint that says its task: {', '.join(TASKS)}"
        )
    task = checkpoint.task["task"]
    if task not in TASKS:
        raise InputError(f"{source}: a model for the task {task!r}; expected one of {', '.join(TASKS)}")
    try:
        return TASKS[task].from_checkpoint(checkpoint)
    except InputError as error:  # of the task's constructor, which does not know where its settings are from
        raise error if checkpoint.source in str(error) else InputError(f"{source}: {error}") from error
