import time

import pytest
from small_vocabularies import LINES

from albert_tf.errors import InputError
from albert_tf.tokenization import training
from albert_tf.tokenization.training import train_sentencepiece


def test_special_pieces_and_size():
    vocabulary = train_sentencepiece(iter(LINES * 20), 140)
    assert vocabulary.size == 140
    first = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "(", ")", '"', "-", ".", "–", "£", "€"]
    assert vocabulary.pieces(list(range(13))) == first
    assert (vocabulary.pad_id, vocabulary.unk_id, vocabulary.cls_id) == (0, 1, 2)
    assert vocabulary.decode(vocabulary.encode(LINES[0])) == LINES[0].lower()


def test_text_rules_are_applied_and_kept():
    assert not [p for p in train_sentencepiece(LINES * 20, 140).pieces(list(range(5, 140))) if p != p.lower()]
    cased = train_sentencepiece(LINES * 20, 140, lower=False, keep_accents=True, quotes=True)
    assert cased.options() == {"lower": False, "keep_accents": True, "quotes": True}
    assert [p for p in cased.pieces(list(range(5, 140))) if p != p.lower()]


def test_same_text_same_model():
    assert train_sentencepiece(LINES * 20, 140).model == train_sentencepiece(LINES * 20, 140).model


def test_long_lines_count_in_full():
    word = "wheelbarrows"
    vocabulary = train_sentencepiece([*LINES * 20, f"{word} " * 3000], 140)
    assert f"▁{word}" in vocabulary.pieces(list(range(140)))


@pytest.mark.parametrize("unit", ["x", "ha"])
def test_a_long_run_without_a_space_takes_no_squared_time(unit):
    started = time.process_time()
    vocabulary = train_sentencepiece([*LINES * 20, unit * 30_000], 150)
    assert time.process_time() - started < 20  # uncut, "x" takes minutes
    assert vocabulary.unk_id not in vocabulary.encode(unit * 3)


def test_largest_size_is_named():
    with pytest.raises(InputError, match=r"vocabulary_size: 5000 is more .* at most (\d+)") as caught:
        train_sentencepiece(LINES * 20, 5000)
    largest = int(str(caught.value).split("at most ")[1].split(",")[0])
    assert train_sentencepiece(LINES * 20, largest).size == largest


def test_smallest_size_is_named():
    with pytest.raises(InputError, match=r"vocabulary_size: 20 is too few .* at least (\d+)") as caught:
        train_sentencepiece(LINES * 20, 20)
    smallest = int(str(caught.value).split("at least ")[1])
    assert train_sentencepiece(LINES * 20, smallest).size == smallest


@pytest.mark.parametrize(("lines", "message"), [([], "found none"), (["", " \t"], "found none"), ("ab", "one string")])
def test_no_text(lines, message):
    with pytest.raises(InputError, match=message):
        train_sentencepiece(lines, 100)


def test_impossible_size():
    with pytest.raises(InputError, match="whole number above 0, got 0"):
        train_sentencepiece(LINES, 0)


def test_lines_are_read_once_and_their_error_is_passed_on():
    def lines():
        yield from LINES * 20
        raise InputError("text.txt, line 161: expected UTF-8 text")

    with pytest.raises(InputError, match="line 161"):
        train_sentencepiece(lines(), 140)
    with pytest.raises(ZeroDivisionError):
        train_sentencepiece((1 // 0 for _ in range(1)), 140)


def test_symbols():
    vocabulary = train_sentencepiece(LINES * 20, 140, symbols=["[e1]", "<e2>"])
    assert vocabulary.pieces([12, 13, 14]) == ["€", "[e1]", "<e2>"]
    assert vocabulary.pieces(vocabulary.encode("the<e2> [E1]"))[-2:] == ["▁", "[e1]"]


@pytest.mark.parametrize(
    ("symbols", "message"),
    [
        (["[E1]"], r"got '\[E1\]'; the text rules make '\[e1\]' of it"),
        (["[MASK]"], "'\\[MASK\\]' is a piece already"),
        (["€"], "'€' is a piece already"),
        (["[a]", "[a]"], "'\\[a\\]' is a piece already"),
        (["a b"], "got 'a b'"),
        (["a▁b"], "got 'a▁b'"),
        ([""], "got ''"),
    ],
)
def test_impossible_symbols(symbols, message):
    with pytest.raises(InputError, match=message):
        train_sentencepiece(LINES * 20, 140, symbols=symbols)


def test_a_text_that_the_trainer_fails_on_is_told() -> None:
    """Its message for 1 MB of random letters without a space, which takes ten seconds to come to."""
    failed = RuntimeError("INTERNAL: src/unigram_model_trainer.cc(211) [std::isfinite(score)] ")
    told = training._explained(failed, 40)
    assert isinstance(told, InputError) and "a sentence or a paragraph a line" in str(told)
    other = RuntimeError("of another kind")
    assert training._explained(other, 40) is other
