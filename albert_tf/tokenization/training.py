"""New SentencePiece vocabularies with ALBERT's settings."""

import io
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

import sentencepiece

from albert_tf.errors import InputError
from albert_tf.tokenization.rules import WORD_START, normalize
from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary

# The trainer leaves out any line with this character, which it uses itself (kUNKStr of sentencepiece).
_RESERVED = "▅"
_SPECIAL_PIECES = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
# What repeats in a word takes the trainer squared time: 1 MB of one letter, days. No piece is longer than 16 characters,
# so little is lost where a word is cut.
_OVERLONG = re.compile(r"\S{500}(?=\S)")
# Always pieces of their own in google-research/albert's training command.
ALBERT_SYMBOLS = ("(", ")", '"', "-", ".", "–", "£", "€")
# Messages of trainer_interface.cc with the nearest size that works.
_TOO_HIGH = re.compile(r"Vocabulary size (?:is )?too high.*value <= (\d+)")
_TOO_LOW = re.compile(r"Vocabulary size is smaller than required_chars\. \d+ vs (\d+)")
_NO_NUMBER = "isfinite"  # of unigram_model_trainer.cc


def train_sentencepiece(
    lines: Iterable[str],
    vocabulary_size: int,
    *,
    lower: bool = True,
    keep_accents: bool = False,
    quotes: bool = False,
    symbols: Sequence[str] = (),
) -> SentencePieceVocabulary:
    """Learns a unigram vocabulary from text; the same lines give the same model, byte for byte.

    Settings as in the training command of google-research/albert (README.md): <pad> <unk> [CLS] [SEP] [MASK] are ids 0
    to 4, and ( ) " - . – £ € are always pieces of their own. The text rules are applied to the lines first. The lines
    are read once; the trainer keeps their words (about 20 times the size of the text at its peak).

    Args:
        lines: the text, for instance a sentence each.
        vocabulary_size: number of ids.
        lower, keep_accents, quotes: text rules; see `SentencePieceVocabulary`.
        symbols: more pieces that are never split, such as "[E1]"; they get the ids after ALBERT's own.

    Raises:
        InputError: no text, or too little (or too varied) for `vocabulary_size`; the message names a size that works.
            Or a symbol that the text rules would change, or that is there already.
    """
    rules = {"lower": lower, "keep_accents": keep_accents, "quotes": quotes}
    if not isinstance(vocabulary_size, int) or vocabulary_size < 1:
        raise InputError(f"vocabulary_size: expected a whole number above 0, got {vocabulary_size!r}")
    if isinstance(lines, str):
        raise InputError("lines: expected a list of lines, got one string; write text.splitlines()")
    _check_symbols(symbols, rules)
    sentences = _Sentences(lines, rules)
    first = next(sentences, None)
    if first is None:
        sentences.raise_failure()
        raise InputError("lines: expected text to learn a vocabulary from, found none")
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=itertools.chain([first], sentences),
            model_writer=model,
            model_type="unigram",
            vocab_size=vocabulary_size,
            character_coverage=0.99995,
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            control_symbols=["[CLS]", "[SEP]", "[MASK]"],
            user_defined_symbols=[*ALBERT_SYMBOLS, *symbols],
            max_sentence_length=2**30,  # the default drops lines of more than 4,192 bytes
            shuffle_input_sentence=False,
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        sentences.raise_failure()
        raise _explained(error, vocabulary_size) from error
    sentences.raise_failure()
    return SentencePieceVocabulary(model.getvalue(), **rules)


class _Sentences(Iterator[str]):
    """The lines as the trainer takes them: text rules applied, cut into short ones.

    The trainer, which is C++, does not pass on an error of its input: it ends there and is kept for `raise_failure`.
    """

    def __init__(self, lines: Iterable[str], rules: dict[str, bool]) -> None:
        self.failure: Exception | None = None
        self._parts = self._cut(lines, rules)

    def __next__(self) -> str:
        return next(self._parts)

    def raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _cut(self, lines: Iterable[str], rules: dict[str, bool]) -> Iterator[str]:
        try:
            for line in lines:
                text = _OVERLONG.sub(r"\g<0> ", normalize(line, **rules).replace(_RESERVED, " "))
                words = text.split()
                # The trainer counts words, so a line may be cut between any two; over one of 4 MB it takes more than
                # ten minutes.
                for start in range(0, len(words), 100):
                    yield " ".join(words[start : start + 100])
        except Exception as error:  # whatever the caller's lines raise is theirs to see
            self.failure = error


def _check_symbols(symbols: Sequence[str], rules: dict[str, bool]) -> None:
    taken = {*_SPECIAL_PIECES, *ALBERT_SYMBOLS}
    for symbol in symbols:
        if symbol in taken:
            raise InputError(f"symbols: {symbol!r} is a piece already; name each symbol once")
        taken.add(symbol)
        changed = normalize(symbol, **rules)
        if changed != symbol or not symbol or any(character in symbol for character in (" ", WORD_START, _RESERVED)):
            became = f"; the text rules make {changed!r} of it" if changed != symbol else ""
            raise InputError(f"symbols: expected a word that the text rules leave as it is, got {symbol!r}{became}")


def _explained(error: RuntimeError, vocabulary_size: int) -> Exception:
    """The trainer's complaints about the size in the words of the caller; any other error as it is."""
    if found := _TOO_HIGH.search(str(error)):
        return InputError(
            f"vocabulary_size: {vocabulary_size} is more than this text gives; at most {found[1]}, or more text"
        )
    if found := _TOO_LOW.search(str(error)):
        return InputError(
            f"vocabulary_size: {vocabulary_size} is too few for the characters of this text; at least {found[1]}"
        )
    if _NO_NUMBER in str(error):
        return InputError(
            "lines: the trainer's probabilities run out of range, as with a word of a million characters; expected a "
            "sentence or a paragraph a line, with spaces or punctuation"
        )
    return error
