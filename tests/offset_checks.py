"""What must hold for the spans of every text, said without the code that finds them."""

import functools

import sentencepiece

from albert_tf.tokenization.rules import sentencepiece_words, spaced_text


def check_spans(vocabulary, text):
    """Asserts that each id of `text` has the characters that it was made of, and that the others yield nothing."""
    ids, spans = vocabulary.encode_with_offsets(text)
    assert ids == vocabulary.encode(text)
    assert len(ids) == len(spans)
    assert all(0 <= start <= end <= len(text) for start, end in spans), text
    covered = {place for start, end in spans for place in range(start, end)}
    assert [c for place, c in enumerate(text) if place not in covered and vocabulary.encode(c)] == [], text
    letters = [_one_sigma(piece.removeprefix("▁").removeprefix("##")) for piece in vocabulary.pieces(ids)]
    assert all((start == end) == (letter == "") for letter, (start, end) in zip(letters, spans, strict=True)), text
    # From here on without pieces that are a mark only.
    found = [(index, letter, *span) for index, letter, span in zip(ids, letters, spans, strict=True) if letter]
    for before, (index, letter, start, end), after in zip([None, *found], found, [*found[1:], None], strict=False):
        assert before is None or (before[2] <= start and before[3] <= end), text
        if index != vocabulary.unk_id:
            here = _rewritten(vocabulary, text[start:end])
            # Pieces have a character in common only where it became several.
            shared = (before is not None and before[3] > start) or (after is not None and after[2] < end)
            assert letter in here if shared else letter == here, (text, letter, text[start:end])


def _rewritten(vocabulary, text):
    """The characters that `text` becomes, without spaces; the same for both forms of sigma."""
    if vocabulary.kind == "wordpiece":
        return _one_sigma(spaced_text(text, lower=vocabulary.lower).replace(" ", ""))
    words = sentencepiece_words(text, **vocabulary.options())
    return _one_sigma("".join(map(_processor(vocabulary).normalize, words)).replace("▁", ""))


@functools.cache
def _processor(vocabulary):
    return sentencepiece.SentencePieceProcessor(model_proto=vocabulary.graph_model())


def _one_sigma(text):
    return text.replace("ς", "σ")
