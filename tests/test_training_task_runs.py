"""`albert_tf.training.run_config` and `task_runs`: fields, flags and run.json agree; nothing unusable gets through."""

import argparse
import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest
from tiny_data import flags

from albert_tf.errors import InputError
from albert_tf.training.task_runs import ClassificationRun, SimilarityRun

BASE = {"train": "train.tsv", "out": "runs/x", "source": "albert.tar.gz"}
FIELDS = dataclasses.fields(ClassificationRun)


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="test")
    ClassificationRun.add_flags(result)
    return result


def parsed(*words: str) -> ClassificationRun:
    return ClassificationRun.from_flags(parser().parse_args(words))


def test_every_field_is_a_flag_with_help_and_default() -> None:
    actions = {action.dest: action for action in parser()._actions}
    assert actions.keys() - {"help"} == {field.name for field in FIELDS}
    help_text = " ".join(parser().format_help().split())
    for field in FIELDS:
        action = actions[field.name]
        assert action.option_strings == [ClassificationRun.flag_name(field.name)]
        assert len(action.help) > 15
        if field.default is dataclasses.MISSING:
            assert action.required
        elif isinstance(field.default, bool):
            assert action.nargs == 0
        elif field.default is not None:
            assert f"(default {field.default})" in action.help and action.help in help_text
    assert "MISSING" not in help_text and "None" not in help_text


def test_flags_without_values_give_the_defaults() -> None:
    assert parsed("--train", "train.tsv", "--out", "runs/x", "--from", "albert.tar.gz") == ClassificationRun(**BASE)


def test_flags_and_fields_say_the_same() -> None:
    """Every field set to something that is not its default."""
    other = {str: "words", float: 0.25, int: 7, bool: True}
    values: dict[str, Any] = {}
    for field in FIELDS:
        kinds = [kind for kind in other if field.type == kind or field.type == kind | None]
        values[field.name] = field.metadata["choices"][-1] if "choices" in field.metadata else other[kinds[0]]
    # What does not go with the rest has its default.
    usual = {"source": None, "glue": None, "jit": False, "random_depth": None, "quantization_aware": False}
    values |= usual | {"recipe": "cola", "freeze": "encoder", "early_exit": "entropy"}
    run = ClassificationRun(**values)
    assert all(getattr(run, f.name) != f.default for f in FIELDS if f.name not in usual)
    assert parsed(*flags(run)[2:]) == run
    assert ClassificationRun(**json.loads(run.to_json())) == run


def test_run_json_round_trip(tmp_path: Path) -> None:
    run = ClassificationRun(**BASE | {"text_column": "Übung", "epochs": 0.5, "validate_every": 10})
    (tmp_path / "run.json").write_text(run.to_json(), encoding="utf-8")
    assert ClassificationRun.read(tmp_path / "run.json") == run
    assert json.loads(run.to_json())["text_column"] == "Übung" and "Übung" in run.to_json()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "line 1: not JSON"),
        ("[]", "not a saved run"),
        ('{"train": "a"}', "not a saved run of this command and version .*'out'"),
        ('{"train": "a", "out": "b", "source": "c", "momentum": 1}', "not a saved run of this .* version .*momentum"),
        ('{"train": "a", "out": "b", "source": "c", "epochs": "3"}', "not a saved run"),
        ('{"train": "a", "out": "b", "source": "c", "epochs": 0}', "--epochs: expected a number above 0"),
    ],
)
def test_what_is_not_a_saved_run(tmp_path: Path, content: str, expected: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(InputError, match=expected):
        ClassificationRun.read(tmp_path / "run.json")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"source": None}, "give either --from CHECKPOINT, or --from-scratch"),
        ({"from_scratch": "albert_base_v2", "tokenizer": "a.model"}, "give either --from CHECKPOINT"),
        ({"tokenizer": "a.model"}, "--tokenizer goes with --from-scratch"),
        ({"source": None, "from_scratch": "albert_base_v2"}, "--tokenizer goes with --from-scratch"),
        ({"best_metric": "f2"}, "--best-metric: expected one of accuracy, f1, .*; got 'f2'"),
        (
            {"precision": "float16"},
            "--precision: expected one of float32, mixed_bfloat16, mixed_float16; got 'float16'",
        ),
        ({"patience": 2}, "--patience: goes with --valid"),
        ({"freeze": "everything"}, "--freeze: expected embeddings, encoder, backbone or a number of layers from 1"),
        ({"freeze": "0"}, "--freeze: expected .* got '0'"),
        ({"freeze": "²"}, "--freeze: expected .* got '²'"),
        ({"lora_alpha": 8.0}, "--lora-alpha goes with --lora-rank"),
        ({"lora_rank": 4, "freeze": "2"}, "--freeze 2: --lora-rank freezes all layers already"),
        ({"jit": True, "accumulate": 2}, "--jit does not go with --accumulate: XLA compiles every size"),
        ({"jit": True, "batch_tokens": 2048}, "--jit does not go with --batch-tokens"),
    ],
    ids=str,
)
def test_what_does_not_go_together(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        ClassificationRun(**BASE | changes)


@pytest.mark.parametrize(
    ("name", "usable", "unusable"),
    [
        ("epochs", [0.01, 1, 100.0], [0, -1.0]),
        ("batch_size", [1, 4096], [0, -1]),
        ("learning_rate", [1e-9, 1.0], [0.0, -1e-3]),
        ("warmup", [0.0, 0.99], [-0.1, 1.0]),
        ("weight_decay", [0.0, 1.0], [-0.1]),
        ("clip_norm", [0.0, 10.0], [-1.0]),
        ("max_length", [3, 512], [2, 0]),
        ("hidden_dropout", [None, 0.0, 0.99], [1.0, -0.1]),
        ("attention_dropout", [None, 0.0, 0.99], [1.0, -0.1]),
        ("classifier_dropout", [0.0, 0.99], [1.0, -0.1]),
        ("validate_every", [None, 1], [0, -5]),
        ("seed", [0, 2**32 - 1], [-1, 2**32]),
        ("steps", [None, 1], [0]),
        ("batch_tokens", [None, 1], [0]),
        ("accumulate", [1, 8], [0, -1]),
        ("lora_rank", [None, 1], [0]),
        ("layer_decay", [0.1, 1.0], [0.0, 1.1, -0.5]),
    ],
)
def test_ranges(name: str, usable: list[Any], unusable: list[Any]) -> None:
    for value in usable:
        assert getattr(ClassificationRun(**BASE | {name: value}), name) == value
    for value in [*unusable, math.nan, math.inf]:
        with pytest.raises(
            InputError, match=rf"{ClassificationRun.flag_name(name)}: expected a (finite )?number .*, got {value}"
        ):
            ClassificationRun(**BASE | {name: value})


def test_train_and_out_are_needed() -> None:
    with pytest.raises(TypeError):
        ClassificationRun(source="albert.tar.gz")


def test_differences_name_the_flags_and_both_values() -> None:
    old, new = (
        ClassificationRun(**BASE),
        ClassificationRun(**BASE | {"seed": 3, "source": "other", "rematerialize": True}),
    )
    assert new.differences(old) == [
        "--from albert.tar.gz → other",
        "--rematerialize False → True",
        "--seed 0 → 3",
    ]
    assert old.differences(ClassificationRun(**BASE)) == []


def test_wrong_kinds_of_value_are_refused_by_the_parser(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (("--epochs", "many"), ("--batch-size", "1.5"), ("--precision", "float64")):
        with pytest.raises(SystemExit):
            parsed("--train", "a", "--out", "b", "--from", "c", *words)
        assert f"argument {words[0]}: invalid" in capsys.readouterr().err


def test_a_recipe_fills_what_is_not_given() -> None:
    base = ("--train", "a", "--out", "b", "--from", "c")
    run = parsed(*base, "--recipe", "SST-2", "--batch-size", "32", "--learning-rate", "2e-5")
    assert (run.recipe, run.steps, run.max_length, run.batch_size, run.learning_rate) == ("SST-2", 20935, 512, 32, 2e-5)
    assert round(run.warmup * run.steps) == 1256
    assert ClassificationRun.of(**BASE, recipe="mnli").batch_size == 128
    assert json.loads(run.to_json())["steps"] == 20935
    assert ClassificationRun(**json.loads(run.to_json())) == run
    for name, expected in (("stsb", "task regression"), ("imdb", "unknown")):
        with pytest.raises(InputError, match=f"--recipe: expected one of cola, .*{expected}"):
            parsed(*base, "--recipe", name)


def test_parts_of_a_batch_have_too_few_wrong_answers() -> None:
    with pytest.raises(InputError, match="--accumulate does not go with --loss contrastive"):
        SimilarityRun(**BASE, loss="contrastive", accumulate=2)
    assert SimilarityRun(**BASE, loss="cosine", accumulate=2).accumulate == 2
