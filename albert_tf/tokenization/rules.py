"""The text rules of both vocabularies, in pure Python; the graph encoders build their tables from the functions here.

SentencePiece models: `preprocess_text` and `encode_pieces` of google-research/albert (tokenization.py), and the quote
and accent options of transformers' ALBERT tokenizer. WordPiece models: `BasicTokenizer` of the same file.

A Python string may hold lone surrogates, which no UTF-8 text can: each counts as U+FFFD, before any other rule, so that
a string and its UTF-8 form (`to_utf8`) mean the same text everywhere. NUL is a character like any other.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence

WORD_START = "▁"  # U+2581, SentencePiece's mark for a preceding space
SIGMA = "Σ"  # the one character whose lower case depends on its neighbours

_SURROGATES = re.compile("[\ud800-\udfff]")
# Blocks of ideographs that BERT sets apart as words; Hangul and kana are not among them (multilingual.md of BERT).
_IDEOGRAPH = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f"
    "\U0002b820-\U0002ceaf\U0002f800-\U0002fa1f]"
)


def without_surrogates(text: str) -> str:
    """`text` with every lone surrogate replaced by U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def to_utf8(text: str) -> bytes:
    """The UTF-8 bytes of any Python string: what goes into a tf.string tensor."""
    return without_surrogates(text).encode("utf-8")


def normalize(text: str, *, lower: bool, keep_accents: bool, quotes: bool) -> str:
    """The text that a SentencePiece model is given.

    In this order: whitespace collapsed to single spaces; with `quotes`, `` and '' become "; unless `keep_accents`,
    compatibility decomposition (NFKD) and no combining marks; with `lower`, lower case. (`keep_accents` leaves out the
    decomposition too, as in transformers; the original always decomposes.)
    """
    text = " ".join(without_surrogates(text).split())
    if quotes:
        text = text.replace("``", '"').replace("''", '"')
    return fold(text, lower=lower, keep_accents=keep_accents)


def sentencepiece_words(text: str, *, lower: bool, keep_accents: bool, quotes: bool) -> list[str]:
    """The words of the normalized text; a "▁" that stands in it counts as a space."""
    return normalize(text, lower=lower, keep_accents=keep_accents, quotes=quotes).replace(WORD_START, " ").split()


def fold(text: str, *, lower: bool, keep_accents: bool) -> str:
    """The character rules of `normalize`: decomposition, combining marks, case."""
    if not keep_accents and not text.isascii():
        text = unicodedata.normalize("NFKD", text).translate(_WITHOUT_COMBINING)
    return text.lower() if lower else text


def lower_except_sigma(text: str) -> str:
    """`text.lower()`, with capital sigma left to the caller."""
    return SIGMA.join(part.lower() for part in text.split(SIGMA))


def digit_comma_table(
    pieces: Sequence[str], encode_word: Callable[[str], list[int]], unk_id: int
) -> dict[int, list[int]]:
    """Piece id → the ids that stand for it, for every piece that ends in a digit and a comma ("▁9," → "▁9" ",").

    The rule of `encode_pieces`: the comma comes off and the rest is encoded anew. It depends on the piece alone.

    Args:
        pieces: the piece of each id.
        encode_word: the ids of a text without spaces, this rule not applied.
        unk_id: stands for a piece that the vocabulary lacks.
    """
    id_of = {piece: index for index, piece in enumerate(pieces)}
    table = {}
    for index, piece in enumerate(pieces):
        if len(piece) < 2 or piece[-1] != "," or not piece[-2].isdigit():
            continue
        parts = [pieces[i] for i in encode_word(piece[:-1].replace(WORD_START, ""))]
        if not piece.startswith(WORD_START) and parts and parts[0].startswith(WORD_START):
            parts[0] = parts[0].removeprefix(WORD_START)
        table[index] = [id_of.get(part, unk_id) for part in [*parts, ","] if part]
    return table


class CharacterRule(dict[int, str]):
    """A rule on single characters, usable by `str.translate`; results are kept as they are asked for."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        super().__init__()
        self.rule = rule

    def __missing__(self, code_point: int) -> str:
        self[code_point] = result = self.rule(chr(code_point))
        return result


def clean_character(character: str) -> str:
    """BERT's cleaning: control and format characters, NUL and U+FFFD go; tab, line ends and spaces become a space."""
    if character in "\t\n\r" or unicodedata.category(character) == "Zs":
        return " "
    if character in "\0\ufffd" or unicodedata.category(character) in ("Cc", "Cf"):
        return ""
    return character


def space_character(character: str) -> str:
    """Spaces around ideographs and punctuation, and a space for what else `str.split` takes for whitespace."""
    if _IDEOGRAPH.match(character) or _is_punctuation(character):
        return f" {character} "
    return " " if character.isspace() else character


def strip_and_space_character(character: str) -> str:
    """`space_character` of what is left after canonical decomposition (NFD) without non-spacing marks (Mn).

    By character: of the whole text, NFD also sorts runs of marks, which shows only where two spacing marks (Mc) with a
    combining class meet.
    """
    decomposed = unicodedata.normalize("NFD", character)
    if _IDEOGRAPH.match(character):
        return f" {decomposed} "
    return "".join([space_character(c) for c in decomposed if unicodedata.category(c) != "Mn"])


_WITHOUT_COMBINING = CharacterRule(lambda character: "" if unicodedata.combining(character) else character)
_CLEAN = CharacterRule(clean_character)
_SPACE = CharacterRule(space_character)
_STRIP_AND_SPACE = CharacterRule(strip_and_space_character)


def bert_words(text: str, *, lower: bool) -> list[str]:
    """The words that WordPiece cuts up: no control characters, ideographs and punctuation marks each on its own;
    with `lower`, lower case without accents."""
    text = without_surrogates(text).translate(_CLEAN)
    return (text.lower().translate(_STRIP_AND_SPACE) if lower else text.translate(_SPACE)).split()


def _is_punctuation(character: str) -> bool:
    """All ASCII signs that are neither letter, digit nor space (also ^, $, `), and the Unicode categories P*."""
    if character.isascii():
        return character.isprintable() and not character.isalnum() and character != " "
    return unicodedata.category(character).startswith("P")
