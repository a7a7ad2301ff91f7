"""`RunConfig`: what a fine-tuning run is told. Its fields are the command's flags and the saved run.json."""

import argparse
import dataclasses
import json
import math
from pathlib import Path
from typing import Any

from albert_tf.errors import InputError
from albert_tf.files import read_json

PRECISIONS = ("float32", "mixed_bfloat16")
BEST_METRICS = ("accuracy", "f1", "macro_f1", "matthews_correlation", "loss")


def _flag(default: Any, help_text: str, **extra: Any) -> Any:
    return dataclasses.field(default=default, metadata={"help": help_text, **extra})


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """Settings of one fine-tuning run; `flags` makes each field a command-line option.

    Raises:
        InputError: a value that cannot be used, by field; neither or both of `source` and `from_scratch`.
    """

    train: str = _flag(dataclasses.MISSING, "training file: .tsv, .csv or .jsonl")
    out: str = _flag(dataclasses.MISSING, "run folder to create")
    valid: str | None = _flag(None, "validation file; without one the last weights are kept")
    source: str | None = _flag(None, "checkpoint to start from: a folder or archive", flag="--from")
    from_scratch: str | None = _flag(None, "start from random weights of this shape: a config name or .json file")
    tokenizer: str | None = _flag(None, "vocabulary for --from-scratch: *.model, *.spm or vocab.txt")
    text_column: str | None = _flag(None, "column of the text: a name, or a number from 0 for a file without header")
    pair_column: str | None = _flag(None, "column of the second text")
    label_column: str | None = _flag(None, "column of the label")
    label_file: str | None = _flag(None, "labels in the order wanted, one a line; default: those found, sorted")
    epochs: float = _flag(3.0, "passes over the training file")
    batch_size: int = _flag(32, "examples a step")
    learning_rate: float = _flag(2e-5, "peak learning rate; from scratch more, 1e-4 to 1e-3")
    warmup: float = _flag(0.1, "share of the steps with rising learning rate")
    weight_decay: float = _flag(0.01, "AdamW decay of all but layer norms and biases")
    clip_norm: float = _flag(1.0, "largest norm of the whole gradient; 0 for none")
    max_length: int = _flag(512, "longest input in tokens; longer texts are cut")
    hidden_dropout: float | None = _flag(None, "encoder dropout; default: the checkpoint's (0 for v2)")
    attention_dropout: float | None = _flag(None, "attention dropout; default: the checkpoint's (0 for v2)")
    classifier_dropout: float = _flag(0.1, "dropout before the classifier")
    validate_every: int | None = _flag(None, "steps between validations; default: once an epoch")
    best_metric: str = _flag("accuracy", "validation figure that picks the weights kept", choices=BEST_METRICS)
    precision: str = _flag("float32", "arithmetic of the encoder", choices=PRECISIONS)
    rematerialize: bool = _flag(False, "compute activations twice to save memory")
    seed: int = _flag(0, "of the order of examples, new weights and dropout")

    def __post_init__(self) -> None:
        if (self.source is None) == (self.from_scratch is None):
            raise InputError(
                "give either --from CHECKPOINT, or --from-scratch CONFIG with --tokenizer FILE to begin with random weights"
            )
        if (self.tokenizer is None) != (self.from_scratch is None):
            raise InputError("--tokenizer goes with --from-scratch; a checkpoint brings its own")
        for name in ("epochs", "learning_rate"):
            self._check_range(name, 0.0, open_low=True)
        for name, lowest in (("batch_size", 1), ("max_length", 3), ("validate_every", 1)):
            self._check_range(name, lowest)
        for name in ("warmup", "hidden_dropout", "attention_dropout", "classifier_dropout"):
            self._check_range(name, 0.0, 1.0)
        for name in ("weight_decay", "clip_norm"):
            self._check_range(name, 0.0)
        self._check_range("seed", 0, 2**32)  # NumPy takes no larger one
        for field in dataclasses.fields(self):
            value, choices = getattr(self, field.name), field.metadata.get("choices")
            if choices and value not in choices:
                raise InputError(f"{flag_name(field.name)}: expected one of {', '.join(choices)}; got {value!r}")

    def _check_range(self, name: str, low: float, high: float = math.inf, *, open_low: bool = False) -> None:
        value = getattr(self, name)
        if value is None or ((value > low if open_low else value >= low) and value < high):
            return
        wanted = f"{'above' if open_low else 'at least'} {low}" + (f" and below {high}" if high < math.inf else "")
        raise InputError(f"{flag_name(name)}: expected a number {wanted}, got {value}")

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False) + "\n"

    def differences(self, other: "RunConfig") -> list[str]:
        """The flags in which two runs differ, with both values."""
        return [
            f"{flag_name(field.name)} {getattr(other, field.name)} → {getattr(self, field.name)}"
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != getattr(other, field.name)
        ]


def flag_name(field_name: str) -> str:
    """The command-line option of a field."""
    fields = {field.name: field for field in dataclasses.fields(RunConfig)}
    return str(fields[field_name].metadata.get("flag", "--" + field_name.replace("_", "-")))


def add_flags(parser: argparse.ArgumentParser) -> None:
    """One option for each field of `RunConfig`, with its type, choices and default."""
    for field in dataclasses.fields(RunConfig):
        name = flag_name(field.name)
        kwargs: dict[str, Any] = {"dest": field.name, "help": field.metadata["help"]}
        if field.type is bool:
            parser.add_argument(name, action="store_true", **kwargs)
            continue
        required = field.default is dataclasses.MISSING
        if not required and field.default is not None:
            kwargs["help"] += f" (default {field.default})"
        kinds: dict[Any, Any] = {int: int, float: float, int | None: int, float | None: float}
        kind = kinds.get(field.type, str)
        choices = field.metadata.get("choices")
        parser.add_argument(
            name,
            type=kind,
            default=None if required else field.default,
            choices=choices,
            required=required,
            metavar=None if choices else ("N" if kind is not str else "VALUE"),
            **kwargs,
        )


def from_flags(args: argparse.Namespace) -> RunConfig:
    """The config that parsed flags describe."""
    return RunConfig(**{field.name: getattr(args, field.name) for field in dataclasses.fields(RunConfig)})


def read_run_config(path: str | Path) -> RunConfig:
    """Reads a saved run.json."""
    try:
        return RunConfig(**read_json(path))
    except TypeError as error:
        raise InputError(f"{path}: not a saved run of this version ({error})") from error
