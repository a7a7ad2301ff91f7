import functools
import re
import unicodedata

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from small_vocabularies import LINES, fuzzed_texts, sentencepiece_vocabulary, wordpiece_vocabulary

from albert_tf.errors import InputError
from albert_tf.tokenization.charsmap import read_charsmap
from albert_tf.tokenization.device_model import device_model, save_device_model
from albert_tf.tokenization.rules import sentencepiece_words, without_surrogates
from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary
from albert_tf.tokenization.tokenizer import AlbertTokenizer

RULES = [
    {},
    {"quotes": True},
    {"keep_accents": True},
    {"lower": False},
    {"lower": False, "keep_accents": True, "quotes": True},
]
LINES_OF_RULES = [
    *(
        line for line in LINES if not line.startswith("aaa")
    ),  # that one is made of ties, which releases break differently
    "ÀÉÎ ﬁ ½ ２ … ″ ``a'' İ ẞ  \u3000\u2003x\x85y\x1cz ¨a ▁b▁▁c\u00adc e\u0301 각 ㄱㅏ",
    "ΟΔΥΣΣΕΥΣ ΣΟΦΟΣ, Σ 3Σ Σοφία ΣX =Σ. ΜΕΣΣΗΝΗ ΑΣ",
]


@functools.cache
def small_device_model(**rules):
    return device_model(sentencepiece_vocabulary(**rules))


def encode(model, texts):
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.encode(text) for text in texts]


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_ids_are_those_of_the_vocabulary(rules):
    vocabulary = sentencepiece_vocabulary(**rules)
    expected = [vocabulary.encode(text) for text in LINES_OF_RULES]
    assert encode(small_device_model(**rules), LINES_OF_RULES) == expected
    assert encode(vocabulary.model, LINES_OF_RULES) != expected


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_rules_on_any_text(rules):
    """Up to characters that the vocabulary lacks, the map says what the rules of Python and the model's own map say."""
    vocabulary = sentencepiece_vocabulary(**rules)
    pieces = sentencepiece_model_pb2.ModelProto.FromString(vocabulary.model).pieces
    known = "".join(piece.piece for piece in pieces if piece.type in (piece.NORMAL, piece.USER_DEFINED))
    unknown = re.compile(f"[^{re.escape(known)}]+")
    before = sentencepiece.SentencePieceProcessor(model_proto=vocabulary.model)
    after = sentencepiece.SentencePieceProcessor(model_proto=small_device_model(**rules))
    for text in map(without_surrogates, fuzzed_texts(3000, seed=21)):
        if "Σ" in unicodedata.normalize("NFKD", text):
            continue  # its case depends on more than a map can see
        expected = "".join(before.normalize(word) for word in sentencepiece_words(text, **vocabulary.options()))
        assert unknown.sub("?", after.normalize(text)) == unknown.sub("?", expected), ascii(text)


def test_pieces_that_the_digit_comma_rule_takes_apart_are_unused():
    vocabulary = with_pieces("▁111,", "▁the9,")
    proto = sentencepiece_model_pb2.ModelProto.FromString(device_model(vocabulary))
    unused = [piece.piece for piece in proto.pieces if piece.type == piece.UNUSED]
    assert unused == ["2,", "22,", "▁111,", "▁the9,"]
    text = "in 111, the9, 111, and the"
    assert encode(vocabulary.model, [text]) != encode(device_model(vocabulary), [text]) == [vocabulary.encode(text)]


def with_pieces(*pieces):
    """The small vocabulary with likely pieces at the end."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(sentencepiece_vocabulary().model)
    for piece in pieces:
        proto.pieces.add(piece=piece, score=-0.5)
    return SentencePieceVocabulary(proto.SerializeToString())


def test_the_map_is_small_and_holds_what_the_vocabulary_can_see():
    spec = sentencepiece_model_pb2.ModelProto.FromString(small_device_model()).normalizer_spec
    rules = read_charsmap(spec.precompiled_charsmap)
    assert rules["É"] == "e" and rules["\u0301"] == "" and rules["\u3000"] == " " and rules["ﬁ"] == "fi"
    assert "Ж" not in rules and "豈" not in rules  # unknown before and after
    assert len(small_device_model()) < len(sentencepiece_vocabulary().model) / 2


def test_files(tmp_path):
    vocabulary = sentencepiece_vocabulary()
    AlbertTokenizer(vocabulary).save_device_model(tmp_path / "new" / "device.spm")
    assert (tmp_path / "new" / "device.spm").read_bytes() == small_device_model()  # made twice, the same bytes
    with pytest.raises(InputError, match="exists already"):
        save_device_model(vocabulary, tmp_path / "new" / "device.spm")
    wordpiece_vocabulary().save(tmp_path)
    save_device_model(wordpiece_vocabulary(), tmp_path / "device.txt")
    save_device_model(wordpiece_vocabulary(), tmp_path / "device.txt", overwrite=True)
    assert (tmp_path / "device.txt").read_bytes() == (tmp_path / "vocab.txt").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["device.txt", "new", "vocab.txt"]


def test_published_english_vocabulary(shared_data):
    vocabulary = SentencePieceVocabulary.load(shared_data / "albert_vocab_en" / "30k-clean.model")
    lines = (shared_data / "corpora_en" / "wiki_vital.txt").read_text(encoding="utf-8").splitlines()[::20]
    lines += (shared_data / "glue_canonical" / "SST-2" / "dev.tsv").read_text(encoding="utf-8").splitlines()
    model = device_model(vocabulary)
    assert encode(model, lines) == [vocabulary.encode(line) for line in lines]
    assert encode(vocabulary.model, lines) != encode(model, lines)
    assert len(model) < len(vocabulary.model) - 200_000


def test_japanese_vocabulary(shared_data):
    folder = shared_data / "albert_vocab_ja" / "spm_roymondliao"
    vocabulary = SentencePieceVocabulary.load(folder / "wiki-ja_albert.model")
    lines = (shared_data / "corpora_zh" / "cmrc_contexts.txt").read_text(encoding="utf-8").splitlines()[::10]
    different = sum(
        ids != vocabulary.encode(line) for line, ids in zip(lines, encode(device_model(vocabulary), lines), strict=True)
    )
    assert different <= len(lines) / 1000
