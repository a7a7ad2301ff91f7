"""`PretrainConfig`: what a pretraining run is told."""

import dataclasses

from albert_tf.errors import InputError
from albert_tf.training.settings import PRECISIONS, STRATEGIES, Settings, flag

OPTIMIZERS = ("lamb", "adamw")


@dataclasses.dataclass(frozen=True)
class PretrainConfig(Settings):
    """Settings of one pretraining run.

    Raises:
        InputError: a value that cannot be used, by field; neither or both of `source` and `from_scratch`.
    """

    data: str = flag(dataclasses.MISSING, "folder that albert-tf pretrain-data wrote")
    from_scratch: str | None = flag(None, "start from random weights of this shape: a config name or .json file")
    source: str | None = flag(None, "go on from this checkpoint; a head that it lacks is begun anew", flag="--from")
    steps: int = flag(125_000, "updates")
    batch_size: int = flag(32, "texts an update, over all devices")
    accumulate: int = flag(
        1, "parts of a batch, on each device, gone through one after the other: the same update in less memory"
    )
    optimizer: str = flag("lamb", "as published, or AdamW for small batches", choices=OPTIMIZERS)
    learning_rate: float = flag(0.00176, "peak learning rate; the default goes with lamb and batches of 4,096")
    warmup: float = flag(0.025, "share of the steps with rising learning rate")
    weight_decay: float = flag(0.01, "decay of all but layer norms and biases")
    clip_norm: float = flag(1.0, "largest norm of the whole gradient; 0 for none")
    masked_share: float = flag(0.15, "share of a text's tokens that are masked")
    max_ngram: int = flag(3, "words masked together at most")
    hidden_dropout: float | None = flag(None, "encoder dropout; default: the shape's")
    attention_dropout: float | None = flag(None, "attention dropout; default: the shape's")
    round_steps: int = flag(
        500, "steps between validations on the held-out texts at most, after each of which the state is kept"
    )
    precision: str = flag("float32", "arithmetic of the encoder", choices=PRECISIONS)
    rematerialize: bool = flag(False, "compute activations twice to save memory")
    jit: bool = flag(False, "compile steps with XLA, on one device; on JAX they always are")
    strategy: str = flag(
        "one", "where it is trained: one device, all of this machine, several workers, a TPU", choices=STRATEGIES
    )
    seed: int = flag(0, "of the order of texts, swaps, masks, new weights and dropout")

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.source is None) == (self.from_scratch is None):
            raise InputError("give either --from CHECKPOINT, or --from-scratch CONFIG to begin with random weights")
        for name in ("steps", "batch_size", "accumulate", "max_ngram", "round_steps"):
            self.check_range(name, 1)
        for name in ("learning_rate", "masked_share"):
            self.check_range(name, 0.0, open_low=True)
        self.check_range("masked_share", 0.0, 0.9)
        for name in ("warmup", "hidden_dropout", "attention_dropout"):
            self.check_range(name, 0.0, 1.0)
        for name in ("weight_decay", "clip_norm"):
            self.check_range(name, 0.0)
        self.check_range("seed", 0, 2**32)
