"""`albert_tf.data.sentences`: where sentences end, and where a full stop ends nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.data.sentences import split_sentences

SPLIT = [
    ["One sentence without an end"],
    ["The mill turned.", "Nobody came!", "Why?", "It was late."],
    ["Mr. Brown met Dr. J. R. Smith of St. Ives.", "They talked."],
    ["She came from the U.S. Army in 1999.", "It was 3.5 miles away."],
    ["He paid $3.50.", "12 men saw it."],
    ["See vol. 3, pp. 4-5, e.g. Fig. 2.", "Then go on."],
    ["“Never again!” she said.", "“Why not?”", "“Because.”"],
    ["He said (softly: it is done.)", "Then he left."],
    ["“So am I.”", "“You are.”"],
    ["So am I.", "You too."],
    ["It went on and on... and on.", "Then it stopped..."],
    ["Wait… not yet.", "Now!"],
    ["Really?!", "Yes."],
    ["No. 5 is alive.", "He said no.", "Then he went."],
    ["It is sold by Smith & Co. in London.", "Ask there."],
    ["¿Dónde está?", "¡Aquí!", "Él vino."],
    ["Ο μύλος γυρίζει.", "Κανείς δεν ήρθε."],
    ["我爱你。", "你呢？", "中国人！", "好"],
    ["他说：“走吧。”", "我们走了。"],
    ["他等了……", "没有人来。"],
    ["这是3.5公里。", "He said OK.", "然后走了！"],
    ["今日は雨です。", "「はい！」", "そうですか？"],
]


@pytest.mark.parametrize("sentences", SPLIT, ids=lambda sentences: sentences[0][:20])
def test_sentences(sentences: list[str]) -> None:
    wide = any("\u3000" < character < "\uffff" for character in "".join(sentences))
    for space in (" ", "  ", "\t") + (("",) if wide and sentences[0] != "这是3.5公里。" else ()):
        assert split_sentences(space.join(sentences)) == sentences


def test_a_small_letter_goes_on() -> None:
    assert split_sentences("It cost approx. five pounds etc. and more. Then") == [
        "It cost approx. five pounds etc. and more.",
        "Then",
    ]


@given(st.text(alphabet='aB1. !?…。！」”") \tI\u3000文', max_size=60))
def test_nothing_is_lost(text: str) -> None:
    sentences = split_sentences(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence and sentence == sentence.strip() for sentence in sentences)
    assert [part for sentence in sentences for part in split_sentences(sentence)] != [] or not text.strip()


def test_no_slower_for_long_paragraphs() -> None:
    """Linear: a paragraph of a million characters is split at once."""
    sentence = "The old mill by the river, said Mr. Brown, has been turning since 1807. "
    assert len(split_sentences(sentence * 20000)) == 20000
    assert len(split_sentences("a" * 1_000_000 + ". ")) == 1
    assert len(split_sentences("." * 200_000)) == 1
