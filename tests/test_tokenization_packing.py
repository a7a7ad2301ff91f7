import numpy as np
import pytest
from small_vocabularies import wordpiece_vocabulary

from albert_tf.errors import InputError
from albert_tf.tokenization.packing import pack, pack_offsets, pad_batch, truncated_lengths

VOCABULARY = wordpiece_vocabulary()
CLS, SEP, PAD = VOCABULARY.cls_id, VOCABULARY.sep_id, VOCABULARY.pad_id


def test_one_text():
    assert pack([7, 8, 9], None, VOCABULARY, 10) == ([CLS, 7, 8, 9, SEP], [0] * 5)
    assert pack([7, 8, 9], None, VOCABULARY, 4) == ([CLS, 7, 8, SEP], [0] * 4)
    assert pack([], None, VOCABULARY, 3) == ([CLS, SEP], [0, 0])


def test_two_texts():
    assert pack([7, 8], [9], VOCABULARY, 10) == ([CLS, 7, 8, SEP, 9, SEP], [0, 0, 0, 0, 1, 1])
    assert pack([7, 8], [], VOCABULARY, 10) == ([CLS, 7, 8, SEP, SEP], [0, 0, 0, 0, 1])
    assert pack([7, 8], [9, 10], VOCABULARY, 6) == ([CLS, 7, 8, SEP, 9, SEP], [0, 0, 0, 0, 1, 1])
    assert pack([7, 8], [9, 10], VOCABULARY, 3) == ([CLS, SEP, SEP], [0, 0, 1])


def test_truncation_is_the_original_loop():
    for length_a in range(9):
        for length_b in range(9):
            for room in range(18):
                a, b = length_a, length_b
                while a + b > room:  # _truncate_seq_pair of google-research/albert
                    if a > b:
                        a -= 1
                    else:
                        b -= 1
                assert truncated_lengths(length_a, length_b, room) == (a, b)


def test_offsets_are_packed_like_ids():
    for length_a in range(6):
        for length_b in (None, *range(6)):
            ids_a, ids_b = list(range(10, 10 + length_a)), None if length_b is None else list(range(20, 20 + length_b))
            spans_a, spans_b = ([(i, i + 1) for i in ids or ()] for ids in (ids_a, ids_b))
            for max_length in range(3, 16):
                token_ids, _ = pack(ids_a, ids_b, VOCABULARY, max_length)
                offsets = pack_offsets(spans_a, None if ids_b is None else spans_b, max_length)
                assert offsets == [(i, i + 1) if i >= 10 else (0, 0) for i in token_ids]


def test_padding():
    packed = [pack([7], None, VOCABULARY, 9), pack([7, 8], [9], VOCABULARY, 9)]
    arrays = pad_batch(packed, 5)
    assert {name: array.dtype for name, array in arrays.items()} == dict.fromkeys(arrays, np.dtype("int32"))
    assert arrays["token_ids"].tolist() == [[CLS, 7, SEP, 5, 5, 5], [CLS, 7, 8, SEP, 9, SEP]]
    assert arrays["segment_ids"].tolist() == [[0] * 6, [0, 0, 0, 0, 1, 1]]
    assert arrays["padding_mask"].tolist() == [[1, 1, 1, 0, 0, 0], [1] * 6]
    assert pad_batch(packed, PAD, multiple_of=4)["token_ids"].shape == (2, 8)
    assert pad_batch(packed, PAD, multiple_of=6)["token_ids"].shape == (2, 6)
    assert pad_batch(packed, PAD, length=9)["padding_mask"].sum() == 9
    assert pad_batch([], PAD)["token_ids"].shape == (0, 0)


def test_rows_longer_than_the_length_are_refused():
    with pytest.raises(InputError, match="longest row has 3 tokens, more than 2"):
        pad_batch([pack([7], None, VOCABULARY, 9)], PAD, length=2)
