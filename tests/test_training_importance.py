"""`albert_tf.training.importance`: gradients against finite differences of the loss, for every fine-tunable task."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tiny_exports import BASE
from tiny_models import randomize
from tiny_tasks import EXAMPLES, new_task, tiny_task

from albert_tf.backbone import AlbertBackbone
from albert_tf.data.pipeline import training_dataset
from albert_tf.errors import InputError
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.training.finetune import TASKS
from albert_tf.training.importance import gradient_importance
from albert_tf.training.tasks.finetune_task import TrainingRows

STEP = 1e-2


def rows_of(task: Any) -> TrainingRows:
    examples = EXAMPLES[task.task][1]
    return TASKS[task.task].training_rows(task, examples, pipeline_of(task).prepare(examples), "examples")


def slope(task: Any, rows: TrainingRows, step: int, *, head: int = -1, column: int = -1) -> float:
    """Σ over examples of |∂L/∂ξ| in one step of the schedule, by central differences of the losses of all examples."""
    config, encoder = task.backbone.config, task.backbone.encoder
    batches = training_dataset(
        rows.rows, rows.targets, batch_size=99, pad_id=0, seed=0, rows_per_example=rows.rows_per_example
    )
    ((x, y),) = batches.take(1)

    def losses(change: float) -> np.ndarray:
        def masks(number: int) -> Any:
            pair = [
                np.ones((len(rows.rows), width), np.float32) for width in (config.num_heads, config.intermediate_dim)
            ]
            if number == step:
                pair[0][:, head] += change * (head >= 0)
                pair[1][:, column] += change * (column >= 0)
            return pair

        encoder.masks = masks
        found = np.asarray(task.losses_of(y, task.training_outputs(x, training=False)))
        encoder.masks = None
        return found

    return float(np.abs(losses(STEP) - losses(-STEP)).sum() / (2 * STEP))


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_it_is_the_slope_of_the_loss(name: str) -> None:
    """One shared block and three passes: the slopes in the three are added."""
    task = tiny_task(name)
    rows = rows_of(task)
    found = gradient_importance(task, rows)
    assert [values.shape for values in (*found.heads, *found.columns)] == [(BASE.num_heads,), (BASE.intermediate_dim,)]
    head = int(np.argmax(found.heads[0]))
    by_head = sum(slope(task, rows, step, head=head) for step in range(BASE.num_layers))
    assert found.heads[0][head] == pytest.approx(by_head, rel=2e-2)
    assert task.backbone.encoder.masks is None


def test_batches_do_not_matter() -> None:
    task = tiny_task("regression")
    rows = rows_of(task)
    whole, single = gradient_importance(task, rows), gradient_importance(task, rows, batch_size=1)
    np.testing.assert_allclose(single.heads, whole.heads, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(single.columns, whole.columns, rtol=1e-3, atol=1e-6)
    column = int(np.argmax(whole.columns[0]))
    by_column = sum(slope(task, rows, step, column=column) for step in range(BASE.num_layers))
    assert whole.columns[0][column] == pytest.approx(by_column, rel=2e-2)


def test_blocks_of_their_own_and_early_exits() -> None:
    """A block's importance is that of its own passes; the loss is that of all depths, as in training."""
    from albert_tf.tasks.classification import AlbertTextClassifier

    config = dataclasses.replace(BASE, num_layers=2, sharing="attention", attention_dropout=0.5, hidden_dropout=0.5)
    tokenizer = tiny_task("classification").tokenizer
    exits = {"rule": "confidence", "patience": 1, "threshold": 0.9, "heads": "shared"}
    task = AlbertTextClassifier(AlbertBackbone(config), tokenizer, labels=["no", "yes"], exits=exits)
    randomize(task, scale=0.3)
    rows = rows_of(task)
    found = gradient_importance(task, rows)
    assert [len(found.heads), len(found.columns)] == [1, 2]
    by_head = sum(slope(task, rows, step, head=2) for step in range(2))
    assert found.heads[0][2] == pytest.approx(by_head, rel=2e-2)
    for block in range(2):
        assert found.columns[block][3] == pytest.approx(slope(task, rows, block, column=3), rel=2e-2)


def test_a_head_whose_output_goes_nowhere_does_not_matter() -> None:
    task = new_task("classification", labels=["no", "yes"])
    kernel = task.backbone.encoder.attention_blocks[0].output_dense.kernel
    kernel.assign(tf.tensor_scatter_nd_update(kernel, [[i] for i in range(8, 16)], tf.zeros((8, 32))))
    found = gradient_importance(task, rows_of(task)).heads[0]
    assert found[1] == 0 and (np.delete(found, 1) > 1e-4).all()


def test_what_is_no_number_is_refused() -> None:
    task = new_task("classification", labels=["no", "yes"])
    task.classifier.kernel.assign(tf.fill(task.classifier.kernel.shape, np.nan))
    with pytest.raises(InputError, match="gradients of the model's loss are NaN or infinite"):
        gradient_importance(task, rows_of(task))


def test_labels_of_another_loss_are_refused() -> None:
    task = new_task("similarity", objective="vectors")
    with pytest.raises(InputError, match="the model's loss asks for 'vector', which the labelled file does not give"):
        gradient_importance(task, rows_of(task))
