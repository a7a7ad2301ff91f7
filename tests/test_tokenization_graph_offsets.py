import json

import pytest
import tensorflow as tf
from small_vocabularies import LINES, fuzzed_texts, sentencepiece_vocabulary, wordpiece_vocabulary
from test_tokenization_sentencepiece_model import changed_model
from tokenizer_agreement import disagreements, long_texts

from albert_tf.errors import InputError
from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary
from albert_tf.tokenization.wordpiece import WordPieceVocabulary

SMALL = {
    "sentencepiece": sentencepiece_vocabulary,
    "sentencepiece_cased": lambda: sentencepiece_vocabulary(lower=False),
    "sentencepiece_accents_quotes": lambda: sentencepiece_vocabulary(keep_accents=True, quotes=True),
    "wordpiece": wordpiece_vocabulary,
    "wordpiece_cased": lambda: wordpiece_vocabulary(lower=False),
}


@pytest.mark.parametrize("name", SMALL)
def test_same_spans_as_python(name):
    count = 5000 if name in ("sentencepiece", "wordpiece") else 1500
    texts = [
        *LINES,
        *fuzzed_texts(count, 50),
        *long_texts(5000),
        "a``\u0301b '''' ` ```c",
        "ﬁn ½ ﷺ İ e\u0301\u0301x",
        "12,345,6,",
    ]
    assert disagreements(SMALL[name](), texts) == []


@pytest.mark.parametrize("name", ["sentencepiece", "wordpiece"])
def test_no_text(name):
    encode = SMALL[name]().graph_offset_encoder()
    for texts in ([], ["", " "]):
        ids, spans = encode(tf.constant(texts, tf.string))
        assert ids.to_list() == spans.to_list() == [[]] * len(texts)


def test_long_text_without_a_space():
    assert disagreements(sentencepiece_vocabulary(), long_texts(1_000_000)[3:]) == []


def test_vocabulary_with_an_incomplete_alphabet():
    def rename(proto):
        next(piece for piece in proto.pieces if piece.piece == "h").piece = "hz"

    vocabulary = SentencePieceVocabulary(changed_model(rename))
    with pytest.raises(InputError, match=r"every character of a piece must be a piece itself.*'hz' are not"):
        vocabulary.graph_offset_encoder()


def lines_of(path, column):
    return [row.split("\t")[column] for row in path.read_text(encoding="utf-8").split("\n") if row]


@pytest.mark.parametrize("folder", ["albert_vocab_en", "albert_vocab_zh", "albert_vocab_ja"])
def test_published_vocabularies_on_real_lines(shared_data, folder):
    glue = shared_data / "glue_canonical"
    squad = json.loads((shared_data / "squad2" / "cs224n_dev-v2.0.json").read_text(encoding="utf-8"))
    texts = [paragraph["context"] for article in squad["data"] for paragraph in article["paragraphs"]]
    texts += lines_of(glue / "SST-2" / "dev.tsv", 0) + lines_of(shared_data / "chnsenticorp" / "dev.tsv", 0)
    texts += lines_of(glue / "CoLA" / "dev.tsv", 3) + lines_of(glue / "CoLA" / "train.tsv", 3)
    path = next((shared_data / folder).rglob("*.model"), shared_data / folder / "vocab.txt")
    vocabulary = (WordPieceVocabulary if path.suffix == ".txt" else SentencePieceVocabulary).load(path)
    assert len(texts) > 10_000
    assert disagreements(vocabulary, [*texts, *fuzzed_texts(2000, 51)]) == []
