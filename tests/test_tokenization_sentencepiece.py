import io
import json
import pickle

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from small_vocabularies import LINES, fuzzed_texts, sentencepiece_vocabulary

from albert_tf.errors import InputError
from albert_tf.tokenization.rules import normalize
from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary


def original_ids(vocabulary, processor, text):
    """encode_pieces and encode_ids of google-research/albert, written out, on what sentencepiece itself answers."""
    pieces = []
    for piece in processor.encode(normalize(text, **vocabulary.options()), out_type=str):
        if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            cut = processor.encode(piece[:-1].replace("▁", ""), out_type=str)
            if piece[0] != "▁" and cut[0][0] == "▁":
                cut = cut[1:] if len(cut[0]) == 1 else [cut[0][1:], *cut[1:]]
            pieces += [*cut, ","]
        else:
            pieces.append(piece)
    return [processor.piece_to_id(piece) for piece in pieces]


def changed_model(change):
    """The small vocabulary's model with something wrong in it."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(sentencepiece_vocabulary().model)
    change(proto)
    return proto.SerializeToString()


def lines_of(path, column):
    rows = path.read_text(encoding="utf-8").split("\n")
    return [row.split("\t")[column] for row in rows if row]


@pytest.mark.parametrize("options", [{}, {"lower": False}, {"keep_accents": True}, {"quotes": True}], ids=str)
def test_ids_of_sentencepiece(options):
    vocabulary = sentencepiece_vocabulary(**options)
    processor = sentencepiece.SentencePieceProcessor(model_proto=vocabulary.model)
    for text in [*LINES, "9,000 and 12,345,678, or 0,", "(a) - b.", "ÉLAN ``q''", "x" * 3000, *LINES[0].split()]:
        assert vocabulary.encode(text) == original_ids(vocabulary, processor, text), text


def test_published_ids(shared_data):
    path = shared_data / "albert_vocab_en" / "30k-clean.model"
    cases = json.loads((path.parent / "golden_token_ids.json").read_text(encoding="utf-8"))
    assert len(cases) == 5
    for case in cases:
        vocabulary = SentencePieceVocabulary.load(path, keep_accents=case.get("keep_accents", False))
        ids = vocabulary.encode(case["text"])
        if case.get("special", True):
            ids = [vocabulary.cls_id, *ids, vocabulary.sep_id]
        assert ids == case["ids"], case["text"]


def test_published_vocabulary_on_real_lines(shared_data):
    vocabulary = SentencePieceVocabulary.load(shared_data / "albert_vocab_en" / "30k-clean.model")
    processor = sentencepiece.SentencePieceProcessor(model_proto=vocabulary.model)
    glue = shared_data / "glue_canonical"
    texts = [*lines_of(glue / "SST-2" / "dev.tsv", 0), *lines_of(glue / "CoLA" / "dev.tsv", 3), "In 92,000, 9,9, 5,"]
    for text in [*texts, " ".join(texts[:500])]:
        assert vocabulary.encode(text) == original_ids(vocabulary, processor, text), text
    assert vocabulary.pieces(vocabulary.encode("Hello 1999, x")) == ["▁hello", "▁1999", ",", "▁x"]
    assert vocabulary.size == 30000


def test_any_string_is_encoded():
    vocabulary = sentencepiece_vocabulary()
    for text in fuzzed_texts(500, 4):
        assert all(5 <= index < vocabulary.size or index == vocabulary.unk_id for index in vocabulary.encode(text))
    assert vocabulary.encode("") == vocabulary.encode(" \n\u3000") == []
    assert vocabulary.encode("\ud800") == vocabulary.encode("\ufffd")
    assert len(vocabulary.encode("mill " * 10_000)) == 10_000 * len(vocabulary.encode("mill"))
    assert not {2, 3, 4} & set(vocabulary.encode("[CLS] [SEP] [MASK] <pad>"))


def test_decode_and_pieces():
    vocabulary = sentencepiece_vocabulary()
    ids = vocabulary.encode("The great Wheel")
    assert vocabulary.decode([2, *ids, 1, 3, 0, 0]) == "the great wheel"
    assert "".join(vocabulary.pieces(ids)) == "▁the▁great▁wheel"
    assert vocabulary.pieces([4, 0]) == ["[MASK]", "<pad>"]
    for call in (vocabulary.decode, vocabulary.pieces):
        for wrong in (140, -1):
            with pytest.raises(InputError, match=rf"token id {wrong}: expected 0 to 139"):
                call([5, wrong])


def test_save_and_load(tmp_path):
    vocabulary = sentencepiece_vocabulary(keep_accents=True)
    vocabulary.save(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["vocabulary.spm"]
    loaded = SentencePieceVocabulary.load(tmp_path / "vocabulary.spm", **vocabulary.options())
    assert loaded.model == vocabulary.model
    assert loaded.encode("Café") == vocabulary.encode("Café")
    with pytest.raises(InputError, match="exists already"):
        vocabulary.save(tmp_path)
    vocabulary.save(tmp_path, overwrite=True)


def test_pickled_for_other_processes():
    vocabulary = sentencepiece_vocabulary()
    assert pickle.loads(pickle.dumps(vocabulary)).encode(LINES[1]) == vocabulary.encode(LINES[1])


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


@pytest.mark.parametrize("content", [b"", b"not a model", bytes(range(256)) * 40])
def test_not_a_model(tmp_path, content):
    (tmp_path / "x.model").write_bytes(content)
    with pytest.raises(InputError, match=r"x\.model: expected a SentencePiece model"):
        SentencePieceVocabulary.load(tmp_path / "x.model")


def test_no_such_file(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*none\.model: No such file"):
        SentencePieceVocabulary.load(tmp_path / "none.model")


def test_models_without_a_normaliser():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES * 20),
        model_writer=model,
        vocab_size=160,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        normalization_rule_name="identity",
        minloglevel=2,
    )
    vocabulary = SentencePieceVocabulary(model.getvalue(), lower=False, keep_accents=True)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    for line in LINES:
        assert vocabulary.encode(line) == original_ids(vocabulary, processor, line)
