"""`finetune --quantization-aware`: what it trains, what it keeps, and what the exported file makes of it."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from safetensors.numpy import load_file
from tiny_data import PulledPlug, TinyFiles, pull_plug, run_quietly, tiny_run
from tiny_exports import CONFIGS, FIXED_LENGTH, new_classifier, random_inputs

from albert_tf.errors import InputError
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.training import finetune_rounds
from albert_tf.training.quantization_aware import quantization_variables, quantize_in_training
from export import device_graph
from export.quantization import recipe_by_name


def probabilities(task: Any, rows: list[Any]) -> np.ndarray:
    return np.array([outputs["probabilities"] for outputs in task.run_rows(rows)])


def file_probabilities(task: Any, rows: list[Any], seen: list[Any], monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """What the int8 file with ranges from the rows `seen` gives."""
    pytest.importorskip("ai_edge_quantizer")
    monkeypatch.setattr(device_graph, "_calibration_rows", lambda *args: seen)
    recipe = recipe_by_name("int8")
    model = device_graph.convert(task, recipe, form="unrolled", length=FIXED_LENGTH, calibration=["seen"])
    run = Interpreter(model_content=model).get_signature_runner()
    mask = np.ones((1, FIXED_LENGTH), np.int32)
    arrays = [(np.array([ids], np.int32), np.array([segments], np.int32)) for ids, segments in rows]
    return np.array([run(token_ids=a, segment_ids=b, padding_mask=mask)["probabilities"][0] for a, b in arrays])


def test_the_model_in_training_is_nearer_to_the_file_than_in_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = [random_inputs(FIXED_LENGTH, seed=seed) for seed in range(40)]
    rows = [random_inputs(FIXED_LENGTH, seed=seed) for seed in range(100, 140)]
    task = new_classifier(CONFIGS["all"])
    in_file, in_floats = file_probabilities(task, rows, seen, monkeypatch), probabilities(task, rows)
    task = new_classifier(CONFIGS["all"])
    assert quantize_in_training(task, seen, 0) == 9  # projection, six of the shared block, pooler, head
    in_training = probabilities(task, rows)
    # Measured: 0.80 on one CPU, less on another, whose files round otherwise.
    assert np.abs(in_training - in_file).mean() < 0.9 * np.abs(in_floats - in_file).mean()
    # It is the same rounding, not as much of another.
    errors = (in_training - in_floats).ravel(), (in_file - in_floats).ravel()
    assert np.corrcoef(*errors)[0, 1] > 0.6


def test_every_pass_has_ranges_of_its_own_and_weights_are_one_set() -> None:
    task = new_classifier(CONFIGS["all"])
    names = task.named_weights().keys()
    quantize_in_training(task, [random_inputs(FIXED_LENGTH, seed=seed) for seed in range(8)], 0)
    assert task.named_weights().keys() == names
    variables = quantization_variables(task)
    query = {name: value.numpy() for name, value in variables.items() if name.startswith("encoder/attention_0/query/")}
    assert [name.rpartition("/")[2] for name in query] == ["smooth", "size", "range_0", "range_1", "range_2"]
    ranges = [query[f"encoder/attention_0/query/range_{step}"] for step in range(3)]
    assert not np.allclose(ranges[0], ranges[1]) and not np.allclose(ranges[1], ranges[2])
    assert [name for name in variables if name.startswith("pooler/")] == [
        f"pooler/{name}" for name in ("smooth", "size", "range_0")
    ]
    own = new_classifier(CONFIGS["none, inner 2"])  # a block of its own in each layer, two steps of each
    quantize_in_training(own, [random_inputs(FIXED_LENGTH)], 0)
    steps = [name for name in quantization_variables(own) if name.startswith("encoder/attention_2/query/range_")]
    assert len(steps) == 1


@pytest.fixture
def second_run(tiny_files: TinyFiles, finished_run: Path, tmp_path: Path) -> Any:
    """A short last training of a run, with dropout."""
    changes: dict[str, Any] = {"from_scratch": None, "tokenizer": None, "source": str(finished_run), "epochs": 2.0}
    return tiny_run(tiny_files, tmp_path / "whole", learning_rate=1e-3, quantization_aware=True, **changes)


def test_an_interrupted_run_goes_on_to_the_same_weights(
    second_run: Any, finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    run_quietly(second_run, lines.append)
    assert "9 dense layers are rounded to 8 bits in training and its validations" in lines
    again = dataclasses.replace(second_run, out=str(tmp_path / "again"))
    with monkeypatch.context() as patch, pytest.raises(PulledPlug):
        patch.setattr(finetune_rounds, "save_state", pull_plug(finetune_rounds.save_state, 2))
        run_quietly(again)
    run_quietly(again)
    ours, theirs, before = (
        load_file(folder / "weights.safetensors") for folder in (tmp_path / "whole", tmp_path / "again", finished_run)
    )
    assert ours.keys() == before.keys()  # no ranges among them
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)
    assert not np.array_equal(ours["encoder/attention_0/query/kernel"], before["encoder/attention_0/query/kernel"])
    model = AlbertTextClassifier.from_pretrained(tmp_path / "whole")
    assert quantization_variables(model) == {}
    histories = [json.loads((tmp_path / name / "history.json").read_text("utf-8")) for name in ("whole", "again")]
    losses = [[figures["valid_loss"] for figures in history] for history in histories]
    assert losses[0] == losses[1]


def test_additions_of_low_rank_are_rounded_with_their_matrix(second_run: Any) -> None:
    metrics = run_quietly(dataclasses.replace(second_run, lora_rank=2, epochs=1.0, accumulate=2))
    assert metrics["trained_parameters"] < metrics["parameters"]


@pytest.mark.parametrize(
    ("changes", "flag"),
    [
        ({"precision": "mixed_bfloat16"}, "--precision: what is rounded"),
        ({"random_depth": 1}, "--random-depth: a full-integer file makes all passes"),
        ({"early_exit": "patience"}, "--early-exit: a full-integer file makes all passes"),
        ({"rematerialize": True}, "--rematerialize: a layer"),
        ({"strategy": "mirrored"}, "--strategy: ranges"),
    ],
)
def test_what_does_not_go_with_it(changes: dict[str, Any], flag: str, second_run: Any) -> None:
    with pytest.raises(InputError, match=f"--quantization-aware does not go with {flag}"):
        dataclasses.replace(second_run, **changes)


def test_it_is_for_trained_weights(tiny_files: TinyFiles, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not go with --from-scratch: ranges of 8 bits are those of trained"):
        tiny_run(tiny_files, tmp_path / "run", quantization_aware=True)
