import random

import numpy as np

from albert_tf.tokenization import key_table
from albert_tf.tokenization.key_table import KeyTable


def test_numbers_are_those_of_a_dict():
    rng = random.Random(0)
    table, expected = KeyTable(), {}
    for size in (0, 1, 100, 5000, 20_000, 7):
        # Many keys come several times; some differ in one half only.
        keys = [(rng.randrange(1, 60), rng.randrange(400)) for _ in range(size)]
        low, high = np.array(keys, np.uint64).reshape(-1, 2).T
        numbers, added = table.look_up(low, high, len(expected))
        for place in added.tolist():
            assert keys[place] not in expected
            expected[keys[place]] = len(expected)
        assert numbers.tolist() == [expected[key] for key in keys]
        assert set(keys) <= set(expected)


def test_keys_with_one_hash(monkeypatch):
    # All want slot 7: what is taken goes to the next.
    monkeypatch.setattr(KeyTable, "_hash", lambda self, low, high: np.full(len(low), 7))
    monkeypatch.setattr(key_table, "_SLOTS", 8)
    table = KeyTable()
    low = np.arange(1, 60, dtype=np.uint64)
    numbers, _ = table.look_up(np.repeat(low, 2), np.repeat(low, 2), 0)
    assert sorted(numbers.tolist()) == sorted([*range(59)] * 2)
    assert np.array_equal(numbers[0::2], numbers[1::2])
    again, added = table.look_up(low, low, 59)
    assert np.array_equal(again, numbers[0::2]) and len(added) == 0
