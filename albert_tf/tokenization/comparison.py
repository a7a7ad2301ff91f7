"""Whether the three forms of a tokenizer give the same ids: Python, TensorFlow graph, device runtime."""

import dataclasses
import difflib
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from albert_tf.tokenization.api import Vocabulary
from albert_tf.tokenization.device_runtime import device_encoder
from albert_tf.tokenization.rules import to_utf8

FORMS = ("graph", "device")
_BATCH = 256
_CONTEXT = 2  # equal pieces shown on each side of a difference
_LONG = 10_000


@dataclasses.dataclass(frozen=True)
class Example:
    """The first difference in a text: the pieces around it, as Python and as the other form cut them."""

    line: int
    python: list[str]
    other: list[str]


@dataclasses.dataclass
class Difference:
    """How often one form's ids differ from Python's."""

    lines: int = 0
    ids: int = 0
    examples: list[Example] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Counts over some texts.

    Attributes:
        lines: texts compared.
        ids: the ids that Python gave them.
        differences: form → how many lines differ, and how many ids in those.
    """

    lines: int
    ids: int
    differences: dict[str, Difference]

    def share_of_lines(self, form: str) -> float:
        return self.differences[form].lines / max(1, self.lines)

    def share_of_ids(self, form: str) -> float:
        return self.differences[form].ids / max(1, self.ids)

    def as_dict(self) -> dict[str, Any]:
        return {
            "lines": self.lines,
            "ids": self.ids,
            **{
                form: {
                    "different_lines": found.lines,
                    "different_lines_share": self.share_of_lines(form),
                    "different_ids": found.ids,
                    "different_ids_share": self.share_of_ids(form),
                    "examples": [dataclasses.asdict(example) for example in found.examples],
                }
                for form, found in self.differences.items()
            },
        }


def compare_forms(vocabulary: Vocabulary, texts: Iterable[str], *, examples: int = 5) -> Comparison:
    """Encodes the texts in all forms and counts where graph and device differ from Python. Loads TensorFlow.

    Args:
        vocabulary: what encodes.
        texts: numbered from 1 in the examples.
        examples: how many to keep for each form.
    """
    forms = {"graph": _graph_encoder(vocabulary), "device": device_encoder(vocabulary)}
    differences = {form: Difference() for form in forms}
    lines = ids = 0
    remaining = iter(texts)
    while batch := list(itertools.islice(remaining, _BATCH)):
        expected = [vocabulary.encode(text) for text in batch]
        for form, encode in forms.items():
            for number, (python, other) in enumerate(zip(expected, encode(batch), strict=True), start=lines + 1):
                _add(differences[form], number, python, other, vocabulary, examples)
        lines += len(batch)
        ids += sum(map(len, expected))
    return Comparison(lines, ids, differences)


def _graph_encoder(vocabulary: Vocabulary) -> Callable[[Sequence[str]], list[list[int]]]:
    import tensorflow as tf

    encode = vocabulary.graph_encoder()
    return lambda texts: encode(tf.constant([to_utf8(text) for text in texts])).to_list()


def _add(
    difference: Difference, number: int, python: list[int], other: list[int], vocabulary: Vocabulary, examples: int
) -> None:
    if python == other:
        return
    difference.lines += 1
    # Exact matching takes squared time.
    matched = difflib.SequenceMatcher(None, python, other, autojunk=len(python) > _LONG)
    changes = [change for change in matched.get_opcodes() if change[0] != "equal"]
    difference.ids += sum(max(end - start, end2 - start2) for _, start, end, start2, end2 in changes)
    if len(difference.examples) < examples:
        first = next(iter(matched.get_grouped_opcodes(_CONTEXT)))
        (_, start, _, start2, _), (_, _, end, _, end2) = first[0], first[-1]
        difference.examples.append(
            Example(number, vocabulary.pieces(python[start:end]), vocabulary.pieces(other[start2:end2]))
        )
