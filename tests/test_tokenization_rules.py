import unicodedata

import pytest
from small_vocabularies import fuzzed_texts

from albert_tf.tokenization.rules import (
    bert_words,
    digit_comma_table,
    lower_except_sigma,
    normalize,
    sentencepiece_words,
    to_utf8,
)


def original_preprocess(text, lower):
    """preprocess_text of google-research/albert, written out."""
    text = " ".join(text.strip().split())
    text = unicodedata.normalize("NFKD", text)
    text = "".join(c for c in text if not unicodedata.combining(c))
    return text.lower() if lower else text


def original_bert_words(text, lower):
    """BasicTokenizer of google-research/albert, written out step by step."""

    def is_cjk(cp):
        blocks = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F))
        return any(a <= cp <= b for a, b in (*blocks, (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)))

    def is_punctuation(c):
        ascii_signs = ((33, 47), (58, 64), (91, 96), (123, 126))
        return any(a <= ord(c) <= b for a, b in ascii_signs) or unicodedata.category(c).startswith("P")

    cleaned = ""
    for c in text:
        if c in " \t\n\r" or unicodedata.category(c) == "Zs":
            cleaned += " "
        elif ord(c) not in (0, 0xFFFD) and unicodedata.category(c) not in ("Cc", "Cf"):
            cleaned += c
    spaced = "".join(f" {c} " if is_cjk(ord(c)) else c for c in cleaned)
    words = []
    for word in spaced.split():
        if lower:
            word = "".join(c for c in unicodedata.normalize("NFD", word.lower()) if unicodedata.category(c) != "Mn")
        words += "".join(f" {c} " if is_punctuation(c) else c for c in word).split()
    return words


def without_surrogates(text):
    return "".join("\ufffd" if 0xD800 <= ord(c) <= 0xDFFF else c for c in text)


@pytest.mark.parametrize("lower", [True, False])
def test_normalize_is_the_original(lower):
    for text in fuzzed_texts(3000, 1):
        expected = original_preprocess(without_surrogates(text), lower)
        assert normalize(text, lower=lower, keep_accents=False, quotes=False) == expected, repr(text)


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("  Élan\t\nvital ", {}, "elan vital"),
        ("Élan ﬁn", {"keep_accents": True}, "élan ﬁn"),
        ("Élan", {"lower": False}, "Elan"),
        ("``So'' 'tis", {"quotes": True}, '"so" \'tis'),
        ("``So''", {}, "``so''"),
        ("ΟΔΥΣΣΕΥΣ ΑΣ.Β Σ", {}, "οδυσσευς ασ.β σ"),
        ("a\ud800b", {}, "a\ufffdb"),
        ("\0a", {}, "\0a"),
        ("①½", {}, "11⁄2"),
    ],
)
def test_normalize_options(text, options, expected):
    assert normalize(text, **({"lower": True, "keep_accents": False, "quotes": False} | options)) == expected


def test_word_marks_in_the_text_are_spaces():
    assert sentencepiece_words("▁a▁▁b c", lower=True, keep_accents=False, quotes=False) == ["a", "b", "c"]


def test_to_utf8_takes_any_string():
    assert to_utf8("é\ud800\0") == "é\ufffd\0".encode()
    for text in fuzzed_texts(300, 2):
        assert to_utf8(text).decode("utf-8") == without_surrogates(text)


@pytest.mark.parametrize("lower", [True, False])
def test_bert_words_are_the_original(lower):
    for text in fuzzed_texts(3000, 3):
        if sum(unicodedata.combining(c) > 0 and unicodedata.category(c) == "Mc" for c in text) > 1:
            continue  # of two such marks NFD may change the order, which the rule leaves alone
        assert bert_words(text, lower=lower) == original_bert_words(without_surrogates(text), lower), repr(text)


def test_bert_words():
    assert bert_words("我爱\u00a0Café，don't\0!", lower=True) == ["我", "爱", "cafe", "，", "don", "'", "t", "!"]
    assert bert_words("Café", lower=False) == ["Café"]


def test_lower_except_sigma():
    assert lower_except_sigma("ΑΣ İ ΣB") == "αΣ i̇ Σb"


def test_digit_comma_table():
    pieces = ["<unk>", "▁", "▁9,", "▁9", "9", ",", "12,", "▁12", "0,", "▁1", "2", "a,", "▁a,", "7,"]
    encoded = {"9": [3], "12": [9, 10], "0": [1, 0], "7": [1, 0]}
    # ▁9, → ▁9 ,   12, → "1" is no piece, 2 ,   0, and 7, → the lone mark goes, the digit is unknown
    table = {2: [3, 5], 6: [0, 10, 5], 8: [0, 5], 13: [0, 5]}
    assert digit_comma_table(pieces, encoded.__getitem__, unk_id=0) == table
