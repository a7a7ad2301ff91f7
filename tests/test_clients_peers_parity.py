"""`albert-tf convert --verify`, run live: each framework reads its own files and agrees, whatever the head."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from peer_models import random_weights
from tiny_models import TINY

from albert_tf.config import AlbertConfig
from albert_tf.conversion.huggingface import write_huggingface
from albert_tf.conversion.keras_hub import write_keras_hub
from albert_tf.conversion.model_garden import write_model_garden
from albert_tf.evaluation.parity import check_differences, check_written, compare_with_framework
from albert_tf.presets import load_checkpoint

pytestmark = pytest.mark.clients

GROUPED = dataclasses.replace(TINY, num_layers=6, num_groups=3, num_inner_repetitions=2)
KERAS_HUB_MLM = dataclasses.replace(TINY, masked_lm_layer_norm_epsilon=1e-5)
RELU = dataclasses.replace(TINY, activation="relu")
ERF = dataclasses.replace(TINY, activation="gelu_erf", embedding_dim=16)
TASKS = {"classifier": 3, "multi_label": 4, "token_classification": 5, "question_answering": 2, "multiple_choice": 1}


def weights_with(config: AlbertConfig, heads: str) -> dict[str, np.ndarray]:
    """Of the encoder and the heads named, with plus signs between them."""
    names = set(heads.split("+"))
    weights = random_weights(config, heads=True)
    dropped = {"masked_lm", "sentence_order"} - names
    weights = {name: weight for name, weight in weights.items() if name.partition("/")[0] not in dropped}
    random = np.random.default_rng(9)
    for name in sorted(names & TASKS.keys()):
        weights[f"{name}/kernel"] = random.standard_normal((config.hidden_dim, TASKS[name])).astype(np.float32)
        weights[f"{name}/bias"] = random.standard_normal(TASKS[name]).astype(np.float32)
    return weights


@pytest.mark.parametrize(
    ("write", "config", "heads"),
    [
        (write_huggingface, TINY, "masked_lm+sentence_order"),
        (write_huggingface, GROUPED, "masked_lm"),
        (write_huggingface, RELU, ""),
        (write_huggingface, ERF, "classifier"),
        (write_huggingface, TINY, "token_classification"),
        (write_huggingface, TINY, "multi_label"),
        (write_huggingface, TINY, "question_answering"),
        (write_huggingface, TINY, "multiple_choice"),
        (write_keras_hub, TINY, ""),
        (write_keras_hub, GROUPED, "classifier"),
        (write_keras_hub, KERAS_HUB_MLM, "masked_lm"),
        (write_model_garden, TINY, "masked_lm+sentence_order"),
        (write_model_garden, ERF, ""),
        (write_model_garden, RELU, "classifier"),
        (write_model_garden, TINY, "token_classification"),
        (write_model_garden, TINY, "question_answering"),
    ],
)
@pytest.mark.filterwarnings("error:Skipping variable loading")  # of an optimizer that nobody asked for
def test_the_framework_agrees(write: Callable[..., Any], config: AlbertConfig, heads: str, tmp_path: Path) -> None:
    weights = weights_with(config, heads)
    write(tmp_path / "out", config, weights, None)
    written = load_checkpoint(tmp_path / "out")
    check_written(weights, written)
    compared = compare_with_framework(written)
    outputs = [difference.output for difference in compared]
    layers = [f"layer {n}" for n in range(1, config.num_layers + 1)]
    assert outputs[: len(layers) + 2] == [*layers, "sequence_output", "pooled_output"]
    assert set(outputs[len(layers) + 2 :]) == {f"{head}_logits" for head in heads.split("+") if head}
    check_differences(compared, "x")
    assert all(difference.scale > 1e-2 for difference in compared)


@pytest.mark.parametrize("write", [write_huggingface, write_keras_hub, write_model_garden])
def test_other_weights_do_not_agree(write: Callable[..., Any], tmp_path: Path) -> None:
    weights = weights_with(TINY, "")
    write(tmp_path / "out", TINY, weights, None)
    written = load_checkpoint(tmp_path / "out")
    other = dataclasses.replace(
        written, weights=written.weights | {"pooler/bias": written.weights["pooler/bias"] + 1e-2}
    )
    failed = [difference.output for difference in compare_with_framework(other) if not difference.passed]
    assert failed == ["pooled_output"]
