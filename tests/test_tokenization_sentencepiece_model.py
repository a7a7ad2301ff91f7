import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from small_vocabularies import LINES, fuzzed_texts, sentencepiece_vocabulary

from albert_tf.errors import InputError
from albert_tf.tokenization.charsmap import compile_charsmap
from albert_tf.tokenization.rules import without_surrogates
from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary
from albert_tf.tokenization.sentencepiece_model import changes_ascii, normalizer_of, parse_model


def changed_model(change):
    """The small vocabulary's model with something wrong in it."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(sentencepiece_vocabulary().model)
    change(proto)
    return proto.SerializeToString()


@pytest.mark.parametrize("piece", ["<pad>", "[CLS]", "[SEP]", "[MASK]"])
def test_missing_special_piece(piece):
    def rename(proto):
        next(p for p in proto.pieces if p.piece == piece).piece = "other"

    with pytest.raises(InputError, match=rf"; {piece.replace('[', '.').replace(']', '.')} missing"):
        SentencePieceVocabulary(changed_model(rename))


def set_type(proto):
    proto.trainer_spec.model_type = proto.trainer_spec.BPE


def set_prefix(proto):
    proto.normalizer_spec.add_dummy_prefix = False


def join_words(proto):
    proto.pieces[30].piece = "of▁the"


def make_unused(proto):
    proto.pieces[31].type = sentencepiece_model_pb2.ModelProto.SentencePiece.UNUSED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_type, "with model_type=unigram"),
        (set_prefix, "with add_dummy_prefix=true"),
        (join_words, "piece 30 'of▁the' spans a space"),
        (make_unused, "piece 31 .* of a type"),
    ],
)
def test_models_of_another_form(change, message):
    with pytest.raises(InputError, match=message):
        SentencePieceVocabulary(changed_model(change))


def lengthen(proto):
    proto.pieces[30].piece = "x" * 129


def overrate(proto):
    proto.pieces[30].score = 1e7


@pytest.mark.parametrize(
    ("change", "message"),
    [(lengthen, "piece 30 'xxxxxxxxxxxxxxxxxxxx' has 129 characters"), (overrate, "and the score 1e[+]07")],
)
def test_pieces_that_no_training_gives(change, message):
    """All beginnings of a piece may be kept in memory: of one of a million characters, gigabytes of a small file."""
    with pytest.raises(InputError, match=message):
        SentencePieceVocabulary(changed_model(change))


def test_pieces_that_are_no_text():
    """protobuf gives them as bytes."""
    model = sentencepiece_vocabulary().model
    piece = sentencepiece_model_pb2.ModelProto.FromString(model).pieces[40].piece.encode()
    assert model.count(b"\n" + bytes([len(piece)]) + piece) == 1
    with pytest.raises(InputError, match="piece 40 is no UTF-8 text; the file is damaged"):
        SentencePieceVocabulary(
            model.replace(b"\n" + bytes([len(piece)]) + piece, b"\n" + bytes([len(piece)]) + b"\xff" * len(piece))
        )


def test_a_map_whose_trie_has_no_end():
    """A unit whose child is itself, by the label a."""
    unit = ord("a") | (1 << 10)
    units = [0x400 * 4] + [unit] * 4096
    looped = len(units) * 4
    assert changes_ascii(looped.to_bytes(4, "little") + b"".join(u.to_bytes(4, "little") for u in units)) is False


@pytest.mark.parametrize("content", [b"", b"not a model", bytes(range(256)) * 40])
def test_not_a_model(tmp_path, content):
    (tmp_path / "x.model").write_bytes(content)
    with pytest.raises(InputError, match=r"x\.model: expected a SentencePiece model"):
        SentencePieceVocabulary.load(tmp_path / "x.model")


def test_no_such_file(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*none\.model: No such file"):
        SentencePieceVocabulary.load(tmp_path / "none.model")


def test_normalizer_of_a_model():
    model = sentencepiece_vocabulary().model
    small, whole = normalizer_of(parse_model(model, "")), sentencepiece.SentencePieceProcessor(model_proto=model)
    for text in [*LINES, *fuzzed_texts(500, 30)]:
        for word in without_surrogates(text).split():
            assert small.normalize(word) == whole.normalize(word)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({}, False),
        ({"é": "e", "e\u0301": "é", "\x01": "", "\t": " "}, False),
        ({"Q": "q"}, True),
        ({"é": "e", "...": "…"}, True),
    ],
)
def test_changes_ascii(rules, expected):
    assert changes_ascii(compile_charsmap(rules) if rules else b"") is expected


def test_maps_that_change_ascii():
    def add_rule(proto):
        proto.normalizer_spec.precompiled_charsmap = compile_charsmap({"hh": "h"})

    vocabulary = SentencePieceVocabulary(changed_model(add_rule))
    assert vocabulary.encode("hhe mill") == vocabulary.encode_batch(["hhe mill"])[0] == vocabulary.encode("he mill")
    assert vocabulary.encode_with_offsets("hhe")[1][-1][1] == 3
