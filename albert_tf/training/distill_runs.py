"""What each task's distillation is told: what its fine-tuning is told, and a teacher, what is learned of it, the student."""

import dataclasses
import re
from typing import Any, ClassVar

from albert_tf.data.teacher_outputs import TASKS as RECORDED_TASKS
from albert_tf.errors import InputError
from albert_tf.training.distillation_recipes import find_recipe, recipe_fields, recipe_names
from albert_tf.training.run_config import RunConfig
from albert_tf.training.settings import flag
from albert_tf.training.task_runs import (
    ClassificationRun,
    MultiLabelRun,
    MultipleChoiceRun,
    QuestionAnsweringRun,
    RegressionRun,
    SimilarityRun,
    TaggingRun,
)

_USUAL_HARD_WEIGHT, _USUAL_TEMPERATURE = 0.5, 2.0
_WITHOUT_TEMPERATURE = ("regression", "similarity")  # nothing is divided by a softmax
_NOT_AUGMENTED = {
    "question-answering": "another word in a passage can be its answer",
    "multiple-choice": "another word in an option can make it right",
    "fill-mask": "masks are drawn anew in every epoch as it is",
}
_PAIRS = re.compile(r"\d+:\d+(,\d+:\d+)*")


@dataclasses.dataclass(frozen=True)
class Distillation(RunConfig):
    """Settings of every distillation, beside those of the task's run.

    Raises:
        InputError: a value that cannot be used, or settings that do not go together.
    """

    command: ClassVar[str] = "distill"

    teacher: str | None = flag(None, "the model to learn from: a run folder, or any checkpoint that says its task")
    teacher_outputs: str | None = flag(
        None,
        "in place of --teacher, what another system put out for the rows of --train: .npy or .jsonl with logits, "
        "probabilities or values; similarity: its embeddings, .npy",
    )
    soft_weight: float = flag(0.5, "weight of the loss against the teacher's outputs")
    hard_weight: float | None = flag(None, "weight of the task's own loss, where a text has a label; default: 0.5")
    temperature: float | None = flag(None, "what logits are divided by in the loss against the teacher's; default: 2")
    hidden_weight: float = flag(0.0, "weight of the loss against the teacher's hidden states, projected to its width")
    hidden_loss: str = flag(
        "mse", "squared difference (TinyBERT) or 1 - cosine (DistilBERT)", choices=("mse", "cosine")
    )
    attention_weight: float = flag(0.0, "weight of the loss against the teacher's attention scores, head by head")
    layer_map: str = flag(
        "uniform",
        "which pass learns from which: uniform; last; or pairs student:teacher, counted from 1, 0 for the embeddings: "
        "0:0,1:2,2:4",
    )
    layers: int | None = flag(None, "the student's layers; default: those of what it starts from")
    hidden_dim: int | None = flag(None, "the student's width; its encoder then begins with random weights")
    intermediate_dim: int | None = flag(None, "the width of its feed-forward layers; default: 4 times --hidden-dim")
    heads: int | None = flag(None, "its attention heads; default: those of what it starts from")
    augment: int = flag(0, "variations of each text to learn from beside it: words replaced by others that fit")
    augment_from: str | None = flag(
        None,
        "checkpoint with a head for masked words, which proposes words; default: the nearest of the teacher's word table",
    )
    augment_probability: float = flag(0.4, "that a word is replaced")
    augment_candidates: int = flag(15, "words proposed for each")

    def __post_init__(self) -> None:
        self._check_teacher()
        starts_at_teacher = self.source is None and self.from_scratch is None
        if starts_at_teacher:
            object.__setattr__(self, "source", self.teacher)
        if self.from_scratch is not None and self.tokenizer is None:
            object.__setattr__(self, "tokenizer", self.teacher)
        if self.source is None and self.from_scratch is None:
            raise InputError(
                "--teacher-outputs: there is no teacher whose weights the student could start from; give --from CHECKPOINT, "
                "or --from-scratch CONFIG with --tokenizer FILE"
            )
        super().__post_init__()
        for name in ("soft_weight", "hard_weight", "hidden_weight", "attention_weight", "augment"):
            self.check_range(name, 0)
        for name in ("layers", "hidden_dim", "intermediate_dim", "heads", "augment_candidates"):
            self.check_range(name, 1)
        self.check_range("temperature", 0.0, open_low=True)
        self.check_range("augment_probability", 0.0, 1.0, open_low=True, closed_high=True)
        self._check_lesson()
        self._check_student()
        self._check_augmentation()

    @property
    def hard(self) -> float:
        """The weight of the task's own loss."""
        if self.hard_weight is not None:
            return self.hard_weight
        return 0.0 if self.task == "similarity" else _USUAL_HARD_WEIGHT

    @property
    def soft_temperature(self) -> float:
        """The temperature of the loss against the teacher's outputs."""
        usual = 1.0 if self.task in _WITHOUT_TEMPERATURE else _USUAL_TEMPERATURE
        return usual if self.temperature is None else self.temperature

    @property
    def looks_inside(self) -> bool:
        """Whether the teacher's inner states are learned."""
        return self.hidden_weight > 0 or self.attention_weight > 0

    @property
    def shape_changes(self) -> dict[str, Any]:
        width = self.intermediate_dim or (None if self.hidden_dim is None else 4 * self.hidden_dim)
        fields = {"num_layers": self.layers, "hidden_dim": self.hidden_dim, "num_heads": self.heads}
        return {name: value for name, value in (fields | {"intermediate_dim": width}).items() if value is not None}

    @property
    def starts_encoder_anew(self) -> bool:
        return super().starts_encoder_anew or self.hidden_dim is not None or self.intermediate_dim is not None

    def layer_pairs(self, student_layers: int, teacher_layers: int) -> tuple[tuple[int, int], ...] | None:
        """`layer_map` for models of so many layers; None for the uniform one."""
        if self.layer_map == "uniform":
            return None
        if self.layer_map == "last":
            return ((student_layers, teacher_layers),)
        pairs = [pair.split(":") for pair in self.layer_map.split(",")]
        return tuple((int(own), int(other)) for own, other in pairs)

    @classmethod
    def find_recipe(cls, name: str) -> dict[str, Any] | None:
        return find_recipe(name, cls.task)

    @classmethod
    def recipe_fields(cls, name: str) -> dict[str, Any]:
        return recipe_fields(name, cls.task)

    @classmethod
    def flag_help(cls, field_name: str) -> str:
        own = {
            "source": "checkpoint that the student starts from; default: the teacher's own weights, as far as they fit",
            "tokenizer": "vocabulary for --from-scratch; default: the teacher's",
            "recipe": "published settings, unless given otherwise: "
            + (", ".join(recipe_names(cls.task)) or "none for this task")
            + "; default: those below",
        }
        if cls.task in RECORDED_TASKS:
            own["train"] = "training file: .tsv, .csv or .jsonl, with labels or without, or plain text, a text a line"
        return own.get(field_name) or super().flag_help(field_name)

    def _check_teacher(self) -> None:
        if (self.teacher is None) == (self.teacher_outputs is None):
            raise InputError("give either --teacher MODEL, or --teacher-outputs FILE with what another system put out")
        if self.teacher_outputs is None:
            return
        if self.task not in (*RECORDED_TASKS, "similarity"):
            raise InputError(
                f"--teacher-outputs: for {', '.join((*RECORDED_TASKS, 'similarity'))}; outputs for {self.task} belong to "
                "tokens or options, which another system cuts otherwise: give --teacher"
            )
        if self.looks_inside:
            raise InputError(
                "--teacher-outputs: holds no inner states; leave --hidden-weight and --attention-weight out, or give "
                "--teacher"
            )

    def _check_lesson(self) -> None:
        if not any((self.soft_weight, self.hard, self.hidden_weight, self.attention_weight)):
            raise InputError("nothing is learned: every weight is 0; raise --soft-weight or another")
        if self.teacher_outputs is not None and not self.soft_weight:
            raise InputError("--soft-weight 0: nothing is learned of --teacher-outputs; use albert-tf finetune")
        if not self.soft_weight and not self.looks_inside:
            raise InputError("nothing is learned of the teacher; raise --soft-weight, or use albert-tf finetune")
        if self.task in _WITHOUT_TEMPERATURE and self.temperature is not None:
            raise InputError(f"--temperature: {self.task} has no logits to divide; leave it out")
        if self.task == "similarity" and self.hard_weight:
            raise InputError("--hard-weight: the texts of similarity have no labels here; leave it out")
        if not (self.layer_map in ("uniform", "last") or _PAIRS.fullmatch(self.layer_map)):
            raise InputError(f"--layer-map: expected uniform, last or pairs such as 0:0,1:2; got {self.layer_map!r}")
        if not self.looks_inside and self.layer_map != "uniform":
            raise InputError("--layer-map goes with --hidden-weight or --attention-weight")
        if not self.hidden_weight and self.hidden_loss != "mse":
            raise InputError("--hidden-loss goes with --hidden-weight")
        if self.random_depth is not None and self.looks_inside:
            raise InputError(
                "--random-depth does not go with --hidden-weight and --attention-weight: they need passes that it leaves out"
            )
        if not self.soft_weight and not self.hard and (self.valid is not None or self.early_exit is not None):
            other = "--early-exit" if self.valid is None else "--valid"
            raise InputError(f"{other}: only inner states are learned and the head stays as it is; leave it out")

    def _check_student(self) -> None:
        given = [name for name in ("hidden_dim", "intermediate_dim", "heads") if getattr(self, name) is not None]
        if self.source is not None and self.source != self.teacher and given:
            raise InputError(
                f"{self.flag_name(given[0])}: the weights of {self.source} have their own widths; of a checkpoint only "
                "--layers can be chosen, or begin with random weights: --from-scratch"
            )

    def _check_augmentation(self) -> None:
        if self.augment_from is not None and not self.augment:
            raise InputError("--augment-from goes with --augment N")
        if not self.augment:
            return
        if self.task in _NOT_AUGMENTED:
            raise InputError(f"--augment: not for {self.task}: {_NOT_AUGMENTED[self.task]}; leave it out")
        if self.teacher_outputs is not None:
            raise InputError("--augment: --teacher-outputs has none for new texts; leave it out, or give --teacher")


@dataclasses.dataclass(frozen=True)
class DistillClassificationRun(ClassificationRun, Distillation):
    """Settings of a text classifier's distillation."""


@dataclasses.dataclass(frozen=True)
class DistillMultiLabelRun(MultiLabelRun, Distillation):
    """Settings of the distillation of a classifier with several labels."""


@dataclasses.dataclass(frozen=True)
class DistillRegressionRun(RegressionRun, Distillation):
    """Settings of a text regressor's distillation."""


@dataclasses.dataclass(frozen=True)
class DistillMultipleChoiceRun(MultipleChoiceRun, Distillation):
    """Settings of a distillation on questions with options."""


@dataclasses.dataclass(frozen=True)
class DistillTaggingRun(TaggingRun, Distillation):
    """Settings of a tagger's distillation."""


@dataclasses.dataclass(frozen=True)
class DistillQuestionAnsweringRun(QuestionAnsweringRun, Distillation):
    """Settings of a question answerer's distillation."""


@dataclasses.dataclass(frozen=True)
class DistillSimilarityRun(SimilarityRun, Distillation):
    """Settings of a sentence encoder's distillation: `finetune similarity --loss vectors`, with a teacher."""

    train: str = flag(dataclasses.MISSING, "texts, one a line")
    loss: str = flag("vectors", "its distance from the teacher's embedding", choices=("vectors",))
    teacher_words: str | None = flag(
        None,
        "beside --teacher-outputs, that system's vectors of the words of --train, as whitespace parts them: .npy, float "
        "(words of all lines, length)",
    )
    word_weight: float = flag(1.0, "weight of the loss against --teacher-words")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_range("word_weight", 0.0, open_low=True)
        if self.teacher_words is None and self.word_weight != 1.0:
            raise InputError("--word-weight goes with --teacher-words FILE")
        if self.teacher_words is not None and self.teacher_outputs is None:
            raise InputError("--teacher-words goes with --teacher-outputs; of a --teacher take --hidden-weight")
        if self.teacher_words is not None and self.random_depth is not None:
            raise InputError("--teacher-words: is learned after the last pass; leave --random-depth out")

    def _check_vectors(self) -> None:
        if self.vectors not in (None, self.teacher_outputs):
            raise InputError("--vectors: embeddings of another system are --teacher-outputs here")
        object.__setattr__(self, "vectors", self.teacher_outputs)


@dataclasses.dataclass(frozen=True)
class DistillFillMaskRun(Distillation):
    """Settings of a general distillation: a masked language model on plain text."""

    task: ClassVar[str] = "fill-mask"
    metrics: ClassVar[tuple[str, ...]] = ("loss",)

    train: str = flag(dataclasses.MISSING, "plain text, a text a line: .txt, also .gz, .xz or .bz2")
    masked_share: float = flag(0.15, "share of a text's tokens that are masked, anew in every epoch")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_range("masked_share", 0.0, 0.9, open_low=True)
        if self.valid is not None:
            raise InputError("--valid: no figures are taken of models that fill masks; leave it out")


# Each task's settings and what it is, for the command line.
DISTILL_RUNS: tuple[tuple[type[Distillation], str], ...] = (
    (DistillClassificationRun, "one label for a text or a pair of texts"),
    (DistillMultiLabelRun, "any number of labels for a text or a pair of texts"),
    (DistillRegressionRun, "a number for a text or a pair of texts"),
    (DistillTaggingRun, "a label for each word, such as named entities"),
    (DistillMultipleChoiceRun, "one of several answers to a question"),
    (DistillQuestionAnsweringRun, "the part of a passage that answers a question, or none"),
    (DistillSimilarityRun, "an embedding for a text: that of the teacher"),
    (DistillFillMaskRun, "words for masks: general distillation on plain text, to fine-tune from"),
)
