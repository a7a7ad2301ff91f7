"""Fine-tuning from a labelled file to a run folder.

While a run is under way its state is in the folder OUT.training (resumed from there after an interruption); OUT itself
appears when the run is finished, whole.
"""

import dataclasses
import hashlib
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np

from albert_tf.backbone import AlbertBackbone
from albert_tf.data.batching import num_batches
from albert_tf.data.pipeline import training_dataset
from albert_tf.errors import InputError
from albert_tf.evaluation.evaluate import EVALUATIONS
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.inference.runner import Prepared
from albert_tf.tasks.base import AlbertTask
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from albert_tf.training.checkpoints import Progress, restore_state, save_state
from albert_tf.training.optimizers import AdamW
from albert_tf.training.rounds import Rounds
from albert_tf.training.run_config import RunConfig
from albert_tf.training.run_folder import (
    BEST_FOLDER,
    STATE_FILE,
    TENSORBOARD_FOLDER,
    check_out,
    work_folder,
    write_run_folder,
)
from albert_tf.training.schedules import LinearWarmupDecay
from albert_tf.training.starting_point import backbone_options, config_changes, scratch_config
from albert_tf.training.tasks.classification import FinetuneClassification
from albert_tf.training.tasks.finetune_task import FinetuneTask, TrainingRows
from albert_tf.training.tasks.multiple_choice import FinetuneMultipleChoice
from albert_tf.training.tasks.regression import FinetuneRegression
from albert_tf.training.tasks.tagging import FinetuneTagging

TASKS: dict[str, FinetuneTask] = {
    "classification": FinetuneClassification(),
    "regression": FinetuneRegression(),
    "multiple-choice": FinetuneMultipleChoice(),
    "tagging": FinetuneTagging(),
}


@dataclasses.dataclass(frozen=True)
class Examples:
    """The examples of a validation file, ready for the model.

    Attributes:
        examples: as read.
        prepared: their rows.
        source: the file.
    """

    examples: list[Any]
    prepared: Prepared
    source: str


def finetune(run: RunConfig, *, overwrite: bool = False, report: Callable[[str], None] = print) -> dict[str, Any]:
    """Trains a task as `run` says and writes the run folder `run.out`.

    Args:
        run: the settings.
        overwrite: replace `run.out` and forget a started run of that name.
        report: receives lines of progress.

    Returns:
        The figures in metrics.json.

    Raises:
        InputError: a file, column, label, checkpoint or setting cannot be used, `run.out` exists, or the loss stopped
            being a number.
    """
    check_out(run.out, overwrite=overwrite)
    task = TASKS[run.task]
    train_examples = task.read(run, run.train, report)
    valid_examples = None if run.valid is None else task.read(run, run.valid, report)
    settings = task.head_settings(run, train_examples)
    keras.utils.set_random_seed(run.seed)
    model = build_model(run, settings)
    pipeline = pipeline_of(model)
    rows = task.training_rows(model, train_examples, pipeline.prepare(train_examples), run.train)
    valid = None
    if valid_examples is not None:
        valid = Examples(valid_examples, pipeline.prepare(valid_examples), str(run.valid))
        # What evaluation would refuse after the first round is refused now.
        task.training_rows(model, valid.examples, valid.prepared, valid.source)
    report(f"{len(train_examples)} training examples, {task.describe(model)}; {model.count_params():,} parameters")
    if run.source is not None:
        report(f"encoder from {run.source}, " + ("new head" if model.head_is_new else "and its head too"))

    work = work_folder(run, overwrite=overwrite)
    progress = train_rounds(run, model, rows, valid, work, report)
    best = task.model_class.from_pretrained(work / BEST_FOLDER)
    metrics = _metrics(best, valid) if valid else {}
    summary = {
        "train_examples": len(train_examples),
        "parameters": model.count_params(),
        "best_round": progress.best_round,
        "valid": metrics,
    }

    def write_model(folder: Path) -> None:
        best.save_pretrained(folder)
        task.write(folder, best, metrics)

    write_run_folder(run, write_model, progress.history, summary, work, metric=task.metric, overwrite=overwrite)
    shutil.rmtree(work)
    return summary


def build_model(run: RunConfig, settings: dict[str, Any]) -> AlbertTask:
    """The model to train: a checkpoint's encoder, or a new one of the shape that `run.from_scratch` names.

    Args:
        run: the settings of the run.
        settings: those of the head.
    """
    model_class = TASKS[run.task].model_class
    options = backbone_options(run)
    if run.source is not None:
        model = model_class.from_pretrained(
            run.source, config_changes=config_changes(run), backbone_options=options, **settings
        )
    else:
        tokenizer = AlbertTokenizer.from_pretrained(str(run.tokenizer))
        config = scratch_config(run, tokenizer.vocabulary.size)
        model = model_class(AlbertBackbone(config, **options), tokenizer, **settings)
    tokenizer = model.required_tokenizer
    tokenizer.max_length = min(run.max_length, model.backbone.config.max_sequence_length)
    return model


def train_rounds(
    run: RunConfig,
    model: AlbertTask,
    rows: TrainingRows,
    valid: Examples | None,
    work: Path,
    report: Callable[[str], None],
) -> Progress:
    """Trains in rounds, validating, saving the state and the best weights after each; goes on from a saved state."""
    epoch_steps = num_batches(len(rows.rows) // rows.rows_per_example, run.batch_size)
    total_steps = max(1, math.ceil(run.epochs * epoch_steps))
    wanted = run.validate_every or epoch_steps
    num_rounds = max(1, round(total_steps / wanted))
    round_steps = math.ceil(total_steps / num_rounds)
    schedule = LinearWarmupDecay(run.learning_rate, round(run.warmup * total_steps), num_rounds * round_steps)
    optimizer = AdamW(schedule, run.weight_decay, global_clipnorm=run.clip_norm or None)
    # Lengths differ from batch to batch: XLA would compile each of them.
    model.compile(optimizer, jit_compile=False)
    optimizer.build(model.trainable_variables)
    progress = Progress(data=_digest(rows, valid))
    if (work / STATE_FILE).exists():
        progress = _resumed(work / STATE_FILE, model, progress.data)
        report(f"going on after round {progress.round} of {num_rounds}")
    dataset = training_dataset(
        rows.rows,
        rows.targets,
        batch_size=run.batch_size,
        pad_id=model.required_tokenizer.vocabulary.pad_id,
        seed=run.seed,
        start_step=progress.round * round_steps,
        rows_per_example=rows.rows_per_example,
    )

    def after_round(figures: dict[str, float]) -> dict[str, float]:
        figures |= {f"valid_{k}": v for k, v in _figures(model, valid).items()} if valid else {}
        progress.history.append(figures)
        progress.round += 1
        if valid is None or _is_best(progress.history, f"valid_{run.best_metric}"):
            progress.best_round = progress.round
            model.save_pretrained(work / BEST_FOLDER, overwrite=True)
        save_state(work / STATE_FILE, model, progress)
        return figures

    rounds = Rounds(after_round, round_steps, num_rounds, run.batch_size, work / TENSORBOARD_FOLDER, report)
    try:
        if progress.round < num_rounds:
            model.fit(
                dataset,
                initial_epoch=progress.round,
                epochs=num_rounds,
                steps_per_epoch=round_steps,
                shuffle=False,
                verbose=0,
                callbacks=[rounds],
            )
    finally:
        rounds.close()
    return progress


def _metrics(model: AlbertTask, data: Examples) -> dict[str, Any]:
    return EVALUATIONS[model.task](pipeline_of(model), data.examples, data.prepared, data.source)


def _figures(model: AlbertTask, data: Examples) -> dict[str, float]:
    """The metrics that are one number."""
    return {name: value for name, value in _metrics(model, data).items() if isinstance(value, float)}


def _is_best(history: list[dict[str, float]], metric: str) -> bool:
    """Whether the last round is better than every one before it."""
    sign = -1 if metric.endswith(("loss", "error")) else 1
    values = [sign * figures[metric] for figures in history]
    return all(values[-1] > value for value in values[:-1])


def _resumed(state: Path, model: AlbertTask, data: str) -> Progress:
    """The saved state, put into the model; a run that went on with other texts could not be repeated."""
    progress = restore_state(state, model)
    if progress.data != data:
        raise InputError(
            f"{state.parent}: the interrupted run was trained on other texts: a data or vocabulary file has changed; put "
            "the former one back to go on, or pass --overwrite to start again"
        )
    return progress


def _digest(train: TrainingRows, valid: Examples | None) -> str:
    """A checksum of what the run goes over."""
    digest = hashlib.sha256()
    for rows in (train.rows, valid.prepared.rows if valid else []):
        for token_ids, segment_ids in rows:
            digest.update(np.asarray([*token_ids, -1, *segment_ids, -2], np.int32).tobytes())
        digest.update(b"end")
    digest.update(repr({name: list(values) for name, values in train.targets.items()}).encode())
    if valid:
        digest.update(repr(valid.examples).encode())
    return digest.hexdigest()
