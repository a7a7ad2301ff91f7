"""What passes between readers, tokenizers, models and metrics."""

import dataclasses

# The three model inputs, int32 (batch, sequence): ids; 0 or 1 for the first or second text; 1 for a token, 0 for padding.
TOKEN_IDS = "token_ids"
SEGMENT_IDS = "segment_ids"
PADDING_MASK = "padding_mask"


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
