"""`AlbertTokenizer`: text in, the three model inputs out."""

from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.bundled import bundled_model
from albert_tf.errors import InputError
from albert_tf.files import checked_path
from albert_tf.tokenization.api import Vocabulary
from albert_tf.tokenization.packing import Encoded, Packed, pack, pack_offsets, pad_batch
from albert_tf.tokenization.tokenizer_files import FILE_NAME as FILE_NAME
from albert_tf.tokenization.tokenizer_files import read_tokenizer, save_tokenizer
from albert_tf.tokenization.windows import Window, windows


class AlbertTokenizer:
    """A vocabulary and a longest length.

    Args:
        vocabulary: text ↔ ids.
        max_length: the most tokens an input may have, special tokens included; longer ones lose their end.

    Raises:
        InputError: `max_length` is below 3, the special tokens of a pair.
    """

    def __init__(self, vocabulary: Vocabulary, max_length: int = 512) -> None:
        if not isinstance(max_length, int) or isinstance(max_length, bool) or max_length < 3:
            raise InputError(f"max_length: expected a whole number of at least 3, got {max_length!r}")
        self.vocabulary = vocabulary
        self.max_length = max_length

    @classmethod
    def from_pretrained(cls, path: str | Path, *, max_length: int | None = None, **options: Any) -> "AlbertTokenizer":
        """Reads a tokenizer.

        Args:
            path: a folder with our `tokenizer.json`; or a vocabulary file (`*.model` or `*.spm` for SentencePiece,
                `vocab*.txt` for WordPiece); or a folder with exactly one such file, as the releases of Google are; or the
                name of a model that comes with the package, `albert_tiny_en`.
            max_length: instead of the one in `tokenizer.json`, or of 512.
            options: text rules for a vocabulary that comes without `tokenizer.json`: `lower`, and for SentencePiece
                `keep_accents` and `quotes`.

        Raises:
            InputError: nothing to read there, or more than one; the message says what was found.
        """
        path = bundled_model(path) or checked_path(path, "tokenizer")
        try:
            vocabulary, longest = read_tokenizer(path, options)
        except OSError as error:  # no permission, a name that is too long
            raise InputError(f"cannot read {error.filename or path}: {error.strerror or error}") from error
        return cls(vocabulary, (longest or 512) if max_length is None else max_length)

    def __call__(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None, *, length: int | None = None
    ) -> dict[str, np.ndarray]:
        """The model inputs of a list of texts.

        Args:
            texts: one text for each row.
            pairs: the second text of each row.
            length: pad, and truncate, to this many tokens; None for the longest row.

        Returns:
            token_ids, segment_ids and padding_mask, int32 (batch, sequence).

        Raises:
            InputError: not lists of strings of one length, or `length` not in 3 to `max_length`.
        """
        return pad_batch(self.encode_batch(texts, pairs, length=length), self.vocabulary.pad_id, length)

    def encode_batch(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None, *, length: int | None = None
    ) -> list[Packed]:
        """Token ids and segment ids of each row of `__call__`, not padded; arguments and errors as there."""
        _check_rows(texts, pairs)
        limit = self._checked_length(length)
        first = self.vocabulary.encode_batch(texts)
        second = [None] * len(texts) if pairs is None else self.vocabulary.encode_batch(pairs)
        return [pack(ids_a, ids_b, self.vocabulary, limit) for ids_a, ids_b in zip(first, second, strict=True)]

    def encode(self, text: str, pair: str | None = None) -> Packed:
        """Token ids and segment ids of one input, special tokens included, truncated to `max_length`, not padded."""
        check_texts([text] if pair is None else [text, pair], "text")
        ids_b = None if pair is None else self.vocabulary.encode(pair)
        return pack(self.vocabulary.encode(text), ids_b, self.vocabulary, self.max_length)

    def encode_with_offsets(self, text: str, pair: str | None = None, *, length: int | None = None) -> Encoded:
        """`encode`, and for each token the characters of its text, (start, end), that it stands for.

        `text[start:end]` is what the piece was made of, whatever the text rules did to it: case, accents, ligatures. See
        tokenization/alignment.py. Special tokens have (0, 0).

        Args:
            length: truncate to this many tokens; None for `max_length`.
        """
        check_texts([text] if pair is None else [text, pair], "text")
        limit = self._checked_length(length)
        ids_a, spans_a = self.vocabulary.encode_with_offsets(text)
        ids_b, spans_b = (None, None) if pair is None else self.vocabulary.encode_with_offsets(pair)
        return Encoded(*pack(ids_a, ids_b, self.vocabulary, limit), pack_offsets(spans_a, spans_b, limit))

    def encode_batch_with_offsets(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None, *, length: int | None = None
    ) -> list[Encoded]:
        """`encode_with_offsets` of each row; arguments and errors as in `__call__`."""
        _check_rows(texts, pairs)
        rows = zip(texts, [None] * len(texts) if pairs is None else pairs, strict=True)
        return [self.encode_with_offsets(text, pair, length=length) for text, pair in rows]

    def encode_windows(
        self,
        text: str,
        pair: str | None = None,
        *,
        doc_stride: int = 128,
        length: int | None = None,
        max_question_length: int = 64,
    ) -> list[Window]:
        """A text that is too long for one input, in windows that overlap; nothing of it is lost.

        Args:
            text: the text; or the question that every window begins with, where `pair` is the text.
            pair: the text, where there is a question.
            doc_stride: tokens from the start of one window to the start of the next, as in google-research/albert. Two
                neighbours share the tokens that fit into a window less these; transformers' `stride` is that number.
            length: the most tokens of a window, special tokens included; None for `max_length`.
            max_question_length: tokens of the question that are kept.

        Returns:
            One window at least, in the order of the text; see `windows.Window`.

        Raises:
            InputError: not strings, or numbers that leave no room for the text.
        """
        check_texts([text] if pair is None else [text, pair], "text")
        limit = self._checked_length(length)
        for name, value in (("doc_stride", doc_stride), ("max_question_length", max_question_length)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError(f"{name}: expected a whole number of at least 1, got {value!r}")
        if pair is None:
            return windows(None, self.vocabulary.encode_with_offsets(text), self.vocabulary, limit, doc_stride)
        ids, spans = self.vocabulary.encode_with_offsets(text)
        question = ids[:max_question_length], spans[:max_question_length]
        if len(question[0]) + 4 > limit:
            raise InputError(
                f"length: {limit} tokens leave no room for the text beside a question of {len(question[0])} and 3 special "
                "tokens; give more, or a lower max_question_length"
            )
        return windows(question, self.vocabulary.encode_with_offsets(pair), self.vocabulary, limit, doc_stride)

    def decode(self, ids: Sequence[int]) -> str:
        """The text that the ids spell; special tokens are left out.

        Raises:
            InputError: an id is outside the vocabulary.
        """
        return self.vocabulary.decode([int(i) for i in ids])

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The vocabulary entry of each id.

        Raises:
            InputError: an id is outside the vocabulary.
        """
        return self.vocabulary.pieces([int(i) for i in ids])

    @property
    def special_tokens(self) -> dict[str, int]:
        """The special tokens, as they stand in the vocabulary, and their ids: padding, unknown, [CLS], [SEP], [MASK]."""
        vocabulary = self.vocabulary
        ids = [vocabulary.pad_id, vocabulary.unk_id, vocabulary.cls_id, vocabulary.sep_id, vocabulary.mask_id]
        return dict(zip(vocabulary.pieces(ids), ids, strict=True))

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Writes `tokenizer.json` and the vocabulary file into `folder`, which may hold other files.

        Raises:
            InputError: one of the two exists and `overwrite` is false.
        """
        save_tokenizer(Path(folder), self.vocabulary, self.max_length, overwrite=overwrite)

    def save_device_model(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Writes the vocabulary as a file for the tokenizers of device runtimes (device_model.py): a SentencePiece model
        that carries the text rules itself, or a WordPiece vocabulary as it is.

        Raises:
            InputError: `path` exists and `overwrite` is false.
        """
        from albert_tf.tokenization.device_model import save_device_model

        save_device_model(self.vocabulary, checked_path(path, "path"), overwrite=overwrite)

    def _checked_length(self, length: int | None) -> int:
        """`length`, or `max_length` where it is None."""
        if length is None:
            return self.max_length
        if not isinstance(length, int) or isinstance(length, bool) or not 3 <= length <= self.max_length:
            raise InputError(f"length: expected 3 to {self.max_length} (max_length), got {length!r}")
        return length


def check_texts(texts: Sequence[str], name: str) -> None:
    """Raises InputError unless `texts` is a list of strings."""
    if isinstance(texts, (str, bytes)):
        raise InputError(f"{name}: expected a list of strings, got one {type(texts).__name__}; write [{texts[:20]!r}]")
    if not hasattr(texts, "__len__") or isinstance(texts, (Mapping, Set)):
        raise InputError(f"{name}: expected a list of strings, got {type(texts).__name__}")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"{name}[{index}]: expected a string, got {type(text).__name__} {text!r}")


def _check_rows(texts: Sequence[str], pairs: Sequence[str] | None) -> None:
    """Raises InputError unless `texts` and `pairs` are lists of strings, equally long."""
    check_texts(texts, "texts")
    if pairs is not None:
        check_texts(pairs, "pairs")
        if len(pairs) != len(texts):
            raise InputError(f"pairs: expected one for each text; got {len(texts)} texts and {len(pairs)} pairs")
