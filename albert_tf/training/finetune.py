"""Fine-tuning from a labelled file to a run folder.

While a run is under way its state is in the folder OUT.training (resumed from there after an interruption); OUT itself
appears when the run is finished, whole.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras

from albert_tf.errors import InputError
from albert_tf.evaluation.html_tasks import Validated
from albert_tf.evaluation.remembering import RememberingRunner
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.tasks.base import AlbertTask
from albert_tf.training.distribution import open_devices
from albert_tf.training.finetune_rounds import Examples, best_folder, train_rounds, validation_metrics
from albert_tf.training.quantization_aware import quantize_in_training
from albert_tf.training.run_config import RunConfig
from albert_tf.training.run_folder import check_out, finished_before, remove_work, shared_work_folder, write_run_folder
from albert_tf.training.run_page import finetune_page
from albert_tf.training.tasks.classification import FinetuneClassification
from albert_tf.training.tasks.finetune_task import FinetuneTask
from albert_tf.training.tasks.multi_label import FinetuneMultiLabel
from albert_tf.training.tasks.multiple_choice import FinetuneMultipleChoice
from albert_tf.training.tasks.question_answering import FinetuneQuestionAnswering
from albert_tf.training.tasks.regression import FinetuneRegression
from albert_tf.training.tasks.similarity import FinetuneSimilarity
from albert_tf.training.tasks.tagging import FinetuneTagging
from albert_tf.training.trained_parts import choose_trained_parts
from albert_tf.training.training import Training
from albert_tf.training.traps import report_start, traps

TASKS: dict[str, FinetuneTask] = {
    "classification": FinetuneClassification(),
    "multi-label": FinetuneMultiLabel(),
    "regression": FinetuneRegression(),
    "multiple-choice": FinetuneMultipleChoice(),
    "tagging": FinetuneTagging(),
    "question-answering": FinetuneQuestionAnswering(),
    "similarity": FinetuneSimilarity(),
}


def finetune(run: RunConfig, *, overwrite: bool = False, report: Callable[[str], None] = print) -> dict[str, Any]:
    """Trains a task as `run` says and writes the run folder `run.out`.

    Args:
        run: the settings.
        overwrite: replace `run.out` and forget a started run of that name.
        report: receives lines of progress.

    Returns:
        The figures in metrics.json; of several workers in the chief alone, which writes the files.

    Raises:
        InputError: a file, column, label, checkpoint or setting cannot be used, `run.out` exists, or the loss stopped
            being a number.
    """
    return train_task(run, lambda: Training(TASKS[run.task]), overwrite=overwrite, report=report)


def train_task(
    run: RunConfig, begun: Callable[[], Training], *, overwrite: bool, report: Callable[[str], None]
) -> dict[str, Any]:
    """`finetune`, of whatever `begun` says, in the scope of the run's devices, is to be trained."""
    _check_backend()
    if not overwrite and (figures := finished_before(run, report)) is not None:
        return figures
    check_out(run.out, overwrite=overwrite)
    devices = open_devices(run.strategy)
    with devices.scope():
        training = begun()
    task = training.task
    examples = task.read(run, run.train, report)
    valid_examples = None if run.valid is None else task.read(run, run.valid, report)
    settings = task.head_settings(run, examples) | run.exit_settings
    keras.utils.set_random_seed(run.seed)
    with devices.scope():
        model = training.build(run, settings)
    rows = task.training_rows(model, examples, training.prepare(model, examples), run.train)
    valid = None
    if valid_examples is not None:
        valid = Examples(valid_examples, training.prepare(model, valid_examples), str(run.valid))
        # What evaluation would refuse after the first round is refused now.
        task.training_rows(model, valid.examples, valid.prepared, valid.source)
    report(f"{len(examples)} training examples, {task.describe(model)}; {model.count_params():,} parameters")
    if run.source is not None:
        report(training.origin(run, model))
    found = traps(run, model, examples, rows)
    report_start(run, found, report)
    if run.quantization_aware:
        quantize_in_training(model, rows.rows, run.seed, report)
    with devices.scope():
        choose_trained_parts(run, model.backbone)
        learner = training.learner(model)
    trained_parameters = _trained_parameters(model, report)

    work = shared_work_folder(run, devices, overwrite=overwrite)
    progress = train_rounds(run, model, rows, valid, work, report, devices, learner)
    if not devices.is_chief:
        return {}
    best = task.model_class.from_pretrained(best_folder(work, progress.best_round))
    runner = RememberingRunner(best)
    metrics = validation_metrics(best, valid, runner) if valid else {}
    summary = {
        "train_examples": len(examples),
        "parameters": best.count_params(),
        "trained_parameters": trained_parameters,
        "best_round": progress.best_round,
        "valid": metrics,
    } | training.compare(runner, valid)
    validated = None
    if valid is not None:
        validated = Validated(pipeline_of(runner), valid.examples, valid.prepared, valid.source, metrics)
    page = finetune_page(
        run, best, examples, validated, summary, progress, found, report, metric=task.metric, prepare=training.prepare
    )

    def write_model(folder: Path) -> None:
        best.save_pretrained(folder)
        task.write(folder, best, metrics)

    write_run_folder(run, write_model, progress.history, summary, page, work, metric=task.metric, overwrite=overwrite)
    remove_work(work)
    return summary


def _check_backend() -> None:
    if keras.backend.backend() != "tensorflow":
        raise InputError(
            "fine-tuning runs on Keras's TensorFlow backend; unset KERAS_BACKEND (pretrain runs on JAX too)"
        )


def _trained_parameters(model: AlbertTask, report: Callable[[str], None]) -> int:
    count = sum(math.prod(variable.shape) for variable in model.trainable_variables)
    if count < model.count_params():
        report(f"{count:,} parameters are trained")
    return count
