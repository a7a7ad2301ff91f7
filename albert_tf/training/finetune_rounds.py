"""The rounds of a fine-tuning: some steps, a validation, the state and the best weights saved, and so on to the end."""

import dataclasses
import hashlib
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.data.batching import Batches
from albert_tf.data.pipeline import example_tokens, training_dataset
from albert_tf.errors import InputError
from albert_tf.evaluation.evaluate import EVALUATIONS
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.inference.runner import NotFiniteError, Prepared, Runner
from albert_tf.tasks.accumulation import AccumulatingModel
from albert_tf.tasks.base import AlbertTask
from albert_tf.training.checkpoints import Progress, folder_checksum, has_state, restore_state, save_state, saving
from albert_tf.training.compiling import compile_model, fuse_activations
from albert_tf.training.distribution import ONE_DEVICE, Devices
from albert_tf.training.optimizers import AdamW
from albert_tf.training.random_depth import draw_depths
from albert_tf.training.rounds import DivergedError, Rounds
from albert_tf.training.run_config import RunConfig
from albert_tf.training.run_folder import BEST_FOLDER, STATE_FILE, TENSORBOARD_FOLDER
from albert_tf.training.schedules import LinearWarmupDecay
from albert_tf.training.tasks.finetune_task import TrainingRows
from albert_tf.training.trained_parts import rate_factors


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


@dataclasses.dataclass(frozen=True)
class Plan:
    """How many steps a run has.

    Attributes:
        steps: of the run.
        round_steps: steps in a round, with a validation at its end; the last round has what is left.
        warmup_steps: steps with rising learning rate.
        batch_size: examples in a batch, in the mean.
    """

    steps: int
    round_steps: int
    warmup_steps: int
    batch_size: float

    @property
    def num_rounds(self) -> int:
        return math.ceil(self.steps / self.round_steps)


def make_plan(run: RunConfig, rows: TrainingRows) -> Plan:
    """The steps and rounds of a run over these rows.

    Raises:
        InputError: an example does not fit into `run.batch_tokens`.
    """
    lengths = example_tokens(rows.rows, rows.rows_per_example)
    batches = Batches(lengths, batch_size=run.batch_size, batch_tokens=run.batch_tokens, seed=run.seed)
    steps = run.steps or max(1, batches.count(run.epochs))
    # Without a wish of rounds of an epoch, as even as can be: no validation after a step or two that are left.
    even = math.ceil(steps / max(1, round(steps / batches.count(1))))
    return Plan(steps, min(run.validate_every or even, steps), round(run.warmup * steps), batches.mean_size)


def train_rounds(
    run: RunConfig,
    model: AlbertTask,
    rows: TrainingRows,
    valid: Examples | None,
    work: Path,
    report: Callable[[str], None],
    devices: Devices = ONE_DEVICE,
    learner: AccumulatingModel | None = None,
) -> Progress:
    """Trains in rounds, validating, saving the state and the best weights after each; goes on from a saved state.

    Args:
        learner: what `fit` is called on, where it is not the model itself but holds it.
    """
    learner = learner or model
    plan = make_plan(run, rows)
    schedule = LinearWarmupDecay(run.learning_rate, plan.warmup_steps, plan.steps)
    factors = None if run.layer_decay == 1.0 else rate_factors(model.backbone.config, run.layer_decay)
    with devices.scope():
        optimizer = AdamW(schedule, run.weight_decay, rate_factors=factors, global_clipnorm=run.clip_norm or None)
        compile_model(learner, optimizer, precision=run.precision, accumulate=run.accumulate, jit=run.jit)
    if run.random_depth is None:
        fuse_activations(model.backbone.encoder, precision=run.precision, jit=run.jit)
    else:  # its passes are conditional, and TensorFlow has no gradient of what XLA computes in a condition
        draw_depths(model.backbone.encoder, run.random_depth, run.seed, optimizer)
    progress = Progress(data=_digest(rows, valid))
    if has_state(work / STATE_FILE):
        progress = _resumed(work, model, learner, progress.data, report)
        report(f"going on after round {progress.round} of {plan.num_rounds}")
    dataset = _batches(run, model, rows, progress.round * plan.round_steps, devices)

    def after_round(figures: dict[str, float]) -> dict[str, float]:
        try:
            figures |= {f"valid_{k}": v for k, v in _figures(model, valid).items()} if valid else {}
        except NotFiniteError as error:  # of weights that still are numbers
            raise rounds.diverged(f"the model's outputs for {run.valid} became NaN or infinite") from error
        progress.history.append(figures)
        progress.round += 1
        best_before = progress.best_round
        if valid is None or _is_best(progress.history, f"valid_{run.best_metric}"):
            progress.best_round = progress.round
        if devices.is_chief:
            with saving(work, progress.round):
                if progress.best_round == progress.round:
                    _save_best(work, model, progress)
                save_state(work / STATE_FILE, learner, progress)
                _remove_old(work, {progress.best_round, best_before})
        if _stops_early(run, progress) and progress.round < plan.num_rounds:
            report(f"stopped: no better {run.best_metric} in {run.patience} validations")
            learner.stop_training = True
        return figures

    shown = ("loss", "valid_loss", f"valid_{run.best_metric}")
    log_folder = work / TENSORBOARD_FOLDER if devices.is_chief else None
    rounds = Rounds(after_round, plan.round_steps, plan.steps, plan.batch_size, log_folder, report, shown)
    try:
        rounds.fit(learner, dataset, plan.num_rounds if _stops_early(run, progress) else progress.round)
    except DivergedError as error:
        kept = (
            f"; the best weights so far are in {best_folder(work, progress.best_round)}" if progress.best_round else ""
        )
        raise DivergedError(f"{error}{kept}") from error
    return progress


def _batches(run: RunConfig, model: AlbertTask, rows: TrainingRows, start_step: int, devices: Devices) -> Any:
    """What `fit` goes over, from a step on."""

    def own_parts(count: int) -> tf.data.Dataset:
        return training_dataset(
            rows.rows,
            rows.targets,
            batch_size=run.batch_size,
            batch_tokens=run.batch_tokens,
            pad_id=model.required_tokenizer.vocabulary.pad_id,
            seed=run.seed,
            start_step=start_step,
            round_up_to=model.backbone.config.max_sequence_length if run.jit else None,
            rows_per_example=rows.rows_per_example,
            own_replicas=range(devices.worker * count, (devices.worker + 1) * count),
            replicas=devices.replicas,
            remade=rows.remade,
        )

    return devices.dataset(own_parts)


def best_folder(work: Path, best_round: int | None) -> Path:
    """Where the weights of the best round are. Each best has a folder of its own: none is written over another."""
    return work / f"{BEST_FOLDER}_{best_round}"


def validation_metrics(model: AlbertTask, data: Examples, runner: Runner | None = None) -> dict[str, Any]:
    """All the task's metrics, with `runner` running the model, where it is given."""
    pipeline = pipeline_of(runner or model)
    return model.adopt(EVALUATIONS[model.task](pipeline, data.examples, data.prepared, data.source))


def _figures(model: AlbertTask, data: Examples) -> dict[str, float]:
    """The metrics that are one number."""
    return {name: value for name, value in validation_metrics(model, data).items() if isinstance(value, float)}


def _is_best(history: list[dict[str, float]], metric: str) -> bool:
    """Whether the last round is better than every one before it."""
    sign = -1 if metric.endswith(("loss", "error")) else 1
    values = [sign * figures[metric] for figures in history]
    values = [-math.inf if math.isnan(value) else value for value in values]  # of predictions that are all the same
    return all(values[-1] > value for value in values[:-1])


def _stops_early(run: RunConfig, progress: Progress) -> bool:
    if run.patience is None or progress.best_round is None:
        return False
    return progress.round - progress.best_round >= run.patience


def _save_best(work: Path, model: AlbertTask, progress: Progress) -> None:
    folder = best_folder(work, progress.best_round)
    model.save_pretrained(folder, overwrite=True)
    progress.best_checksum = folder_checksum(folder)


def _remove_old(work: Path, best_rounds: set[int | None]) -> None:
    """Removes best weights but those that the state, or the one before it, would go back to."""
    for folder in set(work.glob(f"{BEST_FOLDER}_*")) - {best_folder(work, number) for number in best_rounds}:
        shutil.rmtree(folder)


def _resumed(
    work: Path, model: AlbertTask, learner: AccumulatingModel, data: str, report: Callable[[str], None]
) -> Progress:
    """The saved state, put into the model; a run that went on with other texts could not be repeated."""

    def best_is_whole(progress: Progress) -> bool:
        return folder_checksum(best_folder(work, progress.best_round)) == progress.best_checksum

    def unusable(progress: Progress) -> str | None:
        # Those of the state's own round can be written again.
        lost = progress.best_round not in (None, progress.round) and not best_is_whole(progress)
        return f"damaged best weights in {best_folder(work, progress.best_round)}" if lost else None

    progress = restore_state(work / STATE_FILE, learner, report, unusable)
    if progress.best_round == progress.round and not best_is_whole(progress):
        report(f"{best_folder(work, progress.best_round)}: damaged; written again from the state")
        _save_best(work, model, progress)
    if progress.data != data:
        raise InputError(
            f"{work}: the interrupted run was trained on other texts: a data or vocabulary file, or a teacher, has changed; "
            "put the former one back to go on, or pass --overwrite to start again"
        )
    return progress


def _digest(train: TrainingRows, valid: Examples | None) -> str:
    """A checksum of what the run goes over."""
    digest = hashlib.sha256()
    for rows in (train.rows, valid.prepared.rows if valid else []):
        for token_ids, segment_ids in rows:
            digest.update(np.asarray([*token_ids, -1, *segment_ids, -2], np.int32).tobytes())
        digest.update(b"end")
    for name, values in train.targets.items():
        array = isinstance(values, np.ndarray) and values.dtype != object
        digest.update(name.encode() + (values.tobytes() if array else repr(list(values)).encode()))
    if valid:
        digest.update(repr(valid.examples).encode())
    digest.update(train.made_by.encode())
    return digest.hexdigest()
