"""`albert_tf.training.random_depth`: which depths are drawn, what a step of that depth trains, and resuming."""

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file
from tiny_data import PulledPlug, TinyFiles, pull_plug, run_quietly, tiny_run
from tiny_models import TINY, example_inputs, randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.layers.encoder import AlbertEncoder
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.training import finetune_rounds
from albert_tf.training.random_depth import draw_depths


def drawn(encoder: AlbertEncoder, optimizer: Any, steps: int) -> list[int]:
    assert encoder.drawn_depth is not None
    found = []
    for step in range(steps):
        optimizer.iterations.assign(step)
        found.append(int(encoder.drawn_depth()))
    return found


def test_depths_are_those_of_the_seed_and_the_step() -> None:
    encoder, optimizer = AlbertEncoder(TINY), keras.optimizers.SGD()
    draw_depths(encoder, 1, 7, optimizer)
    first = drawn(encoder, optimizer, 300)
    assert drawn(encoder, optimizer, 300) == first
    counts = Counter(first)
    assert counts.keys() == {1, 2, 3} and min(counts.values()) > 70
    draw_depths(encoder, 1, 8, optimizer)
    assert drawn(encoder, optimizer, 300) != first
    draw_depths(encoder, 2, 7, optimizer)
    assert set(drawn(encoder, optimizer, 60)) == {2, 3}
    with pytest.raises(InputError, match="--random-depth: expected 1 to 3, the layers of this model; got 4"):
        draw_depths(encoder, 4, 7, optimizer)


@pytest.mark.parametrize("fields", [{}, {"sharing": "none"}])
def test_a_step_trains_the_model_of_that_depth(fields: Any) -> None:
    """Loss and gradients are those of a model with two layers; layers that are not run have a gradient of 0."""
    config = dataclasses.replace(TINY, **fields)
    model = AlbertTextClassifier(AlbertBackbone(config), labels=["a", "b"], classifier_dropout=0.0)
    weights = randomize(model)
    short = AlbertTextClassifier(
        AlbertBackbone(dataclasses.replace(config, num_layers=2)), labels=["a", "b"], classifier_dropout=0.0
    )
    for variable in short.weights:
        variable.assign(weights[variable.path])
    batch = example_inputs(), {"label": np.array([0, 1, 1])}
    model.backbone.encoder.drawn_depth = lambda: tf.constant(2)
    model.compile("sgd")
    short.compile("sgd")
    loss, gradients = tf.function(model._gradients)(*batch)
    expected, wanted = tf.function(short._gradients)(*batch)
    assert float(loss) == pytest.approx(float(expected), rel=1e-5)
    by_name = {v.path: g for v, g in zip(short.trainable_variables, wanted, strict=True)}
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        if gradient is None:  # of a layer that is not run
            assert variable.path not in by_name
            continue
        value = tf.convert_to_tensor(by_name.get(variable.path, tf.zeros(variable.shape)))
        np.testing.assert_allclose(tf.convert_to_tensor(gradient), value, rtol=1e-3, atol=1e-5)
    # Only training is cut short.
    assert not np.allclose(model(batch[0]), short(batch[0]))


@pytest.fixture
def deeper(tiny_files: TinyFiles, tmp_path: Path) -> TinyFiles:
    """Files for a model of three layers."""
    shape = json.loads(tiny_files.shape.read_text(encoding="utf-8")) | {"num_layers": 3}
    (tmp_path / "shape.json").write_text(json.dumps(shape), encoding="utf-8")
    return dataclasses.replace(tiny_files, shape=tmp_path / "shape.json")


def test_an_interrupted_run_draws_what_it_would_have_drawn(
    deeper: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tiny_run(deeper, tmp_path / "whole", epochs=3.0, random_depth=1)
    run_quietly(run)
    again = dataclasses.replace(run, out=str(tmp_path / "again"))
    with monkeypatch.context() as patch, pytest.raises(PulledPlug):
        patch.setattr(finetune_rounds, "save_state", pull_plug(finetune_rounds.save_state, 2))
        run_quietly(again)
    run_quietly(again)
    ours, theirs = (load_file(tmp_path / name / "weights.safetensors") for name in ("whole", "again"))
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)
    model = AlbertTextClassifier.from_pretrained(tmp_path / "whole")
    assert model.exits is None and model.backbone.encoder.drawn_depth is None
    assert AlbertConfig.from_json(tmp_path / "whole" / "config.json").num_layers == 3


def test_in_bfloat16(deeper: TinyFiles, tmp_path: Path) -> None:
    """Where activations are fused, but for conditional passes."""
    run_quietly(tiny_run(deeper, tmp_path / "run", steps=2, random_depth=1, precision="mixed_bfloat16"))
    weights = load_file(tmp_path / "run" / "weights.safetensors")
    assert all(np.isfinite(values).all() for values in weights.values())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"random_depth": 0}, "--random-depth: expected a number at least 1"),
        ({"random_depth": 1, "rematerialize": True}, "--random-depth does not go with --rematerialize"),
        ({"random_depth": 1, "early_exit": "patience"}, "leave --random-depth out"),
        ({"exit_patience": 2}, "go with --early-exit RULE"),
        ({"exit_heads": "own"}, "go with --early-exit RULE"),
        ({"early_exit": "tolerance"}, "expected one of patience, confidence, entropy"),
        ({"early_exit": "confidence", "exit_threshold": -1.0}, "--exit-threshold: expected a number at least 0"),
        ({"early_exit": "patience", "exit_threshold": 0.5}, "asks for equal labels alone"),
        ({"early_exit": "patience", "exit_patience": 0}, "--exit-patience: expected a number at least 1"),
    ],
)
def test_settings_that_do_not_go_together(
    changes: dict[str, Any], message: str, tiny_files: TinyFiles, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        tiny_run(tiny_files, tmp_path / "run", **changes)
