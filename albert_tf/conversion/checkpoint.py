"""What every reader of a checkpoint returns, checked against its config.

Names of the encoder's and the pretraining heads' weights are in `albert_tf.parameters`. Other heads that checkpoints
come with (H the encoder's width, L labels):

    classifier/{kernel,bias}                              (H, L), (L,)    pooled output → logits
    multi_label/{kernel,bias}                             (H, L), (L,)    pooled output → logits, each label by itself
    token_classification/{kernel,bias}                    (H, L), (L,)    each token → logits
    multiple_choice/{kernel,bias}                         (H, 1), (1,)    pooled output of each choice → its logit
    question_answering/{kernel,bias}                      (H, 2), (2,)    each token → start and end logit (SQuAD 1)
    question_answering/start/{kernel,bias}                (H, 1), (1,)    each token → start logit (SQuAD 2, as the rest)
    question_answering/end_hidden/{kernel,bias}           (2H, H), (H,)   [token, start token] → tanh
    question_answering/end_layer_norm/{gamma,beta}        (H,), (H,)
    question_answering/end/{kernel,bias}                  (H, 1), (1,)    → end logit
    question_answering/no_answer_hidden/{kernel,bias}     (2H, H), (H,)   [mean start token, first token] → tanh
    question_answering/no_answer/kernel                   (H, 1)          → logit of "there is no answer"
"""

import contextlib
import dataclasses
import json
import math
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.conversion.assign import check_finite, check_shapes
from albert_tf.errors import InputError
from albert_tf.files import refuse_other_folder, written_whole
from albert_tf.parameters import backbone_weight_shapes, pretraining_head_weight_shapes

Weights = dict[str, np.ndarray]

_BACKBONE_PARTS = {"embeddings", "encoder", "pooler"}
_PRETRAINING_PARTS = {"masked_lm", "sentence_order"}
# Of the published recipe, whatever the encoder's own.
_USUAL_DROPOUT = 0.1
_OWN_HEADS = {"classifier", "token_classification", "question_answering"}  # layers that may hold a head for each pass


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """Weights under our names, with the config they fit.

    Attributes:
        form: the file form it was read from, as `detect` names it, and of a TF1 checkpoint also whose: "google tf1".
        source: the file or folder.
        config: the encoder's shape.
        weights: name → array: the whole encoder, and the heads that the source has.
        tokenizer_path: vocabulary file, or the folder with our tokenizer files; None where the source has none.
        tokenizer_options: text rules that go with a vocabulary file, as `AlbertTokenizer.from_pretrained` takes them.
        task: what the source says of the task its head is for, in the form of a preset's task.json: "task" and
            "settings"; None where it says nothing.

    Raises:
        InputError: the weights do not fit the config (see `check_weights`).
    """

    form: str
    source: str
    config: AlbertConfig
    weights: Weights
    tokenizer_path: Path | None = None
    tokenizer_options: dict[str, bool] = dataclasses.field(default_factory=dict)
    task: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        check_weights(self.config, self.weights, source=self.source)

    @property
    def backbone_weights(self) -> Weights:
        """The encoder's weights, and the pooler's where there is one."""
        return {name: weight for name, weight in self.weights.items() if _part(name) in _BACKBONE_PARTS}

    @property
    def head_weights(self) -> Weights:
        """The other weights."""
        return {name: weight for name, weight in self.weights.items() if _part(name) not in _BACKBONE_PARTS}

    @property
    def head(self) -> str:
        """What is on the encoder: "none", "pretraining" (both heads), or the names' first segments: "classifier"."""
        parts = {_part(name) for name in self.head_weights}
        return "pretraining" if parts == _PRETRAINING_PARTS else "+".join(sorted(parts)) or "none"


def check_weights(config: AlbertConfig, weights: Weights, *, source: str) -> None:
    """Raises InputError unless the encoder is complete, finite and of the config's shapes; the pretraining heads too.

    The pooler and each pretraining head may be absent, as a whole. Only the task that owns another head knows its
    shapes: they are compared when its weights are assigned.
    """
    present = {_part(name) for name in weights}
    shapes = backbone_weight_shapes(config, pooler="pooler" in present)
    heads = pretraining_head_weight_shapes(config)
    shapes |= {name: shape for name, shape in heads.items() if _part(name) in present}
    ours = _BACKBONE_PARTS | _PRETRAINING_PARTS
    check_shapes({name: w for name, w in weights.items() if _part(name) in ours}, shapes, source=source)
    check_finite(weights, source=source)


@contextlib.contextmanager
def written_checkpoint(
    folder: Path, mark: str, what: str, config: AlbertConfig, weights: Weights, *, overwrite: bool
) -> Iterator[Path]:
    """Yields an empty folder for a checkpoint's files. It becomes `folder` when the block ends without error.

    Args:
        folder: where to; with `overwrite`, a checkpoint of the same form there is replaced, and nothing else is.
        mark: the file that tells a checkpoint of this form.
        what: what to call this form: "a preset".
        config: what the weights must fit.
        weights: our names.

    Raises:
        InputError: the folder exists, or is not of this form, or the weights do not fit the config, or the disk is full.
    """
    refuse_other_folder(folder, mark, what, overwrite=overwrite)
    check_weights(config, weights, source=f"weights for {folder}")
    try:
        with written_whole(folder, overwrite=overwrite) as temporary:
            temporary.mkdir()
            yield temporary
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror or error}; nothing was written") from error


def checked_task(saved: Any, source: str) -> dict[str, Any]:
    """`Checkpoint.task` of what a file says.

    Raises:
        InputError: it is not of that form.
    """
    if not (isinstance(saved, dict) and isinstance(saved.get("task"), str) and isinstance(saved.get("settings"), dict)):
        raise InputError(f'{source}: expected an object with "task", a name, and "settings", an object')
    labels, rate = (saved["settings"].get(name) for name in ("labels", "classifier_dropout"))
    if labels is not None and not (isinstance(labels, list) and all(isinstance(label, str) for label in labels)):
        raise InputError(f"{source}: labels: expected a list of names, found {labels!r}")
    if rate is not None and (isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 <= rate < 1):
        raise InputError(f"{source}: classifier_dropout: expected a rate in [0, 1), found {rate!r}")
    temperature = saved["settings"].get("temperature", 1.0)
    number = isinstance(temperature, (int, float)) and not isinstance(temperature, bool)
    if not number or not 0 < temperature < math.inf:
        raise InputError(f"{source}: temperature: expected a number above 0, found {temperature!r}")
    return saved


def answering_task(weights: Mapping[str, Any]) -> dict[str, Any] | None:
    """The task of a head that its weights tell by their names alone; None for others.

    The threshold for the head of SQuAD 2 is where both its classes are equally probable.
    """
    if "question_answering/kernel" in weights:
        return {"task": "question-answering", "settings": {"head": "span"}}
    if "question_answering/start/kernel" in weights:
        return {"task": "question-answering", "settings": {"head": "squad2", "no_answer_threshold": 0.0}}
    return None


def settings_in_weights(
    weights: Weights, task: dict[str, Any] | None, kept: Collection[str] = ()
) -> tuple[Weights, list[str]]:
    """What a form has of a task's settings that it has no place for.

    Args:
        weights: our names.
        task: as in `Checkpoint`.
        kept: the settings that the form has a place for.

    Returns:
        The weights, those of a classifier's head divided by its temperature, as logits are: so they give the same
        probabilities without one; of heads for every pass that of the last. And in words the settings that are in the
        weights or left out.
    """
    settings = dict((task or {}).get("settings", {}))
    notes = []
    temperature = settings.pop("temperature", 1.0)
    if temperature != 1.0:
        head = {name: weight for name, weight in weights.items() if _part(name) == "classifier"}
        weights = weights | {name: weight / np.float32(temperature) for name, weight in head.items()}
        notes.append(f"the temperature {temperature:g} is in the head: its weights are divided by it")
    if (settings.get("exits") or {}).get("heads") == "own":
        # A number for each label; of answers one for the start and one for the end; of regression one.
        size = 2 if "head" in settings else len(settings.get("labels") or [None])
        weights = weights | {name: values[..., -size:] for name, values in weights.items() if _part(name) in _OWN_HEADS}
        notes.append("the heads of all passes but the last are left out")
    left = {name: value for name, value in settings.items() if name not in kept and value not in (None, [])}
    if left.get("classifier_dropout") == _USUAL_DROPOUT:
        del left["classifier_dropout"]
    if left:
        told = ", ".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in left.items())
        notes.append(f"settings of the task are left out: {told}")
    return weights, notes


def unnamed_labels(count: int) -> list[str]:
    """The names that transformers gives to labels without any; whoever knows better names may use those instead."""
    return [f"LABEL_{index}" for index in range(count)]


def _part(name: str) -> str:
    return name.partition("/")[0]
