"""`albert_tf.training.distill_runs` and its recipes: what is told, what is published, and what does not go together."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from albert_tf.errors import InputError
from albert_tf.training.distill_runs import (
    DISTILL_RUNS,
    DistillClassificationRun,
    DistillFillMaskRun,
    DistillQuestionAnsweringRun,
    DistillRegressionRun,
    DistillSimilarityRun,
    DistillTaggingRun,
)
from albert_tf.training.distillation_recipes import RECIPES
from albert_tf.training.run_page import command_line
from albert_tf.training.task_runs import RUNS


def run_of(run_class: Any, **changes: Any) -> Any:
    return run_class.of(**{"out": "out", "train": "train.tsv", "teacher": "runs/large"} | changes)


def test_every_task_that_is_finetuned_is_distilled_with_the_same_settings() -> None:
    tasks = {run_class.task: run_class for run_class, _ in DISTILL_RUNS}
    assert tasks.keys() == {run_class.task for run_class, _ in RUNS} | {"fill-mask"}
    for run_class, _ in RUNS:
        fields = {field.name: field for field in dataclasses.fields(tasks[run_class.task])}
        for field in dataclasses.fields(run_class):
            if (run_class.task, field.name) != ("similarity", "loss"):
                assert fields[field.name].default == field.default


def test_a_student_starts_from_its_teacher() -> None:
    run = run_of(DistillClassificationRun, layers=4)
    assert run.source == "runs/large" and run.shape_changes == {"num_layers": 4} and run.best_metric == "accuracy"
    assert (run.hard, run.soft_weight, run.soft_temperature) == (0.5, 0.5, 2.0)
    assert command_line(run, ["distill", "classification"]) == (
        "albert-tf distill classification --out out --train train.tsv --teacher runs/large --layers 4"
    )
    scratch = run_of(DistillClassificationRun, from_scratch="albert_tiny_en")
    assert scratch.source is None and scratch.tokenizer == "runs/large"
    assert run_of(DistillClassificationRun, hidden_dim=128).shape_changes == {
        "hidden_dim": 128,
        "intermediate_dim": 512,
    }
    assert run_of(DistillSimilarityRun).hard == 0.0 and run_of(DistillRegressionRun).soft_temperature == 1.0


def test_embeddings_of_another_system_are_the_vectors_of_finetune() -> None:
    run = DistillSimilarityRun(out="out", train="t.txt", source="runs/small", teacher_outputs="t.npy")
    assert run.vectors == "t.npy" and run.loss == "vectors"
    words = {"out": "out", "train": "t.txt", "source": "s", "teacher_words": "w.npy"}
    assert DistillSimilarityRun(teacher_outputs="t.npy", **words).word_weight == 1.0
    for changes, message in (
        ({"teacher": "runs/large"}, "--teacher-words goes with --teacher-outputs"),
        ({"teacher_outputs": "t.npy", "random_depth": 1}, "--teacher-words: is learned after the last pass"),
        ({"teacher_outputs": "t.npy", "word_weight": 0.0}, "word-weight"),
        ({"teacher_outputs": "t.npy", "teacher_words": None, "word_weight": 2.0}, "--word-weight goes with"),
    ):
        with pytest.raises(InputError, match=message):
            DistillSimilarityRun(**words | changes)
    with pytest.raises(InputError, match="--vectors: embeddings of another system are --teacher-outputs here"):
        run_of(DistillSimilarityRun, vectors="t.npy")


def test_layer_maps() -> None:
    def pairs(layer_map: str) -> Any:
        return run_of(DistillClassificationRun, hidden_weight=1.0, layer_map=layer_map).layer_pairs(4, 12)

    assert pairs("uniform") is None and pairs("last") == ((4, 12),) and pairs("0:0,2:7") == ((0, 0), (2, 7))


@pytest.mark.parametrize(("name", "task"), sorted(RECIPES))
def test_recipes_set_what_they_say(name: str, task: str) -> None:
    run_class = {own.task: own for own, _ in DISTILL_RUNS}[task]
    run = run_of(run_class, recipe=name.upper())
    for field, value in RECIPES[name, task].items():
        assert getattr(run, field) == value
    assert run_of(run_class, recipe=name, epochs=1.0).epochs == 1.0
    assert name in run_class.flag_help("recipe")


def test_recipes_that_there_are_not() -> None:
    with pytest.raises(InputError, match="expected none, as nothing is published for it, for task tagging"):
        run_of(DistillTaggingRun, recipe="tinybert")
    with pytest.raises(
        InputError, match="expected tinybert, tinybert-prediction, for task classification; 'sst2' is unknown"
    ):
        run_of(DistillClassificationRun, recipe="sst2")


@pytest.mark.parametrize(
    ("run_class", "changes", "message"),
    [
        (DistillClassificationRun, {"teacher": None}, "give either --teacher MODEL, or --teacher-outputs FILE"),
        (DistillClassificationRun, {"teacher_outputs": "t.npy"}, "give either --teacher MODEL"),
        (DistillClassificationRun, {"teacher": None, "teacher_outputs": "t.npy"}, "no teacher whose weights"),
        (
            DistillTaggingRun,
            {"teacher": None, "teacher_outputs": "t.npy", "source": "s"},
            "belong to tokens or options",
        ),
        (
            DistillClassificationRun,
            {"teacher": None, "teacher_outputs": "t.npy", "source": "s", "hidden_weight": 1.0},
            "holds no inner states",
        ),
        (DistillClassificationRun, {"soft_weight": 0.0, "hard_weight": 0.0}, "every weight is 0"),
        (DistillClassificationRun, {"soft_weight": 0.0}, "nothing is learned of the teacher"),
        (
            DistillClassificationRun,
            {"teacher": None, "teacher_outputs": "t.npy", "source": "s", "soft_weight": 0.0},
            "nothing is learned of --teacher-outputs",
        ),
        (DistillClassificationRun, {"soft_weight": -1.0}, "--soft-weight: expected a number at least 0"),
        (DistillClassificationRun, {"temperature": 0.0}, "--temperature: expected a number above 0"),
        (DistillRegressionRun, {"temperature": 2.0}, "regression has no logits to divide"),
        (DistillSimilarityRun, {"hard_weight": 1.0}, "the texts of similarity have no labels"),
        (DistillSimilarityRun, {"loss": "cosine"}, "--loss: expected one of vectors"),
        (
            DistillClassificationRun,
            {"hidden_weight": 1.0, "layer_map": "1-2"},
            "--layer-map: expected uniform, last or",
        ),
        (DistillClassificationRun, {"layer_map": "last"}, "--layer-map goes with --hidden-weight"),
        (DistillClassificationRun, {"hidden_loss": "cosine"}, "--hidden-loss goes with --hidden-weight"),
        (DistillClassificationRun, {"hidden_weight": 1.0, "random_depth": 1}, "they need passes that it leaves out"),
        (
            DistillClassificationRun,
            {"recipe": "tinybert", "valid": "dev.tsv"},
            "--valid: only inner states are learned",
        ),
        (DistillClassificationRun, {"recipe": "tinybert", "early_exit": "entropy"}, "--early-exit: only inner states"),
        (
            DistillClassificationRun,
            {"source": "runs/small", "hidden_dim": 64},
            "--hidden-dim: the weights of runs/small",
        ),
        (DistillClassificationRun, {"source": "runs/small", "heads": 4}, "--heads: the weights of runs/small"),
        (DistillClassificationRun, {"layers": 0}, "--layers: expected a number at least 1"),
        (DistillQuestionAnsweringRun, {"augment": 2}, "another word in a passage can be its answer"),
        (DistillClassificationRun, {"augment_from": "runs/mlm"}, "--augment-from goes with --augment N"),
        (DistillClassificationRun, {"augment_probability": 0.0}, "--augment-probability: expected a number above 0"),
        (
            DistillClassificationRun,
            {"teacher": None, "teacher_outputs": "t.npy", "source": "s", "augment": 1},
            "has none for new texts",
        ),
        (DistillFillMaskRun, {"valid": "dev.txt"}, "no figures are taken of models that fill masks"),
        (DistillFillMaskRun, {"masked_share": 0.9}, "--masked-share: expected a number above 0.0 and below 0.9"),
    ],
)
def test_settings_that_do_not_go_together(run_class: Any, changes: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_of(run_class, **changes)


def test_saved_and_read_again(tmp_path: Path) -> None:
    for run_class, _ in DISTILL_RUNS:
        run = run_of(run_class, layers=2)
        (tmp_path / "run.json").write_text(run.to_json(), encoding="utf-8")
        assert run_class.read(tmp_path / "run.json") == run
