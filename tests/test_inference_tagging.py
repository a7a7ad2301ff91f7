"""`albert_tf.inference.tagging`: words into rows, the best path against all paths, entities in place."""

import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from small_vocabularies import sentencepiece_vocabulary

from albert_tf.data.conll import TaggedExample
from albert_tf.errors import InputError
from albert_tf.inference.runner import Outputs
from albert_tf.inference.tagging import TaggingPipeline, best_path
from albert_tf.tokenization.packing import Packed
from albert_tf.tokenization.tokenizer import AlbertTokenizer

LABELS = ["O", "B-X", "I-X", "B-Y", "I-Y"]
VOCABULARY = sentencepiece_vocabulary()


class Finder:
    """A model that takes pieces of "people" for the beginning of an X and of "turning" for its inside."""

    task = "tagging"
    task_settings: ClassVar[dict[str, Any]] = {"labels": LABELS}

    def __init__(self, max_length: int = 512) -> None:
        self.required_tokenizer = AlbertTokenizer(VOCABULARY, max_length)
        self.rows: list[Packed] = []

    def run_rows(self, rows: Sequence[Packed]) -> list[Outputs]:
        self.rows = list(rows)
        found = {VOCABULARY.encode("people")[0]: 1, VOCABULARY.encode("turning")[0]: 2}
        return [{"label_probabilities": np.eye(5, dtype=np.float32)[[found.get(i, 0) for i in ids]]} for ids, _ in rows]


def test_a_words_label_is_that_of_its_first_piece() -> None:
    finder = Finder()
    pipeline = TaggingPipeline(finder)
    words = ("the", "people", "turning", "by", "\x00", "people")
    (answer,) = pipeline.answer(pipeline.prepare([TaggedExample(words)]))
    assert answer.labels == ("O", "B-X", "I-X", "O", "O", "B-X")
    assert answer.scores == (1.0,) * 6
    ids = [piece for word in words for piece in VOCABULARY.encode(word) or [VOCABULARY.unk_id]]
    assert finder.rows == [([VOCABULARY.cls_id, *ids, VOCABULARY.sep_id], [0] * (len(ids) + 2))]


def test_long_texts_are_labelled_in_parts() -> None:
    words = ("the", "people", "turning") * 20
    finder = Finder(max_length=12)
    pipeline = TaggingPipeline(finder)
    (answer,) = pipeline.answer(pipeline.prepare([TaggedExample(words)]))
    assert answer.labels == ("O", "B-X", "I-X") * 20
    assert len(finder.rows) > 5 and max(len(ids) for ids, _ in finder.rows) <= 12
    (answer,) = pipeline.answer(pipeline.prepare([TaggedExample(("x" * 500, "people"))]))
    assert answer.labels[1] == "B-X"


def test_entities_in_place() -> None:
    text = "By the  people\tturning, a people!"
    (found,) = TaggingPipeline(Finder())([text])
    assert [(e.kind, e.text, e.score) for e in found] == [("X", "people\tturning", 1.0), ("X", "people", 1.0)]
    assert all(text[e.start : e.end] == e.text for e in found)
    assert TaggingPipeline(Finder())(["", "  "]) == [[], []] and TaggingPipeline(Finder())([]) == []


def test_the_best_path_is_the_best_of_all_allowed_ones() -> None:
    random = np.random.default_rng(0)

    def allowed(path: Sequence[int]) -> bool:
        before = "O"
        for label in (LABELS[i] for i in path):
            if label.startswith("I-") and before[1:] != label[1:]:
                return False
            before = label
        return True

    for _ in range(30):
        table = random.dirichlet(np.full(5, 0.5), size=4)
        paths = [path for path in itertools.product(range(5), repeat=4) if allowed(path)]
        best = max(paths, key=lambda path: sum(np.log(table[i, label]) for i, label in enumerate(path)))
        assert best_path(table, LABELS) == list(best)
    assert best_path(np.zeros((0, 5)), LABELS) == []


def test_without_the_constraint() -> None:
    table = np.array([[0.4, 0.1, 0.5, 0.0, 0.0]], np.float32)
    constrained, free = (TaggingPipeline(Finder(), constrained=value) for value in (True, False))
    assert constrained._decoded(table).labels == ("O",) and free._decoded(table).labels == ("I-X",)
    assert free.decision({"label_probabilities": table}) == ((2,), pytest.approx(0.1))


def test_wrong_use() -> None:
    with pytest.raises(InputError, match="texts: expected a list of strings"):
        TaggingPipeline(Finder())("the people")
    finder = Finder()
    finder.task_settings = {}  # type: ignore[misc]
    with pytest.raises(InputError, match="expected a tagging model with labels, found None"):
        TaggingPipeline(finder)
