"""The tokenizer in Java, on the Java machine of this computer: ids and places of every text as in Python."""

import itertools
import json
import random
import re
import runpy
import unicodedata

import pytest
from conftest import ROOT
from java_client import (
    CLIENT,
    SOURCES,
    Java,
    as_java_has_it,
    compiled,
    digits,
    row_text,
    squad_paragraphs,
    sst2_sentences,
)
from real_texts import english_tokenizer
from sentencepiece import sentencepiece_model_pb2
from small_vocabularies import LINES, fuzzed_texts, sentencepiece_vocabulary, wordpiece_vocabulary
from tokenizer_agreement import long_texts

from albert_tf.errors import InputError
from albert_tf.tokenization.charsmap import compile_charsmap
from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary
from albert_tf.tokenization.tokenizer import AlbertTokenizer

pytestmark = pytest.mark.clients

UNICODE_DATA = ROOT / "tests" / "java" / "unicode_data.py"
FUZZED = 25_000
RULES = [
    dict(zip(("lower", "keep_accents", "quotes"), options, strict=True))
    for options in itertools.product((True, False), repeat=3)
]


@pytest.fixture(scope="module")
def java(tmp_path_factory):
    return Java(tmp_path_factory.mktemp("java"))


def different(java, tokenizer, texts):
    """The texts whose ids or offsets in Java are not those in Python."""
    texts = list(map(as_java_has_it, texts))
    found = []
    for text, answer in zip(texts, java.ask("tokenize", tokenizer, list(map(digits, texts))), strict=True):
        ids, spans = tokenizer.vocabulary.encode_with_offsets(text)
        if answer != " ".join(f"{index}:{start}:{end}" for index, (start, end) in zip(ids, spans, strict=True)):
            found.append(text)
    return found


def test_what_android_8_has_is_enough(tmp_path):
    """The library of Java 8 is part of API level 26; later methods are not."""
    compiled(tmp_path / "classes", "--release", "8")
    text = "".join(path.read_text("utf-8") for path in SOURCES)
    assert not re.findall(r"java\.nio\.file|java\.(?!io|nio|security|util)\w+\.", text)


@pytest.mark.parametrize("path", [*SOURCES, CLIENT], ids=lambda path: path.stem)
def test_sizes(path):
    lines = path.read_text("utf-8").splitlines()
    assert len(lines) <= 350 and max(map(len, lines)) <= 125
    begins = [number for number, line in enumerate(lines) if re.match(r" {4,8}\S.*\)( throws \w+)? \{$", line)]
    for begin in begins:
        indent = len(lines[begin]) - len(lines[begin].lstrip())
        assert lines.index(" " * indent + "}", begin) - begin <= 60, lines[begin]


def test_the_unicode_tables_are_pythons():
    made = runpy.run_path(str(UNICODE_DATA))
    source = made["TARGET"].read_text("utf-8")
    assert made["unpacked"](source) == made["payload"](), f"write it anew: python {UNICODE_DATA.relative_to(ROOT)}"
    assert made["java_source"]().split("PACKED")[0] == source.split("PACKED")[0]


def test_real_texts(java, shared_data):
    tokenizer = english_tokenizer(shared_data, 512)
    for texts in (sst2_sentences(shared_data), squad_paragraphs(shared_data)):
        assert len(texts) > 600
        assert different(java, tokenizer, texts) == []


def test_fuzzed_strings_with_the_published_vocabulary(java, shared_data):
    tokenizer = english_tokenizer(shared_data, 512)
    assert different(java, tokenizer, fuzzed_texts(FUZZED, 11)) == []
    assert different(java, tokenizer, long_texts(1_000_000)) == []


def test_fuzzed_strings_with_japanese_pieces(java, shared_data):
    path = shared_data / "albert_vocab_ja" / "spm_roymondliao" / "wiki-ja_albert.model"
    assert different(java, AlbertTokenizer.from_pretrained(path), fuzzed_texts(3000, 12)) == []


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_fuzzed_strings_with_every_rule(java, rules):
    tokenizer = AlbertTokenizer(sentencepiece_vocabulary(**rules))
    assert different(java, tokenizer, [*fuzzed_texts(2000, 13), *long_texts(20_000)]) == []


def test_single_characters(java):
    """Alone, and between a letter and a capital sigma, whose case depends on it."""
    plain = ("Cn", "Co", "Lo")  # most of all; few of them suffice where nothing becomes of them
    codes = [
        code
        for code in range(0x110000)
        if code % 97 == 0 or unicodedata.category(chr(code)) not in plain or unicodedata.decomposition(chr(code))
    ]
    texts = [f"{chr(code)} a{chr(code)}Σ" for code in codes if not 0xD800 <= code < 0xE000]
    joined = ["\n".join(texts[start : start + 512]) for start in range(0, len(texts), 512)]
    for rules in ({}, {"keep_accents": True}):
        assert different(java, AlbertTokenizer(sentencepiece_vocabulary(**rules)), joined) == []


def test_models_without_a_normaliser_and_with_another(java):
    model = sentencepiece_vocabulary().model
    for rules in ({"a": "b", "\u200b": " ", "é": "", "-": "--"}, None):
        proto = sentencepiece_model_pb2.ModelProto.FromString(model)
        proto.normalizer_spec.precompiled_charsmap = b"" if rules is None else compile_charsmap(rules)
        vocabulary = SentencePieceVocabulary(proto.SerializeToString(), keep_accents=True)
        assert (
            different(java, AlbertTokenizer(vocabulary), [*fuzzed_texts(1000, 14), "\u200b", "aé\u200bé a", "é"]) == []
        )


def test_inputs_of_one_text_and_of_two(java):
    tokenizer = AlbertTokenizer(sentencepiece_vocabulary(), max_length=17)
    texts = [as_java_has_it(text) for text in fuzzed_texts(200, 15)]
    pairs = [(text,) for text in texts] + list(zip(texts, reversed(texts), strict=True))
    answers = java.ask("encode", tokenizer, ["\t".join(map(digits, pair)) for pair in pairs])
    for pair, answer in zip(pairs, answers, strict=True):
        assert answer == row_text(*tokenizer.encode(*pair))


def test_decoding(java):
    tokenizer = AlbertTokenizer(sentencepiece_vocabulary())
    rows = [tokenizer.encode(text)[0] for text in [*LINES, "", "  \u4e2d"]] + [[140]]
    answers = java.ask("decode", tokenizer, [" ".join(map(str, row)) for row in rows])
    assert answers[:-1] == [digits(tokenizer.decode(row)) for row in rows[:-1]]
    assert answers[-1] == "InputException: token id 140: expected 0 to 139, the ids of this vocabulary"


def test_damaged_models(java, tmp_path):
    """A file that does not begin as it should is refused wherever Python refuses it; none brings more than a refusal."""
    model = sentencepiece_vocabulary().model
    chosen = random.Random(0)
    variants = [b"", b"\0", b"\xff" * 100, b"word\nanother word\n", json.dumps({"a": 1}).encode(), model[:-1]]
    variants += [model[: chosen.randrange(len(model))] for _ in range(40)]
    variants += [model[: chosen.randrange(3000)] for _ in range(40)]
    cut = len(variants)
    for _ in range(100):
        changed = bytearray(model)
        # The pieces stand in front, the map behind.
        changed[chosen.choice([chosen.randrange(3000), chosen.randrange(len(model))])] = chosen.randrange(256)
        variants.append(bytes(changed))
    paths = [tmp_path / f"{number}.spm" for number in range(len(variants))]
    for path, content in zip(paths, variants, strict=True):
        path.write_bytes(content)
    answers = java.run("load", *paths)
    assert len(answers) == len(variants)
    assert all(answer == "loaded" or answer.startswith("InputException: vocabulary.spm: ") for answer in answers)
    for content, answer in list(zip(variants, answers, strict=True))[:cut]:
        assert (answer == "loaded") == is_model(content), answer
    assert answers[:5] == [
        "InputException: vocabulary.spm: expected a SentencePiece model, found no pieces of text in it",
        *(answer for answer in answers[1:5] if "expected a SentencePiece model, found " in answer),
    ]


def is_model(content):
    try:
        SentencePieceVocabulary(content)
    except InputError:
        return False
    return True


def test_models_of_another_kind(java, tmp_path):
    proto = sentencepiece_model_pb2.ModelProto.FromString(sentencepiece_vocabulary().model)
    changes = {
        "model_type=unigram": lambda p: setattr(p.trainer_spec, "model_type", 2),
        "treat_whitespace_as_suffix=false": lambda p: setattr(p.trainer_spec, "treat_whitespace_as_suffix", True),
        "add_dummy_prefix=true": lambda p: setattr(p.normalizer_spec, "add_dummy_prefix", False),
        "<pad>, [CLS], [SEP], [MASK]; [CLS] is missing": lambda p: setattr(p.pieces[2], "piece", "[C]"),
        "found 2": lambda p: setattr(p.pieces[0], "type", 2),
        "spans a space": lambda p: setattr(p.pieces[20], "piece", "a▁b"),
        "is there twice": lambda p: setattr(p.pieces[20], "piece", p.pieces[21].piece),
        "and the score NaN": lambda p: setattr(p.pieces[20], "score", float("nan")),
        "of a type that ALBERT has not": lambda p: setattr(p.pieces[20], "type", 6),
        "is unused: this is a copy for MediaPipe and Task Library": lambda p: setattr(p.pieces[20], "type", 5),
    }
    for number, change in enumerate(changes.values()):
        changed = type(proto).FromString(proto.SerializeToString())
        change(changed)
        (tmp_path / f"{number}.spm").write_bytes(changed.SerializeToString())
    answers = java.run("load", *(tmp_path / f"{number}.spm" for number in range(len(changes))))
    for expected, answer in zip(changes, answers, strict=True):
        assert answer.startswith("InputException: vocabulary.spm: ") and expected in answer


def test_settings_that_cannot_be_used(java, tmp_path):
    good = {"kind": "sentencepiece", "options": {"lower": True}, "max_length": 64}
    cases = {
        json.dumps(good): "loaded",
        json.dumps(good | {"more": 1}): "expected the keys kind, options, max_length; found [",
        json.dumps(good | {"max_length": 2}): "max_length: expected a whole number of at least 3, found 2",
        json.dumps(good | {"max_length": "9"}): "max_length: expected a whole number of at least 3, found 9",
        json.dumps(good | {"options": {"lower": 1}}): "each true or false; found lower=1",
        json.dumps(good)[:-4]: "not JSON: expected more",
        "[" * 5000: "not JSON: expected no more than 100 brackets",
        "[1]": "expected one JSON object",
        '{"kind": tru}': "not JSON: expected a value",
        "": "not JSON",
    }
    folders = []
    for text in cases:
        folders.append(tmp_path / str(len(folders)))
        AlbertTokenizer(sentencepiece_vocabulary()).save(folders[-1])
        (folders[-1] / "tokenizer.json").write_text(text)
    folders.append(tmp_path / "wordpiece")
    AlbertTokenizer(wordpiece_vocabulary()).save(folders[-1])
    (folders[-1] / "vocabulary.spm").write_bytes(b"")
    *answers, wordpiece = java.run("load", *folders)
    for expected, answer in zip(cases.values(), answers, strict=True):
        assert expected in answer and answer.startswith(("loaded", "InputException: tokenizer.json: "))
    assert wordpiece.endswith("expected kind sentencepiece, found wordpiece; WordPiece vocabularies are not read here")
