import pickle
import threading
from array import array

import pytest
from small_vocabularies import LINES, fuzzed_texts

from albert_tf.tokenization import word_table
from albert_tf.tokenization.rules import without_surrogates
from albert_tf.tokenization.word_table import WordTable

TEXTS = [
    *LINES,
    *fuzzed_texts(2000, 20),
    *("exactly16bytes__", "exactly16bytes___", "a", "a\0", "a\0\0", "\0", "é" * 8, "é" * 9, "", " \t"),
    *("a\x0bb\x1cc\x85d\u3000e", "x" * 500, "\n", "a\n\nb\n", "\ud800 \ufffd"),
]


def ids_of(words):
    """Something to know a word by: its code points, twice those of capitals; the empty list for "skip"."""
    return [array("i", [] if word == "skip" else [*map(ord, word)] * (1 + word.istitle())).tobytes() for word in words]


def expected(texts):
    return [list(array("i", b"".join(ids_of(without_surrogates(text).split())))) for text in texts]


def test_ids_of_all_words():
    table = WordTable(ids_of)
    for _ in range(2):
        assert table.encode(TEXTS) == expected(TEXTS)
    assert table.encode(["skip a skip", "skip", "a"]) == [[97], [], [97]]
    assert table.encode([]) == [] and table.encode([""]) == [[]]
    assert table.encode(TEXTS[::-1]) == expected(TEXTS)[::-1]


def test_each_word_is_asked_for_once():
    asked = []

    def find(words):
        asked.extend(words)
        return ids_of(words)

    table = WordTable(find)
    table.encode(TEXTS)
    table.encode([*TEXTS, "one more"])
    assert sorted(asked) == sorted({word for text in [*TEXTS, "one more"] for word in without_surrogates(text).split()})


def test_small_portions_and_a_small_memory(monkeypatch):
    monkeypatch.setattr(word_table, "_PORTION", 50)
    monkeypatch.setattr(word_table, "_TOGETHER", 3)
    monkeypatch.setattr(word_table, "_MOST_WORDS", 40)
    assert WordTable(ids_of).encode(TEXTS) == expected(TEXTS)
    monkeypatch.setattr(word_table, "_MOST_BYTES", 30)
    assert WordTable(ids_of).encode(TEXTS) == expected(TEXTS)


def test_goes_on_after_an_error():
    failing = True

    def find(words):
        if failing:
            raise ValueError("no")
        return ids_of(words)

    table = WordTable(find)
    with pytest.raises(ValueError, match="no"):
        table.encode(TEXTS)
    failing = False
    assert table.encode(TEXTS) == expected(TEXTS)


def test_threads(monkeypatch):
    monkeypatch.setattr(word_table, "_PORTION", 200)
    monkeypatch.setattr(word_table, "_MOST_WORDS", 300)
    table, results = WordTable(ids_of), {}

    def work(number):
        results[number] = table.encode(TEXTS[number:] + TEXTS[:number])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: expected(TEXTS[number:] + TEXTS[:number]) for number in range(8)}


def test_pickled():
    table = WordTable(ids_of)
    table.encode(TEXTS)
    assert len(pickle.dumps(table)) < 200
    assert pickle.loads(pickle.dumps(table)).encode(["a b"]) == [[97, 98]]
