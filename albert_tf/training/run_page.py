"""What the page of a run holds: report.html, made before the run folder is written."""

import copy
import dataclasses
import shlex
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import keras
import numpy as np

from albert_tf.data.masking import MaskingRules
from albert_tf.data.pretraining_data import PretrainingData
from albert_tf.data.schema import PADDING_MASK
from albert_tf.errors import InputError
from albert_tf.evaluation.html_charts import spread
from albert_tf.evaluation.html_report import (
    command_part,
    curves_part,
    html_page,
    lengths_part,
    list_part,
    metrics_part,
    settings_part,
    values_part,
)
from albert_tf.evaluation.html_tasks import Part, Validated, task_parts
from albert_tf.inference.runner import Prepared
from albert_tf.tasks.base import AlbertTask
from albert_tf.training.checkpoints import Progress
from albert_tf.training.environment import environment
from albert_tf.training.pretrain_config import PretrainConfig
from albert_tf.training.run_config import RunConfig
from albert_tf.training.settings import Settings
from albert_tf.training.training import prepared_by_pipeline
from albert_tf.training.traps import texts_of

MEASURED_EXAMPLES, MEASURED_CHARACTERS = 2000, 5_000_000  # seconds, however much there is
_IN_PARTS = ("question-answering", "tagging")  # of a long text nothing is left out


def finetune_page(
    run: RunConfig,
    model: AlbertTask,
    train_examples: Sequence[Any],
    validated: Validated | None,
    summary: dict[str, Any],
    progress: Progress,
    found: Sequence[str],
    report: Callable[[str], None],
    *,
    metric: str,
    prepare: Callable[[Any, Sequence[Any]], Prepared] = prepared_by_pipeline,
) -> str:
    """The page of a fine-tuning.

    Args:
        run: its settings.
        model: with the best weights.
        train_examples: as read.
        validated: the model with what it was validated on; None without a validation file.
        summary: becomes metrics.json.
        progress: with the figures of each round.
        found: the warnings that were given when it began.
        report: receives a line for each part that cannot be made.
        metric: the figure drawn beside the loss.
        prepare: makes rows of examples.
    """
    history = progress.history
    told = [
        f"{run.task}: {len(train_examples):,} training examples from {run.train}; "
        + ("no validation file, so the last weights are kept." if run.valid is None else f"validated on {run.valid}."),
        f"{len(history)} rounds, {history[-1]['step']:,.0f} updates; weights of round {progress.best_round}; "
        f"{summary['parameters']:,} parameters.",
    ]
    parts: list[Part] = [
        ("Metrics", lambda: metrics_part(summary)),
        ("Curves", lambda: curves_part(history, metric, progress.best_round)),
        *(task_parts(run.task, validated) if validated else []),
        ("Lengths", lambda: _finetune_lengths(run, model, train_examples, prepare)),
        ("Warnings", lambda: list_part(found, "None was given when the run began.")),
        *_last_parts(run, [run.command, run.task], history),
    ]
    return html_page(f"{run.task}: {Path(run.out).name}", told, parts, report)


def pretrain_page(
    run: PretrainConfig,
    data: PretrainingData,
    summary: dict[str, Any],
    history: list[dict[str, float]],
    report: Callable[[str], None],
) -> str:
    """The page of a pretraining; see `finetune_page`."""
    told = [
        f"Pretraining on {data.num_examples:,} texts of {data.num_tokens:,} tokens in {run.data}.",
        f"{len(history)} rounds, {history[-1]['step']:,.0f} updates; {summary['parameters']:,} parameters.",
    ]
    parts: list[Part] = [
        ("Metrics", lambda: metrics_part(summary)),
        ("Curves", lambda: curves_part(history, "masked_lm_accuracy", None)),
        ("Lengths", lambda: _pretrain_lengths(run, data)),
        *_last_parts(run, ["pretrain"], history),
    ]
    return html_page(f"Pretraining: {Path(run.out).name}", told, parts, report)


def command_line(run: Settings, words: Sequence[str]) -> str:
    """The command that says `run`: what is not a default, or what a recipe or GLUE's task brings, is left out.

    Args:
        run: the settings.
        words: the subcommand's.
    """
    given = {field.name: getattr(run, field.name) for field in dataclasses.fields(run)}
    for field in dataclasses.fields(run):
        fewer = {name: value for name, value in given.items() if name != field.name}
        if field.default is not dataclasses.MISSING and _says(run, fewer):
            given = fewer
    line = ["albert-tf", *words]
    for name, value in given.items():
        flag = run.flag_name(name)
        if value is True:
            line.append(flag)
        elif value is not None:
            line += [f"{flag}={value}"] if str(value).startswith("-") else [flag, str(value)]
    backend = keras.backend.backend()
    return ("" if backend == "tensorflow" else f"KERAS_BACKEND={backend} ") + shlex.join(line)


def _says(run: Settings, given: dict[str, Any]) -> bool:
    try:
        return type(run).of(**given) == run
    except InputError:
        return False


def _last_parts(
    run: RunConfig | PretrainConfig, words: Sequence[str], history: Sequence[dict[str, float]]
) -> list[Part]:
    fields = dataclasses.fields(run)
    settings = [(run.flag_name(f.name), getattr(run, f.name), getattr(run, f.name) == f.default) for f in fields]
    return [
        ("Settings", lambda: settings_part(settings)),
        ("Environment", lambda: values_part("Where it was trained", environment(run.precision, history))),
        ("Again", lambda: command_part(command_line(run, words))),
    ]


def _finetune_lengths(
    run: RunConfig,
    model: AlbertTask,
    examples: Sequence[Any],
    prepare: Callable[[Any, Sequence[Any]], Prepared] = prepared_by_pipeline,
) -> str:
    """Of many examples some: they are encoded once more, uncut."""
    tokenizer = model.required_tokenizer
    places = spread(len(examples), MEASURED_EXAMPLES)
    characters = sum(len(text) for place in places for text in texts_of(examples[place]))
    if characters > MEASURED_CHARACTERS:
        places = spread(len(examples), max(2, len(places) * MEASURED_CHARACTERS // characters))
    lengths = [len(ids) for ids, _ in prepare(_Unlimited(model), [examples[place] for place in places]).rows]
    some = f"The {len(places):,}" if len(places) == len(examples) else f"{len(places):,} of the {len(examples):,}"
    rows = "" if len(lengths) == len(places) else f" ({len(lengths):,} rows)"
    longer = "read in parts" if run.task in _IN_PARTS else "cut"
    return lengths_part(
        lengths,
        tokenizer.max_length,
        f"{some} training examples{rows} as tokens. {{share}} are longer than {tokenizer.max_length} and are {longer}.",
    )


def _pretrain_lengths(run: PretrainConfig, data: PretrainingData) -> str:
    count = max(1, MEASURED_EXAMPLES // run.batch_size)
    rules = MaskingRules(rate=run.masked_share, max_ngram=run.max_ngram)
    batches = islice(data.batches(run.batch_size, rules, run.seed, 0), count)
    lengths = np.concatenate([np.asarray(batch[PADDING_MASK]).sum(axis=1) for batch in batches]).tolist()
    told = (
        f"The first {len(lengths):,} training texts as tokens, made up to {data.max_length} long: {{share}} are longer."
    )
    return lengths_part(lengths, data.max_length, told)


class _Unlimited:
    """A runner of a model whose tokenizer cuts nothing; it runs nothing."""

    def __init__(self, model: AlbertTask) -> None:
        self.task, self.task_settings = model.task, model.task_settings
        self.required_tokenizer = copy.copy(model.required_tokenizer)
        self.required_tokenizer.max_length = 2**31
