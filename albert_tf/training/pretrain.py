"""Pretraining from the folder of `albert-tf pretrain-data` to a checkpoint.

As in fine-tuning, the state is in OUT.training while the run is under way, with the weights of the last round as a
preset in `latest`; OUT appears when the run is finished, whole.
"""

import functools
import math
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

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
from albert_tf.training.checkpoints import Progress, restore_state, save_state
from albert_tf.training.optimizers import AdamW, Lamb
from albert_tf.training.pretrain_config import PretrainConfig
from albert_tf.training.rounds import Rounds
from albert_tf.training.run_folder import STATE_FILE, TENSORBOARD_FOLDER, check_out, work_folder, write_run_folder
from albert_tf.training.schedules import LinearWarmupDecay
from albert_tf.training.starting_point import backbone_options, config_changes, scratch_config
from albert_tf.training.throughput import peak_flops, training_flops

LATEST_FOLDER = "latest"
_INPUTS = (TOKEN_IDS, SEGMENT_IDS, PADDING_MASK, MASKED_POSITIONS)
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
    check_out(run.out, overwrite=overwrite)
    data = PretrainingData(run.data)
    keras.utils.set_random_seed(run.seed)
    model = build_pretrainer(run, data)
    report(
        f"{data.num_examples:,} texts of {data.num_tokens:,} tokens, up to {data.max_length} long; "
        f"{model.count_params():,} parameters"
    )
    work = work_folder(run, overwrite=overwrite)
    progress = train_rounds(run, model, data, work, report)
    summary = {"parameters": model.count_params(), **progress.history[-1]}

    def write_model(folder: Path) -> None:
        model.save_pretrained(folder, data.tokenizer)

    metric = "masked_lm_accuracy"
    write_run_folder(run, write_model, progress.history, summary, work, metric=metric, overwrite=overwrite)
    shutil.rmtree(work)
    return summary


def build_pretrainer(run: PretrainConfig, data: PretrainingData) -> AlbertPretrainer:
    """The model to train: a checkpoint's encoder and heads, or a new one of the shape that `run.from_scratch` names.

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
        model = AlbertPretrainer.from_checkpoint(checkpoint, config_changes=config_changes(run), **options)
    positions = model.backbone.config.max_sequence_length
    if data.max_length > positions:
        raise InputError(
            f"{run.data}: has texts of up to {data.max_length} tokens, the model {positions} positions; make the data anew "
            f"with --max-length {positions}"
        )
    return model


def train_rounds(
    run: PretrainConfig, model: AlbertPretrainer, data: PretrainingData, work: Path, report: Callable[[str], None]
) -> Progress:
    """Trains in rounds, validating and saving the state after each; goes on from a saved state."""
    num_rounds = math.ceil(run.steps / run.round_steps)
    schedule = LinearWarmupDecay(run.learning_rate, round(run.warmup * run.steps), num_rounds * run.round_steps)
    optimizer_class = Lamb if run.optimizer == "lamb" else AdamW
    optimizer = optimizer_class(schedule, run.weight_decay, global_clipnorm=run.clip_norm or None)
    # Lengths differ from batch to batch: XLA would compile each of them.
    model.compile(optimizer, jit_compile=False)
    optimizer.build(model.trainable_variables)
    progress = Progress(data=data.digest)
    if (work / STATE_FILE).exists():
        progress = restore_state(work / STATE_FILE, model)
        if progress.data != data.digest:
            raise InputError(f"{run.data}: other data than the interrupted run's; --overwrite starts again")
        report(f"going on after round {progress.round} of {num_rounds}")
    rules = MaskingRules(rate=run.masked_share, max_ngram=run.max_ngram)
    start_step = progress.round * run.round_steps
    batches = functools.partial(data.batches, run.batch_size, rules, run.seed, start_step)
    held_out = pretraining_dataset(functools.partial(data.held_out_batches, run.batch_size, rules, run.seed))
    # Without its size Keras would take the end of the data for a fault.
    held_out = held_out.apply(tf.data.experimental.assert_cardinality(num_batches(data.num_held_out, run.batch_size)))
    peak = peak_flops(run.precision)

    def after_round(figures: dict[str, float]) -> dict[str, float]:
        figures |= _speed(model.backbone.config, figures, run, data, peak)
        valid = model.evaluate(held_out, verbose=0, return_dict=True)
        figures |= {f"valid_{name}": float(value) for name, value in valid.items() if name != "tokens"}
        progress.history.append(figures)
        progress.round += 1
        model.save_pretrained(work / LATEST_FOLDER, data.tokenizer, overwrite=True)
        save_state(work / STATE_FILE, model, progress)
        return figures

    log_folder = work / TENSORBOARD_FOLDER
    rounds = Rounds(after_round, run.round_steps, num_rounds, run.batch_size, log_folder, report, _SHOWN)
    try:
        if progress.round < num_rounds:
            model.fit(
                pretraining_dataset(batches),
                initial_epoch=progress.round,
                epochs=num_rounds,
                steps_per_epoch=run.round_steps,
                shuffle=False,
                verbose=0,
                callbacks=[rounds],
            )
    finally:
        rounds.close()
    return progress


def pretraining_dataset(batches: Callable[[], Iterable[dict[str, np.ndarray]]]) -> Any:
    """Batches of `PretrainingData` as what `AlbertPretrainer.fit` takes."""
    return array_dataset(batches, _INPUTS, TARGETS)


def _meaning(tokenizer: AlbertTokenizer) -> tuple[Any, ...]:
    """What decides the ids of a text."""
    vocabulary = tokenizer.vocabulary
    return vocabulary.kind, vocabulary.options(), vocabulary.pieces(list(range(vocabulary.size)))


def _speed(
    config: AlbertConfig, figures: dict[str, float], run: PretrainConfig, data: PretrainingData, peak: float
) -> dict[str, float]:
    """Tokens a second, padding left out, and the share of the machine's arithmetic that the model used."""
    tokens, seconds = figures["tokens"], figures["seconds"]
    length = tokens / (run.round_steps * run.batch_size)
    flops = training_flops(config, tokens, length, predictions=run.masked_share * tokens)
    return {"tokens_per_second": tokens / seconds, "flop_utilisation": flops / seconds / peak}
