import pickle
import sys
import threading

import pytest

from albert_tf.tokenization import remembered
from albert_tf.tokenization.remembered import RememberedWords


def lengths(words):
    return [len(word) for word in words]


def test_each_word_is_asked_for_once():
    asked = []

    def find(words):
        asked.append(sorted(words))
        return lengths(words)

    memory = RememberedWords(find)
    assert memory.look_up(["a", "bb", "a"]) == [1, 2, 1]
    assert memory.look_up(["bb", "ccc", "a", "ccc"]) == [2, 3, 1, 3]
    assert memory.look_up(["a", "ccc"]) == [1, 3]
    assert memory.look_up([]) == []
    assert asked == [["a", "bb"], ["ccc"]]


def test_memory_is_limited(monkeypatch):
    monkeypatch.setattr(remembered, "_MOST_WORDS", 10)
    memory = RememberedWords(lengths)
    for start in range(100):
        words = [f"{number}" for number in range(start, start + 5)] + ["x" * 1000]
        assert memory.look_up(words) == lengths(words)
        assert len(memory._known) <= 10 and "x" * 1000 not in memory._known


def test_goes_on_after_an_error():
    failing = True

    def find(words):
        if failing:
            raise ValueError("no")
        return lengths(words)

    memory = RememberedWords(find)
    with pytest.raises(ValueError, match="no"):
        memory.look_up(["a"])
    failing = False
    assert memory.look_up(["a"]) == [1]


def test_threads(monkeypatch):
    monkeypatch.setattr(remembered, "_MOST_WORDS", 20)
    memory, wrong, finished = RememberedWords(lengths), [], []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # the threads get in each other's way as often as can be

    def work(number):
        for start in range(400):
            words = ["x" * ((start * number + i) % 30) for i in range(9)]
            if memory.look_up(words) != lengths(words):
                wrong.append(words)
        finished.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert wrong == [] and len(finished) == len(threads)


def test_pickled_without_its_memory():
    memory = RememberedWords(lengths)
    memory.look_up([str(number) for number in range(1000)])
    assert len(pickle.dumps(memory)) < 200
    assert pickle.loads(pickle.dumps(memory)).look_up(["ab"]) == [2]
