"""What the page asks of a file, as the task's examples; and the answers as JSON."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from albert_tf.data.choices import ChoiceExample
from albert_tf.data.conll import TaggedExample
from albert_tf.data.multi_label import MultiLabelExample
from albert_tf.data.schema import Prediction, TextExample
from albert_tf.data.squad import QuestionExample
from albert_tf.errors import InputError
from albert_tf.inference.fill_mask import MASK, FilledText, no_mask
from albert_tf.inference.multi_label import LabelSet
from albert_tf.inference.multiple_choice import Choice
from albert_tf.inference.question_answering import FoundAnswer
from albert_tf.inference.tagging import Tagged, entities_in, word_places

Fields = Mapping[str, Any]
Json = dict[str, Any]
MOST_OPTIONS = 26  # they have letters


@dataclasses.dataclass(frozen=True)
class Asking:
    """What the page has to know of a task.

    Attributes:
        needs: the texts that a question to the model has.
        may: those that it may have beside them.
        example: the texts → an example for the task's pipeline.
        fields: the example and the pipeline's answer → JSON; places count characters as Python does.
        sign: what has to stand in the text, such as [MASK].
    """

    needs: tuple[str, ...]
    may: tuple[str, ...]
    example: Callable[[Fields], Any]
    fields: Callable[[Any, Any], Json]
    sign: str | None = None

    def read(self, asked: Fields) -> Any:
        """The example that a request asks about.

        Raises:
            InputError: a text is missing, blank or no string, or there is one that the task does not take.
        """
        for name in self.needs:
            if name == "options":
                _check_options(asked.get(name))
            elif not isinstance(asked.get(name), str) or not asked[name].strip():
                raise InputError(f"{name}: expected a text, got {_kind(asked, name)}; type one")
        for name in self.may:
            if asked.get(name) is not None and not isinstance(asked[name], str):
                raise InputError(f"{name}: expected a text or nothing, got {_kind(asked, name)}")
        if others := sorted(asked.keys() - {"file", *self.needs, *self.may}):
            raise InputError(f"{others[0]}: not for this task; it takes {', '.join((*self.needs, *self.may))}")
        return self.example(asked)


def _kind(asked: Fields, name: str) -> str:
    if name not in asked:
        return "none"
    return "a blank one" if isinstance(asked[name], str) else type(asked[name]).__name__


def _check_options(options: Any) -> None:
    if not isinstance(options, list) or not all(isinstance(option, str) and option.strip() for option in options):
        raise InputError("options: expected a list of texts, none of them blank")
    if not 2 <= len(options) <= MOST_OPTIONS:
        raise InputError(f"options: expected 2 to {MOST_OPTIONS}, got {len(options)}")


def _pair(asked: Fields) -> str | None:
    """The second text; a blank one is none, as a field of the page that nothing was typed into."""
    return asked["pair"] if (asked.get("pair") or "").strip() else None


def _text(asked: Fields) -> TextExample:
    return TextExample(asked["text"], _pair(asked))


def _text_of_labels(asked: Fields) -> MultiLabelExample:
    return MultiLabelExample(asked["text"], _pair(asked))


def _label(example: TextExample, answer: Prediction) -> Json:
    return {"label": answer.label, "scores": list(answer.probabilities.items())}


def _labels(example: MultiLabelExample, answer: LabelSet) -> Json:
    return {"labels": list(answer.labels), "scores": list(answer.probabilities.items())}


def _value(example: TextExample, answer: float) -> Json:
    return {"value": answer}


def _similarity(example: TextExample, answer: Any) -> Json:
    if example.pair is not None:
        return {"cosine": answer}
    return {"embedding": [float(value) for value in answer]}


def _question(asked: Fields) -> QuestionExample:
    return QuestionExample("", asked["context"], asked["question"])


def _answer(example: QuestionExample, answer: FoundAnswer) -> Json:
    places = {"answer": answer.text, "start": answer.start, "end": answer.end}
    return places | {"score": answer.score, "no_answer_score": answer.no_answer_score}


@dataclasses.dataclass(frozen=True)
class TextToTag:
    """A text and where its words are; `words` is what the pipeline takes."""

    text: str
    places: list[tuple[int, int]]

    @property
    def words(self) -> TaggedExample:
        return TaggedExample(tuple(self.text[start:end] for start, end in self.places))


def _text_to_tag(asked: Fields) -> TextToTag:
    return TextToTag(asked["text"], word_places(asked["text"]))


def _entities(example: TextToTag, answer: Tagged) -> Json:
    found = entities_in(example.text, example.places, answer)
    return {
        "entities": [{"type": e.kind, "text": e.text, "start": e.start, "end": e.end, "score": e.score} for e in found]
    }


def _choice_of(asked: Fields) -> ChoiceExample:
    return ChoiceExample(asked.get("context") or "", asked["question"], tuple(asked["options"]))


def _choice(example: ChoiceExample, answer: Choice) -> Json:
    scores = list(zip(example.options, answer.probabilities, strict=True))
    return {"option": answer.option, "label": example.options[answer.option], "scores": scores}


def _masked(asked: Fields) -> str:
    text: str = asked["text"]
    if MASK not in text:
        raise InputError(f"text: {no_mask()}")
    return text


def _filled(example: str, answer: FilledText) -> Json:
    masks = [
        {"start": start, "end": end, "scores": [[c.piece, c.probability] for c in candidates]}
        for (start, end), candidates in zip(answer.places, answer.masks, strict=True)
    ]
    return {"filled": answer.text, "masks": masks}


ASKING: dict[str, Asking] = {
    "classification": Asking(("text",), ("pair",), _text, _label),
    "multi-label": Asking(("text",), ("pair",), _text_of_labels, _labels),
    "regression": Asking(("text",), ("pair",), _text, _value),
    "similarity": Asking(("text",), ("pair",), _text, _similarity),
    "tagging": Asking(("text",), (), _text_to_tag, _entities),
    "question-answering": Asking(("question", "context"), (), _question, _answer),
    "multiple-choice": Asking(("question", "options"), ("context",), _choice_of, _choice),
    "fill-mask": Asking(("text",), (), _masked, _filled, sign=MASK),
}


def prepared_form(example: Any) -> Any:
    """What the pipeline takes for an example of `ASKING`."""
    return example.words if isinstance(example, TextToTag) else example
