import collections
import random

import pytest
from small_vocabularies import wordpiece_vocabulary

from albert_tf.tokenization.windows import max_context, window_bounds, windows

VOCABULARY = wordpiece_vocabulary()
CLS, SEP = VOCABULARY.cls_id, VOCABULARY.sep_id


def original_spans(count, room, doc_stride):
    """The doc_spans loop of google-research/albert's convert_examples_to_features, written out."""
    Span = collections.namedtuple("Span", ["start", "length"])
    spans, start_offset = [], 0
    while start_offset < count:
        length = min(count - start_offset, room)
        spans.append(Span(start_offset, length))
        if start_offset + length == count:
            break
        start_offset += min(length, doc_stride)
    return spans


def original_is_max_context(doc_spans, cur_span_index, position):
    """_check_is_max_context of google-research/albert, written out."""
    best_score, best_span_index = None, None
    for span_index, doc_span in enumerate(doc_spans):
        end = doc_span.start + doc_span.length - 1
        if position < doc_span.start or position > end:
            continue
        score = min(position - doc_span.start, end - position) + 0.01 * doc_span.length
        if best_score is None or score > best_score:
            best_score, best_span_index = score, span_index
    return cur_span_index == best_span_index


def test_bounds_and_context_are_the_original():
    rng = random.Random(0)
    for _ in range(500):
        count, room, doc_stride = rng.randrange(1, 60), rng.randrange(1, 30), rng.randrange(1, 30)
        spans = original_spans(count, room, doc_stride)
        bounds = window_bounds(count, room, doc_stride)
        assert bounds == [(span.start, span.start + span.length) for span in spans]
        assert max_context(bounds) == [
            [original_is_max_context(spans, number, place) for place in range(span.start, span.start + span.length)]
            for number, span in enumerate(spans)
        ]


def test_no_text():
    assert window_bounds(0, 5, 2) == [(0, 0)]
    assert max_context([(0, 0)]) == [[]]


def test_one_text():
    ids, spans = list(range(30, 37)), [(i, i + 1) for i in range(7)]
    first, second = windows(None, (ids, spans), VOCABULARY, 7, 3)
    assert first == ([CLS, *ids[:5], SEP], [0] * 7, [(0, 0), *spans[:5], (0, 0)], 0, 1, 6, first.max_context)
    assert second == ([CLS, *ids[3:], SEP], [0] * 6, [(0, 0), *spans[3:], (0, 0)], 3, 1, 5, second.max_context)
    assert first.max_context == [False, True, True, True, True, False, False]  # token 4 is one from both edges
    assert second.max_context == [False, False, True, True, True, False]


def test_question_and_text():
    ids, spans = list(range(30, 37)), [(i, i + 1) for i in range(7)]
    found = windows(([7, 8], [(0, 3), (4, 5)]), (ids, spans), VOCABULARY, 10, 2)
    assert [window.token_ids for window in found] == [
        [CLS, 7, 8, SEP, *ids[start : start + 5], SEP] for start in (0, 2)
    ]
    for window in found:
        assert window.segment_ids == [0] * 4 + [1] * 6
        assert window.offsets[:4] == [(0, 0), (0, 3), (4, 5), (0, 0)] and window.offsets[-1] == (0, 0)
        own = slice(window.text_start, window.text_end)
        assert window.token_ids[own] == ids[window.first_token : window.first_token + 5]
        assert window.offsets[own] == spans[window.first_token : window.first_token + 5]
        assert not any(window.max_context[:4]) and not window.max_context[-1]
    assert sum(sum(window.max_context) for window in found) == len(ids)


@pytest.mark.parametrize("doc_stride", [1, 3, 100])
def test_nothing_is_lost(doc_stride):
    ids, spans = list(range(30, 60)), [(i, i + 1) for i in range(30)]
    found = windows(None, (ids, spans), VOCABULARY, 12, doc_stride)
    assert {i for window in found for i in window.token_ids[window.text_start : window.text_end]} == set(ids)
    assert max(len(window.token_ids) for window in found) == 12
