"""What each task's fine-tuning run is told beside what every run is."""

import dataclasses
from typing import ClassVar

from albert_tf.data.glue import refuse_folders, run_settings
from albert_tf.errors import InputError
from albert_tf.inference.question_answering import HEADS, LANGUAGES
from albert_tf.inference.similarity import OBJECTIVES, POOLINGS
from albert_tf.training.run_config import RunConfig
from albert_tf.training.settings import flag

_LANGUAGES = ("auto", *LANGUAGES)


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
class GlueRun(TextRun):
    """Settings of a run on such a table, or on the files of a task of GLUE."""

    glue: str | None = flag(None, "the files are those of this task of GLUE, such as SST-2; --train may be its folder")

    def __post_init__(self) -> None:
        columns = (self.text_column, self.pair_column, self.label_column)
        settings = {"best_metric": self.metrics[0]}
        if self.glue is not None:
            settings |= run_settings(self.glue, self.train, self.valid, task=self.task, columns=columns)
        else:
            refuse_folders(self.train, self.valid)
        for name, value in settings.items():
            if name != "best_metric" or not self.best_metric:
                object.__setattr__(self, name, value)
        super().__post_init__()


@dataclasses.dataclass(frozen=True)
class ClassificationRun(GlueRun):
    """Settings of a text classifier's run."""

    task: ClassVar[str] = "classification"
    exit_rules: ClassVar[tuple[str, ...]] = ("patience", "confidence", "entropy")
    metrics: ClassVar[tuple[str, ...]] = ("accuracy", "f1", "macro_f1", "matthews_correlation", "loss")

    label_file: str | None = flag(None, "labels in the order wanted, one a line; default: those found, sorted")
    class_weights: str | None = flag(
        None, "what each label counts in the loss: balanced, or a number for each label in their order: 1,2.5"
    )
    label_smoothing: float = flag(0.0, "share of the wanted probability that is spread over all labels")
    best_metric: str = flag(
        None,
        "validation figure that picks the weights kept (default accuracy, with --glue the task's own)",
        choices=metrics,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_range("label_smoothing", 0.0, 1.0)


@dataclasses.dataclass(frozen=True)
class MultiLabelRun(TextRun):
    """Settings of a run on texts with several labels."""

    task: ClassVar[str] = "multi-label"
    metrics: ClassVar[tuple[str, ...]] = ("micro_f1", "macro_f1", "subset_accuracy", "loss")

    label_separator: str = flag(",", "what stands between the labels of a text in a table; .jsonl has lists")
    label_file: str | None = flag(None, "labels in the order wanted, one a line; default: those found, sorted")
    threshold: float = flag(0.5, "a label is given where its probability is above this")
    best_metric: str = flag("micro_f1", "validation figure that picks the weights kept", choices=metrics)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_range("threshold", 0.0, 1.0, open_low=True)


@dataclasses.dataclass(frozen=True)
class RegressionRun(GlueRun):
    """Settings of a text regressor's run."""

    task: ClassVar[str] = "regression"
    exit_rules: ClassVar[tuple[str, ...]] = ("tolerance",)
    metrics: ClassVar[tuple[str, ...]] = ("spearman", "pearson", "loss", "mean_absolute_error")

    best_metric: str = flag(
        None,
        "validation figure that picks the weights kept (default spearman, with --glue the task's own)",
        choices=metrics,
    )


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
    exit_rules: ClassVar[tuple[str, ...]] = ("patience", "confidence", "entropy")
    metrics: ClassVar[tuple[str, ...]] = ("f1", "precision", "recall", "accuracy")

    train: str = flag(dataclasses.MISSING, "training file: CoNLL columns, or .jsonl with lists of words and labels")
    best_metric: str = flag("f1", "validation figure that picks the weights kept", choices=metrics)


@dataclasses.dataclass(frozen=True)
class SimilarityRun(RunConfig):
    """Settings of a sentence encoder's run."""

    task: ClassVar[str] = "similarity"
    exit_rules: ClassVar[tuple[str, ...]] = ("tolerance",)
    correlations: ClassVar[tuple[str, ...]] = ("spearman", "pearson")
    retrieval: ClassVar[tuple[str, ...]] = ("mean_reciprocal_rank", "recall_at_1", "recall_at_5", "recall_at_10")
    metrics: ClassVar[tuple[str, ...]] = correlations + retrieval

    train: str = flag(dataclasses.MISSING, "pairs or triples of texts: .tsv, .csv or .jsonl")
    valid: str | None = flag(
        None, "validation file: pairs with scores, or that belong together; of named columns, those that it has count"
    )
    text_column: str | None = flag(None, "column of the text: a name, or a number from 0 for a file without header")
    pair_column: str | None = flag(None, "column of the second text")
    label_column: str | None = flag(None, "column of the score or label")
    negative_column: str | None = flag(None, "column of a third text, which does not belong to the first")
    positive_label: str | None = flag(None, "train on the pairs with this label, as texts that belong together")
    negative_label: str | None = flag(None, "with it: the label of texts that do not, to make triples")
    label_file: str | None = flag(None, "softmax: labels in the order wanted, one a line; default: those found, sorted")
    vectors: str | None = flag(
        None, "another encoder's embeddings of the lines of --train, then a text file: .npy, float (lines, length)"
    )
    loss: str = flag(
        "cosine",
        "cosine: its square distance from the score; contrastive: the other texts of a batch are wrong; softmax: the label; "
        "vectors: its distance from --vectors",
        choices=OBJECTIVES,
    )
    pooling: str = flag("mean", "the embedding: mean of the tokens, or the first token", choices=POOLINGS)
    projection_dim: int | None = flag(
        None, "a dense layer makes embeddings of this length; default: the checkpoint's, or as --vectors has, or none"
    )
    raw_embeddings: bool = flag(False, "leave embeddings at their own length instead of 1")
    max_score: float = flag(5.0, "cosine: the score of two texts that mean the same")
    scale: float = flag(20.0, "contrastive: what cosines are multiplied by")
    best_metric: str = flag("spearman", "validation figure that picks the weights kept", choices=metrics)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_range("max_score", 0.0, open_low=True)
        self.check_range("scale", 0.0, open_low=True)
        self.check_range("projection_dim", 1)
        self._check_vectors()
        if self.loss == "contrastive" and self.batch_size < 2:
            raise InputError(
                "--batch-size: expected at least 2 for --loss contrastive, whose wrong answers are the others' texts"
            )
        if self.loss == "contrastive" and self.accumulate > 1:
            raise InputError(
                "--accumulate does not go with --loss contrastive: a part would have only its own texts as wrong answers; "
                "--rematerialize saves memory too"
            )
        if self.negative_label is not None and self.positive_label is None:
            raise InputError("--negative-label goes with --positive-label")
        if self.positive_label is not None and self.loss != "contrastive":
            raise InputError(f"--positive-label goes with --loss contrastive, not with {self.loss}")
        if self.label_file is not None and self.loss != "softmax":
            raise InputError(f"--label-file goes with --loss softmax, not with {self.loss}")

    def _check_vectors(self) -> None:
        if (self.vectors is not None) != (self.loss == "vectors"):
            raise InputError("--vectors FILE and --loss vectors go together")


@dataclasses.dataclass(frozen=True)
class QuestionAnsweringRun(RunConfig):
    """Settings of a question answerer's run; the defaults are those of google-research/albert for SQuAD."""

    task: ClassVar[str] = "question-answering"
    exit_rules: ClassVar[tuple[str, ...]] = ("patience", "confidence", "entropy")
    metrics: ClassVar[tuple[str, ...]] = ("f1", "exact_match")

    train: str = flag(dataclasses.MISSING, "training file: SQuAD 1.1, SQuAD 2.0 or CMRC, .json")
    epochs: float = flag(2.0, "passes over the training file")
    batch_size: int = flag(48, "rows a step, of a question with a part of its passage")
    learning_rate: float = flag(5e-5, "peak learning rate; from scratch more, 1e-4 to 1e-3")
    max_length: int = flag(384, "longest input in tokens; longer passages are read in parts")
    head: str = flag(
        "span", "span: start and end; squad2: ends that depend on the start, and a class for no answer", choices=HEADS
    )
    doc_stride: int = flag(128, "tokens from the start of one part of a passage to the start of the next")
    max_question_length: int = flag(64, "tokens of a question that are kept")
    max_answer_length: int = flag(30, "the most tokens of an answer")
    n_best: int = flag(20, "spans that are looked at")
    start_beams: int = flag(5, "squad2: starts that are looked at")
    end_beams: int = flag(5, "squad2: ends that are looked at for each start")
    language: str = flag(
        "auto",
        "whose rules compare answers: english as SQuAD, chinese as CMRC; auto: by the passages",
        choices=_LANGUAGES,
    )
    leave_out_unusable: bool = flag(False, "leave out questions whose answer is not in the passage, and say how many")
    classifier_dropout: float = flag(0.1, "squad2: dropout in the class for no answer")
    best_metric: str = flag("f1", "validation figure that picks the weights kept", choices=metrics)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("doc_stride", "max_question_length", "max_answer_length", "n_best", "start_beams", "end_beams"):
            self.check_range(name, 1)
        self.check_range("classifier_dropout", 0.0, 1.0)
        if self.head == "squad2" and self.exit_heads == "own":
            raise InputError("--exit-heads own: the head squad2 is not small, and is that of all passes; leave it out")


# Each task's settings and what it is, for the command line.
RUNS: tuple[tuple[type[RunConfig], str], ...] = (
    (ClassificationRun, "one label for a text or a pair of texts"),
    (MultiLabelRun, "any number of labels for a text or a pair of texts"),
    (RegressionRun, "a number for a text or a pair of texts"),
    (TaggingRun, "a label for each word, such as named entities: CoNLL columns or JSON lines"),
    (MultipleChoiceRun, "one of several answers to a question, with or without a passage: RACE or ARC files"),
    (QuestionAnsweringRun, "the part of a passage that answers a question, or none: SQuAD or CMRC files"),
    (SimilarityRun, "an embedding for a text, such that texts of like meaning are near each other"),
)
