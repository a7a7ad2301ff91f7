"""`export.tuning_candidates`: which files are made for which candidates, and how small they can be."""

import dataclasses
from typing import Any

import pytest
from tiny_exports import CONFIGS, LABELS, classifier, exported, new_classifier
from tiny_tasks import new_task

from albert_tf.errors import InputError
from albert_tf.inference.depth import DepthChoice, ExitSettings
from export.tuning_candidates import PlannedFile, planned_files, reference_candidate, shape_of, single_file


def planned(task: Any, *recipes: str, **options: Any) -> list[PlannedFile]:
    variants = {shape_of(task.backbone.config): task}
    return list(planned_files(variants, recipes=recipes, **({"passes": None, "exit_rules": None} | options)))


def names(plan: PlannedFile) -> list[str]:
    return [candidate.name for candidate, _ in plan.served]


def early(**exits: Any) -> Any:
    return new_task("classification", labels=list(LABELS), exits=ExitSettings(**exits))


def test_one_file_serves_all_depths_of_a_shared_block() -> None:
    reference, four_bits = planned(classifier(), "dynamic_int8", "int4")
    # All passes in dynamic_int8 are the reference.
    assert names(reference) == ["dynamic_int8, 1 pass", "dynamic_int8, 2 passes"]
    assert names(four_bits) == ["int4, 1 pass", "int4, 2 passes", "int4, all passes"]
    assert (reference.adaptive, four_bits.adaptive) == ("passes", "passes")
    assert [choice for _, choice in four_bits.served] == [DepthChoice(n) for n in (1, 2, 3)]
    assert four_bits.model() is classifier()
    assert reference_candidate(classifier()).name == "dynamic_int8, all passes"


def test_layers_of_their_own_are_left_out_of_the_file() -> None:
    short, whole = planned(classifier("ffn"), "int4")
    assert (names(short), names(whole)) == (["int4, 1 pass"], ["int4, all passes"])
    assert (short.adaptive, whole.adaptive) == ("none", "none")
    assert short.model().backbone.config.num_layers == 1
    assert short.least_bytes() < whole.least_bytes()


def test_exits_are_the_models_own_and_the_usual_ones() -> None:
    task = early(rule="confidence", patience=2, threshold=0.85)
    depths, exits = planned(task, "int4", passes=[3])
    assert (names(depths), depths.adaptive) == (["int4, all passes"], "none")
    assert exits.adaptive == "exits" and exits.exits == task.exits
    assert names(exits) == [f"int4, confidence {x}, 2 in a row" for x in ("0.7", "0.8", "0.85", "0.9", "0.95", "0.98")]
    candidate, choice = exits.served[0]
    assert candidate.exits == ExitSettings("confidence", 2, 0.7) and choice == DepthChoice(None, 2, 0.7)
    assert single_file(task, candidate).exits == candidate.exits

    tagger = new_task("tagging", labels=list(LABELS), exits=ExitSettings("confidence"))
    _, exits = planned(tagger, "int4", passes=[3])
    assert names(exits) == [f"int4, confidence {x}" for x in ("0.4", "0.5", "0.6", "0.7", "0.9", "0.95")]

    # Patience 2 ends after the third pass at the earliest, the last one: it is there as the usual setting alone.
    _, patience = planned(task, "int4", passes=[3], exit_rules=["patience"])
    assert names(patience) == ["int4, patience 1", "int4, patience 2"]
    _, patience = planned(early(rule="patience", patience=1), "int4", passes=[3])
    assert names(patience) == ["int4, patience 1"]


def test_narrower_models_say_so() -> None:
    task, narrow = classifier(), classifier("pruned")
    variants = {shape_of(one.backbone.config): one for one in (task, narrow)}
    plans = list(planned_files(variants, recipes=["dynamic_int8"], passes=[3], exit_rules=None))
    assert [names(plan) for plan in plans] == [["dynamic_int8, 3 heads, 52 columns, all passes"]]
    assert plans[0].model() is narrow and plans[0].served[0][0].shape == (3, 52)


@pytest.mark.parametrize(("name", "recipe"), [("all", "float32"), ("all", "int4_int8_table"), ("ffn", "int4")])
def test_no_file_is_smaller_than_the_least_bytes(name: str, recipe: str) -> None:
    task = classifier(name)
    candidate = dataclasses.replace(reference_candidate(task), recipe=recipe)
    least, size = single_file(task, candidate).least_bytes(), exported(name, recipe).stat().st_size
    assert 0.5 * size < least <= size


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recipes": ["int8"]}, "--recipes: expected some of float32, .* got int8"),
        ({"recipes": ["int5", "int4"]}, "got int5"),
        ({"passes": [2, 4]}, "--passes: expected some of 1, 2, 3, the passes of this model; got 4"),
        ({"passes": [0]}, "got 0"),
        ({"exit_rules": ["patience"]}, "no early exits; expected one trained with finetune --early-exit"),
    ],
)
def test_what_cannot_be_tried(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        planned(classifier(), *options.pop("recipes", ["int4"]), **options)


def test_rules_of_other_tasks_and_depths_between_groups() -> None:
    with pytest.raises(InputError, match="expected some of patience, confidence, entropy for this task; got tolerance"):
        planned(early(rule="patience"), "int4", exit_rules=["entropy", "tolerance"])
    deeper = new_classifier(dataclasses.replace(CONFIGS["groups 2, inner 2, erf"], num_layers=6))
    assert [names(plan) for plan in planned(deeper, "int4")] == [
        ["int4, 1 pass"],
        ["int4, 2 passes"],
        ["int4, 3 passes"],
        ["int4, 5 passes", "int4, all passes"],
    ]
    with pytest.raises(InputError, match="expected some of 1, 2, 3, 5, 6"):
        planned(deeper, "int4", passes=[4])
