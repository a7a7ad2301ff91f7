import unicodedata

import pytest
from small_vocabularies import fuzzed_texts

from albert_tf.tokenization.rules import (
    bert_lengths,
    bert_words,
    digit_comma_table,
    folded_lengths,
    lower_except_sigma,
    normalize,
    rewritten_word,
    sentencepiece_words,
    spaced_text,
    to_utf8,
    with_ascii_spaces,
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
    segmented = {"9": [(3, 2)], "12": [(9, 2), (10, 1)], "0": [(1, 1), (0, 1)], "7": [(1, 1), (0, 1)]}
    # ▁9, → ▁9 ,   12, → "1" is no piece, 2 ,   0, and 7, → the lone mark goes, the digit is unknown
    table = {2: [(3, 2), (5, 1)], 6: [(0, 1), (10, 1), (5, 1)], 8: [(0, 1), (5, 1)], 13: [(0, 1), (5, 1)]}
    assert digit_comma_table(pieces, lambda word: list(segmented[word]), unk_id=0) == table
    assert all(sum(length for _, length in row) == len(pieces[index]) for index, row in table.items())


@pytest.mark.parametrize("changed", [{}, {"lower": False}, {"keep_accents": True, "quotes": True}], ids=str)
def test_rules_word_by_word_are_the_rules_of_the_text(changed):
    rules = {"lower": True, "keep_accents": False, "quotes": False} | changed
    for text in [*fuzzed_texts(3000, 10), "``a'' '''b``` ```", "ΑΣ ΑΣ. Σ A'Σ 'Σ Σ\u0301", "İ İİ i̇"]:
        words = text.split()
        rewritten = [rewritten_word(word, **rules) for word in words]
        assert rewritten_word("\n".join(words), **rules) == "\n".join(rewritten)
        assert " ".join(rewritten).split() == sentencepiece_words(text, **rules), repr(text)
        for word, result in zip(words, rewritten, strict=True):
            assert sum(folded_lengths(word, **rules)) == len(result), repr(word)


@pytest.mark.parametrize("lower", [True, False])
def test_bert_lengths(lower):
    for text in fuzzed_texts(3000, 11):
        assert sum(bert_lengths(text, lower=lower)) == len(spaced_text(text, lower=lower)), repr(text)


def test_with_ascii_spaces():
    for text in [*fuzzed_texts(3000, 12), "a\x0bb\x85c\u3000d\x1ce\ud800"]:
        changed = with_ascii_spaces(text)
        assert changed.split() == without_surrogates(text).split()
        assert not [c for c in changed if c.isspace() and not c.isascii()]
