"""How `evaluate` reads the file of each task."""

from collections.abc import Callable
from typing import Any

from albert_tf.data.choices import ChoiceExample, read_choices
from albert_tf.data.conll import read_tagged
from albert_tf.data.glue import read_labelled
from albert_tf.data.multi_label import read_multi_label
from albert_tf.data.similarity import read_similarity
from albert_tf.data.squad import read_and_report

# Task → (path, what receives lines on what is left out, the options in `DATA_OPTIONS` that were given) → examples with
# their answers.
READERS: dict[str, Callable[..., list[Any]]] = {
    "classification": read_labelled,
    "multi-label": lambda path, report, **options: read_multi_label(path, **options),
    "regression": read_labelled,
    "multiple-choice": lambda path, report, **options: _read_choices(path, report, **options),
    "tagging": read_tagged,
    "question-answering": read_and_report,
    "similarity": lambda path, report, **options: read_similarity(path, **options),
}


def _read_choices(path: str, report: Callable[[str], None], *, leave_out_unusable: bool = False) -> list[ChoiceExample]:
    left_out: list[str] | None = [] if leave_out_unusable else None
    examples = read_choices(path, left_out=left_out)
    if left_out:
        report(f"{path}: {len(left_out)} questions left out, the first: {left_out[0]}")
    return examples
