"""Paragraphs into sentences, by rules: English and other Latin-script prose, Chinese and Japanese."""

import re

# A sentence ends after these marks, with the quotes and brackets that close behind them.
_CLOSING = "\"'”’»)\\]」』）】》〉"
_WIDE_END = re.compile(f"[。！？｡…]+[{_CLOSING}]*")
# In scripts with spaces it must be followed by space and by what can begin a sentence: anything but a small letter.
_NARROW_END = re.compile(f"(?<![.!?…])[.!?…]++[{_CLOSING}]*+(?=\\s++(\\S))")
_OPENING = "\"'“‘«([「『（【《〈¿¡-–—"

# What a full stop abbreviates more often than it ends a sentence with, in small letters.
# fmt: off
_BEFORE_NAMES = frozenset(
    ("mr", "mrs", "ms", "messrs", "mme", "mlle", "dr", "prof", "rev", "hon", "st", "sr", "jr", "gen", "col", "capt", "lt",
     "sgt", "cpl", "maj", "cmdr", "adm", "gov", "sen", "rep", "pres", "fr", "sir", "esq", "mt", "ft", "vs", "cf", "viz",
     "eg", "ie", "e.g", "i.e", "no", "nos", "vol", "vols", "pp", "fig", "figs", "ed", "eds", "ch", "sec", "dept", "est",
     "approx", "ca", "al")
)
# fmt: on
_LONGEST_WORD = 40  # characters that are looked at before a full stop
_NEXT = re.compile(r"\s*+(\S)")
_INITIAL = re.compile(r"^[^\W\d_]$")
_LETTERS_WITH_STOPS = re.compile(r"^(?:[^\W\d_]\.)+[^\W\d_]$")  # U.S, a.m


def split_sentences(paragraph: str) -> list[str]:
    """The sentences of one paragraph, in order, without space around them; nothing is lost but that space.

    Rules: 。！？… end a sentence wherever they stand. “.”, “!” and “?” end one before space and anything but a small
    letter; a full stop does not after a title or abbreviation (Mr., vol., e.g.), a single letter (J. R. Tolkien), or
    letters with stops (U.S.) before a capital or digit. Closing quotes and brackets belong to the sentence they end.
    """
    sentences = []
    begin = 0
    for end in _sentence_ends(paragraph):
        if sentence := paragraph[begin:end].strip():
            sentences.append(sentence)
        begin = end
    if rest := paragraph[begin:].strip():
        sentences.append(rest)
    return sentences


def _sentence_ends(text: str) -> list[int]:
    ends = {match.end() for match in _WIDE_END.finditer(text) if not _goes_on_small(text, match)}
    for match in _NARROW_END.finditer(text):
        if match[1].islower() or (match[0][0] == "." and _abbreviates(text, match)):
            continue
        ends.add(match.end())
    return sorted(ends)


def _goes_on_small(text: str, match: re.Match[str]) -> bool:
    """Whether dots of omission (…) are followed by a small letter, and so stand within a sentence."""
    if not match[0].startswith("…"):
        return False
    following = _NEXT.match(text, match.end())
    return following is not None and following[1].islower()


def _abbreviates(text: str, match: re.Match[str]) -> bool:
    """Whether the full stop at `match` belongs to the word before it."""
    if len(match[0]) > 1 and match[0][1] == ".":
        return False  # dots of omission
    words = text[max(0, match.start() - _LONGEST_WORD) : match.start()].split()
    bare = words[-1].lstrip(_OPENING) if words else ""
    if bare.lower() in _BEFORE_NAMES:
        return not (bare.lower() == "no" and not match[1].isdigit())  # "No. 5", but "He said no. Then"
    if bare == "I":
        return False  # "So am I. You": the pronoun, far more often than an initial
    return bool(_INITIAL.match(bare) or _LETTERS_WITH_STOPS.match(bare))
