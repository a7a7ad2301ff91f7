"""`albert_tf.training.pruning`: what is measured on the way, for tasks of every kind."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_exports import BASE
from tiny_models import example_inputs
from tiny_tasks import EXAMPLES, tiny_task

from albert_tf.errors import InputError
from albert_tf.evaluation.evaluate import evaluate
from albert_tf.presets import load_checkpoint
from albert_tf.training.pruning import (
    PruneRequest,
    _without_head,
    model_of,
    prune,
    pruned_shapes,
    wanted_shape,
    write_pruned,
)


@pytest.mark.parametrize(
    ("heads", "columns", "shape"),
    [(None, None, (4, 64)), (3, None, (3, 64)), (0.5, 0.25, (2, 16)), (0.1, 0.99, (1, 63)), (1, 1, (1, 1))],
)
def test_numbers_and_shares(heads: Any, columns: Any, shape: tuple[int, int]) -> None:
    assert wanted_shape(BASE, PruneRequest(heads=heads, columns=columns)) == shape


def test_a_share_of_all_is_no_pruning() -> None:
    with pytest.raises(InputError, match="--heads: expected 1 to 3, of 4 there are"):
        wanted_shape(BASE, PruneRequest(heads=0.95))


@pytest.mark.parametrize(
    ("name", "metric"), [("question-answering", "f1"), ("similarity", "spearman"), ("tagging", "f1")]
)
def test_the_metric_is_the_tasks_own(name: str, metric: str, tmp_path: Path) -> None:
    task, examples = tiny_task(name), EXAMPLES[name][1]
    task.save_pretrained(tmp_path / "run")
    request = PruneRequest(heads=2, criterion="magnitude", valid=(examples, "examples"))
    pruned, record = prune(
        load_checkpoint(tmp_path / "run"), request, stored_bytes=lambda name, shape: 1.0, report=lambda line: None
    )
    assert record["metric"] == metric
    assert record["valid_before"] == evaluate(task, examples, source="examples")
    assert [(row["heads"], row["columns"]) for row in record["sensitivity"]] == [(4, 64), (2, 64)]
    assert record["after"]["int8_bytes"] == len(pruned.weights)
    write_pruned(pruned, record, tmp_path / "out", overwrite=False)
    assert evaluate(type(task).from_pretrained(tmp_path / "out"), examples, source="examples") == record["valid"]


def test_a_head_left_out_is_a_head_masked(tmp_path: Path) -> None:
    """Also where there are several blocks, of which one alone cannot have fewer heads."""
    task = tiny_task("regression")
    task.save_pretrained(tmp_path / "run")
    checkpoint = load_checkpoint(tmp_path / "run")
    silenced = _without_head(checkpoint, 0, 2)
    inputs = example_inputs()
    encoder = task.backbone.encoder
    heads, columns = np.ones((3, BASE.num_heads), np.float32), np.ones((3, BASE.intermediate_dim), np.float32)
    heads[:, 2] = 0.0
    encoder.masks = lambda number: (heads, columns)
    expected = np.asarray(task(inputs, training=False))
    encoder.masks = None
    model = type(task).from_checkpoint(silenced)
    np.testing.assert_allclose(model(inputs, training=False), expected, rtol=0, atol=1e-6)
    assert np.abs(expected - np.asarray(task(inputs, training=False))).max() > 1e-3


def test_narrower_checkpoints_are_those_of_prune(tmp_path: Path) -> None:
    task, examples = tiny_task("classification"), EXAMPLES["classification"][1]
    task.save_pretrained(tmp_path / "run")
    checkpoint = load_checkpoint(tmp_path / "run")
    whole = {name: weight.copy() for name, weight in checkpoint.weights.items()}
    data, lines = (examples, "examples"), list[str]()
    found = dict(pruned_shapes(checkpoint, (1.0, 0.5), data, most_examples=10, report=lines.append))
    assert list(found) == [(4, 32), (2, 64), (2, 32)] and lines == ["gradients of 2 examples of examples"]
    for (heads, columns), narrower in found.items():
        request = PruneRequest(heads=heads if heads < 4 else None, columns=columns if columns < 64 else None, data=data)
        expected, _ = prune(checkpoint, request, stored_bytes=lambda name, shape: 1.0, report=lambda line: None)
        assert narrower.config == expected.config
        for name, weight in expected.weights.items():
            np.testing.assert_array_equal(narrower.weights[name], weight)
        assert model_of(narrower).count_params() == sum(weight.size for weight in expected.weights.values())
    # Models take weights out of a checkpoint; these stay whole.
    assert checkpoint.weights.keys() == whole.keys()
