"""Pretraining from the folder of `albert-tf pretrain-data` to a checkpoint.

As in fine-tuning, the state is in OUT.training while the run is under way, with the weights of the last round as a
preset in `latest`; OUT appears when the run is finished, whole.
"""

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import AlbertConfig
from albert_tf.data.batching import num_batches
from albert_tf.data.masking import MaskingRules
from albert_tf.data.pipeline import array_dataset
from albert_tf.data.pretraining_data import PretrainingData
from albert_tf.data.pretraining_examples import MASKED_POSITIONS
from albert_tf.data.schema import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from albert_tf.errors import InputError
from albert_tf.presets import load_checkpoint, load_tokenizer
from albert_tf.tasks.pretraining import TARGETS, AlbertPretrainer
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from albert_tf.training.checkpoints import Progress, has_state, restore_state, save_state, saving
from albert_tf.training.compiling import compile_model, fuse_activations
from albert_tf.training.distribution import ONE_DEVICE, Devices, open_devices
from albert_tf.training.optimizers import AdamW, Lamb
from albert_tf.training.pretrain_config import PretrainConfig
from albert_tf.training.rounds import Rounds
from albert_tf.training.run_folder import (
    STATE_FILE,
    TENSORBOARD_FOLDER,
    check_out,
    finished_before,
    remove_work,
    shared_work_folder,
    write_run_folder,
)
from albert_tf.training.run_page import pretrain_page
from albert_tf.training.schedules import LinearWarmupDecay
from albert_tf.training.starting_point import backbone_options, config_changes, scratch_config
from albert_tf.training.throughput import peak_flops, training_flops

LATEST_FOLDER = "latest"
_INPUTS = (TOKEN_IDS, SEGMENT_IDS, PADDING_MASK, MASKED_POSITIONS)
_SHARES = ("word_scale", "text_scale")
_SHOWN = (
    "masked_lm_loss",
    "sentence_order_loss",
    "valid_masked_lm_loss",
    "valid_masked_lm_accuracy",
    "valid_sentence_order_accuracy",
    "tokens_per_second",
)


def pretrain(run: PretrainConfig, *, overwrite: bool = False, report: Callable[[str], None] = print) -> dict[str, Any]:
    """Trains both pretraining heads as `run` says and writes the run folder `run.out`, a preset with them.

    Args:
        run: the settings.
        overwrite: replace `run.out` and forget a started run of that name.
        report: receives lines of progress.

    Returns:
        The figures in metrics.json.

    Raises:
        InputError: the data, checkpoint or a setting cannot be used, `run.out` exists, or the loss stopped being a
            number.
    """
    if not overwrite and (figures := finished_before(run, report)) is not None:
        return figures
    check_out(run.out, overwrite=overwrite)
    devices = open_devices(run.strategy)
    devices.check_batch_size(run.batch_size)
    data = PretrainingData(run.data)
    keras.utils.set_random_seed(run.seed)
    with devices.scope():
        model = build_pretrainer(run, data)
    if model.new_parts:
        report(f"{run.source}: has no {', no '.join(model.new_parts)}: begun anew")
    report(
        f"{data.num_examples:,} texts of {data.num_tokens:,} tokens, up to {data.max_length} long; "
        f"{model.count_params():,} parameters"
    )
    work = shared_work_folder(run, devices, overwrite=overwrite)
    progress = train_rounds(run, model, data, work, report, devices)
    summary = {"parameters": model.count_params(), **progress.history[-1]}
    if not devices.is_chief:
        return summary

    def write_model(folder: Path) -> None:
        model.save_pretrained(folder, data.tokenizer)

    page = pretrain_page(run, data, summary, progress.history, report)
    metric = "masked_lm_accuracy"
    write_run_folder(run, write_model, progress.history, summary, page, work, metric=metric, overwrite=overwrite)
    remove_work(work)
    return summary


def build_pretrainer(run: PretrainConfig, data: PretrainingData) -> AlbertPretrainer:
    """The model to train: a checkpoint's encoder, with its heads or new ones, or one of the shape `run.from_scratch`.

    Raises:
        InputError: the data was made with another vocabulary, or has longer texts than the shape has positions.
    """
    options = backbone_options(run)
    if run.source is None:
        model = AlbertPretrainer(AlbertBackbone(scratch_config(run, data.tokenizer.vocabulary.size), **options))
    else:
        checkpoint = load_checkpoint(run.source)
        own = load_tokenizer(checkpoint)
        if own is not None and _meaning(own) != _meaning(data.tokenizer):
            raise InputError(
                f"{run.data}: made with another vocabulary than that of {run.source}; make the data anew with "
                f"albert-tf pretrain-data --tokenizer {run.source}"
            )
        model = AlbertPretrainer.from_checkpoint(
            checkpoint, new_heads=True, config_changes=config_changes(run), **options
        )
    positions = model.backbone.config.max_sequence_length
    if data.max_length > positions:
        raise InputError(
            f"{run.data}: has texts of up to {data.max_length} tokens, the model {positions} positions; make the data anew "
            f"with --max-length {positions}"
        )
    return model


def train_rounds(
    run: PretrainConfig,
    model: AlbertPretrainer,
    data: PretrainingData,
    work: Path,
    report: Callable[[str], None],
    devices: Devices = ONE_DEVICE,
) -> Progress:
    """Trains in rounds, validating and saving the state after each; goes on from a saved state."""
    num_rounds = math.ceil(run.steps / run.round_steps)
    round_steps = math.ceil(run.steps / num_rounds)
    schedule = LinearWarmupDecay(run.learning_rate, round(run.warmup * run.steps), run.steps)
    optimizer_class = Lamb if run.optimizer == "lamb" else AdamW
    with devices.scope():
        optimizer = optimizer_class(schedule, run.weight_decay, global_clipnorm=run.clip_norm or None)
        compile_model(model, optimizer, precision=run.precision, accumulate=run.accumulate, jit=run.jit or devices.jit)
    fuse_activations(model.backbone.encoder, precision=run.precision, jit=run.jit or devices.jit)
    progress = Progress(data=data.digest)
    if has_state(work / STATE_FILE):
        progress = restore_state(work / STATE_FILE, model, report)
        if progress.data != data.digest:
            raise InputError(f"{run.data}: other data than the interrupted run's; --overwrite starts again")
        report(f"going on after round {progress.round} of {num_rounds}")
    rules = MaskingRules(rate=run.masked_share, max_ngram=run.max_ngram)
    start_step = progress.round * round_steps
    shard = (devices.worker, devices.workers)
    batches = functools.partial(data.batches, run.batch_size, rules, run.seed, start_step, shard=shard)
    held_out = functools.partial(data.held_out_batches, run.batch_size, rules, run.seed)
    held_out_data = devices.dataset(lambda own: pretraining_dataset(lambda: _copies(held_out, own, devices)))
    held_out_steps = num_batches(data.num_held_out, run.batch_size)
    peak = peak_flops(run.precision)

    def after_round(figures: dict[str, float]) -> dict[str, float]:
        examples = min(round_steps, run.steps - progress.round * round_steps) * run.batch_size
        figures |= _speed(model.backbone.config, figures, run, examples, peak)
        valid = model.evaluate(held_out_data, steps=held_out_steps, verbose=0, return_dict=True)
        figures |= {f"valid_{name}": float(value) for name, value in valid.items() if name != "tokens"}
        progress.history.append(figures)
        progress.round += 1
        if devices.is_chief:
            with saving(work, progress.round):
                model.save_pretrained(work / LATEST_FOLDER, data.tokenizer, overwrite=True)
                save_state(work / STATE_FILE, model, progress)
        return figures

    dataset = devices.dataset(lambda own: pretraining_dataset(lambda: _parts(batches, own)))
    log_folder = work / TENSORBOARD_FOLDER if devices.is_chief else None
    rounds = Rounds(after_round, round_steps, run.steps, run.batch_size, log_folder, report, _SHOWN)
    rounds.fit(model, dataset, progress.round)
    return progress


def pretraining_dataset(batches: Callable[[], Iterable[dict[str, np.ndarray]]]) -> Any:
    """Batches of `PretrainingData` as what `AlbertPretrainer.fit` takes; `batches` begins a pass over them."""
    return array_dataset(batches, _INPUTS, TARGETS)


def _parts(batches: Callable[[], Iterable[dict[str, np.ndarray]]], count: int) -> Iterator[dict[str, np.ndarray]]:
    """Each batch in so many parts, one for each of this worker's replicas."""
    for batch in batches():
        size = len(batch[TOKEN_IDS]) // count
        for start in range(0, count * size, size):
            yield {name: rows[start : start + size] for name, rows in batch.items()}


def _copies(
    batches: Callable[[], Iterable[dict[str, np.ndarray]]], count: int, devices: Devices
) -> Iterator[dict[str, np.ndarray]]:
    """Each batch for every replica: so many times, or, where Keras divides batches, repeated within itself.

    Batches of held-out texts do not come in sizes that can be divided. Means stay what they are.
    """
    tiles = 1 if devices.strategy else devices.replicas
    for batch in batches():
        whole = {name: np.concatenate([rows] * tiles) for name, rows in batch.items()}
        yield from [whole | {name: whole[name] / np.float32(devices.replicas) for name in _SHARES}] * count


def _meaning(tokenizer: AlbertTokenizer) -> tuple[Any, ...]:
    """What decides the ids of a text."""
    vocabulary = tokenizer.vocabulary
    return vocabulary.kind, vocabulary.options(), vocabulary.pieces(list(range(vocabulary.size)))


def _speed(
    config: AlbertConfig, figures: dict[str, float], run: PretrainConfig, texts: int, peak: float
) -> dict[str, float]:
    """Tokens a second, padding left out, and the share of the machine's arithmetic that the model used."""
    tokens, seconds = figures["tokens"], figures["seconds"]
    flops = training_flops(config, tokens, tokens / texts, predictions=run.masked_share * tokens)
    return {"tokens_per_second": tokens / seconds, "flop_utilisation": flops / seconds / peak}
