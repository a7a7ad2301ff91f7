import pytest

from albert_tf.errors import InputError
from albert_tf.training.recipes import RECIPES, find_recipe, recipe_fields
from albert_tf.training.task_runs import RUNS


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_settings_of_its_task(name: str) -> None:
    task, fields = RECIPES[name]
    run_class = next(run for run, _ in RUNS if run.task == task)
    run = run_class.of(train="t", out="o", source="checkpoint", recipe=name)
    assert {field: getattr(run, field) for field in fields} == fields


def test_what_is_given_wins() -> None:
    run_class = next(run for run, _ in RUNS if run.task == "classification")
    run = run_class.of(train="t", out="o", source="checkpoint", recipe="SST-2", learning_rate=3e-5)
    # google-research/albert run_glue.sh: SST-2 with batches of 32, 20,935 steps, 1,256 of them warm-up.
    assert (run.learning_rate, run.batch_size, run.steps) == (3e-5, 32, 20935)
    assert run.warmup * run.steps == pytest.approx(1256)


def test_names_without_regard_to_case_and_hyphens() -> None:
    assert find_recipe("SST-2", "classification") == RECIPES["sst2"][1]
    assert find_recipe("race_V2", "multiple-choice") == RECIPES["race-v2"][1]
    assert find_recipe("sst2", "regression") is None


def test_unknown_names_and_other_tasks() -> None:
    with pytest.raises(
        InputError, match="expected one of stsb, for task regression; 'sst2' is one of task classification"
    ):
        recipe_fields("sst2", "regression")
    with pytest.raises(
        InputError, match="expected none, as nothing is published for it, for task tagging; 'x' is unknown"
    ):
        recipe_fields("x", "tagging")
