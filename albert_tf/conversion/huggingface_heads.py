"""The fine-tuned heads of transformers' ALBERT: which one a config.json names, and what it was trained for.

AlbertForSequenceClassification is three tasks, of which "problem_type" says one: a softmax over the labels, each label by
itself, or numbers. Where it is missing, transformers takes one label for a number, and several for a softmax.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from albert_tf.conversion.assign import listing
from albert_tf.conversion.checkpoint import Weights, unnamed_labels
from albert_tf.conversion.huggingface_config import classifier_dropout_of, labels_of
from albert_tf.errors import InputError


class Head(NamedTuple):
    """A fine-tuned head: our name of it, our task, and its outputs (None: one for each label)."""

    name: str
    task: str
    outputs: int | None = None


_CLASSIFIER = "AlbertForSequenceClassification"
HEADS = {
    _CLASSIFIER: Head("classifier", "classification"),
    "AlbertForTokenClassification": Head("token_classification", "tagging"),
    "AlbertForQuestionAnswering": Head("question_answering", "question-answering", outputs=2),
    "AlbertForMultipleChoice": Head("multiple_choice", "multiple-choice", outputs=1),
}
# "problem_type" → what the head of a classifier is.
_PROBLEMS = {
    "single_label_classification": HEADS[_CLASSIFIER],
    "multi_label_classification": Head("multi_label", "multi-label"),
    "regression": Head("classifier", "regression"),
}
_TENSORS = ("classifier.", "qa_outputs.")


def head_of(fields: dict[str, Any], path: Path, tensors: Collection[str]) -> Head | None:
    """The fine-tuned head that config.json names; None for an encoder alone or with the pretraining heads.

    Args:
        fields: of config.json.
        path: the config.json, for messages.
        tensors: the names in the file of weights.

    Raises:
        InputError: there is a head in the file of weights, and config.json does not say which; a problem_type that
            transformers has not.
    """
    architectures = fields.get("architectures") or []
    named = [HEADS[name] for name in architectures if name in HEADS]
    odd = sorted(name for name in tensors if name.startswith(_TENSORS))
    if odd and not named:
        raise InputError(
            f"{path}: architectures = {architectures}, but the weights have {listing(odd)}; which head that is, "
            f"architectures must say, with one of {', '.join(HEADS)}"
        )
    if not named or named[0] is not HEADS[_CLASSIFIER]:
        return named[0] if named else None
    problem = fields.get("problem_type")
    if problem is None:
        problem = "regression" if len(labels_of(fields, path)) == 1 else "single_label_classification"
    if problem not in tuple(_PROBLEMS):  # a tuple takes what cannot be hashed, too
        raise InputError(f"{path}: problem_type: expected one of {', '.join(_PROBLEMS)}, or none; got {problem!r}")
    return _PROBLEMS[problem]


def task_of(fields: dict[str, Any], path: Path, head: Head | None) -> dict[str, Any] | None:
    """`Checkpoint.task` of a head."""
    if head is None:
        return None
    settings: dict[str, Any] = {}
    if head.outputs is None and head.task != "regression":
        settings["labels"] = labels_of(fields, path)
    if head.task == "question-answering":
        settings["head"] = "span"
    else:
        settings["classifier_dropout"] = classifier_dropout_of(fields, path)
    return {"task": head.task, "settings": settings}


def label_fields(architecture: str, weights: Weights, task: dict[str, Any] | None) -> dict[str, Any]:
    """The keys of config.json with the labels, and with what a classifier was trained for, where that is known.

    Raises:
        InputError: the task names another number of labels than the head has outputs.
    """
    head = HEADS.get(architecture)
    if head is None or head.outputs is not None:
        return {}
    if "multi_label/bias" in weights:
        head = _PROBLEMS["multi_label_classification"]
    count = weights[f"{head.name}/bias"].shape[0]
    labels = (task or {}).get("settings", {}).get("labels") or unnamed_labels(count)
    if len(labels) != count:
        raise InputError(f"the head {head.name} has {count} outputs, but its task names {len(labels)} labels: {labels}")
    fields: dict[str, Any] = {
        "id2label": {str(index): label for index, label in enumerate(labels)},
        "label2id": {label: index for index, label in enumerate(labels)},
    }
    if architecture != _CLASSIFIER:
        return fields
    if head.name == "classifier":
        kind = task["task"] if task is not None else "regression" if count == 1 else None
        problems = [problem for problem, own in _PROBLEMS.items() if (own.name, own.task) == ("classifier", kind)]
    else:
        problems = ["multi_label_classification"]
    return fields | ({"problem_type": problems[0]} if problems else {})
