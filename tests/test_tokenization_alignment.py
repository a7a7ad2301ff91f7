from albert_tf.tokenization.alignment import (
    Sources,
    piece_spans,
    pieces_as_bytes,
    pieces_in_text,
    sources_of_lengths,
    sources_of_starts,
    spans_through,
)


def test_sources_of_lengths():
    # a character becomes one, two (a ligature), none (an accent of the one before it), one
    assert sources_of_lengths([1, 2, 0, 1]) == Sources([0, 1, 1, 3], [1, 3, 3, 4])
    # what is dropped at the beginning belongs to nothing
    assert sources_of_lengths([0, 1, 0, 0]) == Sources([1], [4])
    assert sources_of_lengths([1, 1]) == Sources([0, 1], [1, 2])
    assert sources_of_lengths([]) == sources_of_lengths([0]) == Sources([], [])


def test_sources_of_starts():
    # "▁" and "a" at 0, three characters that were one at 1, one that two were joined into at 2; 4 is the end
    assert sources_of_starts([0, 0, 1, 1, 1, 2, 4]) == Sources([0, 0, 1, 1, 1, 2], [1, 1, 2, 2, 2, 4])
    assert sources_of_starts([0]) == Sources([], [])


def test_piece_spans():
    sources = Sources([0, 0, 1, 2, 2, 3], [1, 1, 2, 3, 3, 4])
    assert piece_spans("▁abccd", [3, 5, 6], sources) == [(0, 2), (2, 3), (3, 4)]
    assert piece_spans("▁abccd", [1, 2, 4, 6], sources) == [(0, 0), (0, 1), (1, 3), (2, 4)]
    # a mark in the middle: a character in 1 that counts as a space
    assert piece_spans("▁a▁b", [2, 3, 4], Sources([0, 0, 1, 2], [1, 1, 2, 3])) == [(0, 1), (2, 2), (2, 3)]


def test_spans_through():
    assert spans_through([(0, 0), (0, 2), (2, 3)], Sources([4, 5, 5], [5, 7, 7])) == [(4, 4), (4, 7), (5, 7)]


def test_pieces_in_text():
    pieces = {"ab": pieces_as_bytes([7, 8], [(0, 1), (1, 2)]), "b": pieces_as_bytes([9], [(0, 1)]), "-": b""}
    words = ["ab", "-", "b"]
    assert pieces_in_text(" ab - b", words, [pieces[word] for word in words]) == ([7, 8, 9], [(1, 2), (2, 3), (6, 7)])
    assert pieces_in_text("", [], []) == ([], [])
