"""Texts to try, of the example sets that the package carries, and for the tasks that these have none for."""

import functools
from pathlib import Path

from albert_tf.data.conll import read_tagged
from albert_tf.data.squad import read_questions
from albert_tf.data.tables import read_examples
from export.web.answers import Json

_DEMO = Path(__file__).parents[2] / "albert_tf" / "assets" / "demo"
EACH = 8
_PAIRS = (
    ("turn off my morning alarm", "stop the alarm tomorrow morning"),
    ("turn off my morning alarm", "what is the weather like"),
)
_CHOICES = (
    {
        "context": "The mill by the river has been turning since 1807. It is driven by water.",
        "question": "What drives the mill?",
        "options": ["wind", "water", "a motor"],
    },
)
_MASKED = ("The capital of France is [MASK].", "set an [MASK] for seven", "what is the [MASK] like tomorrow")


@functools.cache
def example_texts(each: int = EACH) -> dict[str, list[Json]]:
    """Requests without their file, by task; `each` of every set."""
    texts = [_plain(text) for name in ("commands", "spam") for text in _table(_DEMO / f"{name}_dev.tsv", each)]
    pairs = [{"text": first, "pair": second} for first, second in _PAIRS]
    return {
        "classification": texts,
        "multi-label": texts,
        "regression": texts,
        "similarity": [*pairs, *texts],
        "tagging": [_plain(text) for text in _tagged(_DEMO / "entities_dev.conll", each)],
        "question-answering": _questions(_DEMO / "questions_dev.json", each),
        "multiple-choice": [dict(choice) for choice in _CHOICES],
        "fill-mask": [_plain(text) for text in _MASKED],
    }


def _plain(text: str) -> Json:
    return {"text": text}


def _spread(items: list[Json] | list[str], each: int) -> list[int]:
    """Places of some items from the whole list: neighbours are alike."""
    return [len(items) * number // each for number in range(min(each, len(items)))]


def _table(path: Path, each: int) -> list[str]:
    texts = [example.text for example in read_examples(path)]
    return [texts[place] for place in _spread(texts, each)]


def _tagged(path: Path, each: int) -> list[str]:
    texts = [_joined(example.words) for example in read_tagged(path)]
    return [texts[place] for place in _spread(texts, each)]


def _joined(words: tuple[str, ...]) -> str:
    """Words with spaces between, none before a sign and around an apostrophe."""
    text = " ".join(words).replace(" ' ", "'")
    for sign in ".,?!:;%":
        text = text.replace(f" {sign}", sign)
    return text


def _questions(path: Path, each: int) -> list[Json]:
    asked: list[Json] = [{"question": e.question, "context": e.context} for e in read_questions(path)]
    return [asked[place] for place in _spread(asked, each)]
