import random
import string

import pytest
from sentencepiece import sentencepiece_model_pb2
from small_vocabularies import fuzzed_texts, sentencepiece_vocabulary, unigram_model

from albert_tf.tokenization import package_search
from albert_tf.tokenization.package_search import END, PackageSearch, is_known_search
from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary


def search_of(scores):
    """Pieces with these scores and the ids 1, 2, 3 …; 0 is unknown."""
    proto = sentencepiece_model_pb2.ModelProto()
    proto.pieces.add(piece="<unk>", type=proto.SentencePiece.UNKNOWN)
    for piece, score in scores.items():
        proto.pieces.add(piece=piece, score=score)
    return PackageSearch(proto, 0)


def rows(count):
    return [*(index.to_bytes(4, "little") for index in range(count)), END]


@pytest.mark.parametrize("alphabet", ["ab", "▁abcé", "ab中😀xyz"])
def test_segments_as_unigram_does(alphabet):
    rng = random.Random(0)
    pieces = [*alphabet, *sorted({"".join(rng.choices(alphabet, k=rng.randrange(2, 6))) for _ in range(40)})]
    # Few different scores, so that there are many ties.
    scores = {piece: -rng.randrange(4, 9) / 3 for piece in pieces}
    model, search = unigram_model(scores), search_of(scores)
    words = ["".join(rng.choices(alphabet, k=rng.randrange(30))) for _ in range(3000)]
    assert all(map(search.takes, words))
    expected = [model.segment(word)[0] for word in words]
    assert list(map(search.encode, words)) == expected
    lines = search.rows_of("".join(f"{word}\n" for word in words), rows(len(scores) + 1))
    assert [memoryview(line).cast("i").tolist() for line in lines] == expected


def test_published_vocabulary(shared_data):
    vocabulary = SentencePieceVocabulary.load(shared_data / "albert_vocab_en" / "30k-clean.model")
    words, rng = vocabulary.words, random.Random(1)
    # Repetitions make ties, long words great sums.
    texts = [
        "▁" + rng.choice(string.ascii_lowercase + string.digits + "!,.-") * rng.randrange(1, 40) for _ in range(2000)
    ]
    texts += ["▁" + "".join(rng.choices(string.ascii_lowercase, k=5000)), "▁" + "haha9," * 800]
    assert all(map(words._package.takes, texts))
    for text in texts:
        assert words._package.encode(text) == words.unigram.segment(text)[0], text


def test_takes():
    search = search_of({"▁": -1.0, "a": -2.0, "bc": -3.0, "d": -20_000.0})
    assert search.longest == 4
    assert [search.takes(word) for word in ("", "▁a", "▁ada", "▁aaaa", "b", "bc", "é", "a\n")] == [True] * 3 + [
        False
    ] * 5


def test_a_vocabulary_that_it_takes_nothing_of():
    assert not search_of({"a": -1.0, "\n": -2.0}).takes("a")  # it would be the piece between words


def test_releases_with_another_search(monkeypatch):
    """The ids do not depend on the package."""
    vocabulary = sentencepiece_vocabulary()
    monkeypatch.setattr(package_search, "is_known_search", lambda: False)
    other = SentencePieceVocabulary(vocabulary.model)
    texts = fuzzed_texts(2000, 60)
    assert not other.words._package.takes("▁the")
    assert other.encode_batch(texts) == vocabulary.encode_batch(texts)
    assert list(map(other.encode_with_offsets, texts)) == list(map(vocabulary.encode_with_offsets, texts))


def test_installed_release():
    assert is_known_search()  # of the versions in constraints.txt; else encoding is right, but slower
