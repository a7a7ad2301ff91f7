"""A copy of a vocabulary for the tokenizers of device runtimes, which know nothing of ALBERT's text rules.

MediaPipe Tasks and Task Library lower-case ASCII and hand the text to SentencePiece. A SentencePiece file has a
normalisation map of its own, so the copy carries the rules there: whitespace, quotes, decomposition, dropped marks,
lower case, and after them the map that the model had.
"""

import re
import sys
import tempfile
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from albert_tf.files import written_whole
from albert_tf.tokenization.api import Vocabulary
from albert_tf.tokenization.charsmap import compile_charsmap, read_charsmap
from albert_tf.tokenization.rules import SIGMA, WORD_START, sentencepiece_words
from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary
from albert_tf.tokenization.sentencepiece_model import plain_model

_Model = sentencepiece_model_pb2.ModelProto  # type: ignore[attr-defined]  # protobuf makes it at run time
_Piece = _Model.SentencePiece
# Beside a digit no rule acts on a character other than it does alone.
_NEUTRAL = "0"
_FINAL_SIGMA = "ς"
_CASE_IGNORABLE = "'.:^`"  # of ASCII; the case of sigma depends on what stands beyond
_BATCH = 128


def save_device_model(vocabulary: Vocabulary, path: str | Path, *, overwrite: bool = False) -> None:
    """Writes the file that a device runtime's tokenizer is given: `device_model`, or a WordPiece vocabulary as it is.

    Raises:
        InputError: `path` exists and `overwrite` is false.
    """
    with written_whole(path, overwrite=overwrite) as temporary:
        if isinstance(vocabulary, SentencePieceVocabulary):
            temporary.write_bytes(device_model(vocabulary))
        else:
            with tempfile.TemporaryDirectory() as folder:
                vocabulary.save(folder)
                [saved] = Path(folder).iterdir()
                temporary.write_bytes(saved.read_bytes())


def device_model(vocabulary: SentencePieceVocabulary) -> bytes:
    """The SentencePiece model whose own map carries the text rules of `vocabulary`.

    The ids are those of `vocabulary.encode` but for what the format cannot say (docs/tokenizer.md has figures):

    - Pieces that end in a digit and a comma are marked as unused, so "9," is cut as if they were not there; the
      digit-comma rule cuts off the comma of the piece that was chosen.
    - Capital sigma becomes a final one where no Greek or ASCII letter follows, and nothing in ASCII but a letter precedes.
    - Text is cut up as a whole, in 32-bit sums that drift; the vocabulary cuts word by word.

    The map has no rule for characters that the vocabulary does not know before and after: they are one <unk> either way.
    """
    proto = _with_rules(vocabulary, vocabulary.model)
    for index, ids in enumerate(vocabulary.digit_comma_ids()):
        if ids != [index]:
            proto.pieces[index].type = _Piece.UNUSED
    return proto.SerializeToString()


def ruled_model(vocabulary: SentencePieceVocabulary) -> bytes:
    """`device_model` for a graph of TensorFlow Text's operators, in which the digit-comma rule comes after the search: no
    piece is marked as unused, which they do not know."""
    return _with_rules(
        vocabulary, plain_model(vocabulary.model, vocabulary.unk_id).SerializeToString()
    ).SerializeToString()


def _with_rules(vocabulary: SentencePieceVocabulary, model: bytes) -> Any:
    """The model, parsed, with the text rules as its normalisation map."""
    proto = _Model.FromString(model)
    spec = proto.normalizer_spec
    rules = device_rules(vocabulary, read_charsmap(spec.precompiled_charsmap))
    spec.name = "albert"
    spec.precompiled_charsmap = compile_charsmap(rules)
    return proto


def device_rules(vocabulary: SentencePieceVocabulary, own: Mapping[str, str]) -> dict[str, str]:
    """Source → target of the text rules of `vocabulary` followed by its model's `own` map."""
    normalized = _Normalized(vocabulary)
    known = {character for piece in _text_pieces(vocabulary.model) for character in piece}
    unknown_run = re.compile(f"[^ {re.escape(''.join(sorted(known)))}]+")
    rules: dict[str, str] = {}
    # Shorter sources first: a longer one needs a rule only where its parts do not say the same.
    for source, target in normalized.pairs(sorted(own.keys() | _characters() | _texts_read_together(), key=len)):
        replaced = _replaced(source, rules)
        if replaced != target and unknown_run.split(replaced) != unknown_run.split(target):
            rules[source] = target
    return rules


class _Normalized:
    """What the search of a vocabulary is given for a text in the midst of others."""

    def __init__(self, vocabulary: SentencePieceVocabulary) -> None:
        self._options = vocabulary.options()
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=vocabulary.model)

    def pairs(self, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Each text with what becomes of it."""
        for start in range(0, len(texts), _BATCH):
            batch = texts[start : start + _BATCH]
            results = self._normalize(_NEUTRAL.join(batch)).split(_NEUTRAL)
            if len(results) != len(batch) or any(text.endswith(SIGMA) for text in batch):
                results = [self._one(text) for text in batch]
            yield from zip(batch, results, strict=True)

    def _one(self, text: str) -> str:
        if self._options["lower"] and text in (SIGMA, SIGMA * 2):
            return self._normalize(text[:-1]) + _FINAL_SIGMA  # no letter follows: a longer source would have been found
        return self._normalize(text)

    def _normalize(self, text: str) -> str:
        words = sentencepiece_words(f"{_NEUTRAL}{text}{_NEUTRAL}", **self._options)
        return " ".join(self._processor.normalize(word)[1:] for word in words).replace(WORD_START, " ")[1:-1]


def _characters() -> set[str]:
    """All assigned characters; no rule changes others."""
    characters = map(chr, range(sys.maxunicode + 1))
    return {character for character in characters if unicodedata.category(character) not in ("Cn", "Co", "Cs")}


def _texts_read_together() -> set[str]:
    """Texts of several characters that the text rules may read in another way than their characters one by one."""
    # A Hangul syllable without a final consonant, and the consonant: decomposition gives the model three letters.
    hangul = {chr(syllable) + chr(final) for syllable in range(0xAC00, 0xD7A4, 28) for final in range(0x11A8, 0x11C3)}
    return {"``", "''"} | hangul | _texts_with_sigma()


def _texts_with_sigma() -> set[str]:
    """Capital sigma with the letter that follows, or with what is before and no letter; final where neither is there."""
    signs = [chr(code) for code in range(0x20, 0x7F) if not chr(code).isalpha() and chr(code) not in _CASE_IGNORABLE]
    codes = [*range(0x41, 0x7B), *range(0x370, 0x400), *range(0x1F00, 0x2000)]
    letters = [chr(code) for code in codes if chr(code).lower() != chr(code).upper()]
    return (
        {f"{SIGMA}{letter}" for letter in letters}
        | {f"{SIGMA}{SIGMA}{letter}" for letter in letters}
        | {f"{sign}{SIGMA}" for sign in signs}
    )


def _replaced(text: str, rules: Mapping[str, str]) -> str:
    """`text` under rules, of which the longest that fits is used."""
    result, start = [], 0
    while start < len(text):
        for end in range(len(text), start, -1):
            target = rules.get(text[start:end])
            if target is not None:
                break
        result.append(text[start] if target is None else target)
        start = end
    return "".join(result)


def _text_pieces(model: bytes) -> list[str]:
    pieces = _Model.FromString(model).pieces
    return [piece.piece for piece in pieces if piece.type in (_Piece.NORMAL, _Piece.USER_DEFINED)]
