"""Known ways to a bad fine-tuning, each told in one line when a run begins."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from albert_tf.tasks.base import AlbertTask
from albert_tf.training.run_config import RunConfig
from albert_tf.training.tasks.finetune_task import TrainingRows

_WIDE = 2048  # xlarge; xxlarge has 4096
_WIDE_RATE, _WIDE_RATE_OF_LARGE_BATCHES, _LARGE_BATCH = 1e-5, 5e-5, 48
_LOOKED_AT = 500  # examples
_UNKNOWN_SHARE = 0.05
_MANY_PASSES = 30


def traps(run: RunConfig, model: AlbertTask, examples: Sequence[Any], rows: TrainingRows) -> list[str]:
    """What is likely to spoil a run, a line each.

    Args:
        run: its settings.
        model: the model to train, before its first step.
        examples: the training examples as read.
        rows: the same as token ids.
    """
    found = [
        _body_dropout(model),
        _large_rate(run, model),
        _shorter(run, model),
        *_letters(model, examples),
        _unknown_pieces(model, rows),
        _no_training(run, model),
        *_label_order(model),
        _many_passes(run, len(examples)),
        _published_settings(run),
    ]
    return [line for line in found if line is not None]


def _body_dropout(model: AlbertTask) -> str | None:
    """transformers#2337, keras-hub#1786: accuracy stays at chance."""
    own, config = model.source_config, model.backbone.config
    if (
        own is None
        or own.hidden_dropout
        or own.attention_dropout
        or not (config.hidden_dropout or config.attention_dropout)
    ):
        return None
    return (
        "dropout in the encoder of a checkpoint trained without, as ALBERT v2 was, often keeps it from learning; leave out "
        "--hidden-dropout and --attention-dropout"
    )


def _large_rate(run: RunConfig, model: AlbertTask) -> str | None:
    """albert#23, transformers#2104: xlarge and xxlarge give one answer to everything."""
    large_batch = run.batch_tokens is not None or run.batch_size >= _LARGE_BATCH
    most = _WIDE_RATE_OF_LARGE_BATCHES if large_batch else _WIDE_RATE
    if model.backbone.config.hidden_dim < _WIDE or run.learning_rate <= most or run.recipe is not None:
        return None
    if run.freeze in ("encoder", "backbone"):
        return None
    return (
        f"--learning-rate {run.learning_rate:g}: encoders of this width (xlarge, xxlarge) often collapse to one answer "
        f"above {most:g} with this batch size; lower it, or take a --recipe"
    )


def _shorter(run: RunConfig, model: AlbertTask) -> str | None:
    positions = model.backbone.config.max_sequence_length
    if run.max_length <= positions:
        return None
    return f"--max-length {run.max_length}: the model takes {positions} tokens, so longer texts are cut there"


def _letters(model: AlbertTask, examples: Sequence[Any]) -> Iterator[str]:
    """albert#88: capitals become odd pieces, as published vocabularies have lower-case letters only."""
    vocabulary = model.required_tokenizer.vocabulary
    pieces = vocabulary.pieces(list(range(vocabulary.size)))
    # What stands in brackets are names of special pieces.
    has_capitals = any(piece != piece.lower() for piece in pieces if not piece.startswith(("[", "<")))
    lowers = bool(vocabulary.options().get("lower"))
    if has_capitals and lowers:
        yield "the tokenizer lower-cases texts, though its vocabulary has capital letters; is lower=false meant?"
    if not has_capitals and not lowers:
        cased = sum(text != text.lower() for example in examples[:_LOOKED_AT] for text in texts_of(example))
        if cased:
            yield (
                f"{cased} of the first texts have capital letters, which the vocabulary lacks and the tokenizer leaves as "
                "they are: they become unknown; is lower=true meant?"
            )


def _unknown_pieces(model: AlbertTask, rows: TrainingRows) -> str | None:
    unknown = model.required_tokenizer.vocabulary.unk_id
    ids = np.concatenate([np.asarray(token_ids) for token_ids, _ in rows.rows[:_LOOKED_AT]])
    share = float((ids == unknown).mean())
    if share <= _UNKNOWN_SHARE:
        return None
    return f"{share:.0%} of the tokens are unknown to the vocabulary; is it of the texts' language?"


def _no_training(run: RunConfig, model: AlbertTask) -> str | None:
    if run.from_scratch is not None:
        return (
            "encoder and head begin with random weights (--from-scratch): expect far less than from a pretrained checkpoint "
            "(--from)"
        )
    if run.starts_encoder_anew:
        return None
    encoder = model.backbone.encoder
    norms = [block.norm for block in (*encoder.attention_blocks, *encoder.feed_forward_blocks)]
    if any(np.ptp(np.asarray(norm.gamma)) > 0 or np.ptp(np.asarray(norm.beta)) > 0 for norm in norms):
        return None
    return f"{run.source}: its layer norms are as before any training: it looks like a checkpoint of random weights"


def _label_order(model: AlbertTask) -> Iterator[str]:
    labels = list(getattr(model, "labels", ()))
    if labels and all(_is_number(label) for label in labels) and labels != sorted(labels, key=float):
        yield f"labels are numbers out of order: {', '.join(labels)}; if order matters, give it with --label-file"
    before = list((model.source_settings or {}).get("labels", ()))
    if model.head_is_new and before != labels and sorted(before) == sorted(labels):
        yield (
            f"the checkpoint's head has these labels in another order ({', '.join(before)}), so a new head is made; to go "
            "on with its own, give that order with --label-file"
        )


def _many_passes(run: RunConfig, examples: int) -> str | None:
    passes = (run.steps or 0) * run.batch_size / examples
    if run.recipe is None or run.batch_tokens is not None or passes <= _MANY_PASSES:
        return None
    return (
        f"--recipe {run.recipe}: its {run.steps:,} steps are {passes:.0f} passes over these {examples:,} examples, far "
        "fewer than it is made for; give --epochs or --steps"
    )


def _published_settings(run: RunConfig) -> str | None:
    glue = getattr(run, "glue", None)
    if glue is None or run.recipe is not None or run.source is None or run.find_recipe(glue) is None:
        return None
    return f"there are published settings for {glue}: --recipe {glue.lower()}"


def texts_of(example: Any) -> Iterator[str]:
    """The texts of an example of whatever task."""
    for name in ("text", "pair", "words", "context", "question", "options"):
        value = getattr(example, name, None) or ()
        yield from [value] if isinstance(value, str) else value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def report_start(run: RunConfig, found: Sequence[str], report: Callable[[str], None]) -> None:
    """Reports the recipe of a run, with what it sets, and what was found."""
    if run.recipe is not None:
        fields = run.find_recipe(run.recipe) or {}
        values = ", ".join(f"{run.flag_name(name)} {_short(getattr(run, name))}" for name in fields)
        report(f"recipe {run.recipe}: {values}")
    for line in found:
        report(f"note: {line}")


def _short(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}"
