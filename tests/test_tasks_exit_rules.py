"""`albert_tf.tasks.exit_rules`: rows that choose several things, as in tagging and answers, against the rules in NumPy."""

import dataclasses
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from small_vocabularies import sentencepiece_vocabulary
from tiny_exports import BASE, LABELS, MAX_LENGTH, random_inputs
from tiny_models import TINY, example_inputs, randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.conversion.checkpoint import settings_in_weights
from albert_tf.errors import InputError
from albert_tf.inference.depth import DepthChoice, ExitSettings
from albert_tf.tasks.question_answering import AlbertQuestionAnswerer
from albert_tf.tasks.token_classification import AlbertTokenClassifier
from albert_tf.tokenization.tokenizer import AlbertTokenizer

CONFIG = dataclasses.replace(BASE, num_layers=5)
ROWS = [random_inputs(length, seed=length) for length in range(1, 14)]
MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "tagging": (AlbertTokenClassifier, {"labels": LABELS}),
    "span": (AlbertQuestionAnswerer, {"no_answer_threshold": 0.5}),
    "squad2": (AlbertQuestionAnswerer, {"head": "squad2", "start_beams": 3, "end_beams": 2}),
}


def new_model(task: str, exits: Any = None, config: Any = CONFIG) -> Any:
    model_class, settings = MODELS[task]
    tokenizer = AlbertTokenizer(sentencepiece_vocabulary(), max_length=MAX_LENGTH)
    model = model_class(AlbertBackbone(config), tokenizer, **settings, exits=exits)
    randomize(model, 0, 0.15)
    return model


def answers_by_depth(task: str) -> list[list[dict[str, np.ndarray]]]:
    """The outputs of each row by models with 1, 2, … layers and the same weights."""
    whole = new_model(task)
    found = []
    for layers in range(1, CONFIG.num_layers + 1):
        model = new_model(task, config=dataclasses.replace(CONFIG, num_layers=layers))
        for variable, value in zip(model.weights, whole.weights, strict=True):
            variable.assign(value)
        found.append(model.run_rows(ROWS))
    return found


def softmax(logits: np.ndarray) -> np.ndarray:
    exponentials = np.exp(logits - logits.max())
    return np.asarray(exponentials / exponentials.sum())


def choices(task: str, row: Any, outputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The probabilities of everything that is chosen in a row, by the definition."""
    if task == "tagging":
        return list(outputs["label_probabilities"][1:-1])
    # The second text but its last token, and the first token of all.
    places = sorted({0, *[i for i, segment in enumerate(row[1][:-1]) if segment == 1]})
    if task == "span":
        return [softmax(outputs[name][places]) for name in ("start_logits", "end_logits")]
    none = 1 / (1 + np.exp(-outputs["no_answer_logit"][0]))
    return [
        np.exp(outputs["start_log_probs"][places]),
        np.exp(outputs["end_log_probs"][places, 0]),
        np.array([none, 1 - none]),
    ]


def measured(rule: str, now: list[np.ndarray], before: list[np.ndarray]) -> tuple[float, float]:
    """How far a row is, and how near its least clear choice is to another one."""
    margins = [float(np.subtract(*np.sort(one)[-1:-3:-1])) for one in now if len(one) > 1]
    if rule == "patience":
        same = all(a.argmax() == b.argmax() for a, b in zip(now, before, strict=True))
        return float(same), min(margins, default=1.0)
    if rule == "confidence":
        return min((float(one.max()) for one in now), default=1.0), 1.0
    entropies = [-(one * np.log(np.maximum(one, 1e-30))).sum() / np.log(len(one)) for one in now if len(one) > 1]
    return max(entropies, default=0.0), 1.0


def exit_depths(task: str, answers: list[list[dict[str, np.ndarray]]], exits: ExitSettings) -> tuple[list[int], float]:
    """By the definition, row by row; and how near any decision was to the other one."""
    depths, nearest = [], np.inf
    for number, row in enumerate(ROWS):
        in_a_row, depth = 0, 0
        while depth < len(answers) and in_a_row < exits.patience:
            now, before = (choices(task, row, answers[d][number]) for d in (depth, depth - 1))
            value, margin = measured(exits.rule, now, before)
            if exits.rule == "patience":
                settled = depth > 0 and value == 1.0
            else:
                settled = value > exits.threshold if exits.rule == "confidence" else value < exits.threshold
                margin = abs(value - exits.threshold)
            nearest = min(nearest, margin)
            in_a_row, depth = in_a_row + 1 if settled else 0, depth + 1
        depths.append(depth)
    return depths, nearest


CASES = [
    ("tagging", ExitSettings("patience", 1)),
    ("tagging", ExitSettings("confidence", 1, 0.55)),
    ("tagging", ExitSettings("confidence", 2, 0.45)),
    ("tagging", ExitSettings("entropy", 1, 0.9)),
    ("span", ExitSettings("patience", 1)),
    ("span", ExitSettings("confidence", 1, 0.5)),
    ("span", ExitSettings("entropy", 1, 0.8)),
    ("squad2", ExitSettings("patience", 2)),
    ("squad2", ExitSettings("confidence", 1, 0.5)),
    ("squad2", ExitSettings("entropy", 1, 0.85)),
]


@pytest.mark.parametrize(("task", "exits"), CASES)
def test_each_row_exits_where_all_its_choices_are_settled(task: str, exits: ExitSettings) -> None:
    """In a batch as alone."""
    model, answers = new_model(task, exits), answers_by_depth(task)
    depths, nearest = exit_depths(task, answers, exits)
    assert nearest > 1e-5 and len(set(depths)) > 1, (depths, nearest)
    together = model.run_rows(ROWS)
    alone = [model.run_rows([row])[0] for row in ROWS]
    for found in (together, alone):
        assert [int(outputs.pop("depth")) for outputs in found] == depths
        for row, depth in enumerate(depths):
            for name, wanted in answers[depth - 1][row].items():
                np.testing.assert_allclose(found[row][name], wanted, rtol=1e-3, atol=1e-4)
    model.choose_depth(DepthChoice(2))
    assert [int(outputs["depth"]) for outputs in model.run_rows(ROWS)] == [min(depth, 2) for depth in depths]


@pytest.mark.parametrize("task", MODELS)
@pytest.mark.parametrize(
    ("rule", "choice", "depth"),
    [
        ("confidence", DepthChoice(threshold=0.0), 1),
        ("confidence", DepthChoice(threshold=1.0), 5),
        ("confidence", DepthChoice(threshold=0.0, patience=3), 3),
        ("confidence", DepthChoice(threshold=0.0, patience=6), 5),
        ("entropy", DepthChoice(threshold=0.0), 5),
        ("entropy", DepthChoice(threshold=1.0), 1),
        ("patience", DepthChoice(patience=5), 5),
        ("patience", DepthChoice(patience=6), 5),
    ],
)
def test_edge_values_are_as_documented(task: str, rule: str, choice: DepthChoice, depth: int) -> None:
    """Also of rows in which nothing is asked for, such as those of special tokens alone."""
    model = new_model(task, {"rule": rule})
    model.choose_depth(choice)
    assert {int(outputs["depth"]) for outputs in model.run_rows(ROWS)} == {depth}


@pytest.mark.parametrize("task", MODELS)
def test_the_loss_is_that_of_all_depths(task: str) -> None:
    """Against models with so many layers."""
    inputs = example_inputs()
    rows, length = inputs["token_ids"].shape
    targets: dict[str, Any] = {
        "labels": np.arange(rows * length).reshape(rows, length) % 4 - 1,
        "start": np.array([0, 1, 2]),
        "end": np.array([0, 2, 2]),
        "unanswerable": np.array([1.0, 0.0, 0.0], np.float32),
    }
    model_class, settings = MODELS[task]
    # Dropout has a seed of its own in every model.
    settings = settings | {"classifier_dropout": 0.0}
    whole = model_class(AlbertBackbone(TINY), exits={"rule": "confidence"}, **settings)
    randomize(whole)
    total = 0.0
    for layers in range(1, TINY.num_layers + 1):
        one = model_class(AlbertBackbone(dataclasses.replace(TINY, num_layers=layers, num_groups=1)), **settings)
        for variable, value in zip(one.weights, whole.weights, strict=True):
            variable.assign(value)
        total += layers * np.asarray(one.training_losses(targets, one(inputs, training=False)))
    outputs = whole.training_outputs(inputs)
    assert len(outputs) == TINY.num_layers
    np.testing.assert_allclose(
        whole.losses_of(targets, outputs), total / sum(range(1, TINY.num_layers + 1)), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    ("task", "layer", "size"), [("tagging", "token_classification", 3), ("span", "question_answering", 2)]
)
def test_heads_of_their_own(task: str, layer: str, size: int, tmp_path: Path) -> None:
    exits = ExitSettings("confidence", 1, 0.5, "own")
    model = new_model(task, exits)
    kernel = np.asarray(getattr(model, layer).kernel)
    assert kernel.shape == (32, 5 * size)
    model.save_pretrained(tmp_path / "model")
    again = type(model).from_pretrained(tmp_path / "model")
    assert again.exits == exits and not again.head_is_new
    for ours, theirs in zip(model.run_rows(ROWS), again.run_rows(ROWS), strict=True):
        for name, wanted in ours.items():
            np.testing.assert_array_equal(wanted, theirs[name])
    # Each pass by its own head: as a model of one shared head, whose weights are those.
    shared = new_model(task, {"rule": "confidence"})
    for name, variable in shared.named_weights().items():
        if not name.startswith(layer):
            variable.assign(model.named_weights()[name])
    for passes in (1, 3, 5):
        for name in (f"{layer}/kernel", f"{layer}/bias"):
            part = np.asarray(model.named_weights()[name])[..., (passes - 1) * size : passes * size]
            shared.named_weights()[name].assign(part)
        for one in (model, shared):
            one.choose_depth(DepthChoice(passes, threshold=1.0))
        for ours, theirs in zip(model.run_rows(ROWS), shared.run_rows(ROWS), strict=True):
            for name, wanted in ours.items():
                np.testing.assert_allclose(wanted, theirs[name], rtol=1e-4, atol=1e-5)
    weights = {name: np.asarray(value) for name, value in model.named_weights().items()}
    kept, notes = settings_in_weights(weights, {"task": model.task, "settings": model.settings()}, ("labels",))
    np.testing.assert_array_equal(kept[f"{layer}/kernel"], kernel[:, -size:])
    assert any("but the last are left out" in note for note in notes)


@pytest.mark.parametrize("task", MODELS)
def test_saved_and_read_again(task: str, tmp_path: Path) -> None:
    exits = ExitSettings("entropy", 2, 0.7)
    model = new_model(task, exits)
    model.save(tmp_path / "model.keras")
    assert keras.models.load_model(tmp_path / "model.keras").exits == exits
    assert "exits" not in new_model(task).settings()


def test_what_cannot_be_is_refused() -> None:
    for task in MODELS:
        with pytest.raises(InputError, match="rule: expected one of patience, confidence, entropy for this task"):
            new_model(task, {"rule": "tolerance"})
    with pytest.raises(InputError, match='heads: the head "squad2" has layers as wide as the encoder'):
        new_model("squad2", {"rule": "confidence", "heads": "own"})
