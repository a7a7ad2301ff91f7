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
from albert_tf.config import AlbertConfig
from albert_tf.data.batching import num_batches
from albert_tf.data.pipeline import training_dataset
from albert_tf.data.schema import TextExample
from albert_tf.data.tables import discover_labels, encode_labels, read_examples
from albert_tf.errors import InputError
from albert_tf.evaluation.classification_metrics import classification_metrics
from albert_tf.tasks.classification import AlbertTextClassifier, softmax
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


@dataclasses.dataclass(frozen=True)
class TextData:
    """A labelled file, read and encoded.

    Attributes:
        examples: its rows.
        encoded: (token ids, segment ids) of each.
        label_ids: the index of each row's label.
    """

    examples: list[TextExample]
    encoded: list[tuple[list[int], list[int]]]
    label_ids: list[int]


def finetune_classification(
    run: RunConfig, *, overwrite: bool = False, report: Callable[[str], None] = print
) -> dict[str, Any]:
    """Trains a text classifier as `run` says and writes the run folder `run.out`.

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
    train_examples = _read(run, run.train)
    valid_examples = None if run.valid is None else _read(run, run.valid)
    labels = discover_labels(train_examples, run.label_file)
    if run.best_metric == "f1" and len(labels) != 2:
        raise InputError(f"--best-metric f1 is that of two labels, {run.train} has {len(labels)}; choose macro_f1")
    train_ids = encode_labels(train_examples, labels, run.train)
    valid_ids = encode_labels(valid_examples, labels, str(run.valid)) if valid_examples else None
    keras.utils.set_random_seed(run.seed)
    model = build_classifier(run, labels)
    train = TextData(train_examples, _encode(model, train_examples), train_ids)
    valid = None
    if valid_examples and valid_ids:
        valid = TextData(valid_examples, _encode(model, valid_examples), valid_ids)
    report(f"{len(train_examples)} training examples, labels {', '.join(labels)}; {model.count_params():,} parameters")
    if run.source is not None:
        report(f"encoder from {run.source}, " + ("new classifier" if model.head_is_new else "and its classifier too"))

    work = work_folder(run, overwrite=overwrite)
    progress = train_rounds(run, model, train, valid, work, report)
    best = AlbertTextClassifier.from_pretrained(work / BEST_FOLDER)
    metrics = _metrics(best, valid, run.batch_size) if valid else {}
    summary = {
        "train_examples": len(train_examples),
        "parameters": model.count_params(),
        "best_round": progress.best_round,
        "valid": metrics,
    }
    write_run_folder(run, best, progress.history, summary, work, overwrite=overwrite)
    shutil.rmtree(work)
    return summary


def build_classifier(run: RunConfig, labels: list[str]) -> AlbertTextClassifier:
    """The model to train: a checkpoint's encoder, or a new one of the shape that `run.from_scratch` names."""
    dropout = {"hidden_dropout": run.hidden_dropout, "attention_dropout": run.attention_dropout}
    changes: dict[str, Any] = {name: rate for name, rate in dropout.items() if rate is not None}
    options: dict[str, Any] = {"dtype": run.precision, "rematerialize": run.rematerialize}
    settings: dict[str, Any] = {"labels": labels, "classifier_dropout": run.classifier_dropout}
    if run.source is not None:
        model = AlbertTextClassifier.from_pretrained(
            run.source, config_changes=changes, backbone_options=options, **settings
        )
    else:
        shape = str(run.from_scratch)
        config = AlbertConfig.from_json(shape) if shape.endswith(".json") else AlbertConfig.from_name(shape)
        tokenizer = AlbertTokenizer.from_pretrained(str(run.tokenizer))
        config = dataclasses.replace(config, vocabulary_size=tokenizer.vocabulary.size, **changes)
        model = AlbertTextClassifier(AlbertBackbone(config, **options), tokenizer, **settings)
    tokenizer = model.required_tokenizer
    tokenizer.max_length = min(run.max_length, model.backbone.config.max_sequence_length)
    return model


def train_rounds(
    run: RunConfig,
    model: AlbertTextClassifier,
    train: TextData,
    valid: TextData | None,
    work: Path,
    report: Callable[[str], None],
) -> Progress:
    """Trains in rounds, validating, saving the state and the best weights after each; goes on from a saved state."""
    total_steps = max(1, math.ceil(run.epochs * num_batches(len(train.encoded), run.batch_size)))
    wanted = run.validate_every or num_batches(len(train.encoded), run.batch_size)
    num_rounds = max(1, round(total_steps / wanted))
    round_steps = math.ceil(total_steps / num_rounds)
    schedule = LinearWarmupDecay(run.learning_rate, round(run.warmup * total_steps), num_rounds * round_steps)
    optimizer = AdamW(schedule, run.weight_decay, global_clipnorm=run.clip_norm or None)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    # Lengths differ from batch to batch: XLA would compile each of them.
    model.compile(optimizer, loss, metrics=[keras.metrics.SparseCategoricalAccuracy("accuracy")], jit_compile=False)
    optimizer.build(model.trainable_variables)
    progress = Progress(data=_digest(train, valid))
    if (work / STATE_FILE).exists():
        progress = _resumed(work / STATE_FILE, model, progress.data)
        report(f"going on after round {progress.round} of {num_rounds}")
    dataset = training_dataset(
        train.encoded,
        train.label_ids,
        batch_size=run.batch_size,
        pad_id=model.required_tokenizer.vocabulary.pad_id,
        seed=run.seed,
        start_step=progress.round * round_steps,
    )

    def after_round(figures: dict[str, float]) -> dict[str, float]:
        figures |= {f"valid_{k}": v for k, v in _figures(model, valid, run.batch_size).items()} if valid else {}
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


def _read(run: RunConfig, path: str) -> list[TextExample]:
    return read_examples(path, text_column=run.text_column, pair_column=run.pair_column, label_column=run.label_column)


def _encode(model: AlbertTextClassifier, examples: list[TextExample]) -> list[tuple[list[int], list[int]]]:
    pairs = [example.pair for example in examples]
    texts = [example.text for example in examples]
    return model.encode(texts, None if pairs[0] is None else [pair or "" for pair in pairs])


def _metrics(model: AlbertTextClassifier, data: TextData, batch_size: int) -> dict[str, Any]:
    probabilities = softmax(model.raw_outputs(data.encoded, batch_size=batch_size))
    return classification_metrics(data.label_ids, probabilities.argmax(axis=-1), model.labels, probabilities)


def _figures(model: AlbertTextClassifier, data: TextData, batch_size: int) -> dict[str, float]:
    """The metrics that are one number."""
    return {name: value for name, value in _metrics(model, data, batch_size).items() if isinstance(value, float)}


def _is_best(history: list[dict[str, float]], metric: str) -> bool:
    """Whether the last round is better than every one before it."""
    sign = -1 if metric == "valid_loss" else 1
    values = [sign * figures[metric] for figures in history]
    return all(values[-1] > value for value in values[:-1])


def _resumed(state: Path, model: AlbertTextClassifier, data: str) -> Progress:
    """The saved state, put into the model; a run that went on with other texts could not be repeated."""
    progress = restore_state(state, model)
    if progress.data != data:
        raise InputError(
            f"{state.parent}: the interrupted run was trained on other texts: a data or vocabulary file has changed; put "
            "the former one back to go on, or pass --overwrite to start again"
        )
    return progress


def _digest(*sets: TextData | None) -> str:
    """A checksum of ids and labels."""
    digest = hashlib.sha256()
    for data in sets:
        for (token_ids, segment_ids), label_id in zip(data.encoded, data.label_ids, strict=True) if data else ():
            digest.update(np.asarray([*token_ids, *segment_ids, -1 - label_id], np.int32).tobytes())
        digest.update(b"end")
    return digest.hexdigest()
