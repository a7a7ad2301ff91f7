"""Words → a label each, and the entities that the labels make."""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf.data.conll import TaggedExample, entities
from albert_tf.errors import InputError
from albert_tf.inference.runner import Outputs, Prepared, Runner, finite_outputs, labels_of

LABEL_PROBABILITIES = "label_probabilities"
# Ideographs and kana one by one, as Chinese corpora are labelled; other words whole, signs on their own.
_IDEOGRAPH = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(f"[{_IDEOGRAPH}]|[^\\W_{_IDEOGRAPH}]+|[^\\w\\s]|_")


@dataclasses.dataclass(frozen=True)
class Entity:
    """Some words of a text that belong together.

    Attributes:
        kind: the entity's type.
        text: its characters.
        start, end: their place in the text: `text[start:end]`.
        score: the least probability among the labels of its words.
    """

    kind: str
    text: str
    start: int
    end: int
    score: float


@dataclasses.dataclass(frozen=True)
class Tagged:
    """The answer to one text.

    Attributes:
        labels: of each word, in IOB2.
        scores: the probability of each of them.
    """

    labels: tuple[str, ...]
    scores: tuple[float, ...]


class TaggingPipeline:
    """A label for each word; a text longer than the model takes is labelled in parts.

    Args:
        runner: what runs the model.
        constrained: choose the most probable labels among those that make entities, where "I-X" follows "B-X" or "I-X";
            False takes the most probable label of each word by itself.

    Attributes:
        labels: the labels, in the order of the probabilities.

    Raises:
        InputError: the runner's settings hold no labels.
    """

    def __init__(self, runner: Runner, *, constrained: bool = True) -> None:
        self.runner = runner
        self.labels = labels_of(runner, "tagging model")
        self.constrained = constrained

    def __call__(self, texts: Sequence[str]) -> list[list[Entity]]:
        """The entities in each text.

        Raises:
            InputError: not a list of strings.
        """
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InputError("texts: expected a list of strings")
        places = [word_places(text) for text in texts]
        examples = [
            TaggedExample(tuple(text[start:end] for start, end in spans))
            for text, spans in zip(texts, places, strict=True)
        ]
        answers = self.answer(self.prepare(examples))
        return [entities_in(*triple) for triple in zip(texts, places, answers, strict=True)]

    def outputs(self, config: dict[str, Any]) -> dict[str, tuple[int | None, ...]]:
        return {LABEL_PROBABILITIES: (None, len(self.labels))}

    def prepare(self, examples: Sequence[TaggedExample]) -> Prepared:
        """Rows of whole words; the context says of each row which words of which example begin where in it."""
        rows, places = [], []
        for index, example in enumerate(examples):
            for token_ids, starts in self._parts(example.words):
                rows.append((token_ids, [0] * len(token_ids)))
                places.append((index, starts))
        return Prepared(rows, (places, [len(example.words) for example in examples]))

    def answer(self, prepared: Prepared) -> list[Tagged]:
        places, sizes = prepared.context
        tables = [np.zeros((size, len(self.labels)), np.float32) for size in sizes]
        for (index, starts), outputs in zip(places, finite_outputs(self.runner, prepared.rows), strict=True):
            for word, position in starts.items():
                tables[index][word] = outputs[LABEL_PROBABILITIES][position]
        return [self._decoded(table) for table in tables]

    def decision(self, outputs: Outputs) -> tuple[tuple[int, ...], float]:
        table = outputs[LABEL_PROBABILITIES]
        ordered = np.sort(table, axis=-1)
        return tuple(table.argmax(axis=-1).tolist()), float((ordered[:, -1] - ordered[:, -2]).min())

    def _parts(self, words: Sequence[str]) -> list[tuple[list[int], dict[int, int]]]:
        """Token ids of as many words as the model takes at once, with the position of each word's first piece."""
        tokenizer = self.runner.required_tokenizer
        vocabulary, room = tokenizer.vocabulary, tokenizer.max_length - 2
        parts: list[tuple[list[int], dict[int, int]]] = []
        pieces: list[int] = []
        starts: dict[int, int] = {}
        for index, word in enumerate(words):
            own = (vocabulary.encode(word) or [vocabulary.unk_id])[:room]
            if len(pieces) + len(own) > room:
                parts.append(([vocabulary.cls_id, *pieces, vocabulary.sep_id], starts))
                pieces, starts = [], {}
            starts[index] = 1 + len(pieces)
            pieces += own
        return [*parts, ([vocabulary.cls_id, *pieces, vocabulary.sep_id], starts)]

    def _decoded(self, table: np.ndarray) -> Tagged:
        chosen = best_path(table, self.labels) if self.constrained else table.argmax(axis=-1).tolist()
        scores = tuple(float(table[word, label]) for word, label in enumerate(chosen))
        return Tagged(tuple(self.labels[label] for label in chosen), scores)


def best_path(table: np.ndarray, labels: Sequence[str]) -> list[int]:
    """The most probable labels of all words (Viterbi) in which "I-X" stands after "B-X" or "I-X" only.

    Args:
        table: probabilities (words, labels).
        labels: in IOB2.
    """
    kinds = [label.partition("-")[2] for label in labels]
    inside = np.array([label.startswith("I-") for label in labels])
    # (before, label): whether the label may follow.
    follows = np.array(
        [[not now or kind == before for kind, now in zip(kinds, inside, strict=True)] for before in kinds]
    )
    logs = np.log(np.maximum(table, 1e-30)).astype(np.float64)
    penalty = np.where(follows, 0.0, -1e9)
    score = np.where(inside, -1e9, 0.0)
    back = []
    for row, values in enumerate(logs):
        if row == 0:
            score = score + values
            continue
        ways = score[:, None] + penalty
        back.append(ways.argmax(axis=0))
        score = ways.max(axis=0) + values
    if not len(logs):
        return []
    path = [int(score.argmax())]
    for before in reversed(back):
        path.append(int(before[path[-1]]))
    return path[::-1]


def word_places(text: str) -> list[tuple[int, int]]:
    """Where the words of a text are: ideographs and kana one by one, other words whole, signs on their own."""
    return [found.span() for found in _WORD.finditer(text)]


def entities_in(text: str, places: Sequence[tuple[int, int]], answer: Tagged) -> list[Entity]:
    """The entities that the labels of the words at `places` make."""
    found = []
    for kind, first, end in entities(answer.labels):
        start, stop = places[first][0], places[end - 1][1]
        found.append(Entity(kind, text[start:stop], start, stop, min(answer.scores[first:end])))
    return found
