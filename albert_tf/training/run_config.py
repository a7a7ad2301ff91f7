"""`RunConfig`: what every fine-tuning run is told; `albert_tf.training.task_runs` has what each task's is."""

import dataclasses
from typing import Any, ClassVar, Self

from albert_tf.errors import InputError
from albert_tf.inference.depth import HEADS, ExitSettings
from albert_tf.training.recipes import RECIPE_HELP, find_recipe, recipe_fields
from albert_tf.training.settings import PRECISIONS, STRATEGIES, Settings, flag

FROZEN_PARTS = ("embeddings", "encoder", "backbone")
LOW_RANK_LAYERS = ("query-value", "attention", "all")


@dataclasses.dataclass(frozen=True)
class RunConfig(Settings):
    """Settings of every fine-tuning run.

    Attributes:
        task: the task's name on the command line, a key of `albert_tf.training.finetune.TASKS`.
        metrics: the figures that can pick the best weights, the usual one first.
        exit_rules: how the task's models can exit early; none for a task without.
        command: the command that makes such runs.

    Raises:
        InputError: a value that cannot be used, by field; neither or both of `source` and `from_scratch`.
    """

    task: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]]
    exit_rules: ClassVar[tuple[str, ...]] = ()
    command: ClassVar[str] = "finetune"

    train: str = flag(dataclasses.MISSING, "training file: .tsv, .csv or .jsonl")
    valid: str | None = flag(None, "validation file; without one the last weights are kept")
    source: str | None = flag(None, "checkpoint to start from: a folder or archive", flag="--from")
    from_scratch: str | None = flag(None, "start from random weights of this shape: a config name or .json file")
    tokenizer: str | None = flag(
        None, "vocabulary for --from-scratch: *.model, *.spm, vocab.txt, or a tokenizer's folder"
    )
    recipe: str | None = flag(None, RECIPE_HELP)
    epochs: float = flag(3.0, "passes over the training file")
    steps: int | None = flag(None, "updates, instead of --epochs; default: as many as the epochs have")
    batch_size: int = flag(32, "examples an update")
    batch_tokens: int | None = flag(
        None, "most tokens an update, padding included, instead of --batch-size; default: no limit"
    )
    accumulate: int = flag(1, "parts of a batch, gone through one after the other: the same update in less memory")
    learning_rate: float = flag(2e-5, "peak learning rate; from scratch more, 1e-4 to 1e-3")
    warmup: float = flag(0.1, "share of the steps with rising learning rate")
    weight_decay: float = flag(0.01, "AdamW decay of all but layer norms and biases")
    clip_norm: float = flag(1.0, "largest norm of the whole gradient; 0 for none")
    max_length: int = flag(512, "longest input in tokens; longer texts are cut")
    hidden_dropout: float | None = flag(None, "encoder dropout; default: the checkpoint's (0 for v2)")
    attention_dropout: float | None = flag(None, "attention dropout; default: the checkpoint's (0 for v2)")
    layer_decay: float = flag(
        1.0,
        "what the learning rate is multiplied by from head to top layer, from each to the next, and to the embeddings",
    )
    freeze: str | None = flag(
        None,
        "what keeps its weights: embeddings; encoder, with them; backbone, with the pooler; or N, the embeddings and the "
        "first N layers, where layers have weights of their own; default: nothing",
    )
    lora_rank: int | None = flag(
        None, "train low-rank additions to the encoder's matrices instead of its weights; default: the weights"
    )
    lora_alpha: float | None = flag(None, "additions count alpha / rank times; default: the rank")
    lora_layers: str = flag("query-value", "which matrices get additions", choices=LOW_RANK_LAYERS)
    random_depth: int | None = flag(
        None, "each step runs a number of layers drawn from N to all, so that the model answers at any such depth"
    )
    early_exit: str | None = flag(
        None,
        "train an answer after every pass, so that the model stops where it is settled: patience, confidence or entropy, of "
        "tagging and question answering over the whole row; regression and similarity: tolerance",
    )
    exit_patience: int | None = flag(None, "settled passes in a row that end a run; default: 2 for patience, else 1")
    exit_threshold: float | None = flag(
        None, "confidence above, entropy or change below which a pass is settled (default 0.95, 0.2, 0.05)"
    )
    exit_heads: str = flag("shared", "one head for every pass, or a small one for each", choices=HEADS)
    quantization_aware: bool = flag(
        False,
        "compute dense layers in training as a full-integer file (export --recipe int8) does in 8 bits; for a short last "
        "training --from a fine-tuned run",
    )
    patience: int | None = flag(None, "stop after so many validations that are not better; default: never")
    validate_every: int | None = flag(None, "steps between validations; default: once an epoch")
    # Of losses and errors the lowest value is the best, of others the highest.
    best_metric: str = flag("loss", "validation figure that picks the weights kept")
    precision: str = flag("float32", "arithmetic of the encoder", choices=PRECISIONS)
    rematerialize: bool = flag(False, "compute activations twice to save memory")
    jit: bool = flag(False, "compile steps with XLA, on one device; lengths are rounded up to few")
    strategy: str = flag("one", "one device, all of this machine, several workers, a TPU", choices=STRATEGIES)
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
        for name in ("steps", "batch_size", "batch_tokens", "accumulate", "lora_rank", "patience", "validate_every"):
            self.check_range(name, 1)
        for name in ("random_depth", "exit_patience"):
            self.check_range(name, 1)
        self.check_range("exit_threshold", 0.0)
        self.check_range("max_length", 3)
        for name in ("warmup", "hidden_dropout", "attention_dropout"):
            self.check_range(name, 0.0, 1.0)
        for name in ("weight_decay", "clip_norm"):
            self.check_range(name, 0.0)
        self.check_range("seed", 0, 2**32)  # NumPy takes no larger one
        self.check_range("lora_alpha", 0.0, open_low=True)
        self.check_range("layer_decay", 0.0, 1.0, open_low=True, closed_high=True)
        self._check_combinations()
        self._check_exits()
        self._check_quantization()

    def _check_combinations(self) -> None:
        if self.patience is not None and self.valid is None:
            raise InputError("--patience: goes with --valid, whose figures it waits for")
        numbered = self.freeze is not None and self.freeze.isascii() and self.freeze.isdigit() and int(self.freeze) > 0
        if self.freeze not in (None, *FROZEN_PARTS) and not numbered:
            raise InputError(
                f"--freeze: expected {', '.join(FROZEN_PARTS)} or a number of layers from 1, got {self.freeze!r}"
            )
        if self.lora_rank is None and self.lora_alpha is not None:
            raise InputError("--lora-alpha goes with --lora-rank")
        if self.lora_rank is not None and numbered:
            raise InputError(f"--freeze {self.freeze}: --lora-rank freezes all layers already; leave it out")
        if self.random_depth is not None and self.rematerialize:
            raise InputError(
                "--random-depth does not go with --rematerialize: TensorFlow cannot recompute a layer that may not run"
            )
        if self.jit and (self.accumulate > 1 or self.batch_tokens is not None):
            other = "--accumulate" if self.accumulate > 1 else "--batch-tokens"
            raise InputError(
                f"--jit does not go with {other}: XLA compiles every size of a batch or part anew; leave one out"
            )

    def _check_exits(self) -> None:
        given = (self.exit_patience, self.exit_threshold) != (None, None) or self.exit_heads != "shared"
        if self.early_exit is None:
            if given:
                raise InputError("--exit-patience, --exit-threshold and --exit-heads go with --early-exit RULE")
            return
        if self.early_exit not in self.exit_rules:
            known = f"expected one of {', '.join(self.exit_rules)}" if self.exit_rules else "leave it out"
            raise InputError(f"--early-exit {self.early_exit}: not for {self.task}; {known}")
        if self.exit_threshold is not None and self.early_exit == "patience":
            raise InputError("--exit-threshold: --early-exit patience asks for equal labels alone; leave it out")
        if self.random_depth is not None:
            raise InputError("--early-exit trains every depth in each step already; leave --random-depth out")

    def _check_quantization(self) -> None:
        if not self.quantization_aware:
            return
        reasons = {
            "from_scratch": (self.from_scratch is not None, "ranges of 8 bits are those of trained weights"),
            "precision": (self.precision != "float32", "what is rounded to 8 bits must be exact before"),
            "random_depth": (self.random_depth is not None, "a full-integer file makes all passes"),
            "early_exit": (self.early_exit is not None, "a full-integer file makes all passes"),
            "rematerialize": (self.rematerialize, "a layer that is computed twice would move its ranges twice"),
            "strategy": (self.strategy != "one", "ranges are those of one device's batches"),
        }
        for name, (is_given, reason) in reasons.items():
            if is_given:
                raise InputError(f"--quantization-aware does not go with {self.flag_name(name)}: {reason}")

    @property
    def exit_settings(self) -> dict[str, Any]:
        """The argument of the model that says when its answers are settled; none for a task without exits."""
        exits = None
        if self.early_exit is not None:
            exits = ExitSettings(self.early_exit, self.exit_patience, self.exit_threshold, self.exit_heads)
        return {"exits": exits} if self.exit_rules else {}

    @property
    def shape_changes(self) -> dict[str, Any]:
        """Fields of the config of what the run starts from that it changes, dropout apart."""
        return {}

    @property
    def starts_encoder_anew(self) -> bool:
        """Whether the encoder begins with random weights."""
        return self.from_scratch is not None

    @classmethod
    def find_recipe(cls, name: str) -> dict[str, Any] | None:
        """The fields that a recipe for such runs sets; None where there is none of that name."""
        return find_recipe(name, cls.task)

    @classmethod
    def recipe_fields(cls, name: str) -> dict[str, Any]:
        """`find_recipe`, or InputError where there is none."""
        return recipe_fields(name, cls.task)

    @classmethod
    def of(cls, **given: Any) -> Self:
        """The settings with these fields; others have those of the recipe, if one is given, or their defaults."""
        recipe = given.get("recipe")
        fields = {} if recipe is None else cls.recipe_fields(recipe)
        if "epochs" in given:
            fields.pop("steps", None)
        return cls(**fields | given)
