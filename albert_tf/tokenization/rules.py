"""The text rules of both vocabularies, in pure Python; the graph encoders build their tables from the functions here.

SentencePiece models: `preprocess_text` and `encode_pieces` of google-research/albert (tokenization.py), and the quote
and accent options of transformers' ALBERT tokenizer. WordPiece models: `BasicTokenizer` of the same file.

A Python string may hold lone surrogates, which no UTF-8 text can: each counts as U+FFFD, before any other rule, so that
a string and its UTF-8 form (`to_utf8`) mean the same text everywhere. NUL is a character like any other.
"""

import functools
import re
import unicodedata
from collections.abc import Callable, Sequence

WORD_START = "▁"  # U+2581, SentencePiece's mark for a preceding space
SIGMA = "Σ"  # the one character whose lower case depends on its neighbours

_SURROGATES = re.compile("[\ud800-\udfff]")
_OTHER_SPACES = re.compile(r"[^\S -~\t-\r\x1c-\x1f]")
_QUOTES = re.compile("``|''")
# Blocks of ideographs that BERT sets apart as words; Hangul and kana are not among them (multilingual.md of BERT).
_IDEOGRAPH = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f"
    "\U0002b820-\U0002ceaf\U0002f800-\U0002fa1f]"
)


def without_surrogates(text: str) -> str:
    """`text` with every lone surrogate replaced by U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def with_ascii_spaces(text: str) -> str:
    """`text` without lone surrogates, and with all whitespace as ASCII has it: the same words for `str.split`."""
    return text if text.isascii() else _OTHER_SPACES.sub(" ", _SURROGATES.sub("\ufffd", text))


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
        text = _QUOTES.sub('"', text)
    return fold(text, lower=lower, keep_accents=keep_accents)


def sentencepiece_words(text: str, *, lower: bool, keep_accents: bool, quotes: bool) -> list[str]:
    """The words of the normalized text; a "▁" that stands in it counts as a space."""
    return normalize(text, lower=lower, keep_accents=keep_accents, quotes=quotes).replace(WORD_START, " ").split()


def rewritten_word(word: str, *, lower: bool, keep_accents: bool, quotes: bool) -> str:
    """`sentencepiece_words` of a word of a `text.split()`, with spaces between: mostly one, but "a▁b" is two.

    The rules do not reach from one word into the next, so these words are those of the text. Several words may stand in
    lines, which stay.
    """
    text = without_surrogates(word)
    if quotes:
        text = _QUOTES.sub('"', text)
    return fold(text, lower=lower, keep_accents=keep_accents).replace(WORD_START, " ")


def fold(text: str, *, lower: bool, keep_accents: bool) -> str:
    """The character rules of `normalize`: decomposition, combining marks, case."""
    if not keep_accents and not text.isascii():
        text = unicodedata.normalize("NFKD", text).translate(_WITHOUT_COMBINING)
    return text.lower() if lower else text


def fold_character(character: str, *, lower: bool, keep_accents: bool) -> str:
    """`sentencepiece_words` by character: whitespace and "▁" become a space; capital sigma is left to the caller."""
    if character.isspace() or character == WORD_START:
        return " "
    text = fold(without_surrogates(character), lower=False, keep_accents=keep_accents)
    return lower_except_sigma(text) if lower else text


def folded_lengths(word: str, *, lower: bool, keep_accents: bool, quotes: bool) -> list[int]:
    """How many characters each character of a word becomes, as `rewritten_word` has it."""
    lengths = list(map(len, map(_folded(lower, keep_accents).__getitem__, map(ord, word))))
    if quotes:
        for match in _QUOTES.finditer(word):
            lengths[match.end() - 1] = 0
    return lengths


@functools.cache
def _folded(lower: bool, keep_accents: bool) -> "CharacterRule":
    return CharacterRule(functools.partial(fold_character, lower=lower, keep_accents=keep_accents))


def lower_except_sigma(text: str) -> str:
    """`text.lower()`, with capital sigma left to the caller."""
    return SIGMA.join(part.lower() for part in text.split(SIGMA))


def digit_comma_table(
    pieces: Sequence[str], segment: Callable[[str], list[tuple[int, int]]], unk_id: int
) -> dict[int, list[tuple[int, int]]]:
    """Piece id → what stands for it, for every piece that ends in a digit and a comma ("▁9," → "▁9" ",").

    The rule of `encode_pieces`: the comma comes off and the rest is encoded anew. It depends on the piece alone.

    Args:
        pieces: the piece of each id.
        segment: id and length in characters of each piece of a word, "▁" included, this rule not applied.
        unk_id: stands for a piece that the vocabulary lacks.

    Returns:
        Ids and lengths; the lengths of a row add up to that of the piece.
    """
    id_of = {piece: index for index, piece in enumerate(pieces)}
    table = {}
    for index, piece in enumerate(pieces):
        if len(piece) < 2 or piece[-1] != "," or not piece[-2].isdigit():
            continue
        row = segment(piece[:-1].removeprefix(WORD_START))
        if not piece.startswith(WORD_START):
            first, length = row[0]
            rest = pieces[first].removeprefix(WORD_START)
            row[:1] = [(id_of.get(rest, unk_id), length - 1)] if rest else []
        table[index] = [*row, (id_of.get(",", unk_id), 1)]
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


def bert_lengths(text: str, *, lower: bool) -> list[int]:
    """How many characters each character of a text becomes, as `spaced_text` has it."""
    return list(map(len, map(_bert_characters(lower).__getitem__, map(ord, text))))


@functools.cache
def _bert_characters(lower: bool) -> CharacterRule:
    def rule(character: str) -> str:
        text = clean_character(without_surrogates(character))
        if not lower:
            return "".join(map(space_character, text))
        return "".join(map(strip_and_space_character, lower_except_sigma(text)))

    return CharacterRule(rule)


def bert_words(text: str, *, lower: bool) -> list[str]:
    """The words that WordPiece cuts up: no control characters, ideographs and punctuation marks each on its own;
    with `lower`, lower case without accents."""
    return spaced_text(text, lower=lower).split()


def spaced_text(text: str, *, lower: bool) -> str:
    """`bert_words` with spaces between."""
    text = without_surrogates(text).translate(_CLEAN)
    return text.lower().translate(_STRIP_AND_SPACE) if lower else text.translate(_SPACE)


def _is_punctuation(character: str) -> bool:
    """All ASCII signs that are neither letter, digit nor space (also ^, $, `), and the Unicode categories P*."""
    if character.isascii():
        return character.isprintable() and not character.isalnum() and character != " "
    return unicodedata.category(character).startswith("P")
