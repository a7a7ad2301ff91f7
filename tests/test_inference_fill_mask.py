"""`albert_tf.inference.fill_mask`: the ids beside a mask, windows, candidates in order, texts with them in place."""

import re
import tracemalloc
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from small_vocabularies import LINES, fuzzed_texts, sentencepiece_vocabulary, wordpiece_vocabulary

from albert_tf.errors import InputError
from albert_tf.inference import fill_mask as module
from albert_tf.inference.fill_mask import FillMaskPipeline
from albert_tf.inference.runner import Outputs
from albert_tf.tokenization.api import Vocabulary
from albert_tf.tokenization.packing import Packed
from albert_tf.tokenization.tokenizer import AlbertTokenizer

SENTENCEPIECE, WORDPIECE = sentencepiece_vocabulary(), wordpiece_vocabulary()


class Guesser:
    """A model to which some pieces are probable in every place, the first one most."""

    task = "fill-mask"
    task_settings: ClassVar[dict[str, Any]] = {}

    def __init__(self, vocabulary: Vocabulary = SENTENCEPIECE, *pieces: str, max_length: int = 512) -> None:
        self.required_tokenizer = AlbertTokenizer(vocabulary, max_length)
        self.pieces = [self.required_tokenizer.pieces(range(vocabulary.size)).index(piece) for piece in pieces]
        self.calls: list[list[Packed]] = []

    def run_rows(self, rows: Sequence[Packed]) -> list[Outputs]:
        self.calls.append(list(rows))
        results = []
        for ids, _ in rows:
            table = np.full((len(ids), self.required_tokenizer.vocabulary.size), 1e-4, np.float32)
            for place, piece in enumerate(self.pieces):
                table[:, piece] = 0.5 / 2**place
            results.append({"token_probabilities": table})
        return results


def ids_of(text: str, vocabulary: Vocabulary = SENTENCEPIECE) -> list[int]:
    """The only row of a text, without the special tokens around it."""
    ((token_ids, segment_ids),) = FillMaskPipeline(Guesser(vocabulary)).prepare([text]).rows
    assert (token_ids[0], token_ids[-1]) == (vocabulary.cls_id, vocabulary.sep_id) and set(segment_ids) == {0}
    return token_ids[1:-1]


@pytest.mark.parametrize("vocabulary", [SENTENCEPIECE, WORDPIECE], ids=["sentencepiece", "wordpiece"])
def test_ids_are_those_of_the_text_with_the_words_own_masked(vocabulary: Vocabulary) -> None:
    """What pretraining makes of a text: the pieces of a word are replaced, the others stay as they are."""
    checked = 0
    for line in LINES:
        ids, spans = vocabulary.encode_with_offsets(line)
        for word in re.finditer(r"[^\W\d_]+", line):
            inside = [n for n, (start, end) in enumerate(spans) if word.start() <= start and end <= word.end()]
            if not inside or (spans[inside[0]][0], spans[inside[-1]][1]) != word.span():
                continue  # a piece that holds more than the word, such as the comma after it
            expected = [*ids[: inside[0]], vocabulary.mask_id, *ids[inside[-1] + 1 :]]
            masked = f"{line[: word.start()]}[MASK]{line[word.end() :]}"
            assert ids_of(masked, vocabulary) == expected, masked
            checked += 1
    assert checked > 60


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("the [MASK] the", ["▁the", "[MASK]", "▁the"]),
        ("the [MASK].", ["▁the", "[MASK]", "."]),
        ("the[MASK] .", ["▁the", "[MASK]", "▁", "."]),
        ("[MASK]", ["[MASK]"]),
        ("  [MASK]\t[MASK][MASK]", ["[MASK]", "[MASK]", "[MASK]"]),
    ],
)
def test_word_marks_beside_a_mask(text: str, pieces: list[str]) -> None:
    assert SENTENCEPIECE.pieces(ids_of(text)) == pieces


def test_all_else_is_text() -> None:
    """No other special token can be written, nor a mask in other letters."""
    for vocabulary in (SENTENCEPIECE, WORDPIECE):
        special = {vocabulary.cls_id, vocabulary.sep_id, vocabulary.pad_id}
        for written in ("[CLS]", "[SEP]", "[PAD]", "<pad>", "[mask]", "[ MASK]"):
            ids = ids_of(f"{written} [MASK]", vocabulary)
            assert ids == [*vocabulary.encode(written), vocabulary.mask_id]
            assert not special & set(ids) and ids.count(vocabulary.mask_id) == 1
        for text in fuzzed_texts(60, 5):
            ids = ids_of(f"{text} [MASK] {text}", vocabulary)
            assert ids == [*vocabulary.encode(text), vocabulary.mask_id, *vocabulary.encode(text)]


def test_candidates_and_texts() -> None:
    pipeline = FillMaskPipeline(Guesser(SENTENCEPIECE, "▁the", "s", "▁"), top_k=3)
    (answer,) = pipeline(["They [MASK] old mill [MASK]?"])
    assert answer.text == "They the old mill the?"
    first, second = answer.masks
    assert [(c.piece, c.probability) for c in first] == [("▁the", 0.5), ("s", 0.25), ("▁", 0.125)]
    assert [c.text for c in first] == [
        "They the old mill [MASK]?",
        "Theys old mill [MASK]?",  # a piece without the mark goes on with the word before it
        "They  old mill [MASK]?",
    ]
    assert [c.text for c in second][:2] == ["They [MASK] old mill the?", "They [MASK] old mills?"]
    assert SENTENCEPIECE.pieces([c.token_id for c in first]) == ["▁the", "s", "▁"]
    assert [len(mask) for answer in FillMaskPipeline(Guesser())(["[MASK]", "[MASK]"]) for mask in answer.masks] == [
        5,
        5,
    ]


@pytest.mark.parametrize(
    ("text", "piece", "expected"),
    [
        ("我爱[MASK]国", "中", "我爱中国"),
        ("the [MASK].", "mill", "the mill."),
        ("the[MASK]!", "mill", "the mill!"),
        ("the mill [MASK] wheel", "##s", "the mills wheel"),
        ("我[MASK]人", "the", "我the人"),
        ("[MASK]wheel", "the", "the wheel"),
        ("the [MASK]", "[UNK]", "the [UNK]"),
    ],
)
def test_wordpiece_in_place(text: str, piece: str, expected: str) -> None:
    (answer,) = FillMaskPipeline(Guesser(WORDPIECE, piece))([text])
    assert answer.text == answer.masks[0][0].text == expected


@pytest.mark.parametrize(
    ("vocabulary", "piece", "text", "written", "filled"),
    [
        (SENTENCEPIECE, "▁the", "😀 a[MASK]x [MASK]", "the", "😀 a thex the"),
        (SENTENCEPIECE, "s", " mill \t[MASK][MASK] [MASK]", "s", " millsss"),
        (SENTENCEPIECE, "▁", "a[MASK] [MASK]b", "", "a  b"),
        (SENTENCEPIECE, "<unk>", "a [MASK]b", "<unk>", "a <unk>b"),
        (WORDPIECE, "the", "[MASK][MASK]a [MASK]!", "the", "the the a the!"),
        (WORDPIECE, "##er", "mill [MASK] [MASK]", "er", "millerer"),
    ],
)
def test_places_of_the_chosen_pieces(vocabulary: Vocabulary, piece: str, text: str, written: str, filled: str) -> None:
    (answer,) = FillMaskPipeline(Guesser(vocabulary, piece))([text])
    assert answer.text == filled
    assert [answer.text[start:end] for start, end in answer.places] == [written] * text.count("[MASK]")


def test_many_masks_do_not_hold_the_text_many_times() -> None:
    masks = 2000
    text = "[MASK] of the mill " * masks
    tracemalloc.start()
    try:
        (answer,) = FillMaskPipeline(Guesser(SENTENCEPIECE, "▁the"))([text])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5 * masks * len(text) / 4  # five candidates each
    assert answer.text == "the of the mill " * masks
    assert answer.masks[-1][0].text == "[MASK] of the mill " * (masks - 1) + "the of the mill "


def test_equal_probabilities_by_id() -> None:
    (answer,) = FillMaskPipeline(Guesser(), top_k=SENTENCEPIECE.size)(["[MASK]"])
    assert [candidate.token_id for candidate in answer.masks[0]] == list(range(SENTENCEPIECE.size))


def test_a_long_text_is_cut_around_its_masks() -> None:
    before, after = SENTENCEPIECE.encode("the mill " * 100), SENTENCEPIECE.encode("a river " * 100)
    text = "the mill " * 100 + "[MASK]" + " a river" * 100
    guesser = Guesser(SENTENCEPIECE, "▁the", max_length=22)
    pipeline = FillMaskPipeline(guesser)
    ((ids, _),) = pipeline.prepare([text]).rows
    place = ids.index(SENTENCEPIECE.mask_id)
    assert len(ids) == 22 and place in (10, 11)
    assert ids[1:place] == before[-(place - 1) :] and ids[place + 1 : -1] == after[: 20 - place]
    for start, words in (("", 100), ("the mill " * 100, 0)):
        ((ids, _),) = pipeline.prepare([f"{start}[MASK]{' a river' * words}"]).rows
        assert len(ids) == 22 and ids.index(SENTENCEPIECE.mask_id) == (1 if words else 20)
    (answer,) = pipeline([text])
    assert answer.text == text.replace("[MASK]", "the")


def test_masks_far_apart_have_inputs_of_their_own() -> None:
    text = "[MASK] [MASK] " + "the mill " * 30 + "[MASK]"
    guesser = Guesser(SENTENCEPIECE, "▁the", max_length=22)
    pipeline = FillMaskPipeline(guesser)
    prepared = pipeline.prepare(["[MASK] mill", text])
    assert [ids.count(SENTENCEPIECE.mask_id) for ids, _ in prepared.rows] == [1, 2, 1]
    assert [masks for _, masks in prepared.context[0]] == [{0: 1}, {0: 1, 1: 2}, {2: 20}]
    assert [len(answer.masks) for answer in pipeline.answer(prepared)] == [1, 3]
    ((ids, _),) = FillMaskPipeline(Guesser(max_length=22)).prepare(["[MASK]" * 20]).rows
    assert ids.count(SENTENCEPIECE.mask_id) == 20
    assert len(FillMaskPipeline(Guesser(max_length=22)).prepare(["[MASK]" * 21]).rows) == 2


def test_few_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_VALUES", 3 * 4 * SENTENCEPIECE.size)
    guesser = Guesser(SENTENCEPIECE, "▁the")
    answers = FillMaskPipeline(guesser)(["[MASK] the"] * 7 + ["[MASK] the " * 40])
    assert [len(call) for call in guesser.calls] == [3, 3, 1, 1]
    assert len(answers) == 8 and answers[0].text == "the the"


def test_decision() -> None:
    table = np.float32([[0.1, 0.6, 0.3], [0.5, 0.1, 0.4]])
    decision, margin = FillMaskPipeline(Guesser()).decision({"token_probabilities": table})
    assert decision == (1, 0) and margin == pytest.approx(0.1)


def test_wrong_use() -> None:
    pipeline = FillMaskPipeline(Guesser())
    with pytest.raises(
        InputError, match=r"text 2 \('a mill'\): expected \[MASK\] in the text, found none; write \[MASK\]"
    ):
        pipeline(["[MASK]", "a mill"])
    with pytest.raises(InputError, match="texts: expected a list of strings"):
        pipeline("[MASK]")
    for top_k in (0, SENTENCEPIECE.size + 1, True, 2.0):
        with pytest.raises(InputError, match=f"top_k: expected a whole number from 1 to {SENTENCEPIECE.size}"):
            pipeline.top_k = top_k
    assert pipeline([]) == []
