"""`export.fixed_depth`: a model cut short answers as the whole one does after so many passes."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from small_vocabularies import LINES
from tiny_exports import BASE, CONFIGS, LABELS, classifier, new_classifier
from tiny_tasks import new_task

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.inference.depth import DepthChoice, ExitSettings
from export.adaptive import EVERY_PASS
from export.fixed_depth import at_fixed_depth, shortened_config

GROUPS = CONFIGS["groups 2, inner 2, erf"]


def after(task: Any, num_passes: int) -> np.ndarray:
    """The probabilities after so many passes of the whole model."""
    exits = {} if task.exits is None else {"patience": EVERY_PASS.patience}
    task.choose_depth(DepthChoice(num_passes, **exits))
    try:
        return probabilities(task)
    finally:
        task.choose_depth(DepthChoice())


def probabilities(task: Any) -> np.ndarray:
    return np.stack([row["probabilities"] for row in task.run_rows(task.encode(LINES[:5]))])


@pytest.mark.parametrize(
    ("name", "passes"), [("all", (1, 2)), ("none, inner 2", (1,)), ("ffn", (1,)), ("groups 2, inner 2, erf", (1, 2))]
)
def test_fewer_passes_of_a_plain_model(name: str, passes: tuple[int, ...]) -> None:
    task = classifier(name)
    for count in passes:
        short = at_fixed_depth(task, count)
        assert short.backbone.config.num_layers == count
        assert probabilities(short) == pytest.approx(after(task, count), abs=1e-6)
    assert at_fixed_depth(task, task.backbone.config.num_layers) is task


@pytest.mark.parametrize("heads", ["shared", "own"])
def test_a_model_with_exits_becomes_a_plain_one_with_the_head_of_its_last_pass(heads: str) -> None:
    task = new_task("classification", labels=list(LABELS), exits=ExitSettings("patience", heads=heads))
    for count in (1, 2, 3):
        short = at_fixed_depth(task, count)
        assert short.exits is None and "exits" not in short.settings()
        assert probabilities(short) == pytest.approx(after(task, count), abs=1e-6)
    assert not np.allclose(after(task, 1), after(task, 3), atol=1e-3)


@pytest.mark.parametrize(
    ("name", "settings"),
    [("tagging", {"labels": list(LABELS)}), ("question-answering", {})],
    ids=["tagging", "answers"],
)
def test_heads_over_tokens(name: str, settings: dict[str, Any]) -> None:
    task = new_task(name, **settings, exits=ExitSettings("confidence", heads="own"))
    rows = task.encode(LINES[:3], LINES[3:6] if task.takes_pairs else None)
    for count in (1, 3):
        task.choose_depth(DepthChoice(count, threshold=1.0))
        for found, wanted in zip(at_fixed_depth(task, count).run_rows(rows), task.run_rows(rows), strict=True):
            for output, values in found.items():
                assert values == pytest.approx(wanted[output], abs=1e-5)


def test_groups_that_divide_otherwise_have_no_shorter_config() -> None:
    assert shortened_config(GROUPS, 2) == dataclasses.replace(GROUPS, num_layers=2, num_groups=1)
    assert shortened_config(GROUPS, 3) == dataclasses.replace(GROUPS, num_layers=3)
    deeper = dataclasses.replace(GROUPS, num_layers=6)  # 0 0 0 1 1 1; four layers in two groups are 0 0 1 1
    assert [n for n in range(1, 7) if shortened_config(deeper, n) is not None] == [1, 2, 3, 5, 6]
    with pytest.raises(InputError, match="2 groups do not divide 4 layers"):
        at_fixed_depth(new_classifier(deeper), 4)


@pytest.mark.parametrize("config", [BASE, *CONFIGS.values()])
def test_a_shorter_config_walks_the_first_steps(config: AlbertConfig) -> None:
    for count in range(1, config.num_layers + 1):
        shorter = shortened_config(config, count)
        if shorter is not None:
            assert shorter.block_schedule == config.block_schedule[: len(shorter.block_schedule)]
            assert len(shorter.block_schedule) == count * config.num_inner_repetitions
