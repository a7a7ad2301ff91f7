import io
import json
import pickle
import random
import threading

import pytest
import sentencepiece
from offset_checks import check_spans
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


@pytest.mark.parametrize("options", [{}, {"lower": False}, {"keep_accents": True, "quotes": True}], ids=str)
def test_many_texts_are_as_each_alone(options):
    vocabulary = sentencepiece_vocabulary(**options)
    texts = [*LINES, *fuzzed_texts(3000, 31), "mill " * 10_000, "x" * 5000, "9,000 " * 3]
    expected = list(map(vocabulary.encode, texts))
    # From a vocabulary that has seen nothing yet, and from one that has.
    fresh = SentencePieceVocabulary(vocabulary.model, **vocabulary.options())
    assert fresh.encode_batch(texts) == fresh.encode_batch(texts) == expected
    assert vocabulary.encode_batch([]) == []


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        (" The  wheel", [("▁the", "The"), ("▁wh", "wh"), ("ee", "ee"), ("l", "l")]),
        ("Thé", [("▁the", "Thé")]),
        ("The\u0301 the", [("▁the", "The\u0301"), ("▁the", "the")]),
        ("THE\u200b\u3000the", [("▁the", "THE"), ("▁the", "the")]),
        ("the\u200bthe", [("▁the", "the"), ("▁the", "the")]),
        ("▁the▁", [("▁the", "the")]),
        ("ﬁ", [("▁", ""), ("f", "ﬁ"), ("i", "ﬁ")]),
        ("222, ", [("▁22", "22"), ("2", "2"), (",", ",")]),
        ("\u0130q", [("▁", ""), ("i", "\u0130"), ("<unk>", "q")]),
    ],
)
def test_offsets(text, pieces):
    vocabulary = sentencepiece_vocabulary()
    ids, spans = vocabulary.encode_with_offsets(text)
    found = [(piece, text[start:end]) for piece, (start, end) in zip(vocabulary.pieces(ids), spans, strict=True)]
    assert found == pieces


@pytest.mark.parametrize("options", [{}, {"lower": False}, {"keep_accents": True, "quotes": True}], ids=str)
def test_offsets_of_any_text(options):
    vocabulary = sentencepiece_vocabulary(**options)
    for text in [*LINES, *fuzzed_texts(2000, 32), "ﬁn ﬃ ½ ﷺ İ e\u0301\u0301x ``a'' ''''b", "1,23,4 ٣, 12,"]:
        check_spans(vocabulary, text)


def test_offsets_of_published_vocabularies(shared_data):
    squad = json.loads((shared_data / "squad2" / "cs224n_dev-v2.0.json").read_text(encoding="utf-8"))
    contexts = [paragraph["context"] for article in squad["data"] for paragraph in article["paragraphs"]][:200]
    for path in [
        *(shared_data / "albert_vocab_en").glob("*.model"),
        *(shared_data / "albert_vocab_ja").rglob("*.model"),
    ]:
        vocabulary = SentencePieceVocabulary.load(path)
        for text in [*contexts, *fuzzed_texts(1000, 33)]:
            check_spans(vocabulary, text)


def test_used_by_threads():
    vocabulary = sentencepiece_vocabulary()
    shared = SentencePieceVocabulary(vocabulary.model)
    texts = [*LINES, *fuzzed_texts(300, 34)]
    expected = [vocabulary.encode_with_offsets(text) for text in texts]
    results = {}

    def work(number):
        rows = [shared.encode_with_offsets(text) for text in texts]
        results[number] = (shared.encode_batch(texts), [shared.encode(text) for text in texts], rows)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = [row[0] for row in expected]
    assert results == {number: (ids, ids, expected) for number in range(6)}


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
    processor = sentencepiece.SentencePieceProcessor(model_proto=vocabulary.model)
    rng = random.Random(0)
    for _ in range(300):
        drawn = rng.choices(range(5, 140), k=rng.randrange(8))
        assert vocabulary.decode(drawn) == processor.decode(drawn)
    for line in LINES:
        if 1 not in (ids_of_line := vocabulary.encode(line)):
            normalized = processor.normalize(normalize(line, **vocabulary.options()))
            assert vocabulary.decode(ids_of_line) == normalized.replace("▁", " ").strip()
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
