"""`AlbertTokenizer`: text in, the three model inputs out."""

import json
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.errors import InputError
from albert_tf.files import checked_path, read_json, refuse_existing, written_whole
from albert_tf.tokenization import sentencepiece, wordpiece
from albert_tf.tokenization.api import Vocabulary
from albert_tf.tokenization.packing import Packed, pack, pad_batch
from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary
from albert_tf.tokenization.wordpiece import WordPieceVocabulary

FILE_NAME = "tokenizer.json"
# Kind → file name in a saved folder, text rules.
_KINDS = {
    "sentencepiece": (sentencepiece.FILE_NAME, ("lower", "keep_accents", "quotes")),
    "wordpiece": (wordpiece.FILE_NAME, ("lower",)),
}
_SENTENCEPIECE_SUFFIXES = (".model", ".spm")
_RELEASE_FILES = ("*.model", "*.spm", "vocab*.txt")


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
                `vocab*.txt` for WordPiece); or a folder with exactly one such file, as the releases of Google are.
            max_length: instead of the one in `tokenizer.json`, or of 512.
            options: text rules for a vocabulary that comes without `tokenizer.json`: `lower`, and for SentencePiece
                `keep_accents` and `quotes`.

        Raises:
            InputError: nothing to read there, or more than one; the message says what was found.
        """
        path = checked_path(path, "tokenizer")
        try:
            saved = _read_settings(path / FILE_NAME) if path.is_dir() else None
            if saved is None:
                return cls(_load_release(path, options), 512 if max_length is None else max_length)
        except OSError as error:  # no permission, a name that is too long
            raise InputError(f"cannot read {error.filename or path}: {error.strerror or error}") from error
        if options:
            raise InputError(f"{path / FILE_NAME} records the text rules already; drop {', '.join(options)}")
        file_name, _ = _KINDS[saved["kind"]]
        vocabulary = _load(saved["kind"], path / file_name, saved["options"])
        return cls(vocabulary, saved["max_length"] if max_length is None else max_length)

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
        check_texts(texts, "texts")
        if pairs is not None:
            check_texts(pairs, "pairs")
            if len(pairs) != len(texts):
                raise InputError(f"pairs: expected one for each text; got {len(texts)} texts and {len(pairs)} pairs")
        if length is not None and not 3 <= length <= self.max_length:
            raise InputError(f"length: expected 3 to {self.max_length} (max_length), got {length!r}")
        second = [None] * len(texts) if pairs is None else pairs
        return [self._pack(text, pair, length or self.max_length) for text, pair in zip(texts, second, strict=True)]

    def encode(self, text: str, pair: str | None = None) -> Packed:
        """Token ids and segment ids of one input, special tokens included, truncated to `max_length`, not padded."""
        check_texts([text] if pair is None else [text, pair], "text")
        return self._pack(text, pair, self.max_length)

    def decode(self, ids: Sequence[int]) -> str:
        """The text that the ids spell; special tokens are left out.

        Raises:
            InputError: an id is outside the vocabulary.
        """
        return self.vocabulary.decode([int(i) for i in ids])

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Writes `tokenizer.json` and the vocabulary file into `folder`, which may hold other files.

        Raises:
            InputError: one of the two exists and `overwrite` is false.
        """
        folder = Path(folder)
        vocabulary_file, _ = _KINDS[self.vocabulary.kind]
        for name in (FILE_NAME, vocabulary_file):
            refuse_existing(folder / name, overwrite=overwrite)
        self.vocabulary.save(folder, overwrite=overwrite)
        settings = {
            "kind": self.vocabulary.kind,
            "options": self.vocabulary.options(),
            "max_length": self.max_length,
        }
        with written_whole(folder / FILE_NAME, overwrite=overwrite) as temporary:
            temporary.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")

    def save_device_model(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Writes the vocabulary as a file for the tokenizers of device runtimes (device_model.py): a SentencePiece model
        that carries the text rules itself, or a WordPiece vocabulary as it is.

        Raises:
            InputError: `path` exists and `overwrite` is false.
        """
        from albert_tf.tokenization.device_model import save_device_model

        save_device_model(self.vocabulary, checked_path(path, "path"), overwrite=overwrite)

    def _pack(self, text: str, pair: str | None, max_length: int) -> Packed:
        ids_b = None if pair is None else self.vocabulary.encode(pair)
        return pack(self.vocabulary.encode(text), ids_b, self.vocabulary, max_length)


def check_texts(texts: Sequence[str], name: str) -> None:
    """Raises InputError unless `texts` is a list of strings."""
    if isinstance(texts, (str, bytes)):
        raise InputError(f"{name}: expected a list of strings, got one {type(texts).__name__}; write [{texts[:20]!r}]")
    if not hasattr(texts, "__len__") or isinstance(texts, (Mapping, Set)):
        raise InputError(f"{name}: expected a list of strings, got {type(texts).__name__}")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"{name}[{index}]: expected a string, got {type(text).__name__} {text!r}")


def _read_settings(path: Path) -> dict[str, Any] | None:
    """Our `tokenizer.json`, checked; None where there is none, or one of transformers' (which has no "kind")."""
    if not path.is_file():
        return None
    settings = read_json(path)
    if not isinstance(settings, dict) or "kind" not in settings:
        return None
    keys = ("kind", "options", "max_length")
    if sorted(settings) != sorted(keys):
        raise InputError(f"{path}: expected the keys {', '.join(keys)}; found {', '.join(settings)}")
    if settings["kind"] not in tuple(_KINDS):  # a tuple takes what cannot be hashed, too
        raise InputError(f"{path}: kind: expected one of {', '.join(_KINDS)}; found {settings['kind']!r}")
    if not isinstance(settings["options"], dict):
        raise InputError(f"{path}: options: expected an object with text rules; found {settings['options']!r}")
    longest = settings["max_length"]
    if not isinstance(longest, int) or isinstance(longest, bool) or longest < 3:
        raise InputError(f"{path}: max_length: expected a whole number of at least 3, found {longest!r}")
    return settings


def _load_release(path: Path, options: dict[str, Any]) -> Vocabulary:
    """The vocabulary file `path`, or the only one in the folder `path`."""
    if path.is_dir():
        found = sorted({file for pattern in _RELEASE_FILES for file in path.glob(pattern) if file.is_file()})
        if len(found) != 1:
            names = ", ".join(file.name for file in found or sorted(path.iterdir())[:10]) or "nothing"
            raise InputError(
                f"{path}: expected {FILE_NAME}, or exactly one vocabulary file ({', '.join(_RELEASE_FILES)}); "
                f"found {names}" + (". Name the file itself" if found else "")
            )
        path = found[0]
    if not path.is_file():
        raise InputError(f"{path}: no such file or folder; expected a tokenizer's folder or a vocabulary file")
    if path.suffix in _SENTENCEPIECE_SUFFIXES:
        return _load("sentencepiece", path, options)
    if path.match("vocab*.txt"):
        return _load("wordpiece", path, options)
    raise InputError(
        f"{path}: cannot tell the kind of vocabulary by this name; expected *.model or *.spm (SentencePiece) or "
        "vocab*.txt (WordPiece)"
    )


def _load(kind: str, path: Path, options: dict[str, Any]) -> Vocabulary:
    """The vocabulary file `path` with its text rules."""
    _, known = _KINDS[kind]
    for name, value in options.items():
        if name not in known or not isinstance(value, bool):
            raise InputError(
                f"{path}: text rules of a {kind} vocabulary are {', '.join(known)}, each true or false; got {name}={value!r}"
            )
    if kind == "sentencepiece":
        return SentencePieceVocabulary.load(path, **options)
    return WordPieceVocabulary.load(path, **options)
