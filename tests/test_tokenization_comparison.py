from small_vocabularies import LINES, sentencepiece_vocabulary, wordpiece_vocabulary

from albert_tf.tokenization.comparison import compare_forms


def test_equal_forms():
    lines = [line for line in LINES if not line.startswith("aaa")] * 40  # more than one batch
    comparison = compare_forms(sentencepiece_vocabulary(), iter(lines))
    assert comparison.lines == len(lines) == 280
    assert comparison.ids == sum(len(sentencepiece_vocabulary().encode(line)) for line in lines)
    for form in ("graph", "device"):
        found = comparison.differences[form]
        assert (found.lines, found.ids, found.examples) == (0, 0, [])
        assert comparison.share_of_lines(form) == comparison.share_of_ids(form) == 0


def test_differences_are_counted_and_shown():
    comparison = compare_forms(
        wordpiece_vocabulary(), ["the mill", "the wheel CAFÉ ! the mill Ÿ", "a", "É!"], examples=1
    )
    device = comparison.differences["device"]
    python_ids = sum(
        map(len, map(wordpiece_vocabulary().encode, ["the mill", "the wheel CAFÉ ! the mill Ÿ", "a", "É!"]))
    )
    assert comparison.ids == python_ids
    assert (comparison.lines, device.lines) == (4, 1)
    assert device.ids == 1  # É and Ÿ are unknown either way
    [example] = device.examples
    assert example.line == 2
    assert example.python == ["the", "wheel", "cafe", "!", "the"]
    assert example.other == ["the", "wheel", "[UNK]", "!", "the"]
    report = comparison.as_dict()
    assert report["lines"] == 4 and report["graph"]["different_lines"] == 0
    assert report["device"]["different_lines_share"] == 0.25
    assert report["device"]["different_ids_share"] == 1 / python_ids
    assert report["device"]["examples"] == [{"line": 2, "python": example.python, "other": example.other}]


def test_missing_and_added_ids_are_counted():
    comparison = compare_forms(sentencepiece_vocabulary(lower=False), ["The old Mill", "the old mill"])
    device = comparison.differences["device"]
    assert device.lines == 1 and device.ids >= 2


def test_no_texts():
    comparison = compare_forms(wordpiece_vocabulary(), [])
    assert comparison.lines == comparison.ids == comparison.share_of_lines("device") == 0
