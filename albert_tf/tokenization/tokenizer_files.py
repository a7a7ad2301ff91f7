"""The files of a tokenizer: our `tokenizer.json` with a vocabulary beside it, and the vocabularies of releases."""

import json
from pathlib import Path
from typing import Any

from albert_tf.errors import InputError
from albert_tf.files import is_there, read_json, refuse_existing, written_whole
from albert_tf.tokenization import sentencepiece, wordpiece
from albert_tf.tokenization.api import Vocabulary
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


def read_tokenizer(path: Path, options: dict[str, Any]) -> tuple[Vocabulary, int | None]:
    """A vocabulary, and the greatest length where `tokenizer.json` records one; see `AlbertTokenizer.from_pretrained`."""
    saved = _read_settings(path / FILE_NAME) if path.is_dir() else None
    if saved is None:
        return _load_release(path, options), None
    if options:
        raise InputError(f"{path / FILE_NAME} records the text rules already; drop {', '.join(options)}")
    file_name, _ = _KINDS[saved["kind"]]
    return _load(saved["kind"], path / file_name, saved["options"]), saved["max_length"]


def save_tokenizer(folder: Path, vocabulary: Vocabulary, max_length: int, *, overwrite: bool) -> None:
    """Writes `tokenizer.json` and the vocabulary file."""
    vocabulary_file, _ = _KINDS[vocabulary.kind]
    for name in (FILE_NAME, vocabulary_file):
        refuse_existing(folder / name, overwrite=overwrite)
    vocabulary.save(folder, overwrite=overwrite)
    settings = {"kind": vocabulary.kind, "options": vocabulary.options(), "max_length": max_length}
    with written_whole(folder / FILE_NAME, overwrite=overwrite) as temporary:
        temporary.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def _read_settings(path: Path) -> dict[str, Any] | None:
    """Our `tokenizer.json`, checked; None where there is none, or one of transformers' (which has no "kind")."""
    if not is_there(path):
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
