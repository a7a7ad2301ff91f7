import pickle

import pytest
from offset_checks import check_spans
from small_vocabularies import TOKENS, fuzzed_texts, wordpiece_vocabulary

from albert_tf.errors import InputError
from albert_tf.tokenization.wordpiece import WordPieceVocabulary

SPECIAL = TOKENS[:5]


def pieces_of(text, **options):
    vocabulary = wordpiece_vocabulary(**options)
    return vocabulary.pieces(vocabulary.encode(text))


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("我爱中国。", ["我", "爱", "中", "国", "。"]),
        ("The mills!", ["the", "mill", "##s", "!"]),
        ("Café cafés", ["cafe", "cafe", "##s"]),
        ("aaaa", ["a", "##aa", "##a"]),  # the longest first, not the fewest
        ("abb", ["ab", "##b"]),
        ("millx the", ["mill", "##x", "the"]),
        ("millz the", ["[UNK]", "the"]),
        ("ΟΔΥΣΣ ΟΔΥΣ. Σ", ["ο", "##δ", "##υ", "##σ", "##ς", "ο", "##δ", "##υ", "##ς", ".", "σ"]),
        ("한", ["ᄒ", "##ᅡ", "##ᆫ"]),  # NFD, as in the original
        ("😀", ["😀"]),
        ("[MASK]", ["[UNK]", "[UNK]", "[UNK]"]),
        ("\u2028a\0b\ud800", ["ab"]),
        ("", []),
    ],
)
def test_pieces(text, pieces):
    assert pieces_of(text) == pieces


def test_cased():
    assert pieces_of("The Café the", lower=False) == ["The", "[UNK]", "the"]
    assert pieces_of("café", lower=False) == ["café"]


def test_words_of_more_than_200_characters_are_unknown():
    assert pieces_of("x" * 200) == ["x"] + ["##x"] * 199
    assert pieces_of("x" * 201 + " a") == ["[UNK]", "a"]


def test_any_string_is_encoded():
    vocabulary = wordpiece_vocabulary()
    for text in fuzzed_texts(500, 5):
        assert all(0 <= index < vocabulary.size for index in vocabulary.encode(text))
    assert len(vocabulary.encode("mills " * 10_000)) == 20_000


def test_many_texts_are_as_each_alone():
    for lower in (True, False):
        vocabulary = wordpiece_vocabulary(lower=lower)
        texts = [*fuzzed_texts(3000, 60), "mills " * 1000, "x" * 201, "", "我爱the mills中国"]
        assert WordPieceVocabulary(TOKENS, lower=lower).encode_batch(texts) == list(map(vocabulary.encode, texts))


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("我爱 the Mills!", ["我", "爱", "the", "Mill", "s", "!"]),
        ("Cafe\u0301s, CAFÉ", ["Cafe\u0301", "s", ",", "CAFÉ"]),
        ("a\0bb\u200b the", ["a\0b", "b\u200b", "the"]),
        ("한 millz", ["한", "한", "한", "millz"]),
        ("ΟΔΥΣΣ.", ["Ο", "Δ", "Υ", "Σ", "Σ", "."]),
        ("", []),
    ],
)
def test_offsets(text, pieces):
    _, spans = wordpiece_vocabulary().encode_with_offsets(text)
    assert [text[start:end] for start, end in spans] == pieces


@pytest.mark.parametrize("lower", [True, False])
def test_offsets_of_any_text(lower):
    vocabulary = wordpiece_vocabulary(lower=lower)
    for text in [*fuzzed_texts(2000, 61), "x" * 201, "İİ 我İ", "e\u0301\u0301\u200b 中\u0301国"]:
        check_spans(vocabulary, text)


def test_decode():
    vocabulary = wordpiece_vocabulary()
    assert vocabulary.decode(vocabulary.encode("我爱 the mills, 中国。")) == "我爱 the mills 中国 。"
    assert vocabulary.decode([2, *vocabulary.encode("the wheel"), 1, 3, 0]) == "the wheel"
    with pytest.raises(InputError, match=f"token id {vocabulary.size}: expected 0 to {vocabulary.size - 1}"):
        vocabulary.decode([vocabulary.size])


def test_save_and_load(tmp_path):
    vocabulary = wordpiece_vocabulary(lower=False)
    vocabulary.save(tmp_path)
    loaded = WordPieceVocabulary.load(tmp_path / "vocab.txt", **vocabulary.options())
    assert (loaded.tokens, loaded.lower) == (TOKENS, False)  # U+2028, a line end to str.splitlines, is one of them
    assert (loaded.pad_id, loaded.unk_id, loaded.cls_id, loaded.sep_id, loaded.mask_id) == (0, 1, 2, 3, 4)
    with pytest.raises(InputError, match="exists already"):
        vocabulary.save(tmp_path)


def test_pickled_for_other_processes():
    vocabulary = wordpiece_vocabulary()
    assert pickle.loads(pickle.dumps(vocabulary)).encode_batch(["the mills"]) == [vocabulary.encode("the mills")]


def test_line_ends_and_counts_are_no_part_of_a_token(tmp_path):
    (tmp_path / "vocab.txt").write_bytes("\r\n".join([*SPECIAL, "a\t17", "##b 3"]).encode() + b"\r\n")
    assert WordPieceVocabulary.load(tmp_path / "vocab.txt").tokens == [*SPECIAL, "a", "##b"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([*SPECIAL, "a", "b", "a"], r"vocab\.txt, line 8: 'a' stands on line 6 already"),
        ([*SPECIAL, "a", "", "b"], r"vocab\.txt, line 7: expected a token, found ''"),
        (["[PAD]", "[UNK]", "[CLS]", "a"], r"\[SEP\], \[MASK\] missing among 4 lines"),
        ([], "line 1: expected a token"),
    ],
)
def test_bad_files(tmp_path, lines, message):
    (tmp_path / "vocab.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=message):
        WordPieceVocabulary.load(tmp_path / "vocab.txt")


def test_published_vocabulary(shared_data):
    vocabulary = WordPieceVocabulary.load(shared_data / "albert_vocab_zh" / "vocab.txt")
    assert vocabulary.size == 21128
    assert [vocabulary.pad_id, vocabulary.unk_id, vocabulary.cls_id, vocabulary.sep_id, vocabulary.mask_id] == [
        *(0, 100, 101, 102, 103)
    ]
    # Ids of bert-base-chinese, which has the same vocabulary.
    assert vocabulary.encode("你好，世界") == [872, 1962, 8024, 686, 4518]
    rows = (shared_data / "chnsenticorp" / "dev.tsv").read_text(encoding="utf-8").split("\n")
    ids = [index for row in rows for index in vocabulary.encode(row.split("\t")[0])]
    assert len(ids) > 100_000
    assert ids.count(vocabulary.unk_id) < 0.005 * len(ids)
    for row in rows[1:200]:
        check_spans(vocabulary, row.split("\t")[0])
