"""`RunConfig`: what a fine-tuning run is told, with a subclass for each task."""

import dataclasses
from typing import ClassVar

from albert_tf.errors import InputError
from albert_tf.training.settings import PRECISIONS, Settings, flag


@dataclasses.dataclass(frozen=True)
class RunConfig(Settings):
    """Settings of every fine-tuning run.

    Attributes:
        task: the task's name on the command line, a key of `albert_tf.training.finetune.TASKS`.

    Raises:
        InputError: a value that cannot be used, by field; neither or both of `source` and `from_scratch`.
    """

    task: ClassVar[str]

    train: str = flag(dataclasses.MISSING, "training file: .tsv, .csv or .jsonl")
    valid: str | None = flag(None, "validation file; without one the last weights are kept")
    source: str | None = flag(None, "checkpoint to start from: a folder or archive", flag="--from")
    from_scratch: str | None = flag(None, "start from random weights of this shape: a config name or .json file")
    tokenizer: str | None = flag(
        None, "vocabulary for --from-scratch: *.model, *.spm, vocab.txt, or a tokenizer's folder"
    )
    epochs: float = flag(3.0, "passes over the training file")
    batch_size: int = flag(32, "examples a step")
    learning_rate: float = flag(2e-5, "peak learning rate; from scratch more, 1e-4 to 1e-3")
    warmup: float = flag(0.1, "share of the steps with rising learning rate")
    weight_decay: float = flag(0.01, "AdamW decay of all but layer norms and biases")
    clip_norm: float = flag(1.0, "largest norm of the whole gradient; 0 for none")
    max_length: int = flag(512, "longest input in tokens; longer texts are cut")
    hidden_dropout: float | None = flag(None, "encoder dropout; default: the checkpoint's (0 for v2)")
    attention_dropout: float | None = flag(None, "attention dropout; default: the checkpoint's (0 for v2)")
    validate_every: int | None = flag(None, "steps between validations; default: once an epoch")
    # Of losses and errors the lowest value is the best, of others the highest.
    best_metric: str = flag("loss", "validation figure that picks the weights kept")
    precision: str = flag("float32", "arithmetic of the encoder", choices=PRECISIONS)
    rematerialize: bool = flag(False, "compute activations twice to save memory")
    seed: int = flag(0, "of the order of examples, new weights and dropout")

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.source is None) == (self.from_scratch is None):
            raise InputError(
                "give either --from CHECKPOINT, or --from-scratch CONFIG with --tokenizer FILE to begin with random weights"
            )
        if (self.tokenizer is None) != (self.from_scratch is None):
            raise InputError("--tokenizer goes with --from-scratch; a checkpoint brings its own")
        for name in ("epochs", "learning_rate"):
            self.check_range(name, 0.0, open_low=True)
        for name, lowest in (("batch_size", 1), ("max_length", 3), ("validate_every", 1)):
            self.check_range(name, lowest)
        for name in ("warmup", "hidden_dropout", "attention_dropout"):
            self.check_range(name, 0.0, 1.0)
        for name in ("weight_decay", "clip_norm"):
            self.check_range(name, 0.0)
        self.check_range("seed", 0, 2**32)  # NumPy takes no larger one


@dataclasses.dataclass(frozen=True)
class HeadRun(RunConfig):
    """Settings of a run whose head is dropout and a dense layer."""

    classifier_dropout: float = flag(0.1, "dropout before the head")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_range("classifier_dropout", 0.0, 1.0)


@dataclasses.dataclass(frozen=True)
class TextRun(HeadRun):
    """Settings of a run on a table of texts, or pairs of texts, with a label."""

    text_column: str | None = flag(None, "column of the text: a name, or a number from 0 for a file without header")
    pair_column: str | None = flag(None, "column of the second text")
    label_column: str | None = flag(None, "column of the label")


@dataclasses.dataclass(frozen=True)
class ClassificationRun(TextRun):
    """Settings of a text classifier's run."""

    task: ClassVar[str] = "classification"
    metrics: ClassVar[tuple[str, ...]] = ("accuracy", "f1", "macro_f1", "matthews_correlation", "loss")

    label_file: str | None = flag(None, "labels in the order wanted, one a line; default: those found, sorted")
    best_metric: str = flag("accuracy", "validation figure that picks the weights kept", choices=metrics)


@dataclasses.dataclass(frozen=True)
class RegressionRun(TextRun):
    """Settings of a text regressor's run."""

    task: ClassVar[str] = "regression"
    metrics: ClassVar[tuple[str, ...]] = ("spearman", "pearson", "loss", "mean_absolute_error")

    best_metric: str = flag("spearman", "validation figure that picks the weights kept", choices=metrics)


@dataclasses.dataclass(frozen=True)
class MultipleChoiceRun(HeadRun):
    """Settings of a run on questions with options."""

    task: ClassVar[str] = "multiple-choice"
    metrics: ClassVar[tuple[str, ...]] = ("accuracy", "loss")

    train: str = flag(dataclasses.MISSING, "training file or folder: RACE's .json or .txt, ARC's .csv")
    leave_out_unusable: bool = flag(
        False, "leave out questions without options or with a wrong answer, and say how many"
    )
    best_metric: str = flag("accuracy", "validation figure that picks the weights kept", choices=metrics)


@dataclasses.dataclass(frozen=True)
class TaggingRun(HeadRun):
    """Settings of a tagger's run."""

    task: ClassVar[str] = "tagging"
    metrics: ClassVar[tuple[str, ...]] = ("f1", "precision", "recall", "accuracy")

    train: str = flag(dataclasses.MISSING, "training file: CoNLL columns, or .jsonl with lists of words and labels")
    best_metric: str = flag("f1", "validation figure that picks the weights kept", choices=metrics)


# Each task's settings and what it is, for the command line.
RUNS: tuple[tuple[type[RunConfig], str], ...] = (
    (ClassificationRun, "one label for a text or a pair of texts"),
    (RegressionRun, "a number for a text or a pair of texts"),
    (TaggingRun, "a label for each word, such as named entities: CoNLL columns or JSON lines"),
    (MultipleChoiceRun, "one of several answers to a question, with or without a passage: RACE or ARC files"),
)
