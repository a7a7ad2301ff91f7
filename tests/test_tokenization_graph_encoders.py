import pytest
import tensorflow as tf
from small_vocabularies import LINES, fuzzed_texts, sentencepiece_vocabulary, wordpiece_vocabulary

from albert_tf.tokenization.rules import to_utf8
from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary
from albert_tf.tokenization.wordpiece import WordPieceVocabulary

SMALL = {
    "sentencepiece": sentencepiece_vocabulary,
    "sentencepiece_cased": lambda: sentencepiece_vocabulary(lower=False),
    "sentencepiece_accents_quotes": lambda: sentencepiece_vocabulary(keep_accents=True, quotes=True),
    "wordpiece": wordpiece_vocabulary,
    "wordpiece_cased": lambda: wordpiece_vocabulary(lower=False),
}
REPEATED = [
    a + c * k + b for c in ("0", "!", "ha", "11,", "=", "o") for k in range(1, 40) for a, b in ((("", "")), ("😀", "–"))
]


def different(vocabulary, texts):
    """The texts whose ids differ between the graph and Python."""
    encoder = tf.function(vocabulary.graph_encoder(), input_signature=[tf.TensorSpec([None], tf.string)])
    ids = encoder(tf.constant([to_utf8(text) for text in texts]))
    assert ids.dtype == tf.int32
    return [text for text, row in zip(texts, ids.to_list(), strict=True) if row != vocabulary.encode(text)]


@pytest.mark.parametrize("name", SMALL)
def test_same_ids_as_python(name):
    between = [f"the{chr(code_point)}Mill" for code_point in range(256)]
    texts = [*LINES, *between, *REPEATED, *fuzzed_texts(3000, 6), "mill " * 10_000, "x" * 5000, "中" * 5000]
    assert different(SMALL[name](), texts) == []


@pytest.mark.parametrize("name", ["sentencepiece", "wordpiece"])
def test_same_ids_as_python_for_every_character(name):
    blocks = [" ".join(map(chr, range(start, start + 512))) for start in range(0, 0x30000, 512)]
    assert different(SMALL[name](), blocks) == []


@pytest.mark.parametrize("name", ["sentencepiece", "wordpiece"])
def test_no_text(name):
    encoder = SMALL[name]().graph_encoder()
    assert encoder(tf.constant([], tf.string)).to_list() == []
    assert encoder(tf.constant(["", " "])).to_list() == [[], []]


@pytest.mark.parametrize("folder", ["albert_vocab_en", "albert_vocab_zh", "albert_vocab_ja"])
def test_published_vocabularies(shared_data, folder):
    path = next((shared_data / folder).rglob("*.model"), shared_data / folder / "vocab.txt")
    vocabulary = (WordPieceVocabulary if path.suffix == ".txt" else SentencePieceVocabulary).load(path)
    files = {"glue_canonical/SST-2/dev.tsv": 0, "glue_canonical/CoLA/dev.tsv": 3, "chnsenticorp/dev.tsv": 0}
    rows = [(shared_data / file, column) for file, column in files.items()]
    texts = [row.split("\t")[c] for file, c in rows for row in file.read_text(encoding="utf-8").split("\n") if row]
    assert len(texts) > 3000
    assert different(vocabulary, [*texts, *REPEATED, *fuzzed_texts(3000, 7)]) == []
