"""What passes between readers, tokenizers, models and metrics."""

import dataclasses
import unicodedata
from collections.abc import Iterable, Sequence

# The three model inputs, int32 (batch, sequence): ids; 0 or 1 for the first or second text; 1 for a token and 0 for
# padding.
TOKEN_IDS = "token_ids"
SEGMENT_IDS = "segment_ids"
PADDING_MASK = "padding_mask"


def is_label(text: str) -> bool:
    """Whether `text` can be a label: one line without control characters or spaces around it, so that it can be printed."""
    unprintable = ("Cc", "Cs", "Zl", "Zp")
    return bool(text) and text == text.strip() and not any(unicodedata.category(c) in unprintable for c in text)


@dataclasses.dataclass(frozen=True)
class TextExample:
    """One row of a labelled file.

    Attributes:
        text: the (first) text.
        pair: the second text of a pair task, or None.
        label: the label as written in the file, or None where the file has none.
    """

    text: str
    pair: str | None = None
    label: str | None = None


@dataclasses.dataclass(frozen=True)
class Prediction:
    """A classifier's answer to one text.

    Attributes:
        label: the most probable label.
        score: its probability.
        probabilities: every label's probability, in the order of the labels.
    """

    label: str
    score: float
    probabilities: dict[str, float]

    @classmethod
    def from_probabilities(cls, row: Iterable[float], labels: Sequence[str]) -> "Prediction":
        """The answer that a row of probabilities, in the order of `labels`, amounts to."""
        probabilities = {label: float(value) for label, value in zip(labels, row, strict=True)}
        best = max(probabilities, key=probabilities.__getitem__)
        return cls(best, probabilities[best], probabilities)
