"""New SentencePiece vocabularies with ALBERT's settings."""

import io
import re
from collections.abc import Iterable

import sentencepiece

from albert_tf.errors import InputError
from albert_tf.tokenization.rules import normalize
from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary

# The trainer leaves out any line with this character, which it uses itself (kUNKStr of sentencepiece).
_RESERVED = "▅"
# Messages of trainer_interface.cc with the nearest size that works.
_TOO_HIGH = re.compile(r"Vocabulary size (?:is )?too high.*value <= (\d+)")
_TOO_LOW = re.compile(r"Vocabulary size is smaller than required_chars\. \d+ vs (\d+)")


def train_sentencepiece(
    lines: Iterable[str],
    vocabulary_size: int,
    *,
    lower: bool = True,
    keep_accents: bool = False,
    quotes: bool = False,
) -> SentencePieceVocabulary:
    """Learns a unigram vocabulary from text, in memory; the same lines give the same model.

    Settings as in the training command of google-research/albert (README.md): <pad> <unk> [CLS] [SEP] [MASK] are ids 0
    to 4, and ( ) " - . – £ € are always pieces of their own. The text rules are applied to the lines first.

    Args:
        lines: the text, for instance a sentence each.
        vocabulary_size: number of ids.
        lower, keep_accents, quotes: text rules; see `SentencePieceVocabulary`.

    Raises:
        InputError: no text, or too little (or too varied) for `vocabulary_size`; the message names a size that works.
    """
    rules = {"lower": lower, "keep_accents": keep_accents, "quotes": quotes}
    if not isinstance(vocabulary_size, int) or vocabulary_size < 1:
        raise InputError(f"vocabulary_size: expected a whole number above 0, got {vocabulary_size!r}")
    if isinstance(lines, str):
        raise InputError("lines: expected a list of lines, got one string; write text.splitlines()")
    sentences = []
    for line in lines:
        words = normalize(line, **rules).replace(_RESERVED, " ").split()
        # The trainer counts words, so a line may be cut between any two; over one of 4 MB it takes more than ten minutes.
        sentences += [" ".join(words[start : start + 100]) for start in range(0, len(words), 100)]
    if not sentences:
        raise InputError("lines: expected text to learn a vocabulary from, found none")
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type="unigram",
            vocab_size=vocabulary_size,
            character_coverage=0.99995,
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            control_symbols=["[CLS]", "[SEP]", "[MASK]"],
            user_defined_symbols=["(", ")", '"', "-", ".", "–", "£", "€"],
            max_sentence_length=2**30,  # the default drops lines of more than 4,192 bytes
            shuffle_input_sentence=False,
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        if found := _TOO_HIGH.search(str(error)):
            raise InputError(
                f"vocabulary_size: {vocabulary_size} is more than this text gives; at most {found[1]}, or more text"
            ) from error
        if found := _TOO_LOW.search(str(error)):
            raise InputError(
                f"vocabulary_size: {vocabulary_size} is too few for the characters of this text; at least {found[1]}"
            ) from error
        raise
    return SentencePieceVocabulary(model.getvalue(), **rules)
